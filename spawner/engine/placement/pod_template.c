/*
 * Strategic merge patches of a pod template. In this order: the tables that say how each list is
 * merged, directives, new values, the merge itself.
 */
#include "spawner/engine/placement/pod_template.h"

#include <stdarg.h>

#include "common/base/limits.h"

/* ---- the merge rules of core/v1 for a pod template ---- */

struct shape;

/* A member with a rule of its own. All others are plain maps or atomic values. */
struct member {
    const char *name;          /* NULL ends the table */
    const char *key;           /* a list of objects that are merged by this member; or NULL */
    bool primitive;            /* a list of plain values that are merged as a set */
    const struct shape *shape; /* of the map, or of the list's items; NULL: no rules below */
};

struct shape {
    const struct member *members;
};

static const struct shape container = {(const struct member[]){
    {"env", .key = "name"},
    {"ports", .key = "containerPort"},
    {"volumeMounts", .key = "mountPath"},
    {"volumeDevices", .key = "devicePath"},
    {NULL},
}};

static const struct shape pod_spec = {(const struct member[]){
    {"containers", .key = "name", .shape = &container},
    {"initContainers", .key = "name", .shape = &container},
    {"ephemeralContainers", .key = "name", .shape = &container},
    {"volumes", .key = "name"},
    {"imagePullSecrets", .key = "name"},
    {"hostAliases", .key = "ip"},
    {"topologySpreadConstraints", .key = "topologyKey"},
    {"schedulingGates", .key = "name"},
    {"resourceClaims", .key = "name"},
    {NULL},
}};

static const struct shape metadata = {(const struct member[]){
    {"finalizers", .primitive = true},
    {"ownerReferences", .key = "uid"},
    {NULL},
}};

static const struct shape pod_template = {(const struct member[]){
    {"metadata", .shape = &metadata},
    {"spec", .shape = &pod_spec},
    {NULL},
}};

static const struct member plain = {0};

static const struct member *find_member(const struct shape *shape, const char *name)
{
    for (const struct member *m = shape ? shape->members : &plain; m->name; m++)
        if (df_streq(m->name, name))
            return m;
    return &plain;
}

/* ---- the path in the pod template, for messages ---- */

struct location {
    char path[256];
    int depth;
};

static struct location path_below(const struct location *at, const char *name)
{
    struct location p = {.depth = at->depth + 1};
    int room = (int)sizeof(p.path) - 2;
    (void)snprintf(p.path, sizeof(p.path), "%.*s%s%.*s", room - 100, at->path,
                   at->path[0] ? "." : "", 64, name);
    return p;
}

static int refuse_at(const struct location *at, struct df_err *err, const char *fmt, ...)
    DF_PRINTF(3, 4);
static int refuse_at(const struct location *at, struct df_err *err, const char *fmt, ...)
{
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement", "podTemplate%s%s: %s",
                          at->path[0] ? "." : "", at->path, what);
}

/* ---- directives ---- */

#define DELETE_FROM "$deleteFromPrimitiveList/"
#define ELEMENT_ORDER "$setElementOrder/"

enum action { MERGE, REPLACE, DELETE };

static int read_action(const cJSON *map, const struct location *at, enum action *ret,
                       struct df_err *err)
{
    static const char *const words[] = {"merge", "replace", "delete"};
    const cJSON *directive = cJSON_GetObjectItemCaseSensitive(map, "$patch");
    const char *word = cJSON_GetStringValue(directive);
    if (!directive) {
        *ret = MERGE;
        return 0;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++) {
        if (df_streq(word, words[i])) {
            *ret = (enum action)i;
            return 0;
        }
    }
    return refuse_at(at, err, "$patch is \"%.64s\"; there are merge, replace and delete",
                     word ? word : "no string");
}

/* In an item of a list, `$patch: replace` applies to the list, and other members of the item would
 * silently be dropped. So an item with more members is refused. */
static int read_item_action(const cJSON *item, const struct location *at, enum action *ret,
                            struct df_err *err)
{
    if (read_action(item, at, ret, err) < 0)
        return -1;
    if (*ret == REPLACE && cJSON_GetArraySize(item) > 1)
        return refuse_at(
            at, err,
            "$patch: replace in an item replaces the whole list and must stand alone in "
            "it; to change one item, use $retainKeys or null");
    return 0;
}

static bool is_directive(const char *name)
{
    return df_streq(name, "$patch") || df_streq(name, "$retainKeys") ||
           df_starts_with(name, DELETE_FROM);
}

static int check_name(const char *name, const struct location *at, struct df_err *err)
{
    if (df_starts_with(name, ELEMENT_ORDER))
        return refuse_at(at, err, "%.64s: the order of elements cannot be set; leave it out", name);
    if (*name == '$' && !is_directive(name))
        return refuse_at(at, err, "%.64s is not a directive", name);
    return 0;
}

