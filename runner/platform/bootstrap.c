/*
 * Installs Argo CD and Argo Workflows, then what comes before the first Application: components of
 * the bootstrap, credentials of the repository, pull secrets. Everything is applied by
 * df_object_apply(), so a second deploy reads it and writes nothing.
 */
#include "runner/platform/bootstrap.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "runner/platform/application.h"
#include "runner/platform/course.h"
#include "runner/platform/credentials.h"
#include "runner/platform/manifests.h"
#include "runner/platform/workload.h"

#define KIND_MS 30000 /* how long a definition needs at most until its kind is served */
#define LOOK_MS 500

void df_bootstrap_systems(const struct df_platform_input *in, struct df_system ret[2])
{
    ret[0] = (struct df_system){"argocd", "Argo CD", in->argocd_namespace, true};
    ret[1] = (struct df_system){"workflows", "Argo Workflows", in->workflows_namespace, false};
}

/* ---- applying a folder ---- */

static int pause_or_stop(const struct df_platform *p, struct df_err *err)
{
    struct timespec t = {.tv_nsec = LOOK_MS * 1000000L};
    (void)nanosleep(&t, NULL);
    return df_stop_cause(p->stop) == DF_STOP_NONE
               ? 0
               : df_fail_reason(err, DF_ERR_RETRY, "Stopped", "the action was stopped");
}

/* The kind of an object may be that of a definition that was applied a moment before. */
static int apply_one(struct df_platform *p, const cJSON *object, const char *name_space,
                     enum df_applied *ret, struct df_err *err)
{
    int64_t until_ms = df_mono_ms() + KIND_MS;
    for (;;) {
        struct df_err why = {0};
        if (df_object_apply(&p->objects, object, name_space, ret, &why) == 0)
            return 0;
        bool is_late = df_streq(why.reason, "KindUnknown") || why.cls == DF_ERR_RETRY;
        if (p->objects.dry_run && df_streq(why.reason, "KindUnknown")) {
            p->objects.writes++;
            *ret = DF_APPLIED_NEW;
            return 0;
        }
        if (!is_late || df_mono_ms() >= until_ms)
            return df_err_pass(err, &why);
        if (pause_or_stop(p, err) < 0)
            return -1;
        df_strs_free(&p->objects.kinds.absent);
    }
}

static int note(struct df_platform *p, enum df_applied applied, const cJSON *object,
                struct df_err *err)
{
    static const char *const words[][2] = {[DF_APPLIED_NEW] = {"created", "would create"},
                                           [DF_APPLIED_CHANGED] = {"changed", "would change"}};
    const char *word = words[applied][p->objects.dry_run];
    DF_FREE char *line =
        df_strf("%s %s %s", word, df_json_str(object, "kind"), df_kube_name(object));
    if (!p->bootstrap)
        p->bootstrap = cJSON_CreateArray();
    if (df_check_alloc(line, err) < 0)
        return -1;
    df_info("bootstrap: %s", line);
    return df_json_append_str(p->bootstrap, line, err);
}

static int apply_all(struct df_platform *p, const cJSON *objects, const char *name_space,
                     struct df_err *err)
{
    const cJSON *object;
    cJSON_ArrayForEach (object, objects) {
        enum df_applied applied;
        if (apply_one(p, object, name_space, &applied, err) < 0)
            return -1;
        if (applied != DF_APPLIED_SAME && note(p, applied, object, err) < 0)
            return -1;
    }
    return 0;
}

