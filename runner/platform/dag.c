/*
 * dag.c - makes the DAG of its texts: components by a table, then the overrides, then the edges by
 * name, the order (dag_order.c), and at last what is in the scope.
 *
 * Each part goes on with what the parts before it could read, so that all faults are told at once.
 * A component without a good name of its own has none (NULL) and is in no edge.
 */
#include "runner/platform/dag.h"

#include "common/base/nearest.h"
#include "common/source/rules.h"
#include "runner/platform/dag_order.h"

struct by_name {
    const char *name; /* of a node */
    size_t node;
};

struct build {
    const struct df_document *base; /* the file with `components` */
    const struct df_document *over; /* the file with `overrides`; json NULL: there is none */
    struct df_dag *dag;
    struct by_name *index; /* sorted; owned */
    size_t named;
    struct df_faults *faults;
};

/* ---- keys ---- */

static const char *chart_url_fault(const char *url)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    return memchr(host, '@', strcspn(host, "/"))
               ? "has credentials in it: give them to Argo CD as a repository Secret"
               : NULL;
}

#define IN(member) offsetof(struct df_node, member)

static const struct df_shape chart_keys[] = {
    {"repoURL", DF_SHAPE_TEXT, DF_SHAPE_NOWHERE, .is_required = true, .check = chart_url_fault},
    {"name", DF_SHAPE_TEXT, DF_SHAPE_NOWHERE, .is_required = true},
    {"version", DF_SHAPE_TEXT, DF_SHAPE_NOWHERE, .is_required = true},
    {"values", DF_SHAPE_OBJECT, DF_SHAPE_NOWHERE},
    {0},
};
static const struct df_shape component_keys[] = {
    {"name", DF_SHAPE_LABEL, IN(name), .is_required = true},
    {"stack", DF_SHAPE_LABEL, IN(stack)},
    {"path", DF_SHAPE_TEXT, IN(path), .check = df_source_folder_fault},
    {"chart", DF_SHAPE_OBJECT, DF_SHAPE_NOWHERE, .members = chart_keys},
    {"namespace", DF_SHAPE_LABEL, IN(name_space)},
    {"dependsOn", DF_SHAPE_TEXTS, DF_SHAPE_NOWHERE},
    {"critical", DF_SHAPE_BOOL, IN(critical)},
    {"timeout", DF_SHAPE_DURATION, IN(timeout_ms)},
    {"bootstrap", DF_SHAPE_BOOL, IN(bootstrap)},
    {0},
};
static const struct df_shape whole_keys[] = {
    {"components", DF_SHAPE_LIST, DF_SHAPE_NOWHERE, .is_required = true},
    {0},
};

static const struct df_shape change_keys[] = {
    {"dependsOn", DF_SHAPE_TEXTS, DF_SHAPE_NOWHERE},
    {"timeout", DF_SHAPE_DURATION, IN(timeout_ms)},
    {0},
};
static const struct df_shape override_keys[] = {
    {"only", DF_SHAPE_TEXTS, DF_SHAPE_NOWHERE},
    {"components", DF_SHAPE_OBJECT, DF_SHAPE_NOWHERE},
    {0},
};
static const struct df_shape over_keys[] = {
    {"overrides", DF_SHAPE_OBJECT, DF_SHAPE_NOWHERE, .is_required = true, .members = override_keys},
    {0},
};

/* ---- components ---- */

static void read_component(const struct build *b, const cJSON *item, size_t i)
{
    struct df_node *node = &b->dag->nodes[i];
    struct df_key_path path = df_key_path("components[%zu]", i);
    node->is_in_scope = true;
    df_document_read(b->base, item, path.text, component_keys, node);
    node->chart = cJSON_GetObjectItemCaseSensitive(item, "chart");
    bool has_path = cJSON_GetObjectItemCaseSensitive(item, "path") != NULL;
    if (cJSON_IsObject(item) && has_path == (node->chart != NULL))
        df_document_fault(b->base, path.text, "must have either path or chart");
    if (node->bootstrap && node->chart)
        df_document_fault(b->base, path.text,
                          "has bootstrap and a chart: what comes before Argo CD needs a path");
}

