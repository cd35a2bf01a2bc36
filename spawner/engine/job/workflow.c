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

/* A service without the engine tekton has no right to see its objects. */
static const struct df_workflow_kind *other_kind(const struct df_job_call *c)
{
    return c->engine->o.sees_pipelines ? &df_workflow_pipeline_run : NULL;
}

static int workflow_build(const struct df_job_call *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *placement = NULL, *job = NULL;
    struct df_workflow w = workflow_of(c);
    const struct df_workflow_kind *other = other_kind(c);
    if (df_workflow_placement(c->step, NULL, &placement, err) < 0 ||
        (other &&
         df_workflow_check_free(c->engine->o.kube, other, c->name_space, c->name, err) < 0))
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
        return df_workflow_fail_locked(&df_workflow_job, c->name_space, c->name, job, err);
    case DF_WORKFLOW_CLASH_GONE:
    default:
        return df_fail(err, DF_ERR_RETRY, "the Job %s/%s was just removed", c->name_space, c->name);
    }
}

/* ---- observation ---- */

/* The kubelet gives this end to each container of a pod that it removes before they began. Of one
 * that ran it knows when, or says that it "used to be Running". */
static bool was_removed_before_it_began(const cJSON *pod)
{
    const cJSON *end = df_json_at(df_pod_container(pod, DF_WORKFLOW_CONTAINER), "state.terminated");
    return df_streq(df_json_str(end, "reason"), "ContainerStatusUnknown") &&
           !df_json_str(end, "startedAt") &&
           !strstr(df_json_text(end, "message"), "used to be Running");
}

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
        .is_workflow = true,
        .now_us = df_job_snapshot_now_us(v),
        .pending_deadline_us = made_us && !step->was_claimed ? deadline : 0,
    };
    const struct df_pod_diagnosis nothing_ran = {
        .phase = DF_ENGINE_PENDING, .exit_code = -1, .never_started = true};
    return was_removed_before_it_began(v->pod) ? nothing_ran : df_pod_diagnose(&view);
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
    bool started =
        (v->phase == DF_ENGINE_RUNNING || v->phase == DF_ENGINE_ENDED) && !v->never_started;
    observed->phase = started ? DF_ENGINE_RUNNING : DF_ENGINE_PENDING;
    observed->gives_up = v->give_up || s->out_of_pods;
    observed->lacks_room = !started && v->lacks_room;
    if (s->out_of_pods)
        set_reason(observed, "PodsExhausted", "its pod was evicted or killed again and again");
    else if (!started)
        set_reason(observed, v->reason, v->message);
}

/* The condition of a failed Job says how it ended. The cause is the exit code of its pod or, if the
 * pod never ran, what is wrong with it; if it is gone, an Event, which df_workflow_status() puts
 * into the message. */
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
    bool did_run = v->exit_code > 0 && !v->never_started;
    char text[900];
    observed->exit_code = did_run ? v->exit_code : -1;
    if (pod && v->never_started && v->reason[0]) {
        set_reason(observed, v->reason, v->message);
        return;
    }
    if (did_run)
        (void)snprintf(text, sizeof(text), "exit code %d%s%.700s (%s)", observed->exit_code,
                       words ? ": " : "", words ? words : "", s->reason);
    else
        (void)snprintf(text, sizeof(text), "%s: %.800s", s->reason, s->message);
    set_reason(observed, did_run ? fallback : df_pod_cause(s->message, fallback), text);
}

/* What the snapshot of a step means. */
struct meaning {
    struct df_workflow_status status; /* borrows from the snapshot */
    struct df_pod_diagnosis pod;
    struct df_engine_observation observed;
};

