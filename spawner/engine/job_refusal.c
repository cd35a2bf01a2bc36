#include "spawner/engine/job_engine.h"

static void remember_refusal(struct df_job_engine *j, const struct df_engine_step *step,
                             const struct df_pod_verdict *v)
{
    cJSON *refusal = cJSON_CreateObject();
    (void)pthread_mutex_lock(&j->lock);
    cJSON_DeleteItemFromObjectCaseSensitive(j->refusals, step->uid);
    /* Without memory it is told the next time. */
    if (df_json_add_str(refusal, "reason", v->reason, NULL) < 0 ||
        df_json_add_str(refusal, "message", v->message, NULL) < 0)
        cJSON_Delete(refusal);
    else
        (void)!df_json_set(j->refusals, step->uid, refusal, NULL);
    (void)pthread_mutex_unlock(&j->lock);
}

void df_job_refusal_forget(struct df_job_engine *j, const struct df_engine_step *step)
{
    (void)pthread_mutex_lock(&j->lock);
    cJSON_DeleteItemFromObjectCaseSensitive(j->refusals, step->uid);
    (void)pthread_mutex_unlock(&j->lock);
}

void df_job_refusal_tell(struct df_job_engine *j, const struct df_engine_step *step,
                         struct df_engine_observation *seen)
{
    (void)pthread_mutex_lock(&j->lock);
    const cJSON *refusal = cJSON_GetObjectItemCaseSensitive(j->refusals, step->uid);
    const char *reason = df_json_str(refusal, "reason"), *message = df_json_str(refusal, "message");
    (void)snprintf(seen->reason, sizeof(seen->reason), "%s", reason ? reason : "");
    (void)snprintf(seen->cause, sizeof(seen->cause), "%s", message ? message : "");
    (void)pthread_mutex_unlock(&j->lock);
}

struct df_pod_verdict df_job_refusal(const struct df_err *why)
{
    static const int statuses[] = {
        [DF_ERR_USER] = 422, [DF_ERR_DENIED] = 403, [DF_ERR_NOT_FOUND] = 404, [DF_ERR_LIMIT] = 413};
    size_t class = (size_t)why->cls;
    return df_pod_refusal(class < DF_ARRAY_SIZE(statuses) ? statuses[class] : 0, why->message);
}

/* For good, or to be tried again. */
int df_job_refuse(struct df_job_engine *j, const struct df_engine_step *step,
                  const struct df_err *why, struct df_err *err)
{
    struct df_pod_verdict v = df_job_refusal(why);
    remember_refusal(j, step, &v);
    enum df_err_class as = v.class == DF_POD_PERMANENT ? DF_ERR_USER : DF_ERR_RETRY;
    (void)df_fail_reason(err, as, v.reason, "%s", v.message);
    if (err)
        err->retry_after_s = why->retry_after_s;
    return -1;
}
