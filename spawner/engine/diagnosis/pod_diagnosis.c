/*
 * Derives one diagnosis from a Job, its pod and their Events. df_pod_diagnose() examines the pod,
 * or why there is none; then how the Job ended; then the pending deadline.
 */
#include "spawner/engine/diagnosis/pod_diagnosis.h"

#include "common/base/clock.h"
#include "common/kube/kube.h"
#include "spawner/engine/diagnosis/pod_cause.h"
#include "spawner/engine/diagnosis/pod_parts.h"

/* ---- running ---- */

static bool is_in_spec(const struct df_pod_view *view)
{
    return df_pod_named(df_json_at(view->pod, "spec.containers"), "name", view->container) != NULL;
}

/* The pod is Running because of a sidecar, but the main container has not started. */
static void diagnose_late_container(const struct df_pod_view *view, const cJSON *status,
                                    struct df_pod_diagnosis *v)
{
    df_pod_diagnose_waiting(view, status, v);
    v->phase = DF_ENGINE_PENDING;
    v->never_started = true;
    v->class = DF_POD_RUNNING;
    v->fault = DF_FAULT_NONE;
}

static void diagnose_running(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    const cJSON *status = df_pod_container(view->pod, view->container);
    const cJSON *terminated = df_json_at(status, "state.terminated");
    v->phase = DF_ENGINE_RUNNING;
    v->class = DF_POD_RUNNING;
    if (terminated) {
        df_pod_diagnose_terminated(view, terminated, v);
    } else if (df_json_at(status, "state.waiting") && !df_pod_has_started(view)) {
        diagnose_late_container(view, status, v);
    } else if (!status && !is_in_spec(view)) {
        df_pod_fail(v, DF_POD_PERMANENT, DF_FAULT_USER, "PrimaryContainerNotFound");
        df_pod_explain(v, "ContainerFailed", "the pod has no such container");
    }
}

/* ---- disruption and deletion ---- */

/* Reasons of the condition DisruptionTarget, which says what terminates a pod. */
static const struct {
    const char *word, *reason;
} disruptions[] = {
    {"PreemptionByScheduler", "Preempted"}, {"DeletionByTaintManager", "NodeLost"},
    {"EvictionByEvictionAPI", "Evicted"},   {"TerminationByKubelet", "Evicted"},
    {"DeletionByPodGC", "NodeLost"},
};

/* The condition is more exact than the state of the containers, which only shows that they were
 * killed. A more exact status.reason, set by the kubelet, is kept. */
static void diagnose_disruption(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    const cJSON *target = df_pod_condition(view->pod, "DisruptionTarget");
    const char *word = df_json_str(target, "reason");
    bool is_exact = df_streq(v->reason, "OOMKilled") || df_streq(v->reason, "NodeShutdown") ||
                    df_streq(v->reason, "Evicted");
    if (!df_pod_is_true(target) || v->class == DF_POD_SUCCEEDED || is_exact)
        return;
    for (size_t i = 0; i < DF_ARRAY_SIZE(disruptions); i++) {
        if (!df_streq(disruptions[i].word, word))
            continue;
        bool evicted = df_streq(v->reason, "Evicted");
        const char *message =
            df_json_str(evicted ? view->pod : target, evicted ? "status.message" : "message");
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, word);
        df_pod_explain(v, disruptions[i].reason, message ? message : word);
        return;
    }
}

/* When the deletion of the pod was requested; false: it was not. deletionTimestamp is the end of
 * the grace period. */
static bool deletion_asked_at(const cJSON *pod, int64_t *ret_us)
{
    const char *text = df_json_str(pod, "metadata.deletionTimestamp");
    int64_t at = 0, grace = df_json_int(pod, "metadata.deletionGracePeriodSeconds", 0);
    if (!text || df_time_parse(text, &at, NULL) < 0)
        return false;
    *ret_us = at - grace * 1000000;
    return true;
}

/* If the container had finished before the deletion request, the deletion is not the cause of the
 * end. */
static bool ended_before(const struct df_pod_view *view, int64_t asked_us)
{
    const cJSON *status = df_pod_container(view->pod, view->container);
    const char *text = df_json_str(status, "state.terminated.finishedAt");
    int64_t at = 0;
    return text && df_time_parse(text, &at, NULL) == 0 && at < asked_us;
}

/* The condition which says that the Job exceeded its own deadline; NULL: it did not. */
static const cJSON *passed_deadline(const cJSON *job)
{
    const cJSON *failed = df_pod_condition(job, "Failed");
    const cJSON *target = df_pod_condition(job, "FailureTarget");
    const cJSON *why = df_pod_is_true(failed) ? failed : df_pod_is_true(target) ? target : NULL;
    return df_streq(df_json_str(why, "reason"), "DeadlineExceeded") ? why : NULL;
}

/* A pod that is being deleted may run until the end of its grace period. If the deletion ended it,
 * its container only reports a signal, so the deletion is the better explanation. */
static void diagnose_deletion(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    int64_t asked_us = 0;
    bool by_job = !view->job || df_kube_is_deleted(view->job);
    if (!deletion_asked_at(view->pod, &asked_us) || v->class == DF_POD_SUCCEEDED ||
        ended_before(view, asked_us) || passed_deadline(view->job))
        return;
    df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, "UnexpectedObjectDeletion");
    df_pod_explain(v, by_job ? "JobDeleted" : "PodDeleted", NULL);
}

