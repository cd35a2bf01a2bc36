/*
 * Removes what df_bootstrap() made, from the last object of a folder to the first: only objects
 * with the label of this environment. What holds data, or may hold things of others, stays, and is
 * told of.
 */
#include "common/base/fs.h"
#include "common/base/log.h"
#include "runner/platform/bootstrap.h"
#include "runner/platform/lists.h"
#include "runner/platform/manifests.h"

/* Takes the line over. What is looked at several times is told of once. */
static int note(struct df_platform *p, char *line, struct df_err *err)
{
    DF_FREE char *owned = line;
    if (!p->bootstrap)
        p->bootstrap = cJSON_CreateArray();
    if (df_check_alloc(owned, err) < 0)
        return -1;
    if (df_json_has_string(p->bootstrap, owned))
        return 0;
    df_info("bootstrap: %s", owned);
    return df_json_append_str(p->bootstrap, owned, err);
}

/* ---- what is used ---- */

static const struct {
    const char *folder; /* of the system that serves it */
    struct df_kube_resource resource;
    const char *unused; /* the name of one that counts for nothing; or NULL */
} uses[] = {
    {"argocd", {"argoproj.io", "v1alpha1", "applications"}, NULL},
    {"argocd", {"argoproj.io", "v1alpha1", "applicationsets"}, NULL},
    {"argocd", {"argoproj.io", "v1alpha1", "appprojects"}, "default"},
    {"workflows", {"argoproj.io", "v1alpha1", "workflows"}, NULL},
    {"workflows", {"argoproj.io", "v1alpha1", "cronworkflows"}, NULL},
    {"workflows", {"argoproj.io", "v1alpha1", "workflowtemplates"}, NULL},
    {"workflows", {"argoproj.io", "v1alpha1", "clusterworkflowtemplates"}, NULL},
};

static bool is_resource(const struct df_kube_resource *r, const char *group, const char *plural)
{
    return df_streq(r->group, group) && df_streq(r->plural, plural);
}

static bool counts(const struct df_kube_resource *resource, const cJSON *object)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(uses); i++) {
        if (is_resource(resource, uses[i].resource.group, uses[i].resource.plural))
            return !df_streq(df_kube_name(object), uses[i].unused);
    }
    return true;
}

