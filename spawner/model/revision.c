#include "spawner/model/revision.h"

#include "spawner/model/names.h"

int df_revision_set(cJSON *status, int64_t number, const char *author, const char *at,
                    struct df_err *err)
{
    if (df_json_set(status, "revision", cJSON_CreateNumber((double)number), err) < 0)
        return -1;
    return df_json_set(status, "revised", df_json_object(DF_STR("by", author), DF_STR("at", at)),
                       err);
}

int df_revision_name(const char *executor, int64_t number, char ret[64], struct df_err *err)
{
    char suffix[24];
    (void)snprintf(suffix, sizeof(suffix), "r%lld", (long long)number);
    return df_model_name(executor, suffix, ret, err);
}
