#include "spawner/store/store.h"

#define ATTEMPTS 16

/* 0: done; 1: another writer was faster; -1: failed. ret may be NULL. */
static int attempt_change(struct df_store *s, enum df_kind kind, const char *name,
                          df_store_change change, void *arg, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_store_get(s, kind, name, &doc, err) < 0)
        return -1;
    int verdict = change(doc, arg, err);
    if (verdict < 0)
        return -1;
    if (verdict > 0) {
        if (ret)
            *ret = DF_TAKE(doc);
        return 0;
    }
    if (df_store_update(s, kind, doc, ret, err) == 0)
        return 0;
    return df_streq(err->reason, "Conflict") ? 1 : -1;
}

int df_store_modify(struct df_store *s, enum df_kind kind, const char *name, df_store_change change,
                    void *arg, cJSON **ret, struct df_err *err)
{
    /* A conflict is no error if a later attempt succeeds, so err is set only at the end. */
    struct df_err why = {0};
    int result = 1;
    for (int i = 0; i < ATTEMPTS && result > 0; i++)
        result = attempt_change(s, kind, name, change, arg, ret, &why);
    return result == 0 ? 0 : df_err_pass(err, &why);
}
