/*
 * The condition Succeeded of a PipelineRun says how far it is, those of its TaskRuns which of its
 * tasks have ended. In this order: TaskRuns, status and summary.
 */
#include "spawner/engine/tekton/pipeline_status.h"

static const cJSON *succeeded_of(const cJSON *object)
{
    return df_workflow_condition(object, "Succeeded");
}

static bool is_status(const cJSON *object, const char *status)
{
    return df_streq(df_json_str(succeeded_of(object), "status"), status);
}

/* ---- TaskRuns ---- */

/* A reference may also name a run of another kind, of which no TaskRun tells anything. */
static const cJSON *task_run_of(const cJSON *reference, const cJSON *task_runs)
{
    const char *name = df_json_str(reference, "name");
    if (!name || !df_streq(df_json_str(reference, "kind"), "TaskRun"))
        return NULL;
    return cJSON_GetObjectItemCaseSensitive(task_runs, name);
}

static void count_tasks(struct df_workflow_status *s, const cJSON *run, const cJSON *task_runs)
{
    const cJSON *reference;
    cJSON_ArrayForEach (reference, df_json_at(run, "status.childReferences")) {
        s->summary.total_tasks++;
        if (is_status(task_run_of(reference, task_runs), "True"))
            s->summary.completed_tasks++;
    }
}

static int exit_code_of(const cJSON *task_run)
{
    const cJSON *step;
    cJSON_ArrayForEach (step, df_json_at(task_run, "status.steps")) {
        int64_t code = df_json_int(step, "terminated.exitCode", 0);
        if (code)
            return (int)code;
    }
    return 0;
}

/* The first one that failed. */
static void find_failed_task(struct df_workflow_failure *f, const cJSON *run,
                             const cJSON *task_runs)
{
    const cJSON *reference;
    int index = 0;
    cJSON_ArrayForEach (reference, df_json_at(run, "status.childReferences")) {
        const cJSON *task_run = task_run_of(reference, task_runs);
        if (is_status(task_run, "False")) {
            f->task = df_json_text(reference, "name");
            f->task_index = index;
            f->exit_code = exit_code_of(task_run);
            return;
        }
        index++;
    }
}

const char *df_pipeline_waits_for(const cJSON *run, const cJSON *task_runs, const char **ret_task)
{
    const cJSON *reference;
    cJSON_ArrayForEach (reference, df_json_at(run, "status.childReferences")) {
        const cJSON *condition = succeeded_of(task_run_of(reference, task_runs));
        const char *reason = df_json_text(condition, "reason");
        bool comes_forward = df_streq(reason, "Running") || df_streq(reason, "Started");
        if (!df_streq(df_json_str(condition, "status"), "Unknown") || comes_forward)
            continue;
        const char *task = df_json_str(reference, "pipelineTaskName");
        *ret_task = task ? task : df_json_text(reference, "name");
        return df_json_text(condition, "message");
    }
    return NULL;
}

/* ---- status and summary ---- */

static bool was_execution(const struct df_workflow_class *c, const cJSON *run)
{
    if (df_json_at(run, "status.startTime"))
        return !c->may_precede_execution;
    return cJSON_GetArraySize(df_json_at(run, "status.childReferences")) > 0 || c->is_of_execution;
}

static void set_text(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text);
}

static void fill_running(struct df_workflow_status *s, const cJSON *condition)
{
    s->phase = DF_WORKFLOW_RUNNING;
    if (condition) {
        (void)snprintf(s->message, sizeof(s->message), "Pipeline executing (%s)", s->reason);
    } else {
        set_text(s->reason, sizeof(s->reason), "Pending");
        set_text(s->message, sizeof(s->message),
                 "Pipeline created, waiting for Tekton to start execution");
    }
}

static void fill_failed(struct df_workflow_status *s, const cJSON *run, const cJSON *task_runs,
                        const cJSON *condition)
{
    const struct df_workflow_class *c =
        df_workflow_class_of(df_json_text(condition, "reason"), df_json_text(condition, "message"));
    s->phase = DF_WORKFLOW_FAILED;
    s->failure = (struct df_workflow_failure){
        .reason = c->reason, .word = c->word, .task = "", .was_execution = was_execution(c, run)};
    find_failed_task(&s->failure, run, task_runs);
}

struct df_workflow_status df_pipeline_status(const cJSON *run, const cJSON *task_runs)
{
    struct df_workflow_status s = {.summary = {.status = "Unknown", .reason = ""}};
    const cJSON *condition = succeeded_of(run);
    if (!run)
        return s;
    set_text(s.reason, sizeof(s.reason), df_json_text(condition, "reason"));
    set_text(s.message, sizeof(s.message), df_json_text(condition, "message"));
    count_tasks(&s, run, task_runs);
    if (condition) {
        s.summary.status = df_json_text(condition, "status");
        s.summary.reason = df_json_text(condition, "reason");
        set_text(s.summary.message, sizeof(s.summary.message), s.message);
    }
    if (is_status(run, "True"))
        s.phase = DF_WORKFLOW_COMPLETED;
    else if (is_status(run, "False"))
        fill_failed(&s, run, task_runs, condition);
    else
        fill_running(&s, condition);
    return s;
}

bool df_pipeline_has_begun(const cJSON *run)
{
    return succeeded_of(run) && df_json_at(run, "status.startTime");
}
