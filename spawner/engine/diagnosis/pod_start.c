/*
 * Why a pod does not start: image, volumes, scheduling, or no pod at all.
 */
#include "common/base/clock.h"
#include "spawner/engine/diagnosis/pod_cause.h"
#include "spawner/engine/diagnosis/pod_parts.h"

/* A reason of the kubelet for a waiting container. */
struct wait {
    const char *word;
    enum df_pod_class class; /* after the grace period; INITIALIZING: no failure */
    enum df_fault fault;
    int64_t grace_seconds;
    const char *reason; /* unless the message has a more exact one; NULL: no failure */
};

static const struct wait waits[] = {
    {"ContainerCreating", DF_POD_INITIALIZING, DF_FAULT_NONE, 0, NULL},
    {"PodInitializing", DF_POD_INITIALIZING, DF_FAULT_NONE, 0, NULL},
    {"ErrImagePull", DF_POD_INITIALIZING, DF_FAULT_NONE, 0, "ImagePullFailed"},
    {"ImagePullBackOff", DF_POD_RETRYABLE, DF_FAULT_USER, DF_POD_PULL_GRACE_SECONDS,
     "ImagePullFailed"},
    {"CreateContainerError", DF_POD_PERMANENT, DF_FAULT_USER, DF_POD_CREATE_GRACE_SECONDS,
     "ContainerFailed"},
    {"CreateContainerConfigError", DF_POD_PERMANENT, DF_FAULT_USER, DF_POD_CONFIG_GRACE_SECONDS,
     "ContainerFailed"},
    {"InvalidImageName", DF_POD_PERMANENT, DF_FAULT_USER, 0, "ImageNameInvalid"},
    {"ErrImageNeverPull", DF_POD_RETRYABLE, DF_FAULT_SYSTEM, 0, "ImagePullFailed"},
    {"RegistryUnavailable", DF_POD_RETRYABLE, DF_FAULT_SYSTEM, 0, "ImagePullFailed"},
    {"ImageInspectError", DF_POD_RETRYABLE, DF_FAULT_SYSTEM, 0, "ImagePullFailed"},
    {"SignatureValidationFailed", DF_POD_RETRYABLE, DF_FAULT_SYSTEM, 0, "ImagePullFailed"},
    {"RunContainerError", DF_POD_RETRYABLE, DF_FAULT_SYSTEM, 0, "ContainerFailed"},
};

static const struct wait *find_wait(const char *word)
{
    static const struct wait other = {NULL, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, 0,
                                      "ContainerFailed"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(waits); i++)
        if (df_streq(waits[i].word, word))
            return &waits[i];
    return &other;
}

/* The status of the first waiting container, in the order of their start. */
static const cJSON *waiting_container(const cJSON *pod)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(df_pod_status_lists); i++) {
        const cJSON *list = df_json_at(pod, df_pod_status_lists[i]);
        for (const cJSON *s = list ? list->child : NULL; s; s = s->next)
            if (df_json_at(s, "state.waiting"))
                return s;
    }
    return NULL;
}

/* The condition since when the pod is not ready: the grace period counts from then. */
static const cJSON *unready_condition(const cJSON *pod)
{
    const cJSON *ready = df_pod_condition(pod, "Ready");
    return ready ? ready : df_pod_condition(pod, "ContainersReady");
}

static bool in_grace(const struct df_pod_view *view, const struct wait *wait)
{
    const char *since = df_json_str(unready_condition(view->pod), "lastTransitionTime");
    int64_t at = 0;
    if (!since)
        since = df_json_str(view->pod, "metadata.creationTimestamp");
    if (wait->grace_seconds == 0 || !since || df_time_parse(since, &at, NULL) < 0)
        return false;
    return view->now_us - at < wait->grace_seconds * 1000000;
}

