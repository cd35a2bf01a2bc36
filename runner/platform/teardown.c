/*
 * teardown: the components in the reverse order of the DAG, each when all that depend on it are
 * gone; then what nobody else removes, and what is left over. course.c has the loop.
 *
 * Nothing is remembered outside of the cluster: a teardown that was killed is continued by the next
 * one, for which a component without an Application is one whose volumes are looked at.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "runner/platform/application.h"
#include "runner/platform/bootstrap.h"
#include "runner/platform/course.h"
#include "runner/platform/orphans.h"
#include "runner/platform/remains.h"
#include "runner/platform/rights.h"
#include "runner/platform/volumes.h"

#define LOOK_MS 1000 /* at volumes, which nobody watches here; and after a call that failed */

enum stage { STAGE_DELETE, STAGE_GONE, STAGE_VOLUMES };

struct removal {
    enum stage stage;
    int64_t until_ms;    /* monotonic */
    int64_t retry_at_ms; /* nothing is done before; 0: at once */
    int64_t wake_at_ms;  /* Argo CD is woken */
};

struct teardown {
    struct df_platform *platform;
    struct df_applications *apps; /* NULL: there is no Argo CD */
    struct removal *removals;     /* one for each component */
};

static struct removal *removal_of(struct teardown *t, const struct df_component *c)
{
    return &t->removals[c - t->platform->components];
}

/* NULL in *ret: there is none. */
static int find(struct teardown *t, const char *name, const cJSON **ret, struct df_err *err)
{
    *ret = NULL;
    return t->apps ? df_applications_find(t->apps, name, ret, err) : 0;
}

/* ---- before the first write ---- */

/* Nothing outside of the scope may lose what it depends on. A component that is absent hands the
 * question on to what depends on it. */
static int check_scope(struct teardown *t, struct df_err *err)
{
    const struct df_dag *dag = &t->platform->dag;
    DF_FREE bool *loses = calloc(dag->len + 1, sizeof(*loses));
    if (df_check_alloc(loses, err) < 0)
        return -1;
    for (size_t i = 0; i < dag->len; i++) {
        const struct df_node *node = &dag->nodes[i];
        DF_SHARED const cJSON *app = NULL;
        loses[i] = node->is_in_scope;
        for (size_t k = 0; k < node->depends.len; k++)
            loses[i] |= loses[node->depends.items[k]];
        if (!loses[i] || node->is_in_scope)
            continue;
        if (find(t, node->name, &app, err) < 0)
            return -1;
        if (app && df_application_is_ours(t->platform->in, app))
            return df_fail_reason(
                err, DF_ERR_USER, "InvalidInput",
                "TARGET_SCOPE %s: %s is in the cluster, outside of the scope, and "
                "depends on it: remove %s first, or choose a larger scope",
                t->platform->in->scope.text, node->name, node->name);
    }
    return 0;
}

/* ---- one component ---- */

static void fail(struct teardown *t, struct df_component *c, const char *cause, const char *message)
{
    df_component_fail(c, cause, "%s", message);
    df_course_end(t->platform, c, DF_COMPONENT_FAILED);
}

/* A call failed: again in a moment while there is time, if that can help. */
static void call_failed(struct teardown *t, struct df_component *c, const struct df_err *err)
{
    struct removal *r = removal_of(t, c);
    bool may_help = err->cls == DF_ERR_RETRY || err->cls == DF_ERR_CONFLICT;
    if (!may_help || df_mono_ms() >= r->until_ms) {
        fail(t, c,
             *err->reason                ? err->reason
             : err->cls == DF_ERR_DENIED ? "Forbidden"
                                         : "RemovalFailed",
             err->message);
        return;
    }
    df_warn("tried again: %s", err->message);
    c->retries++;
    r->retry_at_ms = df_mono_ms() + LOOK_MS;
}

/* Without the finalizer Argo CD would leave the component's objects behind. */
static int add_finalizer(struct teardown *t, const char *name, const cJSON *app, struct df_err *err)
{
    const cJSON *had = df_json_at(app, "metadata.finalizers"), *one;
    cJSON_ArrayForEach (one, had) { /* or ".../background" */
        if (cJSON_IsString(one) && df_starts_with(one->valuestring, DF_ARGO_FINALIZER))
            return 0;
    }
    cJSON *finalizers = had ? cJSON_Duplicate(had, true) : cJSON_CreateArray();
    DF_JSON cJSON *patch = df_json_object(
        DF_ITEM("metadata", df_json_object(DF_STR("resourceVersion", df_kube_version(app)),
                                           DF_ITEM("finalizers", finalizers))));
    if (df_check_alloc(patch, err) < 0 ||
        df_json_append_str(finalizers, DF_ARGO_FINALIZER, err) < 0)
        return -1;
    return df_applications_patch(t->apps, name, patch, err);
}

