#include "runner/terrakube/unlock.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "runner/terrakube/commands.h"
#include "runner/terrakube/flow.h"
#include "runner/tofu/failure.h"

/* "2026-01-01 10:00:00.123 +0000 UTC". False for another form. */
static bool to_real_us(const char *text, int64_t *ret)
{
    static const char zone[] = " +0000 UTC";
    char copy[64];
    if (!df_ends_with(text, zone))
        return false;
    (void)snprintf(copy, sizeof copy, "%.*sZ", (int)(strlen(text) - strlen(zone)), text);
    return df_time_parse(copy, ret, NULL) == 0;
}

static bool is_this_host(const char *who)
{
    char host[256] = "";
    const char *at = strrchr(who, '@');
    return at && gethostname(host, sizeof host - 1) == 0 && *host && df_streq(at + 1, host);
}

/* Whoever took the lock here while the command ran is the command: it held the lock until its end,
 * as nobody else could. A destroy is an apply, too. */
static bool is_own(const struct df_context *c, const struct df_failure_holder *h)
{
    int64_t created;
    return *h->id && *h->id != '-' && df_streq(h->operation, "OperationTypeApply") &&
           is_this_host(h->who) && to_real_us(h->created, &created) &&
           df_terrakube_watch_ran(df_terrakube_of(c)->watch, created);
}

bool df_terrakube_unlock_own(struct df_context *c, const char *errors)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_FREE char *out = df_fs_join(c->dirs->secret, "unlock");
    struct df_failure failure;
    struct df_failure_holder holder;
    struct df_err why = {0};
    if (!out || df_fs_read_plain(errors, &text, NULL) < 0)
        return false;
    df_failure_from_text(df_buf_str(&text), &failure);
    df_failure_holder(&failure, &holder);
    if (!is_own(c, &holder))
        return false;
    const char *const unlock[] = {"force-unlock", "-force", holder.id, NULL};
    if (df_terrakube_command_save(c, unlock, out, &why) == 0)
        return true;
    df_warn("the lock that an ended command left could not be released: %s", why.message);
    return false;
}
