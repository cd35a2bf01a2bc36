/*
 * How a pod ended, derived from the terminated state of its containers or the reason of the pod.
 */
#include "spawner/engine/diagnosis/pod_cause.h"
#include "spawner/engine/diagnosis/pod_parts.h"

static const cJSON *oom_killed(const cJSON *pod)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(df_pod_status_lists); i++) {
        const cJSON *list = df_json_at(pod, df_pod_status_lists[i]);
        for (const cJSON *s = list ? list->child : NULL; s; s = s->next)
            if (df_streq(df_json_str(s, "state.terminated.reason"), "OOMKilled"))
                return s;
    }
    return NULL;
}

static bool is_kill(int64_t exit_code)
{
    return exit_code == 137 || exit_code == 247;
}

/* Explains an exit code of the runner. A code above 128 is a signal. */
static void explain_exit(struct df_pod_diagnosis *v, const cJSON *terminated)
{
    static const char *const reasons[] = {NULL, "RunnerFailed", "RunnerFailed", "InvalidStep",
                                          "TimedOut"};
    static const char *const meanings[] = {NULL, "failed", "failed after it had changed something",
                                           "invalid input", "timed out"};
    const char *message = df_json_str(terminated, "message");
    char words[400];
    int code = v->exit_code;
    /* A result document is not for people: df_pod_result() reads it. */
    if (!message || message[0] == '{')
        message = "";
    const char *comma = message[0] ? ": " : "";
    if (code == 3 && message[0]) { /* after its claim a runner leaves a result document instead */
        df_pod_explain(v, "NeverClaimed", message);
    } else if (code >= 1 && code < (int)DF_ARRAY_SIZE(reasons)) {
        (void)snprintf(words, sizeof(words), "exit code %d, %s%s%.200s", code, meanings[code],
                       comma, message);
        df_pod_explain(v, reasons[code], words);
    } else if (code > 128 && code <= 128 + 64) {
        (void)snprintf(words, sizeof(words), "signal %d%s%.200s", code - 128, comma, message);
        df_pod_explain(v, "RunnerKilled", words);
    } else {
        (void)snprintf(words, sizeof(words), "exit code %d%s%.200s", code, comma, message);
        df_pod_explain(v, "RunnerFailed", words);
    }
}

void df_pod_diagnose_terminated(const struct df_pod_view *view, const cJSON *terminated,
                                struct df_pod_diagnosis *v)
{
    const char *why = df_json_str(terminated, "reason");
    const char *message = df_json_str(terminated, "message");
    v->phase = DF_ENGINE_ENDED;
    v->exit_code = (int)df_json_int(terminated, "exitCode", -1);
    v->never_started = !df_pod_has_started(view);
    if (df_streq(why, "OOMKilled")) {
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_USER, "OOMKilled");
        df_pod_explain(v, "OOMKilled", NULL);
    } else if (v->exit_code == 0) {
        df_pod_fail(v, DF_POD_SUCCEEDED, DF_FAULT_NONE, why);
    } else if (v->never_started) {
        const char *reason = df_pod_cause(message, "ContainerFailed");
        bool lasts = df_pod_cause_is_permanent(reason, message);
        df_pod_fail(v, lasts ? DF_POD_PERMANENT : DF_POD_RETRYABLE, DF_FAULT_USER, why);
        df_pod_explain(v, reason, message);
    } else {
        bool killed = is_kill(v->exit_code);
        df_pod_fail(v, DF_POD_RETRYABLE, killed ? DF_FAULT_SYSTEM : DF_FAULT_USER,
                    killed ? "Interrupted" : why);
        explain_exit(v, terminated);
    }
}

void df_pod_diagnose_succeeded(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    v->phase = DF_ENGINE_ENDED;
    v->class = DF_POD_SUCCEEDED;
    v->exit_code = 0;
    if (oom_killed(view->pod)) {
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_USER, "OOMKilled");
        df_pod_explain(v, "OOMKilled", NULL);
    }
}