static int delete_application(struct teardown *t, struct df_component *c, struct df_err *err)
{
    struct df_platform *p = t->platform;
    const struct df_kube_at at = df_applications_at(p, c->node->name);
    DF_JSON cJSON *app = NULL; /* whole, with its resources */
    if (df_object_read(&p->objects, &at, &app, err) < 0)
        return -1;
    if (!app)
        return 0;
    if (df_volumes_mark(p, c, app, err) < 0)
        return -1;
    c->changed = true;
    if (p->in->dry_run || df_kube_is_deleted(app))
        return 0;
    if (add_finalizer(t, c->node->name, app, err) < 0 ||
        df_object_delete(&p->objects, &at, df_kube_uid(app), err) < 0)
        return -1;
    df_info("Application deleted; Argo CD removes its objects");
    return 0;
}

static void step_delete(struct teardown *t, struct df_component *c, const cJSON *app)
{
    struct df_platform *p = t->platform;
    struct removal *r = removal_of(t, c);
    struct df_err why = {0};
    if (app && !df_application_is_ours(p->in, app)) {
        fail(t, c, "NotOurs", "the Application is not one of this environment, and stays");
        return;
    }
    if (app && delete_application(t, c, &why) < 0 && why.cls != DF_ERR_NOT_FOUND) {
        call_failed(t, c, &why);
        return;
    }
    if (p->in->dry_run) {
        c->changed = app || c->node->bootstrap;
        p->objects.writes += c->changed;
        df_copy(c->message, sizeof(c->message), c->changed ? "would be removed" : "nothing there");
        df_course_end(p, c, DF_COMPONENT_DONE);
        return;
    }
    if (app)
        df_course_wait(p, c, "removal", NULL);
    r->stage = app ? STAGE_GONE : STAGE_VOLUMES;
    r->wake_at_ms = df_mono_ms() + DF_ARGO_WAKE_MS;
}

static void wake(struct teardown *t, const struct df_component *c)
{
    DF_JSON cJSON *patch = NULL;
    struct df_err why = {0};
    if (df_application_refresh_patch(false, &patch, &why) < 0 ||
        df_applications_patch(t->apps, c->node->name, patch, &why) < 0)
        df_debug("Argo CD is not woken: %s", why.message);
    removal_of(t, c)->wake_at_ms = df_mono_ms() + DF_ARGO_WAKE_MS;
}

static void end_stuck(struct teardown *t, struct df_component *c, const cJSON *app)
{
    char message[400];
    const struct df_application_view v = df_application_view(app);
    df_application_explain(message, sizeof(message),
                           "Argo CD did not remove its objects in time, so its finalizer holds the "
                           "Application",
                           v.condition);
    fail(t, c, "StuckFinalizer", message);
}

static void step_gone(struct teardown *t, struct df_component *c, const cJSON *app)
{
    struct removal *r = removal_of(t, c);
    if (!app) {
        df_course_wait_end(t->platform, c, NULL);
        r->stage = STAGE_VOLUMES;
    } else if (df_mono_ms() >= r->until_ms) {
        end_stuck(t, c, app);
    } else if (df_mono_ms() >= r->wake_at_ms) {
        wake(t, c);
    }
}

/* Also of a component without an Application: an earlier teardown may have been killed here. */
static void step_volumes(struct teardown *t, struct df_component *c)
{
    struct df_platform *p = t->platform;
    struct removal *r = removal_of(t, c);
    struct df_err why = {0};
    unsigned before = p->objects.writes;
    int left = 0;
    if ((c->node->bootstrap && df_bootstrap_remove_component(p, c, &why) < 0) ||
        df_volumes_release(p, c, &left, &why) < 0) {
        call_failed(t, c, &why);
        return;
    }
    c->changed |= p->objects.writes != before;
    if (!left) {
        df_copy(c->message, sizeof(c->message), c->changed ? "removed" : "nothing there");
        df_course_end(p, c, DF_COMPONENT_DONE);
    } else if (df_mono_ms() >= r->until_ms) {
        fail(t, c, "VolumesRemain", "claims or volumes of it did not go in time");
    } else {
        df_course_wait(p, c, "volumes", NULL);
        r->retry_at_ms = df_mono_ms() + LOOK_MS;
    }
}

