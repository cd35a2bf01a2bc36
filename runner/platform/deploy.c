/*
 * deploy: rights, bootstrap, then the components in the order of the DAG. course.c has the loop,
 * progress.h says what is next for one.
 */
#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "runner/platform/application.h"
#include "runner/platform/bootstrap.h"
#include "runner/platform/checks.h"
#include "runner/platform/course.h"
#include "runner/platform/credentials.h"
#include "runner/platform/diagnose.h"
#include "runner/platform/orphans.h"
#include "runner/platform/platform.h"
#include "runner/platform/progress.h"
#include "runner/platform/rights.h"

#define CALL_PAUSE_MS 1000 /* after a call that the API server did not answer */
#define LOOK_MS 5000       /* at workloads that are not ready, which nobody watches */
#define MOST_WAKE_MS 60000

struct deploy {
    struct df_platform *platform;
    struct df_applications *apps;
    struct df_progress *progress; /* one for each component */
};

static struct df_progress *progress_of(struct deploy *d, const struct df_component *c)
{
    return &d->progress[c - d->platform->components];
}

/* ---- the end of a component ---- */

static void end(struct deploy *d, struct df_component *c, enum df_component_state state)
{
    struct df_progress *g = progress_of(d, c);
    if (g->applied_us)
        c->waited_us = df_real_us() - g->applied_us;
    g->stage = DF_STAGE_OVER;
    df_course_end(d->platform, c, state);
    if (*c->warning)
        df_warn("%s: %s", c->node->name, c->warning);
}

static void end_failed(struct deploy *d, struct df_component *c, const char *cause,
                       const char *message)
{
    df_component_fail(c, cause, "%s", message);
    df_diagnose(d->platform, c);
    end(d, c, DF_COMPONENT_FAILED);
}

static const char *cause_of(const struct df_err *err)
{
    const char *lasting = df_application_lasting_cause(err->message);
    if (lasting)
        return lasting;
    return *err->reason ? err->reason : err->cls == DF_ERR_DENIED ? "Forbidden" : "SyncFailed";
}

/* A call failed: again in a moment while there is time, if that can help. */
static void call_failed(struct deploy *d, struct df_component *c, const struct df_err *err)
{
    struct df_progress *g = progress_of(d, c);
    bool may_help = err->cls == DF_ERR_RETRY || err->cls == DF_ERR_CONFLICT;
    if (!may_help || df_mono_ms() >= g->until_ms) {
        end_failed(d, c, may_help ? "Unavailable" : cause_of(err), err->message);
        return;
    }
    df_warn("tried again: %s", err->message);
    g->retry_at_ms = df_mono_ms() + CALL_PAUSE_MS;
}

/* ---- dependencies ---- */

/* Of a component outside of the scope, its Application says how it is. */
static bool is_healthy_now(struct deploy *d, const struct df_node *node)
{
    const cJSON *app = NULL;
    if (!d->apps || df_applications_find(d->apps, node->name, &app, NULL) < 0 || !app)
        return false;
    struct df_application_view v = df_application_view(app);
    bool healthy = df_application_is_ours(d->platform->in, app) && df_streq(v.sync, "Synced") &&
                   df_platform_allows_health(d->platform, node->name, v.health);
    df_shared_drop(app);
    return healthy;
}

static void begin(struct deploy *d, struct df_component *c)
{
    struct df_progress *g = progress_of(d, c);
    df_course_begin(d->platform, c);
    g->stage = DF_STAGE_APPLY;
    g->until_ms = df_mono_ms() + df_course_limit_ms(d->platform, c);
}

static void skip(struct deploy *d, struct df_component *c, const struct df_node *failed)
{
    (void)snprintf(c->cause, sizeof c->cause, "DependencyFailed");
    (void)snprintf(c->message, sizeof c->message, "it depends on %s, which is not healthy",
                   failed->name);
    end(d, c, DF_COMPONENT_SKIPPED);
}

/* Begins the component if all that it depends on is healthy; skips it if something cannot be. */
static void look_at_dependencies(void *arg, struct df_component *c)
{
    struct deploy *d = arg;
    for (size_t i = 0; i < c->node->depends.len; i++) {
        const struct df_component *on = &d->platform->components[c->node->depends.items[i]];
        bool in_scope = on->node->is_in_scope;
        if (in_scope && !df_course_is_over(on))
            return;
        bool healthy = in_scope ? on->state == DF_COMPONENT_DONE : is_healthy_now(d, on->node);
        if (!healthy && !(d->platform->in->dry_run && !in_scope)) {
            skip(d, c, on->node);
            return;
        }
    }
    begin(d, c);
}

/* ---- applying ---- */

