/*
 * validate: each component by the words of its Application, or of the bootstrap by its objects;
 * then the rules of the cluster. Nothing is written, and nothing is waited for.
 */
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "runner/platform/applications.h"
#include "runner/platform/checks.h"
#include "runner/platform/lists.h"
#include "runner/platform/manifests.h"
#include "runner/platform/orphans.h"
#include "runner/platform/workload.h"

/* ---- the verdict ---- */

static struct df_verdict tell(enum df_component_state state, const char *cause, const char *what,
                              const char *why)
{
    struct df_verdict verdict = {.state = state, .cause = cause};
    df_application_explain(verdict.message, sizeof(verdict.message), what, why);
    return verdict;
}

/* Argo CD looks for new commits every few minutes; only a deploy may ask it to look now. */
static struct df_verdict tell_behind(const struct df_application_view *v, const char *commit)
{
    char commits[200];
    (void)snprintf(commits, sizeof(commits),
                   "%.64s, to which a deploy would synchronize it; it is "
                   "at %.64s",
                   commit, v->revision);
    return tell(DF_COMPONENT_DEGRADED, "OutOfSync",
                "Argo CD has not compared it with the repository's present commit", commits);
}

static struct df_verdict judge_sync(const struct df_application_view *v, const char *commit)
{
    const enum df_component_state degraded = DF_COMPONENT_DEGRADED;
    if (*v->condition)
        return tell(degraded, v->condition_type, "Argo CD cannot compare it with the repository",
                    v->condition);
    if (df_streq(v->sync, "OutOfSync"))
        return tell(degraded, "OutOfSync", "it is not as the repository says", "");
    if (!df_streq(v->sync, "Synced") || !v->is_current)
        return tell(degraded, "Unknown", "Argo CD has not compared it with the repository yet", "");
    if (df_application_is_behind(v, commit))
        return tell_behind(v, commit);
    return tell(DF_COMPONENT_DONE, "", "it is as the repository says", "");
}

struct df_verdict df_check_judge(const struct df_application_view *v, const char *commit,
                                 bool is_healthy, bool is_critical)
{
    struct df_verdict verdict = judge_sync(v, commit);
    bool is_missing = df_streq(v->health, "Missing");
    if (!is_healthy && (is_missing || df_streq(v->health, "Degraded")))
        return tell(is_critical ? DF_COMPONENT_FAILED : DF_COMPONENT_DEGRADED, v->health,
                    is_missing ? "resources of it are missing" : "resources of it do not work",
                    v->health_message);
    if (!is_healthy && verdict.state == DF_COMPONENT_DONE)
        return tell(DF_COMPONENT_DEGRADED, *v->health ? v->health : "Unknown",
                    "it is not healthy yet", v->health_message);
    return verdict;
}

/* ---- one component ---- */

struct kept_apps {
    const struct df_dag *dag;
    cJSON *array; /* owned */
};

static int begin(void *arg, const char *version, struct df_err *err)
{
    struct kept_apps *k = arg;
    (void)version;
    cJSON_Delete(k->array);
    return df_check_alloc(k->array = cJSON_CreateArray(), err);
}

/* Anybody may label an Application: those of other names are not kept. */
static int take(void *arg, cJSON **object, struct df_err *err)
{
    struct kept_apps *k = arg;
    const char *name = df_kube_name(*object);
    return name && df_dag_find(k->dag, name) ? df_json_append(k->array, DF_TAKE(*object), err) : 0;
}

/* Before the first deploy the server has no such resource. */
static int list_applications(struct df_platform *p, cJSON **ret, struct df_err *err)
{
    static const char *const without[] = {".items.metadata." DF_KUBE_MANAGED,
                                          ".items.status.history",
                                          ".items.status.operationState.syncResult", NULL};
    const struct df_kube_at at = {.resource = &df_applications,
                                  .name_space = p->in->argocd_namespace,
                                  .stop = df_stop_flag(p->stop)};
    DF_FREE char *labels = df_strf(DF_LABEL_ENVIRONMENT "=%s", p->in->name);
    const struct df_kube_select select = {.labels = labels};
    struct kept_apps kept = {.dag = &p->dag, .array = cJSON_CreateArray()};
    const struct df_kube_sink sink = {
        .begin = begin, .take = take, .arg = &kept, .without = without};
    struct df_err why = {0};
    int listed =
        df_check_alloc(labels, &why) < 0 ? -1 : df_kube_list(p->kube, &at, &select, 0, &sink, &why);
    *ret = kept.array;
    if (listed < 0 && !df_kind_is_absent(&why))
        return df_err_pass(err, &why);
    return df_check_alloc(*ret, err);
}

static const cJSON *find(const cJSON *apps, const char *name)
{
    const cJSON *app;
    cJSON_ArrayForEach (app, apps) {
        if (df_streq(df_kube_name(app), name))
            return app;
    }
    return NULL;
}