static void diagnose_pod(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    const char *phase = df_json_str(view->pod, "status.phase");
    if (df_streq(phase, "Running"))
        diagnose_running(view, v);
    else if (df_streq(phase, "Succeeded"))
        df_pod_diagnose_succeeded(view, v);
    else if (df_streq(phase, "Failed"))
        df_pod_diagnose_failed(view, v);
    else if (df_streq(phase, "Unknown"))
        v->phase = DF_ENGINE_RUNNING;
    else
        df_pod_diagnose_pending(view, v);
    diagnose_deletion(view, v);
    diagnose_disruption(view, v);
}

/* ---- the pending deadline ---- */

/* Is the pod being deleted or disrupted? Before its start, another attempt follows then. */
static bool is_leaving(const cJSON *pod)
{
    return df_kube_is_deleted(pod) || df_pod_is_true(df_pod_condition(pod, "DisruptionTarget"));
}

/* A start that takes too long keeps the last observed cause as its reason. */
static void diagnose_deadline(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    bool is_late = view->pending_deadline_us && view->now_us >= view->pending_deadline_us;
    if (v->phase != DF_ENGINE_PENDING)
        return;
    if (is_late && v->class < DF_POD_RETRYABLE) {
        if (!v->reason[0])
            df_pod_explain(v, "NeverClaimed", v->code);
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, "PodPendingTimeout");
    }
    v->give_up = v->class >= DF_POD_RETRYABLE && (is_late || !is_leaving(view->pod));
}

/* ---- the Job ---- */

/* The Job exceeded its deadline, which also ended its pod. If the pod never started, the reason for
 * that is the better explanation. */
static void diagnose_job_end(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    const cJSON *why = passed_deadline(view->job);
    bool was_kept = v->phase == DF_ENGINE_PENDING && v->reason[0];
    if (v->class == DF_POD_SUCCEEDED || !why)
        return;
    df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_USER, "DeadlineExceeded");
    if (!was_kept)
        df_pod_explain(v, "DeadlineExceeded", df_json_str(why, "message"));
}

static void diagnose_absent_pod(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    if (df_pod_is_true(df_pod_condition(view->job, "Complete"))) {
        v->phase = DF_ENGINE_ENDED;
        v->class = DF_POD_SUCCEEDED;
    } else if (view->had_pod || df_pod_is_true(df_pod_condition(view->job, "Failed")) ||
               df_json_int(view->job, "status.failed", 0) > 0) {
        v->phase = DF_ENGINE_ENDED;
        v->never_started = !view->had_pod;
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, "ResourceDeletedExternally");
        df_pod_explain(v, "PodDeleted", NULL);
    } else {
        df_pod_diagnose_no_pod(view, v);
    }
}

struct df_pod_diagnosis df_pod_diagnose(const struct df_pod_view *view)
{
    struct df_pod_diagnosis v = {
        .phase = DF_ENGINE_ABSENT, .exit_code = -1, .of_workflow = view->is_workflow};
    if (view->pod)
        diagnose_pod(view, &v);
    else if (view->job)
        diagnose_absent_pod(view, &v);
    if (view->job)
        diagnose_job_end(view, &v);
    if (!view->job && !view->pod && view->was_created) {
        df_pod_fail(&v, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, "ResourceDeletedExternally");
        df_pod_explain(&v, "JobDeleted", NULL);
        v.never_started = !view->had_pod;
    }
    diagnose_deadline(view, &v);
    return v;
}

bool df_pod_is_lost(const struct df_pod_diagnosis *v)
{
    return v->class == DF_POD_RETRYABLE && (v->never_started || v->fault == DF_FAULT_SYSTEM);
}

/* ---- rejections ---- */

struct df_pod_diagnosis df_pod_rejection(int http_status, const char *message, bool is_workflow)
{
    static const struct {
        int status;
        enum df_pod_class class;
        const char *code, *reason;
    } rows[] = {
        {400, DF_POD_PERMANENT, "BadRequest", "ObjectRefused"},
        {403, DF_POD_RETRYABLE, "RuntimeFailure", "NotAllowed"},
        {404, DF_POD_PERMANENT, "NotFound", "NamespaceMissing"},
        {413, DF_POD_PERMANENT, "EntityTooLarge", "ObjectRefused"},
        {422, DF_POD_PERMANENT, "InvalidResource", "ObjectRefused"},
    };
    struct df_pod_diagnosis v = {.phase = DF_ENGINE_ABSENT,
                                 .exit_code = -1,
                                 .never_started = true,
                                 .of_workflow = is_workflow};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        if (rows[i].status != http_status)
            continue;
        /* "is forbidden: User cannot create" is about our permissions; all other 403s come from
         * admission control. */
        bool rights = http_status == 403 && message && strstr(message, "cannot create");
        const char *reason = rights ? rows[i].reason : df_pod_cause(message, rows[i].reason);
        bool lasts = !rights && df_pod_cause_is_permanent(reason, message);
        df_pod_fail(&v, lasts ? DF_POD_PERMANENT : rows[i].class, DF_FAULT_USER, rows[i].code);
        df_pod_explain(&v, reason, message);
        return v;
    }
    df_pod_fail(&v, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, "RuntimeFailure");
    /* The API server reports a webhook that does not answer as an error of its own. */
    df_pod_explain(&v, df_pod_cause_webhook(message) ? "AdmissionRefused" : "EngineFailed",
                   message);
    return v;
}

/* ---- the result ---- */

int df_pod_result(const cJSON *pod, const char *container, cJSON **ret, struct df_err *err)
{
    const char *text = df_json_str(df_pod_container(pod, container), "state.terminated.message");
    DF_JSON cJSON *result = NULL;
    struct df_err why = {0};
    if (!text || df_json_parse(text, strlen(text), &result, &why) < 0 || !cJSON_IsObject(result))
        return df_fail(err, DF_ERR_NOT_FOUND, "the container %s left no result", container);
    *ret = DF_TAKE(result);
    return 0;
}