static int read_components(const struct build *b, struct df_err *err)
{
    const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(b->base->json, "components");
    df_document_read(b->base, b->base->json, "", whole_keys, NULL);
    if (!cJSON_IsArray(list))
        return 0;
    size_t i = 0, len = (size_t)cJSON_GetArraySize(list);
    if (!len || len > DF_LIMIT_COMPONENTS) {
        df_document_fault(b->base, "components", "has %zu components, but must have 1 to %d", len,
                          DF_LIMIT_COMPONENTS);
        return 0;
    }
    b->dag->nodes = calloc(len, sizeof(*b->dag->nodes));
    if (!b->dag->nodes)
        return df_fail_oom(err);
    b->dag->len = len;
    cJSON_ArrayForEach (item, list)
        read_component(b, item, i++);
    return 0;
}

/* ---- names ---- */

static int compare_names(const void *a, const void *b)
{
    const struct by_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

/* A second component of a name loses it. */
static void refuse_duplicates(struct build *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->named; i++) {
        const struct by_name *e = &b->index[i];
        if (!kept || strcmp(b->index[kept - 1].name, e->name) != 0) {
            b->index[kept++] = *e;
            continue;
        }
        df_document_fault(b->base, df_key_path("components[%zu].name", e->node).text,
                          "\"%s\" is the name of components[%zu], too", e->name,
                          b->index[kept - 1].node);
    }
    b->named = kept;
}

static int index_names(struct build *b, struct df_err *err)
{
    b->index = calloc(b->dag->len, sizeof(*b->index));
    if (!b->index)
        return df_fail_oom(err);
    for (size_t i = 0; i < b->dag->len; i++)
        if (b->dag->nodes[i].name)
            b->index[b->named++] = (struct by_name){b->dag->nodes[i].name, i};
    qsort(b->index, b->named, sizeof(*b->index), compare_names);
    refuse_duplicates(b);
    return 0;
}

static int compare_with_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct by_name *)entry)->name);
}

/* False, with a fault, if no component has this name. */
static bool find_node(const struct build *b, const struct df_document *d, const char *path,
                      const char *name, size_t *ret)
{
    const struct by_name *found =
        bsearch(name, b->index, b->named, sizeof(*b->index), compare_with_name);
    if (found) {
        *ret = found->node;
        return true;
    }
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < b->named && !df_faults_full(b->faults); i++)
        df_nearest(name, b->index[i].name, &best, &distance);
    df_document_fault(d, path, "there is no component \"%.64s\"%s%s%s", name,
                      best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    return false;
}

/* ---- edges ---- */

/* change: the mapping at this path, with the key dependsOn. What the node depended on before is
 * forgotten. */
static int set_depends(const struct build *b, size_t node, const struct df_document *d,
                       const char *path, const cJSON *change, struct df_err *err)
{
    struct df_node *n = &b->dag->nodes[node];
    const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(change, "dependsOn");
    if (!cJSON_IsArray(list))
        return 0;
    size_t *items = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*items));
    if (!items)
        return df_fail_oom(err);
    free(n->depends.items);
    n->depends.items = items;
    n->depends.len = 0;
    size_t k = 0, other = 0;
    cJSON_ArrayForEach (item, list) {
        struct df_key_path at = df_key_path("%s.dependsOn[%zu]", path, k++);
        if (!cJSON_IsString(item) || !find_node(b, d, at.text, item->valuestring, &other))
            continue;
        if (other == node)
            df_document_fault(d, at.text, "\"%s\" depends on itself", item->valuestring);
        else
            items[n->depends.len++] = other;
    }
    return 0;
}

