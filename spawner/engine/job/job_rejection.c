#include "spawner/engine/job/job_engine.h"

static void remember_rejection(const struct df_job_call *c, const struct df_pod_diagnosis *v)
{
    cJSON *rejection = cJSON_CreateObject();
    (void)pthread_mutex_lock(&c->engine->lock);
    cJSON_DeleteItemFromObjectCaseSensitive(c->engine->rejections, c->step->uid);
    /* Out of memory: the next rejection is stored instead. */
    if (df_json_put(rejection, NULL, DF_STR("reason", v->reason),
                    DF_BOOL("lacksRoom", v->lacks_room), DF_STR("message", v->message)) < 0)
        cJSON_Delete(rejection);
    else
        (void)!df_json_set(c->engine->rejections, c->step->uid, rejection, NULL);
    (void)pthread_mutex_unlock(&c->engine->lock);
}

void df_job_rejection_forget(const struct df_job_call *c)
{
    (void)pthread_mutex_lock(&c->engine->lock);
    cJSON_DeleteItemFromObjectCaseSensitive(c->engine->rejections, c->step->uid);
    (void)pthread_mutex_unlock(&c->engine->lock);
}

void df_job_rejection_report(const struct df_job_call *c, struct df_engine_observation *observed)
{
    (void)pthread_mutex_lock(&c->engine->lock);
    const cJSON *rejection = cJSON_GetObjectItemCaseSensitive(c->engine->rejections, c->step->uid);
    const char *reason = df_json_str(rejection, "reason"),
               *message = df_json_str(rejection, "message");
    (void)snprintf(observed->reason, sizeof(observed->reason), "%s", reason ? reason : "");
    (void)snprintf(observed->cause, sizeof(observed->cause), "%s", message ? message : "");
    observed->lacks_room = df_json_bool(rejection, "lacksRoom", false);
    (void)pthread_mutex_unlock(&c->engine->lock);
}

struct df_pod_diagnosis df_job_rejection(const struct df_err *why, bool is_workflow)
{
    static const int statuses[] = {
        [DF_ERR_USER] = 422, [DF_ERR_DENIED] = 403, [DF_ERR_NOT_FOUND] = 404, [DF_ERR_LIMIT] = 413};
    size_t class = (size_t)why->cls;
    return df_pod_rejection(class < DF_ARRAY_SIZE(statuses) ? statuses[class] : 0, why->message,
                            is_workflow);
}

/* Class USER if the rejection is permanent, else RETRY. */
int df_job_reject(const struct df_job_call *c, const struct df_err *why, struct df_err *err)
{
    struct df_pod_diagnosis v = df_job_rejection(why, c->step->workflow.spec);
    remember_rejection(c, &v);
    enum df_err_class as = v.class == DF_POD_PERMANENT ? DF_ERR_USER : DF_ERR_RETRY;
    (void)df_fail_reason(err, as, v.reason, "%s", v.message);
    if (err)
        err->retry_after_s = why->retry_after_s;
    return -1;
}
