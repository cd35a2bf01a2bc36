#include "runner/platform/lists.h"

const struct df_kube_resource df_namespaces = {"", "v1", "namespaces"};

struct list {
    cJSON *objects; /* borrowed */
    int count;
};

/* What came of a list that the server forgot half way counts no more. */
static int begin(void *arg, const char *version, struct df_err *err)
{
    struct list *l = arg;
    (void)version;
    (void)err;
    for (; l->count > 0; l->count--)
        cJSON_DeleteItemFromArray(l->objects, 0);
    return 0;
}

static int take(void *arg, cJSON **object, struct df_err *err)
{
    struct list *l = arg;
    if (++l->count > DF_LIMIT_PLATFORM_LIST)
        return df_fail(err, DF_ERR_LIMIT, "there are more than %d objects", DF_LIMIT_PLATFORM_LIST);
    return df_json_append(l->objects, DF_TAKE(*object), err);
}

int df_list_objects(struct df_platform *p, const struct df_kube_at *at, const char *labels,
                    cJSON **ret, struct df_err *err)
{
    static const char *const without[] = {".items.metadata." DF_KUBE_MANAGED, NULL};
    DF_JSON cJSON *objects = cJSON_CreateArray();
    struct list l = {.objects = objects};
    const struct df_kube_sink sink = {.begin = begin, .take = take, .arg = &l, .without = without};
    const struct df_kube_select select = {.labels = labels};
    if (df_check_alloc(objects, err) < 0)
        return -1;
    if (df_kube_list(p->kube, at, &select, 0, &sink, err) < 0)
        return df_err_wrap(err, "list %s", at->resource->plural);
    *ret = DF_TAKE(objects);
    return 0;
}

/* ---- resources ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(df_json_str(*(const cJSON *const *)a, "name"),
                  df_json_str(*(const cJSON *const *)b, "name"));
}

static bool is_listed(const cJSON *resource)
{
    const char *name = df_json_str(resource, "name");
    return name && df_json_str(resource, "kind") && !strchr(name, '/') &&
           df_json_has_string(df_json_at(resource, "verbs"), "list");
}

/* The server gives them in the order in which their definitions came. */
static int add_sorted(const cJSON *resources, cJSON *to, struct df_err *err)
{
    DF_FREE const cJSON **found =
        calloc((size_t)cJSON_GetArraySize(resources) + 1, sizeof(const cJSON *));
    const cJSON *one;
    size_t n = 0;
    if (!found)
        return df_fail_oom(err);
    cJSON_ArrayForEach (one, resources) {
        if (is_listed(one))
            found[n++] = one;
    }
    qsort(found, n, sizeof(const cJSON *), by_name);
    for (size_t i = 0; i < n; i++) {
        if (df_json_append(to, cJSON_Duplicate(found[i], true), err) < 0)
            return -1;
    }
    return 0;
}

int df_list_resources(struct df_platform *p, const char *api_version, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *answer = NULL, *sorted = cJSON_CreateArray();
    DF_FREE char *path = df_strf("/api%s/%s", strchr(api_version, '/') ? "s" : "", api_version);
    if (df_check_alloc(sorted, err) < 0 || df_check_alloc(path, err) < 0 ||
        df_kube_get_raw(p->kube, path, &answer, err) < 0 ||
        add_sorted(df_json_at(answer, "resources"), sorted, err) < 0)
        return -1;
    *ret = DF_TAKE(sorted);
    return 0;
}

int df_list_namespaces(const struct df_platform *p, struct df_strs *to, struct df_err *err)
{
    for (size_t i = 0; i < p->dag.len; i++) {
        const struct df_node *node = &p->dag.nodes[i];
        if (node->is_in_scope && node->name_space)
            (void)df_strs_add_new(to, node->name_space);
    }
    return df_strs_check(to, err);
}
