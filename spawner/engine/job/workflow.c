/*
 * The Job of the action `workflow`. Its name is the lock on the target towards Jobs of other
 * schedulers. Nobody claims it, so the state of the Job decides how the workflow ended. In this
 * order: how it is built, what happens if a Job of this name exists already, how its state is
 * observed, its result, cleanup. spawner/engine/workflow has what does not depend on Jobs.
 */
#include "spawner/engine/job/job_engine.h"
#include "spawner/engine/job/workflow_job.h"

#include "spawner/engine/diagnosis/pod_cause.h"
#include "spawner/engine/diagnosis/pod_parts.h"
#include "spawner/engine/placement/placement.h"

static int workflow_name(const struct df_engine_step *step, char ret[64], struct df_err *err)
{
    return df_workflow_name(step->workflow.target, ret, err);
}

/* ---- the Job ---- */

static struct df_workflow workflow_of(const struct df_job_call *c)
{
    struct df_workflow w = df_workflow_of(c->step, c->engine->o.workflow_account);
    w.image = w.image ? w.image : c->engine->o.image;
    w.never = c->engine->o.never;
    w.namespace = c->name_space;
    return w;
}

/* The instance's image, service account and resources are for the runner. A workflow has its own in
 * spec.workflow. */
static int resolve_placement(const struct df_engine_step *step, cJSON **ret, struct df_err *err)
{
    static const char *const of_runner[] = {"image", "serviceAccountName", "resources"};
    const struct df_placement_levels instance = {.defaults = step->placement.defaults,
                                                 .class = step->placement.class};
    DF_JSON cJSON *defaults = NULL;
    if (df_placement_resolve(&instance, &defaults, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_runner); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(defaults, of_runner[i]);
    const struct df_placement_levels levels = {.defaults = defaults,
                                               .executor = step->placement.executor};
    return df_placement_resolve(&levels, ret, err);
}

static int workflow_build(const struct df_job_call *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *placement = NULL, *job = NULL;
    struct df_workflow w = workflow_of(c);
    if (resolve_placement(c->step, &placement, err) < 0)
        return -1;
    w.placement = placement;
    if (df_workflow_job_build(&w, &job, err) < 0 || df_job_check_vault(&c->engine->o, job, err) < 0)
        return -1;
    *ret = DF_TAKE(job);
    return 0;
}

/* ---- a Job of this name exists ---- */

static int replace_job(const struct df_job_call *c, const cJSON *job, struct df_err *err)
{
    if (df_job_delete_in_background(c, job, err) < 0)
        return -1;
    return df_fail(err, DF_ERR_RETRY, "the Job %s/%s of %s, which has ended, is being removed",
                   c->name_space, c->name, df_workflow_owner(job));
}

static int fail_locked(const struct df_job_call *c, const cJSON *job, struct df_err *err)
{
    char holder[300];
    df_workflow_describe_holder("Job", c->name_space, c->name, job, holder, sizeof(holder));
    return df_fail_reason(err, DF_ERR_CONFLICT, "TargetLocked", "%s", holder);
}

static int workflow_adopt(const struct df_job_call *c, cJSON **ret_job, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    const struct df_workflow w = workflow_of(c);
    if (df_job_read(c->engine->o.kube, c->name_space, c->name, &job, err) < 0)
        return -1;
    switch (df_workflow_clash(&w, job, df_job_is_completed(job))) {
    case DF_WORKFLOW_CLASH_ADOPT:
        *ret_job = DF_TAKE(job);
        return 0;
    case DF_WORKFLOW_CLASH_REPLACE:
        return replace_job(c, job, err);
    case DF_WORKFLOW_CLASH_WAIT:
        return fail_locked(c, job, err);
    case DF_WORKFLOW_CLASH_GONE:
    default:
        return df_fail(err, DF_ERR_RETRY, "the Job %s/%s was just removed", c->name_space, c->name);
    }
}

/* ---- observation ---- */

/* The pending deadline is for the first pod. A pod that replaces one that ran may be pending until
 * the Job's own deadline. */
static struct df_pod_diagnosis diagnose_pod(const struct df_engine_step *step,
                                            const struct df_job_snapshot *v, int64_t made_us)
{
    int64_t deadline = made_us + step->pending_seconds * 1000000;
    const struct df_pod_view view = {
        .job = v->job,
        .pod = v->pod,
        .events = v->events,
        .container = DF_WORKFLOW_CONTAINER,
        .now_us = df_job_snapshot_now_us(v),
        .pending_deadline_us = made_us && !step->was_claimed ? deadline : 0,
    };
    return df_pod_diagnose(&view);
}

static void set_reason(struct df_engine_observation *observed, const char *reason,
                       const char *cause)
{
    (void)snprintf(observed->reason, sizeof(observed->reason), "%s", reason);
    df_copy(observed->cause, sizeof(observed->cause), cause);
}

/* The Job has not ended: reports whether its pod has started, and if not, why. */
static void observe_alive(struct df_engine_observation *observed,
                          const struct df_workflow_status *s, const struct df_pod_diagnosis *v)
{
    bool started = v->phase == DF_ENGINE_RUNNING || v->phase == DF_ENGINE_ENDED;
    observed->phase = started ? DF_ENGINE_RUNNING : DF_ENGINE_PENDING;
    observed->gives_up = v->give_up || s->out_of_pods;
    observed->lacks_room = !started && v->lacks_room;
    if (s->out_of_pods)
        set_reason(observed, "PodsExhausted", "its pod was evicted or killed again and again");
    else if (!started)
        set_reason(observed, v->reason, v->message);
}

/* The condition of a failed Job says how it ended. The cause is the exit code of its pod or, if the
 * pod never ran, an Event, which df_workflow_status() puts into the message. */
static void observe_failed(struct df_engine_observation *observed,
                           const struct df_workflow_status *s, const struct df_pod_diagnosis *v,
                           const cJSON *pod)
{
    const cJSON *end = df_json_at(df_pod_container(pod, DF_WORKFLOW_CONTAINER), "state.terminated");
    const char *words = df_json_str(end, "message");
    bool by_deadline = df_streq(s->reason, "DeadlineExceeded");
    const char *fallback = by_deadline                        ? "DeadlineExceeded"
                           : df_streq(v->reason, "OOMKilled") ? "OOMKilled"
                                                              : "WorkflowFailed";
    bool did_run = v->exit_code > 0;
    char text[900];
    observed->exit_code = did_run ? v->exit_code : -1;
    if (did_run)
        (void)snprintf(text, sizeof(text), "exit code %d%s%.700s (%s)", observed->exit_code,
                       words ? ": " : "", words ? words : "", s->reason);
    else
        (void)snprintf(text, sizeof(text), "%s: %.800s", s->reason, s->message);
    set_reason(observed, did_run ? fallback : df_pod_cause(s->message, fallback), text);
}

static void fill_observation(const struct df_engine_step *step, const struct df_job_snapshot *view,
                             const struct df_workflow_status *s, struct df_engine_observation *ret)
{
    struct df_engine_observation observed = {.phase = DF_ENGINE_ABSENT, .exit_code = -1};
    int64_t made_us = df_job_snapshot_made_us(view);
    observed.since_us = made_us ? made_us - view->ahead_us : 0;
    const struct df_pod_diagnosis v = diagnose_pod(step, view, made_us);
    if (s->phase == DF_WORKFLOW_RUNNING) {
        observe_alive(&observed, s, &v);
    } else if (s->phase == DF_WORKFLOW_COMPLETED) {
        observed.phase = DF_ENGINE_ENDED;
        observed.exit_code = 0;
    } else if (s->phase == DF_WORKFLOW_FAILED) {
        observed.phase = DF_ENGINE_ENDED;
        observe_failed(&observed, s, &v, view->pod);
    }
    observed.is_gone = !view->job && !view->pod;
    *ret = observed;
}

/* Takes the snapshot of the step with all Events that df_workflow_status() needs. */
static int take_snapshot(const struct df_job_call *c, struct df_job_snapshot *view,
                         struct df_err *err)
{
    if (df_job_await_events(c->watch, err) < 0 || df_job_snapshot_of(c, view, err) < 0)
        return -1;
    return view->job && !view->pod ? df_job_add_pod_events(c->watch, view, err) : 0;
}

/* Checks whether the target is still locked, before the next attempt to create the Job. It asks the
 * API server, because the watch does not include Jobs of other systems. */
static int check_lock(const struct df_job_call *c, struct df_engine_observation *observed,
                      struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    const struct df_workflow w = workflow_of(c);
    if (df_job_read(c->engine->o.kube, c->name_space, c->name, &job, err) < 0)
        return -1;
    if (df_workflow_clash(&w, job, df_job_is_completed(job)) == DF_WORKFLOW_CLASH_WAIT) {
        (void)snprintf(observed->reason, sizeof(observed->reason), "TargetLocked");
        df_workflow_describe_holder("Job", c->name_space, c->name, job, observed->cause,
                                    sizeof(observed->cause));
    }
    return 0;
}

static int workflow_observe(const struct df_job_call *c, struct df_engine_observation *ret,
                            struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (take_snapshot(c, &view, err) < 0)
        return -1;
    const struct df_workflow_status s = df_workflow_status(view.job, view.events);
    struct df_engine_observation observed;
    fill_observation(c->step, &view, &s, &observed);
    if (!view.job && c->step->workflow.was_locked && check_lock(c, &observed, err) < 0)
        return -1;
    *ret = observed;
    return 0;
}

/* ---- the result ---- */

static int workflow_result(const struct df_job_call *c, cJSON **ret, struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (take_snapshot(c, &view, err) < 0)
        return -1;
    if (!view.job)
        return df_fail(err, DF_ERR_NOT_FOUND, "the Job of %s does not exist", c->step->name);
    const struct df_workflow_status s = df_workflow_status(view.job, view.events);
    const struct df_workflow_object object = {.kind = "Job",
                                              .name = c->name,
                                              .name_space = c->name_space,
                                              .uid = df_kube_uid(view.job),
                                              .service_account = workflow_of(c).service_account};
    return df_workflow_result(&object, &s, ret, err);
}

/* Whoever wants the target next finds its name free. */
static int workflow_cleanup(const struct df_job_call *c, struct df_err *err)
{
    return df_job_delete_own(c, true, err);
}

const struct df_job_kind df_job_of_workflow = {
    .name = workflow_name,
    .build = workflow_build,
    .adopt = workflow_adopt,
    .observe = workflow_observe,
    .result = workflow_result,
    .cleanup = workflow_cleanup,
};