/* *ret: "applications web", the caller frees it; NULL: there is none that counts. */
static int find_first(struct df_platform *p, const struct df_kube_resource *resource, char **ret,
                      struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = resource, .stop = df_stop_flag(p->stop), .metadata_only = true};
    DF_JSON cJSON *list = NULL;
    const cJSON *one;
    if (df_list_objects(p, &at, NULL, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (one, list) {
        const char *name = df_kube_name(one);
        if (counts(resource, one))
            return df_check_alloc(
                *ret = df_strf("%s %s", resource->plural, name ? name : "without a name"), err);
    }
    return 0;
}

/* With a definition all objects of its kind go, in all namespaces. */
static int find_use_of_definition(struct df_platform *p, const cJSON *definition, char **ret,
                                  struct df_err *err)
{
    struct df_kube_resource of = {.group = df_json_str(definition, "spec.group"),
                                  .plural = df_json_str(definition, "spec.names.plural")};
    DF_FREE char *first = NULL;
    struct df_err why = {0};
    const cJSON *version;
    cJSON_ArrayForEach (version, df_json_at(definition, "spec.versions")) {
        if (df_json_bool(version, "served", false))
            of.version = df_json_str(version, "name");
    }
    if (!of.group || !of.plural || !of.version)
        *ret = strdup("its kind is not served, so nobody knows whether there are objects of it");
    else if (find_first(p, &of, &first, &why) == 0)
        return first ? df_check_alloc(*ret = df_strf("there are still %s", first), err) : 0;
    else if (why.cls == DF_ERR_RETRY)
        return df_err_pass(err, &why);
    else
        *ret = df_strf("nobody knows whether there are objects of its kind: %s", why.message);
    return df_check_alloc(*ret, err);
}

/* ---- objects ---- */

static bool is_of_component(const struct df_platform *p, const char *name_space)
{
    for (size_t i = 0; i < p->dag.len; i++) {
        if (p->dag.nodes[i].is_in_scope && df_streq(p->dag.nodes[i].name_space, name_space))
            return true;
    }
    return false;
}

/* *ret: the caller frees it; NULL: the object may go. */
static int find_why_it_stays(struct df_platform *p, const struct df_kube_at *at, const cJSON *live,
                             char **ret, struct df_err *err)
{
    const char *why = NULL;
    if (is_resource(at->resource, "apiextensions.k8s.io", "customresourcedefinitions"))
        return find_use_of_definition(p, live, ret, err);
    if (is_resource(at->resource, "", "namespaces"))
        why = "only namespaces of components are removed, if nothing is left in them";
    else if (is_resource(at->resource, "", "persistentvolumeclaims") ||
             is_resource(at->resource, "", "persistentvolumes"))
        why = "it holds data";
    return why ? df_check_alloc(*ret = strdup(why), err) : 0;
}

static int remove_ours(struct df_platform *p, const struct df_kube_at *at, const cJSON *live,
                       const char *kind, struct df_err *err)
{
    DF_FREE char *stays = NULL;
    if (is_resource(at->resource, "", "namespaces") && is_of_component(p, at->name))
        return 0; /* df_remains_settle() sees to it */
    if (find_why_it_stays(p, at, live, &stays, err) < 0)
        return -1;
    if (stays)
        return note(p, df_strf("%s %s stays: %s", kind, at->name, stays), err);
    if (df_object_delete(&p->objects, at, df_kube_uid(live), err) < 0)
        return -1;
    return note(p, df_strf("deleted %s %s", kind, at->name), err);
}

/* *ret_foreign: it is there, and is not ours. */
static int remove_one(struct df_platform *p, const cJSON *object, const char *name_space,
                      bool *ret_foreign, struct df_err *err)
{
    struct df_object_place place;
    struct df_err why = {0};
    DF_SECRET_JSON cJSON *live = NULL;
    *ret_foreign = false;
    if (df_object_place(&p->objects, object, name_space, &place, &why) <
        0) /* its kind went first */
        return df_streq(why.reason, "KindUnknown") ? 0 : df_err_pass(err, &why);
    const struct df_kube_at at = df_object_at(&place);
    if (df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    if (!live || df_kube_is_deleted(live))
        return 0;
    *ret_foreign = !df_object_is_ours(&p->objects, live);
    return *ret_foreign ? 0 : remove_ours(p, &at, live, df_json_str(object, "kind"), err);
}

/* One line for all of them: others may have made a whole Argo CD. */
static int tell_foreign(struct df_platform *p, const char *name, int count, const cJSON *first,
                        struct df_err *err)
{
    if (!count)
        return 0;
    return note(p,
                df_strf("%s: %s %s%s stays: not of this environment, as the label %s=%s is missing",
                        name, df_json_str(first, "kind"), df_kube_name(first),
                        count > 1 ? " and more of its objects" : "", DF_LABEL_ENVIRONMENT,
                        p->in->name),
                err);
}

/* *ret: an array, empty if there is no such folder. */
static int read_folder(const char *top, const char *name, cJSON **ret, struct df_err *err)
{
    DF_FREE char *folder = df_fs_join(top, name);
    if (df_check_alloc(folder, err) < 0)
        return -1;
    if (df_fs_exists(folder))
        return df_manifests_read(folder, ret, err);
    return df_check_alloc(*ret = cJSON_CreateArray(), err);
}

/* From the last to the first: the manifests have namespaces and definitions first. */
static int remove_folder(struct df_platform *p, const char *top, const char *name,
                         const char *name_space, struct df_err *err)
{
    DF_SECRET_JSON cJSON *objects = NULL;
    const cJSON *first = NULL;
    int count = 0;
    if (read_folder(top, name, &objects, err) < 0)
        return -1;
    for (int i = cJSON_GetArraySize(objects); i-- > 0;) {
        const cJSON *object = cJSON_GetArrayItem(objects, i);
        bool is_foreign = false;
        if (remove_one(p, object, name_space, &is_foreign, err) < 0)
            return -1;
        first = is_foreign ? object : first;
        count += is_foreign;
    }
    return tell_foreign(p, name, count, first, err);
}

int df_bootstrap_remove_component(struct df_platform *p, const struct df_component *c,
                                  struct df_err *err)
{
    if (!p->checkout)
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "RepositoryUnavailable",
                              "the repository's files say what is to be removed, and are not here");
    return remove_folder(p, p->checkout, c->node->path, c->node->name_space, err);
}

/* ---- systems ---- */

/* *ret: as of find_first(), of all that the system serves. */
static int find_use(struct df_platform *p, const char *folder, char **ret, struct df_err *err)
{
    for (size_t i = 0; !*ret && i < DF_ARRAY_SIZE(uses); i++) {
        struct df_err why = {0};
        if (!strcmp(uses[i].folder, folder) && find_first(p, &uses[i].resource, ret, &why) < 0 &&
            !df_kind_is_absent(&why))
            return df_err_pass(err, &why);
    }
    return 0;
}

int df_bootstrap_remove(struct df_platform *p, struct df_err *err)
{
    struct df_system systems[2];
    df_bootstrap_systems(p->in, systems);
    for (size_t i = DF_ARRAY_SIZE(systems); p->in->manifests_dir && i-- > 0;) {
        const struct df_system *s = &systems[i];
        DF_FREE char *use = NULL;
        if (find_use(p, s->folder, &use, err) < 0)
            return -1;
        if (use) {
            if (note(p, df_strf("%s stays: it is used by %s", s->name, use), err) < 0)
                return -1;
        } else if (remove_folder(p, p->in->manifests_dir, s->folder, s->name_space, err) < 0) {
            return df_err_wrap(err, "%s", s->name);
        }
    }
    return 0;
}