static int apply(struct deploy *d, struct df_component *c, enum df_applied *ret, struct df_err *err)
{
    struct df_platform *p = d->platform;
    DF_CLEANUP(df_cleanup_shared) const cJSON *live = NULL;
    DF_JSON cJSON *wanted = NULL;
    if (df_application_make(p->in, c->node, &wanted, err) < 0 ||
        (d->apps && df_applications_find(d->apps, c->node->name, &live, err) < 0))
        return -1;
    if (live && !df_application_is_ours(p->in, live))
        return df_fail_reason(err, DF_ERR_DENIED, "NotOurs",
                              "the Application %s exists, and its label %s is not %s: rename the "
                              "component, or set the label if it shall become one of this platform",
                              c->node->name, DF_LABEL_ENVIRONMENT, p->in->name);
    if (p->in->registry_file && c->node->name_space &&
        df_credentials_namespace(p, c->node->name_space, err) < 0)
        return -1;
    if (!d->apps) { /* a dry run before there is an Argo CD */
        p->objects.writes++;
        *ret = DF_APPLIED_NEW;
        return 0;
    }
    return df_applications_apply(d->apps, live, wanted, ret, err);
}

/* v: NULL if there is no Application. */
static void end_dry_run(struct deploy *d, struct df_component *c, enum df_applied applied,
                        const struct df_application_view *v)
{
    const char *commit = df_platform_commit_of(d->platform, c->node);
    static const char *const words[] = {[DF_APPLIED_SAME] = "nothing would be written",
                                        [DF_APPLIED_NEW] = "would be created and synchronized",
                                        [DF_APPLIED_CHANGED] = "would be changed and synchronized"};
    const char *word = words[applied];
    bool is_behind = v && df_application_is_behind(v, commit);
    if (applied == DF_APPLIED_SAME && (is_behind || !df_streq(c->sync, "Synced"))) {
        word = "would be synchronized";
        d->platform->objects.writes++; /* of the Application, by which it is asked for */
    }
    c->changed = word != words[DF_APPLIED_SAME];
    (void)snprintf(c->message, sizeof c->message, "%s%s%.64s%s", word,
                   is_behind ? " to commit " : "", is_behind ? commit : "",
                   is_behind ? ", with which Argo CD has not compared it yet" : "");
    end(d, c, DF_COMPONENT_DONE);
}

/* ---- one step ---- */

static void note_view(struct df_component *c, const struct df_application_view *v)
{
    (void)snprintf(c->sync, sizeof c->sync, "%.23s", v->sync);
    (void)snprintf(c->health, sizeof c->health, "%.23s", v->health);
    (void)snprintf(c->revision, sizeof c->revision, "%.64s", v->revision);
}

/* Of a dry run: Argo CD, which would find it out, is not asked. */
static bool lacks_folder(const struct deploy *d, const struct df_component *c)
{
    const struct df_platform *p = d->platform;
    DF_FREE char *folder = p->in->dry_run && p->checkout && !c->node->chart
                               ? df_fs_join(p->checkout, c->node->path)
                               : NULL;
    return folder && !df_fs_exists(folder);
}

static void step_apply(struct deploy *d, struct df_component *c)
{
    enum df_applied applied;
    struct df_err why = {0};
    if (lacks_folder(d, c)) {
        (void)df_fail(&why, DF_ERR_NOT_FOUND, "the repository has no folder %s at the commit %s",
                      c->node->path, d->platform->commit);
        end_failed(d, c, "PathNotFound", why.message);
        return;
    }
    if (apply(d, c, &applied, &why) < 0) {
        call_failed(d, c, &why);
        return;
    }
    c->changed = applied != DF_APPLIED_SAME;
    if (applied != DF_APPLIED_SAME && !d->platform->in->dry_run)
        df_info("Application %s", applied == DF_APPLIED_NEW ? "created" : "changed");
    progress_of(d, c)->is_new = applied == DF_APPLIED_NEW;
    progress_of(d, c)->applied_us = df_real_us();
    progress_of(d, c)->stage = DF_STAGE_COMPARE;
    progress_of(d, c)->wake_at_ms = df_mono_ms() + DF_ARGO_WAKE_MS;
}

static int ask_for_sync(struct deploy *d, struct df_component *c, struct df_progress *g,
                        struct df_err *err)
{
    struct df_platform *p = d->platform;
    DF_JSON cJSON *patch = NULL;
    struct df_span_id span;
    df_telemetry_new_span(p->telemetry, &span);
    const char *revision = p->in->expected_commit ? df_platform_commit_of(p, c->node) : NULL;
    if (df_application_sync_patch(df_telemetry_trace(p->telemetry), span.hex, revision, &patch,
                                  err) < 0 ||
        df_applications_patch(d->apps, c->node->name, patch, err) < 0)
        return -1;
    (void)snprintf(g->span, sizeof g->span, "%s", span.hex);
    df_course_wait(p, c, "sync", g->span);
    g->syncs++;
    g->stage = DF_STAGE_SYNC;
    g->wake_at_ms = df_mono_ms() + DF_ARGO_WAKE_MS;
    c->changed = true;
    df_info("synchronization %d asked for", g->syncs);
    return 0;
}