/* Of a manifest. What is not there is not ready. */
static int look_at_workload(struct df_platform *p, const cJSON *object, const char *name_space,
                            bool *ret, char *why, size_t size, struct df_err *err)
{
    struct df_object_place place;
    DF_JSON cJSON *live = NULL;
    if (df_object_place(&p->objects, object, name_space, &place, err) < 0)
        return -1;
    const struct df_kube_at at = df_object_at(&place);
    if (df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    (void)snprintf(why, size, "it is not there");
    *ret = live && df_workload_is_ready(live, -1, why, size);
    return 0;
}

/* Waits until the workloads among the objects are available. c: whose they are; or NULL. */
static int await_workloads(struct df_platform *p, struct df_component *c, const cJSON *objects,
                           const char *name_space, struct df_err *err)
{
    int64_t until_ms = df_mono_ms() + p->in->health_ms;
    const cJSON *object;
    cJSON_ArrayForEach (object, objects) {
        if (!df_workload_is_kind(df_json_str(object, "kind")))
            continue;
        for (;;) {
            bool is_ready = false;
            char why[256] = "";
            if (look_at_workload(p, object, name_space, &is_ready, why, sizeof why, err) < 0)
                return -1;
            if (is_ready)
                break;
            if (df_mono_ms() >= until_ms)
                return df_fail_reason(err, DF_ERR_RETRY, "BootstrapFailed",
                                      "%s %s did not become available: %s",
                                      df_json_str(object, "kind"), df_kube_name(object), why);
            if (c)
                df_course_wait(p, c, "workloads", NULL);
            if (pause_or_stop(p, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int install(struct df_platform *p, struct df_component *c, const cJSON *objects,
                   const char *name_space, struct df_err *err)
{
    if ((name_space && df_credentials_namespace(p, name_space, err) < 0) ||
        apply_all(p, objects, name_space, err) < 0)
        return -1;
    return p->objects.dry_run ? 0 : await_workloads(p, c, objects, name_space, err);
}

/* ---- a system ---- */

/* In Argo CD's namespace. A kind that is not served yet has nothing. */
static int is_there(struct df_platform *p, const char *api_version, const char *kind,
                    const char *name, bool *ret, struct df_err *err)
{
    struct df_object_place place;
    struct df_err why = {0};
    DF_SECRET_JSON cJSON *live = NULL;
    DF_JSON cJSON *object =
        df_json_object(DF_STR("apiVersion", api_version), DF_STR("kind", kind),
                       DF_ITEM("metadata", df_json_object(DF_STR("name", name))));
    *ret = false;
    if (df_check_alloc(object, err) < 0)
        return -1;
    if (df_object_place(&p->objects, object, p->in->argocd_namespace, &place, &why) < 0)
        return df_streq(why.reason, "KindUnknown") ? 0 : df_err_pass(err, &why);
    const struct df_kube_at at = df_object_at(&place);
    if (df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    *ret = live != NULL;
    return 0;
}

struct presence {
    bool any, ours; /* a workload of the manifests is there; one is ours */
};

static int look_at(struct df_platform *p, const cJSON *objects, const char *name_space,
                   struct presence *ret, struct df_err *err)
{
    const cJSON *object;
    *ret = (struct presence){.any = false};
    cJSON_ArrayForEach (object, objects) {
        struct df_object_place place;
        DF_JSON cJSON *live = NULL;
        if (!df_workload_is_kind(df_json_str(object, "kind")))
            continue;
        if (df_object_place(&p->objects, object, name_space, &place, err) < 0)
            return -1;
        const struct df_kube_at at = df_object_at(&place);
        if (df_object_read(&p->objects, &at, &live, err) < 0)
            return -1;
        ret->any |= live != NULL;
        ret->ours |= live && df_object_is_ours(&p->objects, live);
    }
    return 0;
}

/* Argo CD's API server makes both of these when it starts; an installation without it lacks them,
 * and then no Application is synchronized. */
static int complete_argocd(struct df_platform *p, struct df_err *err)
{
    static const char project[] =
        "{\"apiVersion\":\"argoproj.io/v1alpha1\",\"kind\":\"AppProject\","
        "\"metadata\":{\"name\":\"default\"},\"spec\":{\"sourceRepos\":[\"*\"],"
        "\"destinations\":[{\"namespace\":\"*\",\"server\":\"*\"}],"
        "\"clusterResourceWhitelist\":[{\"group\":\"*\",\"kind\":\"*\"}]}}";
    DF_JSON cJSON *objects = cJSON_CreateArray();
    cJSON *wanted = NULL;
    bool has_project = false;
    if (df_credentials_argocd_key(p, err) < 0 ||
        is_there(p, "argoproj.io/v1alpha1", "AppProject", "default", &has_project, err) < 0)
        return -1;
    if (!has_project && (df_json_parse(project, sizeof project - 1, &wanted, err) < 0 ||
                         df_json_append(objects, wanted, err) < 0))
        return -1;
    return apply_all(p, objects, p->in->argocd_namespace, err);
}

/* Without manifests: is it there at all? */
static int need_present(struct df_platform *p, const struct df_system *s, struct df_err *err)
{
    const struct df_kind *kind;
    struct df_err why = {0};
    if (!s->is_needed || df_kinds_find(&p->objects.kinds, p->kube, "argoproj.io/v1alpha1",
                                       "Application", &kind, &why) == 0)
        return 0;
    if (!df_streq(why.reason, "KindUnknown"))
        return df_err_pass(err, &why);
    if (!p->in->manifests_dir)
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "ArgoCDMissing",
                              "%s is not in the cluster, and there is no folder of manifests to "
                              "install it from (/manifests, or what --manifests names)",
                              s->name);
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "ArgoCDMissing",
                          "%s is not in the cluster, and %s has no folder %s to install it from",
                          s->name, p->in->manifests_dir, s->folder);
}

static int bootstrap_system(struct df_platform *p, const struct df_system *s, struct df_err *err)
{
    DF_FREE char *folder =
        p->in->manifests_dir ? df_fs_join(p->in->manifests_dir, s->folder) : NULL;
    DF_SECRET_JSON cJSON *objects = NULL;
    struct presence found;
    if (!folder || !df_fs_exists(folder))
        return need_present(p, s, err);
    if (df_manifests_read(folder, &objects, err) < 0 ||
        look_at(p, objects, s->name_space, &found, err) < 0)
        return -1;
    if (found.any && !found.ours) {
        df_info("%s is here already; others installed it, so it stays as it is", s->name);
        return 0;
    }
    if (install(p, NULL, objects, s->name_space, err) < 0 ||
        (s->is_needed && complete_argocd(p, err) < 0))
        return df_err_wrap(err, "%s", s->name);
    return 0;
}

/* ---- components of the bootstrap ---- */

static int install_component(struct df_platform *p, struct df_component *c, struct df_err *err)
{
    const struct df_node *node = c->node;
    DF_FREE char *folder = p->checkout ? df_fs_join(p->checkout, node->path) : NULL;
    DF_SECRET_JSON cJSON *objects = NULL;
    unsigned before = p->objects.writes;
    if (!folder)
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "RepositoryUnavailable",
                              "the repository's files are needed, and are not here");
    if (df_manifests_read(folder, &objects, err) < 0 ||
        install(p, c, objects, node->name_space, err) < 0)
        return -1;
    c->changed = p->objects.writes != before;
    if (p->in->dry_run) {
        df_copy(c->message, sizeof c->message,
                c->changed ? "would be applied" : "nothing would be written");
        return 0;
    }
    (void)snprintf(c->health, sizeof c->health, "Healthy");
    (void)snprintf(c->sync, sizeof c->sync, "Synced");
    (void)snprintf(c->revision, sizeof c->revision, "%s", p->commit ? p->commit : "");
    return 0;
}

static int bootstrap_component(struct df_platform *p, struct df_component *c, struct df_err *err)
{
    struct df_err why = {0};
    df_course_begin(p, c);
    df_telemetry_enter(p->telemetry, c);
    if (install_component(p, c, &why) == 0) {
        df_course_end(p, c, DF_COMPONENT_DONE);
        return 0;
    }
    df_component_fail(c, *why.reason ? why.reason : "BootstrapFailed", "%s", why.message);
    df_course_end(p, c, DF_COMPONENT_FAILED);
    return df_err_pass(err, &why);
}

static int bootstrap_components(struct df_platform *p, struct df_err *err)
{
    for (size_t i = 0; i < p->dag.len; i++) {
        struct df_component *c = &p->components[i];
        if (!c->node->bootstrap || !c->node->is_in_scope)
            continue;
        if (bootstrap_component(p, c, err) < 0)
            return df_err_wrap(err, "component %s", c->node->name);
    }
    return 0;
}

int df_bootstrap(struct df_platform *p, struct df_err *err)
{
    struct df_system systems[2];
    df_bootstrap_systems(p->in, systems);
    if (bootstrap_components(p, err) < 0)
        return df_err_reason(err, "BootstrapFailed");
    for (size_t i = 0; i < DF_ARRAY_SIZE(systems); i++) {
        if (bootstrap_system(p, &systems[i], err) < 0)
            return df_err_reason(err, "BootstrapFailed");
    }
    return df_credentials_repository(p, err) < 0 ? df_err_reason(err, "BootstrapFailed") : 0;
}
