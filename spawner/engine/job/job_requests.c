/* Requests for a step's Job and pod, shared by tofu steps and workflows. */
#include "common/base/log.h"
#include "spawner/engine/job/job_engine.h"
#include "spawner/engine/job/workflow_job.h"
#include "spawner/engine/vault_secrets.h"

struct df_kube_at df_job_at(const struct df_job_call *c)
{
    return (struct df_kube_at){
        .resource = &df_kube_jobs, .name_space = c->name_space, .name = c->name};
}

/* Absent is success. */
static int delete_object(const struct df_job_call *c, const struct df_kube_at *at,
                         const struct df_kube_delete_options *o, struct df_err *err)
{
    struct df_err why = {0};
    if (df_kube_delete(c->engine->o.kube, at, o, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

static int delete_job(const struct df_job_call *c, const cJSON *job, const char *propagation,
                      struct df_err *err)
{
    const struct df_kube_at at = df_job_at(c);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    o.uid = df_kube_uid(job);
    o.propagation = propagation;
    return delete_object(c, &at, &o, err);
}

int df_job_delete(const struct df_job_call *c, const cJSON *job, struct df_err *err)
{
    return df_kube_is_deleted(job) ? 0 : delete_job(c, job, "Foreground", err);
}

int df_job_delete_in_background(const struct df_job_call *c, const cJSON *job, struct df_err *err)
{
    return delete_job(c, job, "Background", err);
}

int df_job_delete_own(const struct df_job_call *c, bool if_ended, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (df_job_read(c->engine->o.kube, c->name_space, c->name, &job, err) < 0)
        return -1;
    bool is_ours = job && df_streq(df_kube_label(job, DF_LABEL_STEP_UID), c->step->uid);
    return is_ours && (if_ended || !df_job_is_completed(job)) ? df_job_delete(c, job, err) : 0;
}

/* Long enough for a runner that has just started to end by itself. */
#define UNCLAIMED_GRACE_SECONDS 2

static bool goes_soon(const cJSON *pod)
{
    return df_kube_is_deleted(pod) && df_json_int(pod, "metadata.deletionGracePeriodSeconds",
                                                  INT64_MAX) <= UNCLAIMED_GRACE_SECONDS;
}

int df_job_delete_unclaimed(const struct df_job_call *c, struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot view = {0};
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    if (df_job_snapshot_of(c, &view, err) < 0)
        return -1;
    if (!view.pod || goes_soon(view.pod))
        return 0;
    const struct df_kube_at at = {
        .resource = &df_kube_pods, .name_space = c->name_space, .name = df_kube_name(view.pod)};
    o.uid = df_kube_uid(view.pod);
    o.grace_seconds = UNCLAIMED_GRACE_SECONDS;
    if (delete_object(c, &at, &o, &why) == 0 || why.cls == DF_ERR_CONFLICT)
        return 0;
    if (why.cls != DF_ERR_DENIED)
        return df_err_pass(err, &why);
    df_debug("the pod of step %s goes after its grace period: %s", c->step->name, why.message);
    return 0;
}

int df_job_snapshot_of(const struct df_job_call *c, struct df_job_snapshot *ret, struct df_err *err)
{
    return df_job_snapshot(c->watch, c->name, c->step, ret, err);
}

int df_job_check_vault(const struct df_job_options *o, const cJSON *job, struct df_err *err)
{
    const cJSON *pod = df_json_at(job, "spec.template");
    return o->has_vault ? df_engine_check_vault(o->kube, o->name_space, pod, err) : 0;
}
