#include "spawner/model/labels.h"

int df_label_set(cJSON *doc, const char *label, const char *value, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(doc, "metadata");
    cJSON *labels = df_json_object_at(metadata, "labels");
    if (value)
        return df_json_set_str(labels, label, value, err);
    cJSON_DeleteItemFromObjectCaseSensitive(labels, label);
    return 0;
}

bool df_label_has(const cJSON *doc, const char *label)
{
    return cJSON_GetObjectItemCaseSensitive(df_json_at(doc, "metadata.labels"), label) != NULL;
}

const char *df_label_get(const cJSON *doc, const char *label)
{
    const cJSON *labels = df_json_at(doc, "metadata.labels");
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, label));
}

bool df_labels_match(const cJSON *doc, const cJSON *wanted)
{
    const cJSON *one, *labels = df_json_at(doc, "metadata.labels");
    cJSON_ArrayForEach (one, wanted) {
        const cJSON *has = cJSON_GetObjectItemCaseSensitive(labels, one->string);
        if (!cJSON_IsString(has) || strcmp(has->valuestring, one->valuestring) != 0)
            return false;
    }
    return true;
}
