#include "spawner/requests/reserved.h"

#include "spawner/model/labels.h"

static const char *const maps[] = {"labels", "annotations"};

static int add_map(cJSON *metadata, const cJSON *marks, const char *map, struct df_err *err)
{
    const cJSON *m;
    cJSON_ArrayForEach (m, cJSON_GetObjectItemCaseSensitive(marks, map)) {
        if (!df_starts_with(m->string, DF_LABEL_PREFIX))
            continue;
        cJSON *to = df_json_object_at(metadata, map);
        if (df_json_set(to, m->string, cJSON_Duplicate(m, true), err) < 0)
            return -1;
    }
    return 0;
}

int df_add_reserved(cJSON *doc, const cJSON *marks, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(doc, "metadata");
    if (!metadata)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(maps); i++)
        if (add_map(metadata, marks, maps[i], err) < 0)
            return -1;
    return 0;
}

static int check_map(const cJSON *metadata, const cJSON *old, const char *map, struct df_err *err)
{
    const cJSON *before = cJSON_GetObjectItemCaseSensitive(old, map);
    const cJSON *m;
    cJSON_ArrayForEach (m, cJSON_GetObjectItemCaseSensitive(metadata, map)) {
        const cJSON *was = cJSON_GetObjectItemCaseSensitive(before, m->string);
        if (df_starts_with(m->string, DF_LABEL_PREFIX) && !(was && df_json_equal(m, was)))
            return df_fail_reason(
                err, DF_ERR_USER, "InvalidDocument",
                "metadata.%s[\"%.64s\"]: " DF_LABEL_PREFIX " is the service's own", map, m->string);
    }
    return 0;
}

int df_keep_reserved(cJSON *doc, const cJSON *old, struct df_err *err)
{
    const cJSON *before = df_json_at(old, "metadata");
    for (size_t i = 0; i < DF_ARRAY_SIZE(maps); i++)
        if (check_map(df_json_at(doc, "metadata"), before, maps[i], err) < 0)
            return -1;
    return df_add_reserved(doc, before, err);
}