static int judge(struct df_platform *p, struct df_component *c, const cJSON *app,
                 struct df_err *err)
{
    const struct df_application_view v = df_application_view(app);
    bool is_healthy = df_platform_allows_health(p, c->node->name, v.health);
    if (!is_healthy && df_check_resources(p, c, app, &is_healthy, err) < 0)
        return -1;
    const struct df_verdict verdict =
        df_check_judge(&v, df_platform_commit_of(p, c->node), is_healthy, c->node->critical);
    df_copy(c->sync, sizeof(c->sync), v.sync);
    df_copy(c->health, sizeof(c->health), v.health);
    df_copy(c->revision, sizeof(c->revision), v.revision);
    df_copy(c->cause, sizeof(c->cause), verdict.cause);
    df_copy(c->message, sizeof(c->message), verdict.message);
    c->state = verdict.state;
    df_component_warn(c, v.warning_type, v.warning);
    if (c->state == DF_COMPONENT_DONE && !df_application_has_objects(app))
        df_component_warn(c, "NoObjects", DF_NO_OBJECTS);
    return c->node->critical ? df_check_workloads(p, c, app, err) : 0;
}

/* ---- components of the bootstrap, which have no Application ---- */

static void find_fault(struct df_component *c, const cJSON *object, const char *health,
                       const char *cause, const char *why)
{
    if (c->state != DF_COMPONENT_DONE) /* the first one is told */
        return;
    c->state = c->node->critical ? DF_COMPONENT_FAILED : DF_COMPONENT_DEGRADED;
    df_copy(c->health, sizeof(c->health), health);
    df_copy(c->cause, sizeof(c->cause), cause);
    (void)snprintf(c->message, sizeof(c->message), "%s %s: %s", df_json_str(object, "kind"),
                   df_kube_name(object), why);
}

/* *ret NULL: there is none, perhaps because its definition is not there. */
static int read_object(struct df_platform *p, const struct df_component *c, const cJSON *object,
                       cJSON **ret, struct df_err *err)
{
    struct df_object_place place;
    struct df_err why = {0};
    if (df_object_place(&p->objects, object, c->node->name_space, &place, &why) < 0)
        return df_kind_is_absent(&why) ? 0 : df_err_pass(err, &why);
    const struct df_kube_at at = df_object_at(&place);
    return df_object_read(&p->objects, &at, ret, err);
}

static int judge_object(struct df_platform *p, struct df_component *c, const cJSON *object,
                        struct df_err *err)
{
    const cJSON *minimum = df_platform_criterion(p, c->node->name, "minReadyReplicas");
    DF_SECRET_JSON cJSON *live = NULL;
    char words[256];
    if (read_object(p, c, object, &live, err) < 0)
        return -1;
    if (!live)
        find_fault(c, object, "Missing", "Missing", "it is not there");
    else if (df_workload_is_kind(df_json_str(live, "kind")) &&
             !df_workload_is_ready(live, minimum ? (int64_t)minimum->valuedouble : -1, words,
                                   sizeof(words)))
        find_fault(c, object, "Degraded", "WorkloadNotReady", words);
    return 0;
}

static int judge_bootstrap(struct df_platform *p, struct df_component *c, struct df_err *err)
{
    DF_FREE char *folder = df_fs_join(p->checkout, c->node->path);
    DF_SECRET_JSON cJSON *objects = NULL;
    const cJSON *object;
    if (df_check_alloc(folder, err) < 0 || df_manifests_read(folder, &objects, err) < 0)
        return -1;
    c->state = DF_COMPONENT_DONE;
    df_copy(c->health, sizeof(c->health), "Healthy");
    df_copy(c->message, sizeof(c->message), "its objects are there");
    cJSON_ArrayForEach (object, objects) {
        if (judge_object(p, c, object, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- all components ---- */

static void judge_missing(const struct df_platform *p, struct df_component *c)
{
    c->state = c->node->critical ? DF_COMPONENT_FAILED : DF_COMPONENT_DEGRADED;
    df_copy(c->health, sizeof(c->health), "Missing");
    df_copy(c->cause, sizeof(c->cause), "Missing");
    (void)snprintf(c->message, sizeof(c->message),
                   "the environment %s has no Application %s in the namespace %s", p->in->name,
                   c->node->name, p->in->argocd_namespace);
}

static void tell_log(const struct df_component *c)
{
    df_log_component(c->node->name, NULL);
    if (c->state == DF_COMPONENT_FAILED)
        df_error("%s: %s", c->cause, c->message);
    else if (c->state == DF_COMPONENT_DEGRADED)
        df_warn("%s: %s", c->cause, c->message);
    if (*c->warning)
        df_warn("%s", c->warning);
    df_log_component(NULL, NULL);
}

static int check(struct df_platform *p, const struct df_node *node, const cJSON *app,
                 struct df_err *err)
{
    struct df_component *c = df_platform_component(p, node);
    c->started_us = df_real_us();
    if (node->bootstrap ? judge_bootstrap(p, c, err) < 0 : app && judge(p, c, app, err) < 0)
        return -1;
    if (!node->bootstrap && !app)
        judge_missing(p, c);
    c->ended_us = df_real_us();
    df_telemetry_component(p->telemetry, c);
    tell_log(c);
    return 0;
}

int df_validate(struct df_platform *p, struct df_err *err)
{
    DF_JSON cJSON *apps = NULL;
    if (df_applications_check_tier(p, err) < 0 || list_applications(p, &apps, err) < 0)
        return -1;
    for (size_t i = 0; i < p->dag.len; i++) {
        const struct df_node *node = &p->dag.nodes[i];
        if (node->is_in_scope && check(p, node, find(apps, node->name), err) < 0)
            return -1;
    }
    df_orphans_tell_taken_out(p);
    return df_check_compliance(p, err);
}