/* $retainKeys: removes all members of the target that it does not name. */
static int retain_keys(cJSON *target, const cJSON *patch, const struct location *at,
                       struct df_err *err)
{
    const cJSON *keys = cJSON_GetObjectItemCaseSensitive(patch, "$retainKeys");
    if (!keys)
        return 0;
    if (!cJSON_IsArray(keys))
        return refuse_at(at, err, "$retainKeys must be a list of names");
    for (const cJSON *m = patch->child; m; m = m->next)
        if (*m->string != '$' && !df_json_has_string(keys, m->string))
            return refuse_at(at, err, "$retainKeys does not name \"%.64s\", which the patch sets",
                             m->string);
    for (cJSON *m = target->child, *next = NULL; m; m = next) {
        next = m->next;
        if (!df_json_has_string(keys, m->string))
            cJSON_Delete(cJSON_DetachItemViaPointer(target, m));
    }
    return 0;
}

static bool has_value(const cJSON *list, const cJSON *value)
{
    for (const cJSON *item = list->child; item; item = item->next)
        if (df_json_equal(item, value))
            return true;
    return false;
}

/* $deleteFromPrimitiveList/<field>: removes these values from the target's list. */
static int delete_values(cJSON *target, const cJSON *patch, const struct location *at,
                         struct df_err *err)
{
    for (const cJSON *m = patch->child; m; m = m->next) {
        if (!df_starts_with(m->string, DELETE_FROM))
            continue;
        if (!cJSON_IsArray(m))
            return refuse_at(at, err, "%.64s must be a list", m->string);
        cJSON *list = cJSON_GetObjectItemCaseSensitive(target, m->string + strlen(DELETE_FROM));
        for (cJSON *item = list ? list->child : NULL, *next = NULL; item; item = next) {
            next = item->next;
            if (has_value(m, item))
                cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
        }
    }
    return 0;
}

/* ---- new values ---- */

static int strip_value(cJSON *value, const struct location *at, struct df_err *err);

/* *ret_drop: the member or item is a null or a directive and must be removed. */
static int strip_child(cJSON *m, bool is_member, const struct location *at, bool *ret_drop,
                       struct df_err *err)
{
    struct location here = path_below(at, is_member ? m->string : "[]");
    enum action action = MERGE;
    if (is_member && check_name(m->string, at, err) < 0)
        return -1;
    if (is_member ? read_action(m, at, &action, err) < 0
                  : read_item_action(m, at, &action, err) < 0)
        return -1;
    *ret_drop = is_member ? cJSON_IsNull(m) || is_directive(m->string) : action != MERGE;
    return *ret_drop ? 0 : strip_value(m, &here, err);
}

/* Removes nulls and directives from a new value: there is no old value to which they apply. */
static int strip_value(cJSON *value, const struct location *at, struct df_err *err)
{
    if (at->depth > DF_LIMIT_POD_DEPTH)
        return df_fail(err, DF_ERR_LIMIT, "podTemplate: nests deeper than %d", DF_LIMIT_POD_DEPTH);
    for (cJSON *m = value->child, *next = NULL; m; m = next) {
        bool drop = false;
        next = m->next;
        if (strip_child(m, cJSON_IsObject(value), at, &drop, err) < 0)
            return -1;
        if (drop)
            cJSON_Delete(cJSON_DetachItemViaPointer(value, m));
    }
    return 0;
}

static int copy_value(const cJSON *value, const struct location *at, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *copy = cJSON_Duplicate(value, true);
    if (df_check_alloc(copy, err) < 0 || strip_value(copy, at, err) < 0)
        return -1;
    *ret = DF_TAKE(copy);
    return 0;
}

static int put_value(cJSON *target, const cJSON *value, const struct location *at,
                     struct df_err *err)
{
    cJSON *copy = NULL;
    if (copy_value(value, at, &copy, err) < 0)
        return -1;
    return df_json_set(target, value->string, copy, err);
}

/* ---- merging ---- */

static int merge_map(cJSON *target, const cJSON *patch, const struct shape *shape,
                     const struct location *at, struct df_err *err);

static cJSON *find_item(const cJSON *list, const char *key, const cJSON *value)
{
    for (cJSON *item = list->child; item; item = item->next)
        if (df_json_equal(cJSON_GetObjectItemCaseSensitive(item, key), value))
            return item;
    return NULL;
}

static int append_copy(cJSON *list, const cJSON *item, const struct location *at,
                       struct df_err *err)
{
    cJSON *copy = NULL;
    if (copy_value(item, at, &copy, err) < 0)
        return -1;
    return df_json_append(list, copy, err);
}

static int merge_item(cJSON *list, const cJSON *item, const struct member *m,
                      const struct location *at, struct df_err *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, m->key);
    enum action action = MERGE;
    if (!cJSON_IsObject(item))
        return refuse_at(at, err, "an item is not an object");
    if (read_item_action(item, at, &action, err) < 0)
        return -1;
    if (!value)
        return refuse_at(at, err, "an item has no \"%s\", by which items are merged", m->key);
    cJSON *old = find_item(list, m->key, value);
    if (action == DELETE) {
        while ((old = find_item(list, m->key, value)))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, old));
        return 0;
    }
    if (!old)
        return append_copy(list, item, at, err);
    return merge_map(old, item, m->shape, at, err);
}

