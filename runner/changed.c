#include "runner/changed.h"

#include <fcntl.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/bundle/bundle.h"

/* Writes the listing of the plan to the second file. */
static int get_listing(const struct df_context *c, const char *bundle, const char *listing,
                       struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (df_report_get_artifact(c->report, "plan", bundle, c->deadline_ms, err) < 0)
        return -1;
    int opened = df_fs_open_plain(bundle, O_RDONLY, 0, &fd, err);
    (void)unlink(bundle); /* it has secrets */
    return opened < 0 ? -1 : df_bundle_extract(fd, "files", listing, err);
}

const char *df_changed_since_plan(const struct df_context *c, char out[DF_LISTING_WORDS])
{
    DF_FREE char *bundle = df_fs_join(c->dirs->secret, "bundle");
    DF_FREE char *listing = df_fs_join(c->dirs->secret, "files");
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_SOURCE_LISTING);
    DF_CLEANUP(df_listing_free) struct df_listing before = {0};
    struct df_err ignored = {0};
    if (bundle && listing && get_listing(c, bundle, listing, &ignored) == 0 &&
        df_fs_read_plain(listing, &text, &ignored) == 0)
        df_listing_read(&before, df_buf_str(&text), text.len);
    return df_listing_differences(&before, &c->source.listing, out);
}
