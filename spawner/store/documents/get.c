#include "spawner/store/store.h"

/* Exchanges the reference, if there is one. */
static int own(const cJSON *shared, cJSON **ret, struct df_err *err)
{
    *ret = df_shared_own(shared);
    return *ret || !shared ? 0 : df_fail_oom(err);
}

int df_store_get(struct df_store *s, enum df_kind kind, const char *name, cJSON **ret,
                 struct df_err *err)
{
    const cJSON *shared = NULL;
    return df_store_look(s, kind, name, &shared, err) < 0 ? -1 : own(shared, ret, err);
}

int df_store_find(struct df_store *s, enum df_kind kind, const char *name, cJSON **ret,
                  struct df_err *err)
{
    const cJSON *shared = NULL;
    return df_store_look_for(s, kind, name, &shared, err) < 0 ? -1 : own(shared, ret, err);
}

int df_store_get_by_uid(struct df_store *s, enum df_kind kind, const char *uid, cJSON **ret,
                        struct df_err *err)
{
    const cJSON *shared = NULL;
    return df_store_look_by_uid(s, kind, uid, &shared, err) < 0 ? -1 : own(shared, ret, err);
}
