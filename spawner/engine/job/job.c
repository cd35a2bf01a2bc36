/*
 * The engine `job`: the operations of engine.h, each for tofu steps and workflows. An operation
 * first calls begin_call(), which fills a df_job_call: the engine, the kind of work, the name of
 * the Job. tofu_step.c and workflow.c implement what differs between the two kinds.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/engine/job/job_engine.h"
#include "spawner/model/shared_pod.h"
#include "spawner/model/workflow.h"

static struct df_job_engine *job_of(struct df_engine *e)
{
    return (struct df_job_engine *)(void *)e;
}

/* What the Job and the pod of this step were made for: a standby runner; or, if the reference names
 * the pod, another step, whose runner has claimed it, so that a pod that is absent was deleted. */
static struct df_engine_step host_of(const struct df_engine_step *step)
{
    struct df_engine_step host = *step;
    const char *pod = df_json_str(step->ref, "podUid");
    host.name = df_json_str(step->ref, "name");
    host.uid = df_shared_pod_host_of(step->ref);
    if (!pod)
        return host;
    host.runner.pod = pod;
    host.was_created = host.was_claimed = true;
    return host;
}

static int begin_call(struct df_engine *e, const struct df_engine_step *step,
                      struct df_job_call *ret, struct df_err *err)
{
    *ret = (struct df_job_call){
        .engine = job_of(e),
        .step = step,
        .kind = step->workflow.spec ? &df_job_of_workflow : &df_job_of_tofu,
        .uid = step->uid,
    };
    if (df_shared_pod_host_of(step->ref)) {
        ret->host = host_of(step);
        ret->is_shared = df_shared_pod_is_of_plan(step->ref);
        ret->step = &ret->host;
    }
    const char *recorded = df_json_str(step->ref, "namespace");
    const struct df_job_place *place = NULL;
    if (df_job_place_of(ret->engine, recorded ? recorded : ret->engine->name_space, &place, err) <
        0)
        return -1;
    ret->name_space = place->name_space;
    ret->watch = place->watch;
    return ret->kind->name(ret->step, ret->name, err);
}

/* ---- create ---- */

/* The labels of a Job that somebody else made may say that it is the step's. */
static int adopt_job(const struct df_job_call *c, cJSON **ret_job, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (c->kind->adopt(c, &job, err) < 0 || df_proof_check(&c->engine->key, "Job", job, err) < 0)
        return -1;
    *ret_job = DF_TAKE(job);
    return 0;
}

static int create_job(const struct df_job_call *c, cJSON **ret_job, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    struct df_kube_at at = df_job_at(c);
    struct df_err why = {0};
    at.name = NULL; /* POST goes to the collection */
    int64_t now_us = df_real_us() + df_kube_clock_ahead_us(c->engine->o.kube);
    if (c->kind->build(c, &job, err) < 0 || df_proof_add(&c->engine->key, now_us, job, err) < 0)
        return -1;
    df_debug("creating the Job %s/%s", at.name_space, c->name);
    if (df_kube_create(c->engine->o.kube, &at, job, ret_job, &why) == 0) {
        df_job_rejection_forget(c);
        return df_job_note(c->watch, *ret_job, err);
    }
    return df_streq(why.reason, "AlreadyExists") ? adopt_job(c, ret_job, err)
                                                 : df_job_reject(c, &why, err);
}

static int job_create(struct df_engine *e, const struct df_engine_step *step, cJSON **ret_ref,
                      struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    struct df_job_call c;
    if (begin_call(e, step, &c, err) < 0 || create_job(&c, &job, err) < 0)
        return -1;
    return df_job_ref(job, ret_ref, err);
}

/* ---- status, result ---- */

static int observe_step(const struct df_job_call *c, struct df_engine_observation *ret,
                        struct df_err *err)
{
    if (c->kind->observe(c, ret, err) < 0)
        return -1;
    if (ret->phase == DF_ENGINE_ABSENT && !ret->reason[0])
        df_job_rejection_report(c, ret);
    return 0;
}

static int job_status(struct df_engine *e, const struct df_engine_step *step,
                      struct df_engine_observation *ret, struct df_err *err)
{
    struct df_job_call c;
    return begin_call(e, step, &c, err) < 0 ? -1 : observe_step(&c, ret, err);
}

static int job_result(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                      struct df_err *err)
{
    struct df_job_call c;
    return begin_call(e, step, &c, err) < 0 ? -1 : c.kind->result(&c, ret, err);
}

static int job_output(struct df_engine *e, const struct df_engine_step *step,
                      const struct df_output_reader *to, struct df_err *err)
{
    struct df_job_call c;
    return begin_call(e, step, &c, err) < 0 ? -1 : df_job_output(&c, to, err);
}

/* The files of a pod are deleted with it. */
static int job_leftover(struct df_engine *e, const struct df_engine_step *step, const char *name,
                        char **ret_path, struct df_err *err)
{
    (void)e;
    (void)ret_path;
    return df_fail(err, DF_ERR_NOT_FOUND, "a pod leaves no %s of step %s", name, step->name);
}

/* ---- cancel, cleanup ---- */