/* `- $patch: replace`: the other items of the patch replace the list. */
static bool is_marker(const cJSON *item)
{
    const cJSON *action = cJSON_GetObjectItemCaseSensitive(item, "$patch");
    return df_streq(cJSON_GetStringValue(action), "replace") && cJSON_GetArraySize(item) == 1;
}

static bool replaces_list(const cJSON *patch)
{
    for (const cJSON *item = patch->child; item; item = item->next)
        if (is_marker(item))
            return true;
    return false;
}

static int merge_list(cJSON *list, const cJSON *patch, const struct member *m,
                      const struct location *at, struct df_err *err)
{
    while (replaces_list(patch) && list->child)
        cJSON_Delete(cJSON_DetachItemViaPointer(list, list->child));
    for (const cJSON *item = patch->child; item; item = item->next)
        if (!is_marker(item) && merge_item(list, item, m, at, err) < 0)
            return -1;
    return 0;
}

static int merge_set(cJSON *list, const cJSON *patch, const struct location *at, struct df_err *err)
{
    for (const cJSON *item = patch->child; item; item = item->next)
        if (!has_value(list, item) && append_copy(list, item, at, err) < 0)
            return -1;
    return 0;
}

static int merge_member(cJSON *target, const cJSON *patch, const struct shape *shape,
                        const struct location *at, struct df_err *err)
{
    const struct member *m = find_member(shape, patch->string);
    struct location here = path_below(at, patch->string);
    cJSON *old = cJSON_GetObjectItemCaseSensitive(target, patch->string);
    if (cJSON_IsNull(patch)) {
        cJSON_DeleteItemFromObjectCaseSensitive(target, patch->string);
        return 0;
    }
    if (m->key && !cJSON_IsArray(patch))
        return refuse_at(&here, err, "must be a list");
    if (cJSON_IsObject(patch)) {
        if (old && !cJSON_IsObject(old))
            return refuse_at(&here, err, "is not an object in the pod");
        old = df_json_object_at(target, patch->string);
        return old ? merge_map(old, patch, m->shape, &here, err) : df_fail_oom(err);
    }
    /* A new list is copied unchanged: it may have port 53 twice, for TCP and UDP. */
    bool merges = m->key || m->primitive;
    if (!merges || !old)
        return put_value(target, patch, &here, err);
    old = df_json_array_at(target, patch->string);
    if (!old)
        return df_fail_oom(err);
    return m->key ? merge_list(old, patch, m, &here, err) : merge_set(old, patch, &here, err);
}

static void clear_map(cJSON *map)
{
    while (map->child)
        cJSON_Delete(cJSON_DetachItemViaPointer(map, map->child));
}

static int merge_map(cJSON *target, const cJSON *patch, const struct shape *shape,
                     const struct location *at, struct df_err *err)
{
    enum action action = MERGE;
    if (at->depth > DF_LIMIT_POD_DEPTH)
        return df_fail(err, DF_ERR_LIMIT, "podTemplate: nests deeper than %d", DF_LIMIT_POD_DEPTH);
    if (read_action(patch, at, &action, err) < 0)
        return -1;
    if (action != MERGE)
        clear_map(target);
    if (action == DELETE)
        return 0;
    if (retain_keys(target, patch, at, err) < 0 || delete_values(target, patch, at, err) < 0)
        return -1;
    for (const cJSON *m = patch->child; m; m = m->next) {
        if (check_name(m->string, at, err) < 0)
            return -1;
        if (!is_directive(m->string) && merge_member(target, m, shape, at, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the pod template ---- */

static int check_size(const cJSON *merged, struct df_err *err)
{
    DF_FREE char *text = df_json_print(merged);
    if (!text)
        return df_fail_oom(err);
    if (strlen(text) > DF_LIMIT_POD_TEMPLATE)
        return df_fail(err, DF_ERR_LIMIT, "podTemplate: the pod is larger than %zu bytes",
                       DF_LIMIT_POD_TEMPLATE);
    return 0;
}

int df_pod_template_patch(cJSON **target, const cJSON *patch, struct df_err *err)
{
    const struct location root = {0};
    if (!cJSON_IsObject(patch))
        return refuse_at(&root, err, "must be an object with metadata or spec");
    DF_JSON cJSON *merged = cJSON_Duplicate(*target, true);
    if (df_check_alloc(merged, err) < 0 ||
        merge_map(merged, patch, &pod_template, &root, err) < 0 || check_size(merged, err) < 0)
        return -1;
    cJSON_Delete(*target);
    *target = DF_TAKE(merged);
    return 0;
}