void df_pod_diagnose_waiting(const struct df_pod_view *view, const cJSON *status,
                             struct df_pod_diagnosis *v)
{
    const char *word = df_json_str(status, "state.waiting.reason");
    const char *message = df_json_str(status, "state.waiting.message");
    const struct wait *wait = find_wait(word);
    bool throttled = message && strstr(message, "429 Too Many Requests");
    v->class = wait->class;
    v->fault = throttled ? DF_FAULT_SYSTEM : wait->fault;
    bool is_pull = df_streq(wait->reason, "ImagePullFailed");
    const char *reason =
        wait->reason && !is_pull ? df_pod_cause(message, wait->reason) : wait->reason;
    if (!df_streq(reason, "RunsAsRoot") && in_grace(view, wait)) {
        v->class = DF_POD_INITIALIZING;
        v->fault = DF_FAULT_NONE;
    }
    df_pod_code(v, df_json_str(unready_condition(view->pod), "reason"), word);
    if (reason)
        df_pod_explain(v, reason, message ? message : word);
}

/* Failed mounts and sandboxes of a pod are reported by Events only. */
static void check_pod_events(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    static const char *const words[] = {"FailedMount", "FailedAttachVolume",
                                        "FailedCreatePodSandBox", NULL};
    const char *word = NULL;
    const char *message = df_pod_event(view->events, "Pod", view->pod, words, &word);
    if (!message || v->reason[0])
        return;
    bool is_sandbox = df_streq(word, "FailedCreatePodSandBox");
    df_pod_explain(v, is_sandbox ? "NodeFailed" : df_pod_cause(message, "VolumeFailed"), message);
    df_pod_code(v, word, NULL);
}

/* The pod has a node, but its kubelet has not reported on it, nor has the pod's runner claimed. */
static void diagnose_silent_kubelet(const struct df_pod_view *view, const cJSON *scheduled,
                                    struct df_pod_diagnosis *v)
{
    const char *node = df_json_str(view->pod, "spec.nodeName");
    const char *since = df_json_str(scheduled, "lastTransitionTime");
    int64_t at = 0;
    char words[360];
    if (view->had_pod || !node || !since || df_time_parse(since, &at, NULL) < 0 ||
        view->now_us - at < DF_POD_KUBELET_SECONDS * 1000000)
        return;
    (void)snprintf(words, sizeof(words),
                   "node %.253s has not reported on it since it was scheduled there", node);
    df_pod_explain(v, "NodeFailed", words);
}

static void diagnose_unscheduled(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    static const char *const words[] = {"FailedScheduling", NULL};
    const cJSON *scheduled = df_pod_condition(view->pod, "PodScheduled");
    const char *message = df_json_str(scheduled, "message"), *word = NULL;
    v->class = DF_POD_QUEUED;
    df_pod_code(v, df_json_str(scheduled, "reason"), NULL);
    if (df_pod_is_true(scheduled)) {
        diagnose_silent_kubelet(view, scheduled, v);
        return;
    }
    if (!message)
        message = df_pod_event(view->events, "Pod", view->pod, words, &word);
    if (message)
        df_pod_explain(v, df_pod_cause(message, "Unschedulable"), message);
}

void df_pod_diagnose_pending(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    const cJSON *status = waiting_container(view->pod);
    v->phase = DF_ENGINE_PENDING;
    v->never_started = !df_pod_has_started(view);
    if (!v->never_started)
        v->phase = DF_ENGINE_RUNNING;
    if (status)
        df_pod_diagnose_waiting(view, status, v);
    else
        diagnose_unscheduled(view, v);
    if (status && v->class == DF_POD_INITIALIZING)
        check_pod_events(view, v);
}

/* The Job has no pod: the API server may have rejected it. */
void df_pod_diagnose_no_pod(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    static const char *const words[] = {"FailedCreate", NULL};
    const char *word = NULL;
    const char *message = df_pod_event(view->events, "Job", view->job, words, &word);
    v->phase = DF_ENGINE_PENDING;
    v->class = DF_POD_QUEUED;
    v->never_started = true;
    if (message) {
        const char *reason = df_pod_cause(message, "AdmissionRefused");
        if (df_pod_cause_is_permanent(reason, message))
            df_pod_fail(v, DF_POD_PERMANENT, DF_FAULT_USER, word);
        df_pod_explain(v, reason, message);
        df_pod_code(v, word, NULL);
    }
}