static int job_cancel(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    struct df_job_call c;
    /* A workflow has no claim: nobody knows here whether its pod has begun. */
    bool is_unclaimed = !step->was_claimed && !step->workflow.spec;
    if (begin_call(e, step, &c, err) < 0)
        return -1;
    /* Before the Job: its deletion gives the pod the whole grace period. */
    if (is_unclaimed && df_job_delete_unclaimed(&c, err) < 0)
        return -1;
    return df_job_delete_own(&c, false, err);
}

static int job_cleanup(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    struct df_engine_observation observed;
    struct df_job_call c;
    if (begin_call(e, step, &c, err) < 0 || observe_step(&c, &observed, err) < 0)
        return -1;
    if (observed.phase == DF_ENGINE_PENDING || observed.phase == DF_ENGINE_RUNNING)
        return df_fail(err, DF_ERR_CONFLICT, "the pod of step %s still lives", step->name);
    if (c.is_shared)
        return 0;
    df_job_rejection_forget(&c);
    return c.kind->cleanup(&c, err);
}

/* ---- the pod that claims ---- */

static bool is_controlled_by(const cJSON *pod, const char *uid)
{
    const cJSON *owner;
    cJSON_ArrayForEach (owner, df_json_at(pod, "metadata.ownerReferences"))
        if (df_json_bool(owner, "controller", false) && df_streq(df_json_str(owner, "uid"), uid))
            return true;
    return false;
}

/* A failure of the request is no answer about the pod: every one means that the runner asks again.
 */
static int find_claimant(const struct df_job_call *c, const struct df_engine_pod *pod,
                         const cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_job_find_pod(c->watch, pod, ret, &why) == 0)
        return 0;
    return df_fail(err, DF_ERR_RETRY, "cannot look up the pod %s that claims the step: %s",
                   pod->name, why.message);
}

static int job_check_pod(struct df_engine *e, const struct df_engine_step *step,
                         const struct df_engine_pod *pod, struct df_err *err)
{
    DF_SHARED const cJSON *found = NULL;
    const char *job = df_json_str(step->ref, "uid");
    struct df_job_call c;
    if (!job) /* not held or written yet; or the spawner died before */
        return df_fail(err, DF_ERR_RETRY, "the Job of step %s is not recorded yet", step->name);
    if (begin_call(e, step, &c, err) < 0 || find_claimant(&c, pod, &found, err) < 0)
        return -1;
    if (is_controlled_by(found, job))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "PodNotOfStep",
                          "the pod %s is not controlled by the Job of step %s", pod->name,
                          step->name);
}

/* ---- the engine's life ---- */

static void job_close(struct df_engine *e)
{
    struct df_job_engine *j = job_of(e);
    df_job_places_close(j);
    (void)pthread_mutex_destroy(&j->lock);
    cJSON_Delete(j->rejections);
    free(j->name_space);
    free(j->image);
    free(j->workflow_account);
    explicit_bzero(&j->key, sizeof(j->key));
    free(j);
}

static int job_watch(struct df_engine *e, struct df_err *err)
{
    struct df_job_engine *j = job_of(e);
    const struct df_job_place *place = NULL;
    return df_job_place_of(j, j->name_space, &place, err);
}

#define STEP_OPS                                                                                   \
    {                                                                                              \
        .create = job_create, .status = job_status, .result = job_result, .cancel = job_cancel,    \
        .cleanup = job_cleanup                                                                     \
    }

static const struct df_workflow_ops workflow_ops = {.step = STEP_OPS, .output = job_output};

static const struct df_runner_ops runner_ops = {
    .step = STEP_OPS,
    .leftover = job_leftover,
    .check_pod = job_check_pod,
    .form = df_job_form,
    .standbys = df_job_standbys,
};

static const struct df_engine_ops job_ops = {
    .watch = job_watch,
    .close = job_close,
    .runner = &runner_ops,
    .workflow = &workflow_ops,
};

static int fill_engine(struct df_job_engine *j, struct df_err *err)
{
    j->name_space = strdup(j->o.name_space);
    j->image = j->o.image ? strdup(j->o.image) : NULL;
    j->workflow_account =
        strdup(j->o.workflow_account ? j->o.workflow_account : DF_WORKFLOW_SERVICE_ACCOUNT);
    j->rejections = cJSON_CreateObject();
    if (!j->name_space || (j->o.image && !j->image) || !j->workflow_account || !j->rejections)
        return df_fail_oom(err);
    j->o.name_space = j->name_space;
    j->o.image = j->image;
    j->o.workflow_account = j->workflow_account;
    j->key.is_set = j->o.key;
    if (j->key.is_set)
        memcpy(j->key.bytes, j->o.key, sizeof(j->key.bytes));
    j->o.key = NULL;
    return 0;
}

int df_engine_job_new(const struct df_job_options *o, struct df_engine **ret, struct df_err *err)
{
    struct df_job_engine *j = calloc(1, sizeof(*j));
    if (!j)
        return df_fail_oom(err);
    *j = (struct df_job_engine){
        .engine = {.ops = &job_ops, .kind = &df_engine_kinds[DF_ENGINE_JOB]}, .o = *o};
    (void)pthread_mutex_init(&j->lock, NULL);
    if (fill_engine(j, err) < 0) {
        job_close(&j->engine);
        return -1;
    }
    *ret = &j->engine;
    return 0;
}