static void step(struct teardown *t, struct df_component *c)
{
    DF_SHARED const cJSON *app = NULL;
    struct df_err why = {0};
    if (find(t, c->node->name, &app, &why) < 0)
        call_failed(t, c, &why);
    else if (removal_of(t, c)->stage == STAGE_DELETE)
        step_delete(t, c, app);
    else if (removal_of(t, c)->stage == STAGE_GONE)
        step_gone(t, c, app);
    else
        step_volumes(t, c);
}

/* Moves the component as far as it goes now. Returns when it is to be looked at again. */
static int64_t advance(void *arg, struct df_component *c)
{
    struct teardown *t = arg;
    struct removal *r = removal_of(t, c);
    bool moves = df_mono_ms() >= r->retry_at_ms;
    while (moves && !df_course_is_over(c)) {
        const enum stage before = r->stage;
        df_telemetry_enter(t->platform->telemetry, c);
        step(t, c);
        df_telemetry_enter(t->platform->telemetry, NULL);
        moves = r->stage != before;
    }
    if (r->retry_at_ms > df_mono_ms())
        return r->retry_at_ms;
    return r->stage == STAGE_GONE && r->wake_at_ms < r->until_ms ? r->wake_at_ms : r->until_ms;
}

/* ---- order ---- */

static bool depends_on(const struct df_node *node, size_t index)
{
    for (size_t i = 0; i < node->depends.len; i++) {
        if (node->depends.items[i] == index)
            return true;
    }
    return false;
}

/* Begins the component if all that depend on it are gone; skips it if one of them stays. */
static void look_at_dependents(void *arg, struct df_component *c)
{
    struct teardown *t = arg;
    struct df_platform *p = t->platform;
    size_t index = (size_t)(c - p->components);
    for (size_t i = index + 1; i < p->dag.len; i++) {
        const struct df_component *other = &p->components[i];
        if (!other->node->is_in_scope || !depends_on(other->node, index))
            continue;
        if (!df_course_is_over(other))
            return;
        if (other->state == DF_COMPONENT_DONE)
            continue;
        df_copy(c->cause, sizeof(c->cause), "DependencyFailed");
        (void)snprintf(c->message, sizeof(c->message), "%s, which depends on it, is not gone",
                       other->node->name);
        df_course_end(p, c, DF_COMPONENT_SKIPPED);
        return;
    }
    df_course_begin(p, c);
    removal_of(t, c)->until_ms = df_mono_ms() + df_course_limit_ms(p, c);
}

/* ---- the action ---- */

/* Of a dry run. */
static int start_preview(struct df_platform *p, struct df_err *err)
{
    p->removal = df_json_object(DF_ITEM("orphans", cJSON_CreateArray()),
                                DF_ITEM("volumes", cJSON_CreateArray()));
    return df_check_alloc(p->removal, err);
}

static int start(struct teardown *t, struct df_err *err)
{
    struct df_err why = {0};
    t->removals = calloc(t->platform->dag.len + 1, sizeof(*t->removals));
    if (df_check_alloc(t->removals, err) < 0 ||
        (t->platform->in->dry_run && start_preview(t->platform, err) < 0))
        return -1;
    if (df_applications_start(t->platform, &t->apps, &why) == 0 ||
        df_streq(why.reason, "KindUnknown"))
        return 0;
    return df_err_pass(err, &why);
}

static int tear_down(struct teardown *t, struct df_err *err)
{
    if (df_rights_check(t->platform, err) < 0 || df_applications_check_tier(t->platform, err) < 0 ||
        start(t, err) < 0 || check_scope(t, err) < 0)
        return -1;
    const struct df_course course = {.platform = t->platform,
                                     .apps = t->apps,
                                     .is_backwards = true,
                                     .look = look_at_dependents,
                                     .advance = advance,
                                     .arg = t};
    df_course_run(&course);
    df_orphans_tell_taken_out(t->platform);
    if (df_stop_cause(t->platform->stop) != DF_STOP_NONE)
        return 0;
    return df_remains_settle(t->platform, err);
}

int df_teardown(struct df_platform *p, struct df_err *err)
{
    struct teardown t = {.platform = p};
    int failed = tear_down(&t, err);
    df_applications_stop(t.apps);
    free(t.removals);
    return failed;
}
