#include "spawner/engine/job/workflow_job.h"

#include <strings.h>

#include "spawner/engine/diagnosis/pod_cause.h"

/* ---- conditions ---- */

/* The condition Complete or Failed that is True, or NULL. A Job has each type once. */
static const cJSON *final_condition(const cJSON *job)
{
    static const char *const types[] = {"Complete", "Failed"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(types); i++) {
        const cJSON *c = df_workflow_condition(job, types[i]);
        if (df_streq(df_json_str(c, "status"), "True"))
            return c;
    }
    return NULL;
}

bool df_job_is_completed(const cJSON *job)
{
    return final_condition(job) != NULL;
}

/* ---- events ---- */

/* Recognizes a pod of the Job by its name: the Job's name, a dash and five characters. The pod
 * itself may be gone, because the Job controller removes it at the deadline. */
static bool is_pod_of(const char *pod, const char *job)
{
    size_t n = strlen(job);
    return pod && strncmp(pod, job, n) == 0 && pod[n] == '-' && strlen(pod + n + 1) == 5;
}

static bool explains_no_start(const cJSON *event)
{
    static const char *const pulls[] = {"pull image", "errimagepull", "imagepullbackoff"};
    const char *reason = df_json_str(event, "reason"), *message = df_json_str(event, "message");
    if (df_streq(reason, "FailedMount") || df_streq(reason, "CreateContainerConfigError"))
        return true;
    if (!message || (!df_streq(reason, "Failed") && !df_streq(reason, "BackOff")))
        return false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(pulls); i++)
        if (strcasestr(message, pulls[i]))
            return true;
    return false;
}

static const char *why_not_started(const cJSON *events, const char *job)
{
    const cJSON *best = NULL;
    for (const cJSON *e = events ? events->child : NULL; e; e = e->next)
        if (df_streq(df_json_str(e, "involvedObject.kind"), "Pod") &&
            is_pod_of(df_json_str(e, "involvedObject.name"), job) && explains_no_start(e) &&
            df_pod_event_is_better(e, best))
            best = e;
    return df_json_str(best, "message");
}

/* The number of pods after the first one, counted by the Events of their creation: status.failed
 * does not count pods that the failure policy ignores. */
static int count_retries(const cJSON *events, const char *job)
{
    int64_t made = 0;
    for (const cJSON *e = events ? events->child : NULL; e; e = e->next) {
        if (!df_streq(df_json_str(e, "involvedObject.kind"), "Job") ||
            !df_streq(df_json_str(e, "involvedObject.name"), job) ||
            !df_streq(df_json_str(e, "reason"), "SuccessfulCreate"))
            continue;
        int64_t count = df_json_int(e, "count", 1);
        made += count < 1 ? 1 : count > 1000 ? 1000 : count;
    }
    return made > 0 ? (int)(made - 1) : 0;
}

/* ---- status and summary ---- */

static void fill_summary(struct df_workflow_status *s, const cJSON *job)
{
    int64_t succeeded = df_json_int(job, "status.succeeded", 0);
    int64_t failed = df_json_int(job, "status.failed", 0);
    int64_t active = df_json_int(job, "status.active", 0);
    size_t size = sizeof(s->summary.message);
    s->summary.total_tasks = 1;
    s->summary.status = "Unknown";
    s->summary.reason = "";
    if (succeeded > 0) {
        s->summary.status = "True";
        s->summary.reason = "Succeeded";
        s->summary.completed_tasks = 1;
    } else if (failed > 0) {
        s->summary.status = "False";
        s->summary.reason = "Failed";
        (void)snprintf(s->summary.message, size, "%lld pod(s) failed", (long long)failed);
    } else if (active > 0) {
        s->summary.reason = "Running";
        (void)snprintf(s->summary.message, size, "%lld pod(s) active", (long long)active);
    }
}

static void set_text(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text ? text : "");
}

static void fill_running(struct df_workflow_status *s, const cJSON *job)
{
    s->phase = DF_WORKFLOW_RUNNING;
    set_text(s->reason, sizeof(s->reason), "Running");
    (void)snprintf(s->message, sizeof(s->message), "Job running (%lld/%lld pods active)",
                   (long long)df_json_int(job, "status.active", 0),
                   (long long)df_json_int(job, "spec.completions", 1));
    s->out_of_pods = s->summary.retry_count >= DF_WORKFLOW_PODS;
}

static void fill_failed(struct df_workflow_status *s, const cJSON *condition, const char *why)
{
    s->phase = DF_WORKFLOW_FAILED;
    set_text(s->reason, sizeof(s->reason), df_json_str(condition, "reason"));
    set_text(s->message, sizeof(s->message), why ? why : df_json_str(condition, "message"));
    if (s->message[0])
        set_text(s->summary.message, sizeof(s->summary.message), s->message);
}

struct df_workflow_status df_workflow_status(const cJSON *job, const cJSON *events)
{
    struct df_workflow_status s = {.summary = {.status = "Unknown", .reason = ""}};
    const cJSON *condition = final_condition(job);
    const char *name = df_json_str(job, "metadata.name");
    if (!job)
        return s;
    fill_summary(&s, job);
    s.summary.retry_count = name ? count_retries(events, name) : 0;
    if (!condition) {
        fill_running(&s, job);
    } else if (df_streq(df_json_str(condition, "type"), "Complete")) {
        s.phase = DF_WORKFLOW_COMPLETED;
        set_text(s.reason, sizeof(s.reason), "Complete");
        set_text(s.message, sizeof(s.message), df_json_str(condition, "message"));
    } else {
        fill_failed(&s, condition, name ? why_not_started(events, name) : NULL);
    }
    return s;
}
