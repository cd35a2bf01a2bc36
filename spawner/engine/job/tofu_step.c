/*
 * The Job of a tofu step, whose runner claims the step. In this order: how the Job is rendered, how
 * its state is observed, its result, what happens if a Job of this name exists already, cleanup.
 */
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/engine/job/job_engine.h"
#include "spawner/engine/job/workflow_job.h"
#include "spawner/engine/placement/placement.h"

static int tofu_name(const struct df_engine_step *step, char ret[64], struct df_err *err)
{
    if (strlen(step->name) > 63)
        return df_fail(err, DF_ERR_BUG, "\"%.80s\" is not the name of a Job", step->name);
    (void)snprintf(ret, 64, "%s", step->name);
    return 0;
}

/* ---- the Job ---- */

/* An optional plugin cache is mounted only if its PersistentVolumeClaim exists. */
static int find_plugin_claim(const struct df_job_options *o, const cJSON *placement, bool *ret,
                             struct df_err *err)
{
    static const struct df_kube_resource claims = {"", "v1", "persistentvolumeclaims"};
    const char *name = df_json_str(placement, "pluginCache.claimName");
    *ret = name && !df_json_bool(df_json_at(placement, "pluginCache"), "optional", false);
    if (!name || *ret)
        return 0;
    const struct df_kube_at at = {.resource = &claims, .name_space = o->name_space, .name = name};
    struct df_err why = {0};
    *ret = df_kube_get(o->kube, &at, NULL, &why) == 0;
    if (*ret || why.cls == DF_ERR_NOT_FOUND || why.cls == DF_ERR_DENIED)
        return 0;
    return df_err_pass(err, &why);
}

static int read_ca(const struct df_engine_step *step, struct df_buf *to, struct df_err *err)
{
    return step->runner.ca_file ? df_fs_read(step->runner.ca_file, to, err) : 0;
}

int df_job_render(const struct df_job_options *o, const struct df_engine_step *step, cJSON **ret,
                  struct df_err *err)
{
    DF_JSON cJSON *placement = NULL;
    DF_BUF struct df_buf ca = DF_BUF_INIT(DF_LIMIT_CA_ANNOTATION);
    bool has_claim = false;
    if (df_placement_resolve(&step->placement, &placement, err) < 0 ||
        find_plugin_claim(o, placement, &has_claim, err) < 0 || read_ca(step, &ca, err) < 0)
        return -1;
    const struct df_job_spec spec = {
        .name = step->name,
        .namespace = o->name_space,
        .uid = step->uid,
        .run = step->runner.run,
        .executor = step->runner.executor,
        .action = step->runner.action,
        .labels = step->runner.labels,
        .standby = step->runner.standby,
        .image = o->image,
        .server_url = step->runner.server_url,
        .ca_pem = ca.len ? df_buf_str(&ca) : NULL,
        .timeout_seconds = step->timeout_seconds,
        .apply_seconds = step->runner.apply_seconds,
        .grace_seconds = step->runner.grace_seconds,
        .pending_seconds = step->pending_seconds,
        .ttl_seconds = o->ttl_seconds,
        .identities = step->runner.identities,
        .placement = placement,
        .has_plugin_claim = has_claim,
        .never = o->never,
    };
    return df_job_build(&spec, ret, err);
}

static int tofu_build(const struct df_job_call *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (df_job_render(&c->engine->o, c->step, &job, err) < 0 ||
        df_job_check_vault(&c->engine->o, job, err) < 0)
        return -1;
    *ret = DF_TAKE(job);
    return 0;
}

/* ---- observation ---- */

static struct df_pod_diagnosis diagnose_pod(const struct df_engine_step *step,
                                            const struct df_job_snapshot *v, int64_t made_us)
{
    /* The Job's creation time is cut to whole seconds: add one, or the deadline is too early. */
    int64_t deadline = made_us + (step->pending_seconds + 1) * 1000000;
    const struct df_pod_view view = {
        .job = v->job,
        .pod = v->pod,
        .events = v->events,
        .container = DF_JOB_CONTAINER,
        .was_created = step->was_created,
        .had_pod = step->was_claimed,
        .now_us = df_job_snapshot_now_us(v),
        .pending_deadline_us = made_us && !step->was_claimed ? deadline : 0,
    };
    return df_pod_diagnose(&view);
}

/* The termination message has the result of the last step that ended in the pod, and names it.
 * Runners before this member had one step. */
static int read_result(const struct df_job_call *c, const cJSON *pod, cJSON **ret,
                       struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    if (df_pod_result(pod, DF_JOB_CONTAINER, &result, err) < 0)
        return -1;
    const char *of = df_json_str(result, "step");
    if (!df_streq(of ? of : c->step->uid, c->uid))
        return df_fail(err, DF_ERR_NOT_FOUND, "the result in the pod is of another step");
    *ret = DF_TAKE(result);
    return 0;
}