/* To render costs Argo CD a fetch of the repository: the pauses before it double. */
static int ask_for_refresh(struct deploy *d, const struct df_component *c, struct df_progress *g,
                           bool is_hard, struct df_err *err)
{
    DF_JSON cJSON *patch = NULL;
    if (df_application_refresh_patch(is_hard, &patch, err) < 0 ||
        df_applications_patch(d->apps, c->node->name, patch, err) < 0)
        return -1;
    g->refreshes++;
    g->wake_at_ms =
        df_mono_ms() +
        (is_hard ? df_backoff(DF_ARGO_WAKE_MS, MOST_WAKE_MS, g->refreshes) : DF_ARGO_WAKE_MS);
    return 0;
}

static void retry_later(struct deploy *d, struct df_component *c, const char *why)
{
    struct df_progress *g = progress_of(d, c);
    int64_t ms = d->platform->in->backoff_ms;
    int64_t pause = df_backoff_pause(ms, 60 * ms, g->syncs);
    df_course_wait_end(d->platform, c, why);
    df_course_wait(d->platform, c, "retry", NULL);
    c->retries++;
    g->stage = DF_STAGE_COMPARE;
    g->retry_at_ms = df_mono_ms() + pause;
    df_warn("%s (in %.1f s)", why, (double)pause / 1000);
}

/* As validate does. The watch leaves the Application's resources out. */
static int look_at_workloads(struct df_platform *p, struct df_component *look, struct df_err *err)
{
    const struct df_kube_at at = df_applications_at(p, look->node->name);
    DF_JSON cJSON *app = NULL;
    return df_kube_get(p->kube, &at, &app, err) < 0 ? -1 : df_check_workloads(p, look, app, err);
}

/* Argo CD's word can be less than what validate asks of a critical component: its workloads may be
 * left out of that word, and health.yaml may want more of their replicas. */
static void end_if_ready(struct deploy *d, struct df_component *c)
{
    struct df_progress *g = progress_of(d, c);
    DF_CLEANUP(df_component_free) struct df_component look = {.node = c->node};
    struct df_err why = {0};
    int64_t now_ms = df_mono_ms();
    if (c->node->critical && look_at_workloads(d->platform, &look, &why) < 0) {
        call_failed(d, c, &why);
    } else if (look.state != DF_COMPONENT_FAILED) {
        end(d, c, DF_COMPONENT_DONE);
    } else if (now_ms >= g->until_ms || df_streq(look.cause, "Forbidden")) {
        end_failed(d, c, look.cause, look.message);
    } else {
        df_course_wait(d->platform, c, "workloads", NULL);
        g->retry_at_ms = now_ms + LOOK_MS < g->until_ms ? now_ms + LOOK_MS : g->until_ms;
    }
}

static void note_wait(struct deploy *d, struct df_component *c)
{
    static const char *const whats[] = {
        [DF_STAGE_COMPARE] = "compare", [DF_STAGE_SYNC] = "sync", [DF_STAGE_HEALTH] = "health"};
    df_course_wait(d->platform, c, whats[progress_of(d, c)->stage], NULL);
}

static void act(struct deploy *d, struct df_component *c, const struct df_next *next)
{
    struct df_progress *g = progress_of(d, c);
    struct df_err why = {0};
    int failed = 0;
    switch (next->todo) {
    case DF_TODO_REFRESH:
    case DF_TODO_RENDER:
        failed = ask_for_refresh(d, c, g, next->todo == DF_TODO_RENDER, &why);
        break;
    case DF_TODO_SYNC:
        failed = ask_for_sync(d, c, g, &why);
        break;
    case DF_TODO_HEALTH:
        df_course_wait_end(d->platform, c, NULL);
        g->stage = DF_STAGE_HEALTH;
        g->wake_at_ms = df_mono_ms() + DF_ARGO_WAKE_MS;
        g->until_ms = df_mono_ms() + d->platform->in->health_ms;
        break;
    case DF_TODO_RETRY:
        retry_later(d, c, next->message);
        break;
    case DF_TODO_DONE:
        end_if_ready(d, c);
        break;
    case DF_TODO_FAIL:
        end_failed(d, c, next->cause, next->message);
        break;
    case DF_TODO_WAIT:
    default:
        note_wait(d, c);
        break;
    }
    if (failed)
        call_failed(d, c, &why);
}