/* All of the bootstrap is applied before the first Application. */
static void check_bootstrap(const struct build *b)
{
    const struct df_dag *dag = b->dag;
    for (size_t i = 0; i < dag->len; i++) {
        const struct df_node *n = &dag->nodes[i];
        for (size_t k = 0; n->bootstrap && k < n->depends.len; k++) {
            const struct df_node *on = &dag->nodes[n->depends.items[k]];
            if (!on->bootstrap)
                df_document_fault(b->base, df_key_path("components[%zu].dependsOn", i).text,
                                  "names \"%s\", which is not of the bootstrap, and comes after it",
                                  on->name);
        }
    }
}

static int connect(const struct build *b, struct df_err *err)
{
    const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(b->base->json, "components");
    size_t i = 0;
    cJSON_ArrayForEach (item, list) {
        if (set_depends(b, i, b->base, df_key_path("components[%zu]", i).text, item, err) < 0)
            return -1;
        i++;
    }
    return 0;
}

/* ---- overrides ---- */

static int change_component(const struct build *b, const cJSON *change, struct df_err *err)
{
    struct df_key_path path = df_key_path("overrides.components.%s", change->string);
    struct df_node nobody = {.name = NULL};
    size_t i = 0;
    bool found = find_node(b, b->over, path.text, change->string, &i);
    df_document_read(b->over, change, path.text, change_keys, found ? &b->dag->nodes[i] : &nobody);
    return found ? set_depends(b, i, b->over, path.text, change, err) : 0;
}

static void keep_only(const struct build *b, const cJSON *only)
{
    const cJSON *item;
    size_t k = 0, found = 0;
    for (size_t i = 0; i < b->dag->len; i++)
        b->dag->nodes[i].is_in_scope = false;
    cJSON_ArrayForEach (item, only) {
        struct df_key_path at = df_key_path("overrides.only[%zu]", k++);
        if (cJSON_IsString(item) && find_node(b, b->over, at.text, item->valuestring, &found))
            b->dag->nodes[found].is_in_scope = true;
    }
    if (!k)
        df_document_fault(b->over, "overrides.only", "is empty: leave it out to keep all");
}

static int apply_overrides(const struct build *b, struct df_err *err)
{
    df_document_read(b->over, b->over->json, "", over_keys, NULL);
    const cJSON *change, *only = df_json_at(b->over->json, "overrides.only");
    cJSON_ArrayForEach (change, df_json_at(b->over->json, "overrides.components")) {
        if (change->string && change_component(b, change, err) < 0)
            return -1;
    }
    if (cJSON_IsArray(only))
        keep_only(b, only);
    return 0;
}

/* ---- scope ---- */

static bool is_target(const struct df_scope *scope, const struct df_node *n)
{
    return scope->kind == DF_SCOPE_PLATFORM ||
           df_streq(scope->kind == DF_SCOPE_STACK ? n->stack : n->name, scope->name);
}

static void refuse_scope(const struct build *b, const struct df_scope *scope)
{
    DF_STRS struct df_strs names = {0};
    bool stack = scope->kind == DF_SCOPE_STACK;
    for (size_t i = 0; i < b->dag->len; i++) {
        const char *name = stack ? b->dag->nodes[i].stack : b->dag->nodes[i].name;
        if (name)
            (void)df_strs_add_new(&names, name);
    }
    DF_FREE char *all = df_strs_join(&names, ", ");
    df_faults_add(b->faults, "TARGET_SCOPE", "there is no %s \"%s\"; there are: %s",
                  stack ? "stack" : "app", scope->name, df_str_empty(all) ? "none" : all);
}

static void apply_scope(const struct build *b, const struct df_scope *scope)
{
    bool is_there = false, is_left = false;
    for (size_t i = 0; i < b->dag->len; i++) {
        struct df_node *n = &b->dag->nodes[i];
        bool is_one = is_target(scope, n);
        n->is_in_scope = n->is_in_scope && is_one;
        is_there = is_there || is_one;
        is_left = is_left || n->is_in_scope;
    }
    if (!is_there)
        refuse_scope(b, scope);
    else if (!is_left && scope->name)
        df_faults_add(b->faults, "TARGET_SCOPE", "nothing of %s is in overrides.only of %s",
                      scope->text, b->over->name);
}

