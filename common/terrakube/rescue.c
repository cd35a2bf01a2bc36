#include "common/terrakube/rescue.h"

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "common/terrakube/log_read.h"
#include "common/terrakube/wire.h"

void df_terrakube_rescue_lines(const struct df_terrakube_settings *s,
                               const struct df_terrakube_payload *p, int fd)
{
    struct df_redis *redis = NULL;
    struct df_err why = {0};
    if (s->log_via_api || !df_terrakube_has_redis(s))
        return;
    if (df_terrakube_wire_new(s, &redis, &why) < 0 ||
        df_terrakube_log_read(redis, p, DF_LIMIT_TERRAKUBE_RESCUE, fd, &why) < 0)
        df_warn("the lines that step %s of Terrakube's job %s has in Redis are not saved, or not "
                "all of them: %s",
                p->step, p->job, why.message);
    df_redis_free(redis);
}

int df_terrakube_state_name(const struct df_terrakube_payload *p, char ret[37], struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    DF_FREE char *text = df_strf("the state of step %s", p->step);
    if (df_check_alloc(text, err) < 0 || df_sha256_hex(text, strlen(text), hex, err) < 0)
        return -1;
    /* Version 8 of RFC 9562: made by a rule of one's own. */
    (void)snprintf(ret, 37, "%.8s-%.4s-8%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12, hex + 15,
                   hex + 18);
    return 0;
}

/* Both forms: the second one is stored last. */
static int find_state(struct df_terrakube_storage *storage, const struct df_terrakube_payload *p,
                      const char *name, const char *path, bool *ret, struct df_err *err)
{
    static const enum df_terrakube_object forms[] = {DF_TERRAKUBE_OBJECT_STATE_JSON,
                                                     DF_TERRAKUBE_OBJECT_STATE_RAW};
    struct df_err why = {0};
    *ret = true;
    for (size_t i = 0; *ret && i < DF_ARRAY_SIZE(forms); i++) {
        *ret = df_terrakube_storage_get(storage, p, forms[i], name, path, &why) == 0;
        (void)unlink(path);
    }
    return *ret || why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

int df_terrakube_rescue_history(struct df_terrakube_api *api, struct df_terrakube_storage *storage,
                                const struct df_terrakube_payload *p, const char *path,
                                struct df_err *err)
{
    char name[37];
    bool is_stored = false, is_listed = false;
    if (df_terrakube_state_name(p, name, err) < 0 ||
        find_state(storage, p, name, path, &is_stored, err) < 0)
        return -1;
    if (!is_stored)
        return 0;
    if (df_terrakube_api_has_history(api, name, &is_listed, err) < 0)
        return -1;
    return is_listed ? 0 : df_terrakube_api_add_history(api, name, err);
}
