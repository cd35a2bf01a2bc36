#include "spawner/engine/placement/placement_merge.h"

/* ---- one function for each rule ---- */

static int replace_member(cJSON *target, const cJSON *over, struct df_err *err)
{
    return df_json_set(target, over->string, cJSON_Duplicate(over, true), err);
}

static int merge_members(cJSON *target, const cJSON *over, struct df_err *err)
{
    cJSON *map = df_json_object_at(target, over->string);
    if (!map)
        return df_fail_oom(err);
    for (const cJSON *m = over->child; m; m = m->next)
        if (replace_member(map, m, err) < 0)
            return -1;
    return 0;
}

/* Merges requests and limits by resource name. */
static int merge_resources(cJSON *target, const cJSON *over, struct df_err *err)
{
    cJSON *resources = df_json_object_at(target, over->string);
    if (!resources)
        return df_fail_oom(err);
    for (const cJSON *m = over->child; m; m = m->next)
        if (merge_members(resources, m, err) < 0)
            return -1;
    return 0;
}

static cJSON *find_item(const cJSON *list, const char *key, const cJSON *item)
{
    for (cJSON *old = list->child; old; old = old->next)
        if (key ? df_json_equal(cJSON_GetObjectItemCaseSensitive(old, key),
                                cJSON_GetObjectItemCaseSensitive(item, key))
                : df_json_equal(old, item))
            return old;
    return NULL;
}

/* An item with the same key is replaced in its position; other items are appended. Without a key
 * only equal items count as the same. */
static int merge_list(cJSON *target, const cJSON *over, const char *key, struct df_err *err)
{
    cJSON *list = df_json_array_at(target, over->string);
    if (!list)
        return df_fail_oom(err);
    for (const cJSON *item = over->child; item; item = item->next) {
        cJSON *copy = cJSON_Duplicate(item, true), *old = find_item(list, key, item);
        if (!copy)
            return df_fail_oom(err);
        if (old && !cJSON_ReplaceItemViaPointer(list, old, copy))
            return df_fail_oom(err);
        if (!old && df_json_append(list, copy, err) < 0)
            return -1;
    }
    return 0;
}

/* Patches are not merged with each other but applied one after the other. */
static int append_patches(cJSON *target, const cJSON *over, struct df_err *err)
{
    cJSON *old = cJSON_GetObjectItemCaseSensitive(target, over->string);
    if (old && !cJSON_IsArray(old)) {
        cJSON *list = cJSON_CreateArray();
        if (df_json_append(list, cJSON_Duplicate(old, true), err) < 0) {
            cJSON_Delete(list);
            return -1;
        }
        if (df_json_set(target, over->string, list, err) < 0)
            return -1;
    }
    cJSON *list = df_json_array_at(target, over->string);
    if (!list)
        return df_fail_oom(err);
    if (!cJSON_IsArray(over))
        return df_json_append(list, cJSON_Duplicate(over, true), err);
    for (const cJSON *patch = over->child; patch; patch = patch->next)
        if (df_json_append(list, cJSON_Duplicate(patch, true), err) < 0)
            return -1;
    return 0;
}

/* ---- the rule of each field ---- */

enum rule { REPLACE, MEMBERS, RESOURCES, LIST, PATCHES };

static const struct {
    const char *field;
    enum rule rule;
    const char *key; /* LIST: of an item; NULL: the whole item */
} rules[] = {
    {"nodeSelector", MEMBERS},
    {"affinity", MEMBERS},
    {"labels", MEMBERS},
    {"annotations", MEMBERS},
    {"podAnnotations", MEMBERS},
    {"podSecurityContext", MEMBERS},
    {"securityContext", MEMBERS},
    {"dnsConfig", MEMBERS},
    {"resources", RESOURCES},
    {"tolerations", LIST},
    {"envFrom", LIST},
    {"imagePullSecrets", LIST, "name"},
    {"topologySpreadConstraints", LIST, "topologyKey"},
    {"env", LIST, "name"},
    {"volumes", LIST, "name"},
    {"secretMounts", LIST, "mountPath"},
    {"configMapMounts", LIST, "mountPath"},
    {"podTemplate", PATCHES},
};

static int merge_field(cJSON *target, const cJSON *over, struct df_err *err)
{
    size_t i = 0;
    while (i < DF_ARRAY_SIZE(rules) && !df_streq(rules[i].field, over->string))
        i++;
    switch (i < DF_ARRAY_SIZE(rules) ? rules[i].rule : REPLACE) {
    case MEMBERS:
        return merge_members(target, over, err);
    case RESOURCES:
        return merge_resources(target, over, err);
    case LIST:
        return merge_list(target, over, rules[i].key, err);
    case PATCHES:
        return append_patches(target, over, err);
    default:
        return replace_member(target, over, err);
    }
}

int df_placement_merge(cJSON *target, const cJSON *over, struct df_err *err)
{
    for (const cJSON *m = over ? over->child : NULL; m; m = m->next)
        if (merge_field(target, m, err) < 0)
            return -1;
    return 0;
}
