#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/store/vault/source_backends.h"

int df_source_add_value(cJSON *values, const char *name, const char *key, const char *value,
                        struct df_err *err)
{
    if (cJSON_GetArraySize(values) >= DF_LIMIT_SECRET_KEYS)
        return df_fail(err, DF_ERR_USER, "\"%s\" has more than %d keys", name,
                       DF_LIMIT_SECRET_KEYS);
    return df_json_add_str(values, key, value, err);
}

int df_source_add_name(cJSON *list, const char *name, struct df_err *err)
{
    if (!df_is_dns_label(name))
        return 0;
    cJSON *entry = cJSON_CreateObject();
    return df_json_append(list, entry, err) < 0 ? -1 : df_json_add_str(entry, "name", name, err);
}

int df_source_unreadable(const char *name, const char *key, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_SYSTEM, "SecretUnreadable", "the key %.64s of \"%s\": %s",
                          key, name, why);
}
