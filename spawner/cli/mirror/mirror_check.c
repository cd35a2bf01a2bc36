#include "spawner/cli/mirror/mirror_check.h"

#include <errno.h>
#include <fcntl.h>

#include "common/crypto/crypto.h"
#include "common/providers/lockfile.h"
#include "spawner/cli/mirror/mirror_tool.h"

static bool has_scheme(const struct df_strs *hashes, const char *scheme)
{
    for (size_t i = 0; i < hashes->len; i++)
        if (df_starts_with(hashes->items[i], scheme))
            return true;
    return false;
}

/* The tool makes a lock file of the archive; its checksums of contents are those of this
 * archive. */
static int compare_content(const char *tool, const struct df_mirror_store *s, const char *root,
                           const struct df_mirror_package *p, bool *ret, struct df_err *err)
{
    DF_LOCKED struct df_lockfile made = {0};
    if (df_mirror_tool_lock(tool, s, root, p, &made, err) < 0)
        return -1;
    const struct df_locked_provider *l = df_lockfile_find(&made, p->archive.source);
    for (size_t i = 0; l && i < l->hashes.len; i++)
        *ret |= df_strs_has(p->hashes, l->hashes.items[i]);
    return 0;
}

static int check_locked(const char *tool, const struct df_mirror_store *s, const char *root,
                        const struct df_mirror_package *p, const char *hex, struct df_err *err)
{
    char zh[DF_SHA256_HEX + 3];
    bool is_locked = false;
    (void)snprintf(zh, sizeof(zh), "zh:%s", hex);
    if (!p->hashes || df_strs_has(p->hashes, zh))
        return 0;
    if (has_scheme(p->hashes, "h1:") && compare_content(tool, s, root, p, &is_locked, err) < 0)
        return -1;
    return is_locked
               ? 0
               : df_fail(err, DF_ERR_DENIED,
                         "its SHA-256 is %s, and .terraform.lock.hcl has neither that nor the "
                         "checksum of its content: it is not the package that was locked, or the "
                         "lock file has no checksums for this platform; `tofu providers lock "
                         "-platform=%s` adds those",
                         hex, p->archive.platform);
}

int df_mirror_check(const char *tool, const struct df_mirror_store *s, const char *root,
                    const struct df_mirror_package *p, int64_t *ret_size, struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    int64_t size = 0;
    DF_FREE char *archive = df_provider_archive_path(root, &p->archive);
    if (!archive)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(archive, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", archive);
    if (df_sha256_file_hex(fd, hex, &size, err) < 0 || check_locked(tool, s, root, p, hex, err) < 0)
        return -1;
    *ret_size = size;
    return 0;
}