/* ---- all ---- */

static void build_free(struct build *b)
{
    free(b->index);
}

static int build(const struct df_document *base, const struct df_document *over,
                 const struct df_scope *scope, struct df_dag *dag, struct df_faults *faults,
                 struct df_err *err)
{
    DF_CLEANUP(build_free)
    struct build b = {.base = base, .over = over, .dag = dag, .faults = faults};
    if (read_components(&b, err) < 0)
        return -1;
    if (!dag->len)
        return 0;
    if (index_names(&b, err) < 0 || connect(&b, err) < 0 ||
        (over->json && apply_overrides(&b, err) < 0))
        return -1;
    apply_scope(&b, scope);
    check_bootstrap(&b);
    if (df_dag_sort(dag, base, err) < 0)
        return -1;
    return df_strs_check(&faults->lines, err);
}

/* A mounted file is a whole DAG or overrides. */
static bool is_whole(const struct df_document *mounted)
{
    if (!cJSON_GetObjectItemCaseSensitive(mounted->json, "components"))
        return false;
    if (cJSON_GetObjectItemCaseSensitive(mounted->json, "overrides"))
        df_document_fault(mounted, "overrides",
                          "must not stand beside components: overrides change the DAG of the "
                          "repository");
    cJSON_DeleteItemFromObjectCaseSensitive(mounted->json, "overrides");
    return true;
}

bool df_dag_is_whole(const struct df_dag_text *mounted)
{
    DF_JSON cJSON *json = NULL;
    return df_yaml_parse(mounted->text, mounted->len, &json, NULL, NULL) < 0 ||
           !cJSON_GetObjectItemCaseSensitive(json, "overrides");
}

/* False, with a fault, if none of the texts has components. */
static bool parse_texts(const struct df_dag_text *repository, const struct df_dag_text *mounted,
                        struct df_document *base, struct df_document *over,
                        struct df_faults *faults)
{
    if (mounted && !df_document_parse(mounted->name, mounted->text, mounted->len, faults, over))
        return false;
    if (mounted && is_whole(over)) {
        *base = *over;
        *over = (struct df_document){.name = mounted->name};
        return true;
    }
    if (repository)
        return df_document_parse(repository->name, repository->text, repository->len, faults, base);
    df_faults_add(faults, "dag.yaml",
                  "is required: neither the repository has one at its root nor is there one with "
                  "components among the mounted files");
    return false;
}

int df_dag_make(const struct df_dag_text *repository, const struct df_dag_text *mounted,
                const struct df_scope *scope, struct df_dag *ret, struct df_faults *faults,
                struct df_err *err)
{
    DF_DOCUMENT struct df_document base = {0}, over = {0};
    if (!parse_texts(repository, mounted, &base, &over, faults))
        return df_strs_check(&faults->lines, err);
    int result = build(&base, &over, scope, ret, faults, err);
    ret->document = DF_TAKE(base.json); /* charts are parts of it */
    return result;
}

void df_dag_free(struct df_dag *dag)
{
    for (size_t i = 0; i < dag->len; i++) {
        struct df_node *n = &dag->nodes[i];
        free(n->name);
        free(n->stack);
        free(n->path);
        free(n->name_space);
        free(n->depends.items);
    }
    free(dag->nodes);
    cJSON_Delete(dag->document);
    *dag = (struct df_dag){0};
}

const struct df_node *df_dag_find(const struct df_dag *dag, const char *name)
{
    for (size_t i = 0; i < dag->len; i++)
        if (df_streq(dag->nodes[i].name, name))
            return &dag->nodes[i];
    return NULL;
}