static struct meaning meaning_of(const struct df_engine_step *step,
                                 const struct df_job_snapshot *view)
{
    int64_t made_us = df_job_snapshot_made_us(view);
    struct meaning m = {.status = df_workflow_status(view->job, view->events),
                        .pod = diagnose_pod(step, view, made_us),
                        .observed = {.phase = DF_ENGINE_ABSENT, .exit_code = -1}};
    m.observed.since_us = made_us ? made_us - view->ahead_us : 0;
    if (m.status.phase == DF_WORKFLOW_RUNNING) {
        observe_alive(&m.observed, &m.status, &m.pod);
    } else if (m.status.phase == DF_WORKFLOW_COMPLETED) {
        m.observed.phase = DF_ENGINE_ENDED;
        m.observed.exit_code = 0;
    } else if (m.status.phase == DF_WORKFLOW_FAILED) {
        m.observed.phase = DF_ENGINE_ENDED;
        observe_failed(&m.observed, &m.status, &m.pod, view->pod);
    }
    m.observed.is_gone = !view->job && !view->pod;
    return m;
}

/* Takes the snapshot of the step with all Events that df_workflow_status() needs. */
static int take_snapshot(const struct df_job_call *c, struct df_job_snapshot *view,
                         struct df_err *err)
{
    if (df_job_await_events(c->watch, err) < 0 || df_job_snapshot_of(c, view, err) < 0)
        return -1;
    return view->job && !view->pod ? df_job_add_pod_events(c->watch, view, err) : 0;
}

static int workflow_observe(const struct df_job_call *c, struct df_engine_observation *ret,
                            struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (take_snapshot(c, &view, err) < 0)
        return -1;
    struct df_engine_observation observed = meaning_of(c->step, &view).observed;
    const struct df_workflow w = workflow_of(c);
    if (!view.job && c->step->workflow.was_locked &&
        df_workflow_find_lock(c->engine->o.kube, &df_workflow_job, other_kind(c), &w, c->name,
                              &observed, err) < 0)
        return -1;
    *ret = observed;
    return 0;
}

/* ---- the result ---- */

/* Did a container of the workflow ever run? A pod that is gone was removed at the Job's deadline or
 * by somebody: it ran, unless it is known why it did not. */
static bool did_run(const struct df_engine_step *step, const struct df_job_snapshot *view,
                    const struct meaning *m, const struct df_workflow_class *class)
{
    if (step->was_claimed || m->status.summary.retry_count > 0)
        return true;
    if (view->pod)
        return !m->pod.never_started;
    return m->status.phase == DF_WORKFLOW_FAILED && !class->may_precede_execution;
}

/* Also of a Job that will never come to an end by itself. */
static void fill_failure(const struct df_engine_step *step, const struct df_job_snapshot *view,
                         struct meaning *m)
{
    const struct df_engine_observation *o = &m->observed;
    if (m->status.phase != DF_WORKFLOW_FAILED && !o->gives_up)
        return;
    bool by_code = df_streq(o->reason, "WorkflowFailed") && o->exit_code > 0;
    const struct df_workflow_class *class =
        df_workflow_class_of(by_code ? "TaskFailed" : o->reason, "");
    m->status.failure = (struct df_workflow_failure){
        .reason = class->reason,
        .word = class->word,
        .task = "",
        .exit_code = o->exit_code > 0 ? o->exit_code : 0,
        .was_execution = did_run(step, view, m, class),
    };
    df_copy(m->status.message, sizeof(m->status.message), o->cause);
}

static int workflow_result(const struct df_job_call *c, cJSON **ret, struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (take_snapshot(c, &view, err) < 0)
        return -1;
    if (!view.job)
        return df_fail(err, DF_ERR_NOT_FOUND, "the Job of %s does not exist", c->step->name);
    struct meaning m = meaning_of(c->step, &view);
    fill_failure(c->step, &view, &m);
    const struct df_workflow_object object = {.kind = "Job",
                                              .name = c->name,
                                              .name_space = c->name_space,
                                              .uid = df_kube_uid(view.job),
                                              .service_account = workflow_of(c).service_account};
    return df_workflow_result(&object, &m.status, ret, err);
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