static void fill_observation(const struct df_job_call *c, const struct df_job_snapshot *view,
                             struct df_engine_observation *ret)
{
    struct df_engine_observation observed = {.phase = DF_ENGINE_ABSENT, .exit_code = -1};
    const struct df_engine_step *step = c->step;
    int64_t made_us = df_job_snapshot_made_us(view);
    DF_JSON cJSON *result = NULL;
    observed.since_us = made_us ? made_us - view->ahead_us : 0;
    struct df_pod_diagnosis v = diagnose_pod(step, view, made_us);
    observed.phase = v.phase;
    observed.exit_code = v.exit_code;
    observed.gives_up = v.give_up || (v.phase == DF_ENGINE_ENDED && !df_pod_is_lost(&v)) ||
                        v.class == DF_POD_PERMANENT;
    observed.fault = v.fault;
    observed.lacks_room = v.lacks_room;
    /* Of the Job of another step nothing is this step's once its pod has ended. */
    bool is_alive = v.phase == DF_ENGINE_PENDING || v.phase == DF_ENGINE_RUNNING;
    observed.is_gone = c->is_shared ? !is_alive : !view->job && !view->pod;
    /* A Job whose spawner died before it recorded it: no pod of it can claim before create() has
     * found it again. */
    observed.is_unrecorded = view->job && !step->was_created;
    /* There is neither Job nor pod, so every process of a claimed step is proven gone. */
    if (v.phase == DF_ENGINE_ABSENT && step->was_claimed)
        observed.phase = DF_ENGINE_ENDED;
    observed.has_result = observed.phase == DF_ENGINE_ENDED && view->pod &&
                          read_result(c, view->pod, &result, NULL) == 0;
    (void)snprintf(observed.reason, sizeof(observed.reason), "%s", v.reason);
    df_copy(observed.cause, sizeof(observed.cause), v.message);
    *ret = observed;
}

static int tofu_observe(const struct df_job_call *c, struct df_engine_observation *ret,
                        struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (df_job_snapshot_of(c, &view, err) < 0)
        return -1;
    fill_observation(c, &view, ret);
    return 0;
}

static int tofu_result(const struct df_job_call *c, cJSON **ret, struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (df_job_snapshot_of(c, &view, err) < 0)
        return -1;
    if (!view.pod)
        return df_fail(err, DF_ERR_NOT_FOUND, "the pod of step %s is gone", c->step->name);
    return read_result(c, view.pod, ret, err);
}

/* ---- a Job of this name exists ---- */

#define JOB_UID_LABEL "batch.kubernetes.io/controller-uid" /* on its pods */

/* Has the Job ended? Its pod may have ended before the Job's condition reports it. */
static bool has_ended(const struct df_job_call *c, const cJSON *job)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (!job || df_job_is_completed(job) || df_kube_is_deleted(job))
        return job != NULL;
    return df_job_snapshot_of(c, &view, NULL) == 0 && view.pod &&
           df_streq(df_kube_label(view.pod, JOB_UID_LABEL), df_kube_uid(job)) &&
           diagnose_pod(c->step, &view, 0).phase == DF_ENGINE_ENDED;
}

/* The existing Job is this attempt's (the answer to an earlier create() was lost), that of an
 * earlier attempt, or another step's. A Job of another step is never changed. */
static int tofu_adopt(const struct df_job_call *c, cJSON **ret_job, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (df_job_read(c->engine->o.kube, c->name_space, c->name, &job, err) < 0)
        return -1;
    const char *owner = job ? df_kube_label(job, DF_LABEL_STEP_UID) : NULL;
    bool is_ours = df_streq(owner, c->step->uid);
    if (job && !is_ours && df_kube_is_deleted(job))
        return df_fail(err, DF_ERR_RETRY,
                       "the Job %s/%s of an earlier step of this name is being removed",
                       c->name_space, c->name);
    if (job && !is_ours)
        return df_fail_reason(
            err, DF_ERR_CONFLICT, "NameTaken",
            "the Job %s/%s belongs to another step (%s): delete it, or wait for its end",
            c->name_space, c->name, owner ? owner : "unknown");
    bool ended = has_ended(c, job);
    if (ended && df_job_delete(c, job, err) < 0)
        return -1;
    if (!job || ended)
        return df_fail(err, DF_ERR_RETRY, "the Job %s/%s of an earlier attempt is being removed",
                       c->name_space, c->name);
    *ret_job = DF_TAKE(job);
    return 0;
}

/* ---- cleanup ---- */

static bool has_sidecars(const cJSON *pod)
{
    const cJSON *status;
    cJSON_ArrayForEach (status, df_json_at(pod, "status.containerStatuses")) {
        if (!df_streq(df_json_str(status, "name"), DF_JOB_CONTAINER) &&
            df_json_at(status, "state.running"))
            return true;
    }
    return false;
}

/* The kubelet ends sidecars that are init containers. A sidecar among the ordinary containers would
 * keep the pod running until the Job's deadline, so the Job is deleted. */
static int end_sidecars(const struct df_job_call *c, struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    if (df_job_snapshot_of(c, &view, err) < 0)
        return -1;
    return view.job && has_sidecars(view.pod) ? df_job_delete(c, view.job, err) : 0;
}

/* The Job stays until its TTL, so that people can inspect it. */
static int tofu_cleanup(const struct df_job_call *c, struct df_err *err)
{
    return c->step->is_deleted ? df_job_delete_own(c, true, err) : end_sidecars(c, err);
}

const struct df_job_kind df_job_of_tofu = {
    .name = tofu_name,
    .build = tofu_build,
    .adopt = tofu_adopt,
    .observe = tofu_observe,
    .result = tofu_result,
    .cleanup = tofu_cleanup,
};