/* Values of status.reason for pods that were terminated from outside. */
static const struct {
    const char *word;
    const char *code; /* NULL: the word */
    const char *reason;
    enum df_fault fault;
    bool before_start; /* the kubelet rejected the pod: nothing ran */
} pod_ends[] = {
    {"Evicted", NULL, "Evicted", DF_FAULT_USER, false},
    {"Shutdown", "Interrupted", "NodeShutdown", DF_FAULT_SYSTEM, false},
    {"Terminated", "Interrupted", "NodeShutdown", DF_FAULT_SYSTEM, false},
    {"NodeShutdown", "Interrupted", "NodeShutdown", DF_FAULT_SYSTEM, false},
    {"NodeAffinity", "Interrupted", "NodeFailed", DF_FAULT_SYSTEM, true},
    {"NodeLost", NULL, "NodeLost", DF_FAULT_SYSTEM, false},
    {"Preempting", NULL, "Preempted", DF_FAULT_SYSTEM, false},
    {"DeadlineExceeded", NULL, "DeadlineExceeded", DF_FAULT_USER, false},
    {"UnexpectedAdmissionError", NULL, "NodeFailed", DF_FAULT_SYSTEM, true},
    {"OutOfcpu", NULL, "NodeFailed", DF_FAULT_SYSTEM, true},
    {"OutOfmemory", NULL, "NodeFailed", DF_FAULT_SYSTEM, true},
    {"OutOfpods", NULL, "NodeFailed", DF_FAULT_SYSTEM, true},
};

/* Was a container other than the main one killed? */
static bool other_was_killed(const struct df_pod_view *view)
{
    const cJSON *list = df_json_at(view->pod, "status.containerStatuses");
    for (const cJSON *s = list ? list->child : NULL; s; s = s->next)
        if (!df_streq(df_json_str(s, "name"), view->container) &&
            is_kill(df_json_int(s, "state.terminated.exitCode", 0)))
            return true;
    return false;
}

/* Uses status.reason of the pod. False: it has none. */
static bool diagnose_pod_reason(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    const char *word = df_json_str(view->pod, "status.reason");
    const char *message = df_json_str(view->pod, "status.message");
    if (df_str_empty(word))
        return false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(pod_ends); i++) {
        if (!df_streq(pod_ends[i].word, word))
            continue;
        df_pod_fail(v, DF_POD_RETRYABLE, pod_ends[i].fault,
                    pod_ends[i].code ? pod_ends[i].code : word);
        df_pod_explain(v, pod_ends[i].reason, message);
        v->never_started = v->never_started || pod_ends[i].before_start;
        return true;
    }
    df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_USER, word);
    df_pod_explain(v, "RunnerFailed", message ? message : word);
    return true;
}

void df_pod_diagnose_failed(const struct df_pod_view *view, struct df_pod_diagnosis *v)
{
    const cJSON *terminated =
        df_json_at(df_pod_container(view->pod, view->container), "state.terminated");
    v->phase = DF_ENGINE_ENDED;
    v->never_started = !df_pod_has_started(view);
    v->exit_code = (int)df_json_int(terminated, "exitCode", -1);
    if (oom_killed(view->pod)) {
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_USER, "OOMKilled");
        df_pod_explain(v, "OOMKilled", NULL);
    } else if (diagnose_pod_reason(view, v)) {
        return;
    } else if (other_was_killed(view)) {
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_USER, "Interrupted");
        df_pod_explain(v, "RunnerKilled", "another container of the pod");
    } else if (terminated && v->exit_code != 0) {
        df_pod_diagnose_terminated(view, terminated, v);
    } else {
        df_pod_fail(v, DF_POD_RETRYABLE, DF_FAULT_SYSTEM, "Interrupted");
        df_pod_explain(v, "NodeLost", "Kubernetes does not say why the pod failed");
    }
}
