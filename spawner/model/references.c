/*
 * references.c - a table of members that refer to something, and a walk over the tree.
 */
#include "spawner/model/references.h"

/* Where the name is: the member itself, its member `name`, or the `name` of each of its items. */
enum form { TEXT, NAMED, LISTED };

static const struct row {
    const char *member;
    enum form form;
    enum df_reference kind;
} rows[] = {
    {"serviceAccountName", TEXT, DF_REFERENCE_ACCOUNT},
    {"serviceAccount", TEXT, DF_REFERENCE_ACCOUNT}, /* of a pod: the older name of the field */
    {"image", TEXT, DF_REFERENCE_IMAGE},
    {"reference", TEXT, DF_REFERENCE_IMAGE}, /* of a volume of the kind image */
    {"executionBundle", TEXT, DF_REFERENCE_IMAGE},
    {"secretName", TEXT, DF_REFERENCE_SECRET},
    {"secret", NAMED, DF_REFERENCE_SECRET}, /* a source of a projected volume */
    {"secretRef", NAMED, DF_REFERENCE_SECRET},
    {"secretKeyRef", NAMED, DF_REFERENCE_SECRET},
    {"nodePublishSecretRef", NAMED, DF_REFERENCE_SECRET},
    {"secretMounts", LISTED, DF_REFERENCE_SECRET},
    {"imagePullSecrets", LISTED, DF_REFERENCE_SECRET},
    {"secrets", LISTED, DF_REFERENCE_SECRET}, /* dependencies of a workflow */
    {"configMap", NAMED, DF_REFERENCE_CONFIG_MAP},
    {"configMapRef", NAMED, DF_REFERENCE_CONFIG_MAP},
    {"configMapKeyRef", NAMED, DF_REFERENCE_CONFIG_MAP},
    {"configMapMounts", LISTED, DF_REFERENCE_CONFIG_MAP},
    {"configMaps", LISTED, DF_REFERENCE_CONFIG_MAP},
    {"claimName", TEXT, DF_REFERENCE_CLAIM},
    {"priorityClassName", TEXT, DF_REFERENCE_PRIORITY},
    {"audience", TEXT, DF_REFERENCE_AUDIENCE},
};

/* Maps whose keys are free: a label may be named `image`. */
static const char *const free_maps[] = {"labels",       "annotations", "podAnnotations",
                                        "nodeSelector", "matchLabels", "volumeAttributes",
                                        "parameters",   "requests",    "limits"};

const char *df_reference_name(enum df_reference kind)
{
    static const char *const names[] = {
        "service account", "image",          "Secret",         "ConfigMap",
        "volume claim",    "priority class", "token audience",
    };
    return names[kind];
}

struct walk {
    df_reference_fn *fn;
    void *arg;
};

static void report(const struct walk *w, enum df_reference kind, const cJSON *name,
                   const struct df_path *path)
{
    if (cJSON_IsString(name))
        w->fn(w->arg, kind, name->valuestring, path);
}

static void report_named(const struct walk *w, enum df_reference kind, const cJSON *object,
                         const struct df_path *path)
{
    const struct df_path here = {path, "name", 0};
    report(w, kind, cJSON_GetObjectItemCaseSensitive(object, "name"), &here);
}

static void report_row(const struct walk *w, const struct row *row, const cJSON *member,
                       const struct df_path *path)
{
    int index = 0;
    const cJSON *item;
    if (row->form == TEXT)
        report(w, row->kind, member, path);
    else if (row->form == NAMED)
        report_named(w, row->kind, member, path);
    else
        cJSON_ArrayForEach (item, member) {
            const struct df_path here = {path, NULL, index++};
            report_named(w, row->kind, item, &here);
        }
}

static bool is_free_map(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(free_maps); i++)
        if (strcmp(free_maps[i], name) == 0)
            return true;
    return false;
}

/* The depth is limited by the parser of the document. */
static void walk_tree(const struct walk *w, const cJSON *tree, const struct df_path *path);

static void walk_member(const struct walk *w, const cJSON *member, const struct df_path *path)
{
    const struct df_path here = {path, member->string, 0};
    if (is_free_map(member->string))
        return;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].member, member->string) == 0)
            report_row(w, &rows[i], member, &here);
    walk_tree(w, member, &here);
}

static void walk_tree(const struct walk *w, const cJSON *tree, const struct df_path *path)
{
    int index = 0;
    const cJSON *child;
    cJSON_ArrayForEach (child, tree) {
        const struct df_path here = {path, NULL, index++};
        if (cJSON_IsObject(tree))
            walk_member(w, child, path);
        else
            walk_tree(w, child, &here);
    }
}

void df_references(const cJSON *tree, const struct df_path *path, df_reference_fn *fn, void *arg)
{
    const struct walk w = {fn, arg};
    walk_tree(&w, tree, path);
}

void df_references_of(const cJSON *member, const struct df_path *path, df_reference_fn *fn,
                      void *arg)
{
    const struct walk w = {fn, arg};
    walk_member(&w, member, path);
}
