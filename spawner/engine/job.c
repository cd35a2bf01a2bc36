#include "spawner/engine/job_engine.h"

#include "common/base/clock.h"

struct df_job_engine *df_job_of(struct df_engine *e)
{
    return (struct df_job_engine *)(void *)e;
}

struct df_kube_at df_job_at(const struct df_job_engine *j, const struct df_engine_step *step)
{
    return (struct df_kube_at){
        .resource = &df_kube_jobs, .name_space = j->name_space, .name = step->name};
}

struct df_workflow_place df_job_place(const struct df_job_engine *j)
{
    return (struct df_workflow_place){
        .kube = j->o.kube, .watch = j->watch, .name_space = j->name_space};
}

/* ---- shared with job_make.c ---- */

/* With its pod, and gone only after it. */
int df_job_delete(const struct df_job_engine *j, const struct df_engine_step *step,
                  const cJSON *job, struct df_err *err)
{
    const struct df_kube_at at = df_job_at(j, step);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    o.uid = df_kube_uid(job);
    o.propagation = "Foreground";
    if (df_kube_is_deleted(job) || df_kube_delete(j->o.kube, &at, &o, &why) == 0 ||
        why.cls == DF_ERR_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

int df_job_delete_secret(const struct df_job_engine *j, const struct df_engine_step *step,
                         struct df_err *err)
{
    DF_FREE char *name = df_job_secret_name(step->uid);
    if (!name)
        return df_fail_oom(err);
    const struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = j->name_space, .name = name};
    const struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    if (df_kube_delete(j->o.kube, &at, &o, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

struct df_pod_verdict df_job_judge(const struct df_engine_step *step, const struct df_job_view *v,
                                   int64_t since_us)
{
    /* The Job's time has whole seconds: one more, or it would be over too early. */
    int64_t deadline = since_us + (step->pending_seconds + 1) * 1000000;
    const struct df_pod_view view = {
        .job = v->job,
        .pod = v->pod,
        .events = v->events,
        .container = DF_JOB_CONTAINER,
        .was_created = step->was_created,
        .had_pod = step->was_claimed,
        .now_us = df_real_us(),
        .pending_deadline_us = since_us && !step->was_claimed ? deadline : 0,
    };
    return df_pod_verdict(&view);
}

/* ---- status, result ---- */

static void observe(const struct df_engine_step *step, const struct df_job_view *view,
                    struct df_engine_observation *ret)
{
    struct df_engine_observation seen = {.phase = DF_ENGINE_ABSENT, .exit_code = -1};
    const char *made = df_json_str(view->job, "metadata.creationTimestamp");
    DF_JSON cJSON *result = NULL;
    if (made && df_time_parse(made, &seen.since_us, NULL) < 0)
        seen.since_us = 0;
    struct df_pod_verdict v = df_job_judge(step, view, seen.since_us);
    seen.phase = v.phase;
    seen.exit_code = v.exit_code;
    seen.gives_up = v.give_up || (v.phase == DF_ENGINE_ENDED && !df_pod_is_lost(&v)) ||
                    v.class == DF_POD_PERMANENT;
    seen.fault = v.fault;
    seen.is_gone = !view->job && !view->pod;
    seen.is_held = df_json_bool(df_json_at(view->job, "spec"), "suspend", false);
    /* Neither Job nor pod: every process of a step that lived is proven gone. */
    if (v.phase == DF_ENGINE_ABSENT && step->was_claimed)
        seen.phase = DF_ENGINE_ENDED;
    seen.has_result = seen.phase == DF_ENGINE_ENDED && view->pod &&
                      df_pod_result(view->pod, DF_JOB_CONTAINER, &result, NULL) == 0;
    (void)snprintf(seen.reason, sizeof(seen.reason), "%s", v.reason);
    (void)snprintf(seen.cause, sizeof(seen.cause), "%.*s", (int)sizeof(seen.cause) - 1, v.message);
    *ret = seen;
}

static int look(const struct df_job_engine *j, const struct df_engine_step *step,
                struct df_engine_observation *ret, struct df_err *err)
{
    DF_JOB_VIEW struct df_job_view view = {0};
    if (df_job_look(j->watch, step, &view, err) < 0)
        return -1;
    observe(step, &view, ret);
    return 0;
}

static int job_status(struct df_engine *e, const struct df_engine_step *asked,
                      struct df_engine_observation *ret, struct df_err *err)
{
    struct df_job_engine *j = df_job_of(e);
    const struct df_workflow_place p = df_job_place(j);
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    int result = step.workflow ? df_workflow_look(&p, &step, ret, err) : look(j, &step, ret, err);
    if (result < 0)
        return -1;
    if (ret->phase == DF_ENGINE_ABSENT && !ret->reason[0])
        df_job_refusal_tell(j, &step, ret);
    return 0;
}

static int job_result(struct df_engine *e, const struct df_engine_step *asked, cJSON **ret,
                      struct df_err *err)
{
    struct df_job_engine *j = df_job_of(e);
    const struct df_workflow_place p = df_job_place(j);
    DF_JOB_VIEW struct df_job_view view = {0};
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    if (step.workflow)
        return df_workflow_result(&p, &step, ret, err);
    if (df_job_look(j->watch, &step, &view, err) < 0)
        return -1;
    if (!view.pod)
        return df_fail(err, DF_ERR_NOT_FOUND, "the pod of step %s is gone", step.name);
    return df_pod_result(view.pod, DF_JOB_CONTAINER, ret, err);
}

/* The pod's files go with it. */
static int job_leftover(struct df_engine *e, const struct df_engine_step *step, const char *name,
                        char **ret_path, struct df_err *err)
{
    (void)e;
    (void)ret_path;
    return df_fail(err, DF_ERR_NOT_FOUND, "a pod leaves no %s of step %s", name, step->name);
}

/* ---- cancel, cleanup ---- */

/* The Job, if it is this step's. */
static int remove_own(const struct df_job_engine *j, const struct df_engine_step *step,
                      bool if_ended, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (df_job_read(j->o.kube, j->name_space, step->name, &job, err) < 0)
        return -1;
    bool is_ours = job && df_streq(df_kube_label(job, DF_LABEL_STEP_UID), step->uid);
    return is_ours && (if_ended || !df_workflow_is_completed(job))
               ? df_job_delete(j, step, job, err)
               : 0;
}

static int job_cancel(struct df_engine *e, const struct df_engine_step *asked, struct df_err *err)
{
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    return remove_own(df_job_of(e), &step, false, err);
}

static bool has_company(const cJSON *pod)
{
    const cJSON *status;
    cJSON_ArrayForEach (status, df_json_at(pod, "status.containerStatuses")) {
        if (!df_streq(df_json_str(status, "name"), DF_JOB_CONTAINER) &&
            df_json_at(status, "state.running"))
            return true;
    }
    return false;
}

/* Sidecars among the init containers are ended by the kubelet; one among the containers would keep
 * the pod until the Job's deadline. */
static int end_company(const struct df_job_engine *j, const struct df_engine_step *step,
                       struct df_err *err)
{
    DF_JOB_VIEW struct df_job_view view = {0};
    if (df_job_look(j->watch, step, &view, err) < 0)
        return -1;
    return view.job && has_company(view.pod) ? df_job_delete(j, step, view.job, err) : 0;
}

/* The Job of a tofu step stays to be looked at, until its TTL; its Secret has no reason to. That of
 * a workflow goes: it is a lock. */
static int job_cleanup(struct df_engine *e, const struct df_engine_step *asked, struct df_err *err)
{
    struct df_job_engine *j = df_job_of(e);
    struct df_engine_observation seen;
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (job_status(e, asked, &seen, err) < 0 || df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    if (seen.phase == DF_ENGINE_PENDING || seen.phase == DF_ENGINE_RUNNING)
        return df_fail(err, DF_ERR_CONFLICT, "the pod of step %s still lives", asked->name);
    df_job_refusal_forget(j, &step);
    if (step.workflow)
        return remove_own(j, &step, true, err);
    if ((step.is_deleted ? remove_own(j, &step, true, err) : end_company(j, &step, err)) < 0)
        return -1;
    return j->o.by_secret ? df_job_delete_secret(j, &step, err) : 0;
}

/* ---- the engine's life ---- */

static void job_close(struct df_engine *e)
{
    struct df_job_engine *j = df_job_of(e);
    df_job_watch_stop(j->watch);
    (void)pthread_mutex_destroy(&j->lock);
    cJSON_Delete(j->refusals);
    free(j->name_space);
    free(j->image);
    free(j);
}

static const struct df_engine_ops job_ops = {
    .name = "job",
    .create = df_job_create,
    .release = df_job_release,
    .status = job_status,
    .result = job_result,
    .leftover = job_leftover,
    .cancel = job_cancel,
    .cleanup = job_cleanup,
    .close = job_close,
};

static int fill(struct df_job_engine *j, struct df_err *err)
{
    j->name_space = strdup(j->o.name_space);
    j->image = j->o.image ? strdup(j->o.image) : NULL;
    j->refusals = cJSON_CreateObject();
    if (!j->name_space || (j->o.image && !j->image) || !j->refusals)
        return df_fail_oom(err);
    j->o.name_space = j->name_space;
    j->o.image = j->image;
    const struct df_job_watch_options o = {.kube = j->o.kube,
                                           .name_space = j->name_space,
                                           .notify = j->o.notify,
                                           .notify_arg = j->o.notify_arg};
    return df_job_watch_start(&o, &j->watch, err);
}

int df_engine_job_new(const struct df_job_options *o, struct df_engine **ret, struct df_err *err)
{
    struct df_job_engine *j = calloc(1, sizeof(*j));
    if (!j)
        return df_fail_oom(err);
    *j = (struct df_job_engine){.engine = {.ops = &job_ops,
                                           .hands_over = o->by_secret,
                                           .is_remote = true,
                                           .takes_workflows = true},
                                .o = *o};
    (void)pthread_mutex_init(&j->lock, NULL);
    if (fill(j, err) < 0) {
        job_close(&j->engine);
        return -1;
    }
    *ret = &j->engine;
    return 0;
}
