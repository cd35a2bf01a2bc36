#include "runner/platform/platform.h"

const cJSON *df_platform_criterion(const struct df_platform *p, const char *component,
                                   const char *key)
{
    const cJSON *criteria = cJSON_GetObjectItemCaseSensitive(p->in->health, component);
    return cJSON_GetObjectItemCaseSensitive(criteria, key);
}

bool df_platform_allows_health(const struct df_platform *p, const char *component, const char *word)
{
    return df_streq(word, "Healthy") ||
           df_json_has_string(df_platform_criterion(p, component, "allowedHealth"), word);
}
