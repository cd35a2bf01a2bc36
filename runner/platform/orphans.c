/*
 * Lists every kind of object that can be deleted, with its metadata alone, and keeps those that
 * belong to a component which a teardown removed. One pass over the cluster: a tracking annotation
 * cannot be selected by.
 */
#include "runner/platform/orphans.h"

#include "common/base/log.h"
#include "runner/platform/application.h"
#include "runner/platform/credentials.h"
#include "runner/platform/lists.h"
#include "runner/platform/volumes.h"

#define INSTANCE "app.kubernetes.io/instance"

struct search {
    struct df_platform *platform;
    struct df_orphans *found;
    struct df_strs namespaces; /* of the components */
    struct df_strs seen;       /* resources, whatever their version */
    const char *kind, *plural; /* of the list */
};

static void search_free(struct search *s)
{
    df_strs_free(&s->namespaces);
    df_strs_free(&s->seen);
}

void df_orphans_free(struct df_orphans *o)
{
    cJSON_Delete(DF_TAKE(o->list));
    df_strs_free(&o->used);
    df_strs_free(&o->used_by);
    df_strs_free(&o->unread);
}

int df_orphans_add(struct df_orphans *o, const char *kind, const cJSON *object, const char *why,
                   struct df_err *err)
{
    if (cJSON_GetArraySize(o->list) >= DF_LIMIT_PLATFORM_ORPHANS) {
        o->left_out++;
        return 0;
    }
    return df_json_append(
        o->list,
        df_json_object(DF_STR("kind", kind),
                       DF_STR("namespace", df_json_str(object, "metadata.namespace")),
                       DF_STR("name", df_kube_name(object)), DF_STR("why", why)),
        err);
}

/* ---- whose an object is ---- */

/* True if the teardown wanted to remove the component of this name, which is n bytes long. */
static bool was_removed(const struct search *s, const char *name, size_t n)
{
    const struct df_platform *p = s->platform;
    for (size_t i = 0; i < p->dag.len; i++) {
        const struct df_component *c = &p->components[i];
        if (!c->node->is_in_scope || strlen(c->node->name) != n ||
            strncmp(c->node->name, name, n) != 0)
            continue;
        return c->state == DF_COMPONENT_DONE ||
               (c->state == DF_COMPONENT_FAILED && !df_streq(c->cause, "NotOurs"));
    }
    return false;
}

/* "web:apps/Deployment:web/web" is web's. The label means as much only in a namespace of ours:
 * others use it, too. */
static bool is_tracked(const struct search *s, const cJSON *object)
{
    const char *tracking = df_kube_annotation(object, DF_ARGO_TRACKING);
    const char *instance = df_kube_label(object, INSTANCE);
    const char *name_space = df_json_str(object, "metadata.namespace");
    if (tracking && was_removed(s, tracking, strcspn(tracking, ":")))
        return true;
    return instance && name_space && df_strs_has(&s->namespaces, name_space) &&
           was_removed(s, instance, strlen(instance));
}

/* What has no component is of the bootstrap, or a namespace: they are removed after the search. */
static bool is_labelled(const struct search *s, const cJSON *object)
{
    const struct df_platform_input *in = s->platform->in;
    bool is_volume = !strcmp(s->plural, "persistentvolumes"); /* told of apart */
    return in->scope.kind == DF_SCOPE_PLATFORM && !is_volume &&
           df_application_is_ours(in, object) && df_kube_label(object, DF_LABEL_COMPONENT);
}

static const char *why_application(const struct search *s, const cJSON *app)
{
    const char *name = df_kube_name(app);
    if (!df_application_is_ours(s->platform->in, app))
        return NULL;
    if (was_removed(s, name, strlen(name)))
        return "the Application is still there";
    return !df_dag_find(&s->platform->dag, name) && s->platform->in->scope.kind == DF_SCOPE_PLATFORM
               ? "an Application of this environment that the DAG does not have any more"
               : NULL;
}

/* NULL: it is no orphan. */
static const char *why_orphan(const struct search *s, const cJSON *object)
{
    if (!strcmp(s->kind, "Application"))
        return why_application(s, object);
    if (is_tracked(s, object))
        return "Argo CD's tracking says that it is of a component that was removed";
    return is_labelled(s, object) ? "it has the label " DF_LABEL_ENVIRONMENT : NULL;
}

/* What is in every namespace, what we put there for all of them, and what goes a moment after its
 * Service. */
static bool is_furniture(const struct search *s, const char *name)
{
    static const char *const own[][2] = {{"ConfigMap", "kube-root-ca.crt"},
                                         {"ServiceAccount", "default"},
                                         {"Secret", DF_PULL_SECRET}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(own); i++) {
        if (!strcmp(s->kind, own[i][0]) && df_streq(name, own[i][1]))
            return true;
    }
    return !strcmp(s->kind, "Endpoints");
}

/* ---- the pass ---- */

static int add(struct search *s, const cJSON *object, const char *reason, struct df_err *err)
{
    const cJSON *one, *finalizers = NULL;
    DF_BUF struct df_buf why = DF_BUF_INIT(DF_KIB);
    (void)df_buf_adds(&why, reason);
    if (df_kube_is_deleted(object)) {
        finalizers = df_json_at(object, "metadata.finalizers");
        (void)df_buf_adds(&why, "; it is being deleted");
    }
    cJSON_ArrayForEach (one, finalizers) {
        if (cJSON_IsString(one))
            (void)df_buf_addf(&why, "%s%s", one == finalizers->child ? " and held by " : ", ",
                              one->valuestring);
    }
    return df_orphans_add(s->found, s->kind, object, df_buf_str(&why), err);
}