/* The watch leaves resources out. What was not changed has been looked at by an earlier deploy. */
static void warn_if_empty(const struct deploy *d, struct df_component *c)
{
    const struct df_kube_at at = {.resource = &df_applications,
                                  .name_space = d->platform->in->argocd_namespace,
                                  .name = c->node->name,
                                  .stop = df_stop_flag(d->platform->stop)};
    DF_JSON cJSON *app = NULL;
    struct df_err why = {0};
    if (df_kube_get(d->platform->kube, &at, &app, &why) < 0)
        df_debug("whether it has objects is not known: %s", why.message);
    else if (!df_application_has_objects(app))
        df_component_warn(c, "NoObjects", DF_NO_OBJECTS);
}

/* Of an Application that exists. True if something was done: the next step may follow at once. */
static bool step_application(struct deploy *d, struct df_component *c, const cJSON *app)
{
    struct df_platform *p = d->platform;
    struct df_progress *g = progress_of(d, c);
    const struct df_application_view v = df_application_view(app);
    const struct df_progress_rules rules = {
        .commit = df_platform_commit_of(p, c->node),
        .is_bound = p->in->expected_commit != NULL,
        .max_attempts = p->in->max_attempts,
        .is_healthy = df_platform_allows_health(p, c->node->name, v.health)};
    note_view(c, &v);
    if (p->in->dry_run) {
        end_dry_run(d, c, c->changed ? DF_APPLIED_CHANGED : DF_APPLIED_SAME, &v);
        return true;
    }
    struct df_next next = df_progress_next(g, &rules, &v, df_mono_ms());
    bool counts = next.todo == DF_TODO_SYNC || next.todo == DF_TODO_DONE;
    if (counts || next.todo == DF_TODO_FAIL) /* a sync that takes an object over ends its warning */
        df_component_warn(c, v.warning_type, v.warning);
    if (next.todo == DF_TODO_DONE && c->changed)
        warn_if_empty(d, c);
    act(d, c, &next);
    return next.todo != DF_TODO_WAIT && next.todo != DF_TODO_RETRY;
}

static bool step_comparison(struct deploy *d, struct df_component *c)
{
    DF_CLEANUP(df_cleanup_shared) const cJSON *app = NULL;
    struct df_err why = {0};
    if (d->apps && df_applications_find(d->apps, c->node->name, &app, &why) < 0) {
        call_failed(d, c, &why);
        return false;
    }
    if (!app && d->platform->in->dry_run) {
        end_dry_run(d, c, DF_APPLIED_NEW, NULL);
        return true;
    }
    if (!app) {
        end_failed(d, c, "Missing", "somebody deleted its Application during the deploy");
        return true;
    }
    return step_application(d, c, app);
}

/* When time alone changes what is next. */
static int64_t look_at_ms(const struct df_progress *g, int64_t now_ms)
{
    if (g->retry_at_ms > now_ms)
        return g->retry_at_ms;
    return g->wake_at_ms > now_ms && g->wake_at_ms < g->until_ms ? g->wake_at_ms : g->until_ms;
}

static int64_t advance(void *arg, struct df_component *c)
{
    struct deploy *d = arg;
    struct df_progress *g = progress_of(d, c);
    df_telemetry_enter(d->platform->telemetry, c);
    for (bool goes_on = true; goes_on && !df_course_is_over(c) && df_mono_ms() >= g->retry_at_ms;) {
        if (g->stage == DF_STAGE_APPLY)
            step_apply(d, c);
        else
            goes_on = step_comparison(d, c);
    }
    df_telemetry_enter(d->platform->telemetry, NULL);
    return look_at_ms(g, df_mono_ms());
}

int df_deploy(struct df_platform *p, struct df_err *err)
{
    DF_APPLICATIONS struct df_applications *apps = NULL;
    struct df_err why = {0};
    if (df_rights_check(p, err) < 0 || df_applications_check_tier(p, err) < 0 ||
        df_bootstrap(p, err) < 0)
        return -1;
    if (df_applications_start(p, &apps, &why) < 0 &&
        !(p->in->dry_run && df_streq(why.reason, "KindUnknown")))
        return df_err_pass(err, &why);
    DF_FREE struct df_progress *progress = calloc(p->dag.len, sizeof(*progress));
    if (!progress)
        return df_fail_oom(err);
    struct deploy d = {.platform = p, .apps = apps, .progress = progress};
    const struct df_course course = {
        .platform = p, .apps = apps, .look = look_at_dependencies, .advance = advance, .arg = &d};
    df_course_run(&course);
    df_orphans_tell_taken_out(p);
    return 0;
}