static int note_use(struct df_orphans *o, const char *kind, const char *name_space,
                    const char *name, struct df_err *err)
{
    if (df_strs_add_new(&o->used, name_space))
        (void)df_strs_addf(&o->used_by, "%s %s", kind, name);
    return df_strs_check(&o->used, err) < 0 ? -1 : df_strs_check(&o->used_by, err);
}

/* Also what has an owner: that may be in no namespace, and stay. */
static bool is_use(const struct search *s, const cJSON *object, bool goes)
{
    const char *name_space = df_json_str(object, "metadata.namespace");
    return name_space && df_strs_has(&s->namespaces, name_space) &&
           !is_furniture(s, df_kube_name(object)) && !(goes && df_kube_is_deleted(object));
}

static int look(void *arg, const cJSON *object, struct df_err *err)
{
    struct search *s = arg;
    const cJSON *owners = df_json_at(object, "metadata.ownerReferences");
    const cJSON *finalizers = df_json_at(object, "metadata.finalizers");
    bool is_held = df_kube_is_deleted(object) && finalizers && finalizers->child;
    bool goes = owners && owners->child && !is_held; /* with its owner */
    if (is_use(s, object, goes) &&
        note_use(s->found, s->kind, df_json_str(object, "metadata.namespace"), df_kube_name(object),
                 err) < 0)
        return -1;
    const char *reason = goes ? NULL : why_orphan(s, object);
    return reason ? add(s, object, reason, err) : 0;
}

static int could_not_read(struct search *s, const char *what, const struct df_err *why,
                          struct df_err *err)
{
    if (df_stop_cause(s->platform->stop) != DF_STOP_NONE)
        return df_err_pass(err, why);
    return df_strs_addf(&s->found->unread, "%s: %s", what, why->message) < 0 ? df_fail_oom(err) : 0;
}

static int search_resource(struct search *s, const char *api_version, const cJSON *resource,
                           struct df_err *err)
{
    const char *slash = strchr(api_version, '/'), *plural = df_json_str(resource, "name");
    DF_FREE char *group = slash ? strndup(api_version, (size_t)(slash - api_version)) : strdup("");
    DF_FREE char *key = df_strf("%s.%s", plural, group ? group : "");
    if (df_check_alloc(group, err) < 0 || df_check_alloc(key, err) < 0)
        return -1;
    const struct df_kube_resource of = {group, slash ? slash + 1 : api_version, plural};
    const struct df_kube_at at = {
        .resource = &of, .stop = df_stop_flag(s->platform->stop), .metadata_only = true};
    const struct df_kube_sink sink = {.item = look, .arg = s};
    struct df_err why = {0};
    if (!df_json_has_string(df_json_at(resource, "verbs"), "delete") || !strcmp(plural, "events") ||
        !df_strs_add_new(&s->seen, key))
        return df_strs_check(&s->seen, err);
    s->kind = df_json_str(resource, "kind");
    s->plural = plural;
    return df_kube_list(s->platform->kube, &at, NULL, 0, &sink, &why) == 0
               ? 0
               : could_not_read(s, key, &why, err);
}

static int search_version(struct search *s, const char *api_version, struct df_err *err)
{
    DF_JSON cJSON *resources = NULL;
    const cJSON *one;
    struct df_err why = {0};
    if (df_list_resources(s->platform, api_version, &resources, &why) < 0)
        return could_not_read(s, api_version, &why, err);
    cJSON_ArrayForEach (one, resources) {
        if (search_resource(s, api_version, one, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- Applications of components that were taken out of the DAG ---- */

static int list_own(struct df_platform *p, cJSON **ret, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_applications,
                                  .name_space = p->in->argocd_namespace,
                                  .metadata_only = true,
                                  .stop = df_stop_flag(p->stop)};
    DF_FREE char *labels = df_strf(DF_LABEL_ENVIRONMENT "=%s", p->in->name);
    return df_check_alloc(labels, err) < 0 ? -1 : df_list_objects(p, &at, labels, ret, err);
}

void df_orphans_tell_taken_out(struct df_platform *p)
{
    DF_JSON cJSON *apps = NULL, *names = cJSON_CreateArray();
    const cJSON *app;
    struct df_err why = {0};
    if (p->in->scope.kind != DF_SCOPE_PLATFORM || df_stop_cause(p->stop) != DF_STOP_NONE)
        return;
    if (list_own(p, &apps, &why) < 0 && !df_kind_is_absent(&why))
        df_warn("whether the DAG lacks an Application is not known: %s", why.message);
    cJSON_ArrayForEach (app, apps) {
        const char *name = df_kube_name(app);
        if (!name || df_dag_find(&p->dag, name))
            continue;
        df_warn("the DAG does not have the Application %s of this environment any more", name);
        if (df_json_append_str(names, name, &why) < 0)
            return;
    }
    p->not_in_dag = names && names->child ? DF_TAKE(names) : NULL;
}

int df_orphans_find(struct df_platform *p, struct df_orphans *ret, struct df_err *err)
{
    DF_CLEANUP(search_free) struct search s = {.platform = p, .found = ret};
    DF_JSON cJSON *groups = NULL;
    const cJSON *group, *version;
    if (df_list_namespaces(p, &s.namespaces, err) < 0 || search_version(&s, "v1", err) < 0 ||
        df_kube_get_raw(p->kube, "/apis", &groups, err) < 0)
        return -1;
    cJSON_ArrayForEach (group, df_json_at(groups, "groups")) {
        cJSON_ArrayForEach (version, df_json_at(group, "versions")) {
            const char *api_version = df_json_str(version, "groupVersion");
            if (api_version && search_version(&s, api_version, err) < 0)
                return -1;
        }
    }
    return 0;
}
