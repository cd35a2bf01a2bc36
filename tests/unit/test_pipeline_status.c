#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/tekton/pipeline_status.h"
#include "tests/unit/kube_words.h"

/* Inputs and expected values are those of kubernaut's own cases for its Tekton engine; their ids
 * stand beside them. */

#define SUCCEEDED(status, reason, message)                                                         \
    "'conditions':[{'type':'Succeeded','status':'" status "','reason':'" reason                    \
    "','message':'" message "'}]"
#define TASK(name, status, steps)                                                                  \
    "'" name "':{'status':{'conditions':[{'type':'Succeeded','status':'" status                    \
    "'}],'steps':[" steps "]}}"
#define ENDED(code) "{'terminated':{'exitCode':" #code "}}"
#define REF(name) "{'kind':'TaskRun','name':'" name "'}"
#define CHILDREN(list) "'childReferences':[" list "]"

/* ---- status ---- */

static const struct {
    const char *status; /* members of the run's status */
    enum df_workflow_phase phase;
    const char *reason, *message, *summary_status, *summary_reason;
    int total;
} statuses[] = {
    /* UT-WE-014-070, TEK-004 */
    {SUCCEEDED("True", "Succeeded",
               "Pipeline completed successfully") "," CHILDREN(REF("a") "," REF("b")),
     DF_WORKFLOW_COMPLETED, "Succeeded", "Pipeline completed successfully", "True", "Succeeded", 2},
    /* UT-WE-014-071 */
    {SUCCEEDED("False", "PipelineRunFailed", "Task validate failed"), DF_WORKFLOW_FAILED,
     "PipelineRunFailed", "Task validate failed", "False", "PipelineRunFailed", 0},
    /* TEK-005 */
    {SUCCEEDED("False", "TaskRunFailed", ""), DF_WORKFLOW_FAILED, "TaskRunFailed", "", "False",
     "TaskRunFailed", 0},
    /* UT-WE-014-072 */
    {SUCCEEDED("Unknown", "Running", "Tasks Completed: 0"), DF_WORKFLOW_RUNNING, "Running",
     "Pipeline executing (Running)", "Unknown", "Running", 0},
    /* UT-WE-014-073, BuildPipelineRunStatusSummary: no condition */
    {"'x':1", DF_WORKFLOW_RUNNING, "Pending",
     "Pipeline created, waiting for Tekton to start execution", "Unknown", "", 0},
    /* UT-WE-014-075, BuildPipelineRunStatusSummary: three children */
    {SUCCEEDED("True", "Succeeded", "") "," CHILDREN("{'name':'a'},{'name':'b'},{'name':'c'}"),
     DF_WORKFLOW_COMPLETED, "Succeeded", "", "True", "Succeeded", 3},
    /* BuildPipelineRunStatusSummary: copied */
    {SUCCEEDED("True", "Succeeded", "All tasks completed"), DF_WORKFLOW_COMPLETED, "Succeeded",
     "All tasks completed", "True", "Succeeded", 0},
    {"'conditions':[{'type':'Other','status':'True'}]", DF_WORKFLOW_RUNNING, "Pending",
     "Pipeline created, waiting for Tekton to start execution", "Unknown", "", 0},
};

static cJSON *run_of(const char *status)
{
    DF_FREE char *text = df_strf("{'metadata':{'name':'wfe-1'},'status':{%s}}", status);
    return json(text);
}

static void the_condition_says_how_far_a_run_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++) {
        DF_JSON cJSON *run = run_of(statuses[i].status);
        const struct df_workflow_status s = df_pipeline_status(run, NULL);
        assert_int_equal(s.phase, statuses[i].phase);
        assert_string_equal(s.reason, statuses[i].reason);
        assert_string_equal(s.message, statuses[i].message);
        assert_string_equal(s.summary.status, statuses[i].summary_status);
        assert_string_equal(s.summary.reason, statuses[i].summary_reason);
        assert_int_equal(s.summary.total_tasks, statuses[i].total);
        assert_int_equal(s.summary.completed_tasks, 0);
        assert_true(!s.failure.reason == (s.phase != DF_WORKFLOW_FAILED));
    }
    assert_int_equal(df_pipeline_status(NULL, NULL).phase, DF_WORKFLOW_ABSENT);
}

/* BuildPipelineRunStatusSummary: the table of completed tasks */
static void only_task_runs_that_succeeded_are_completed(void **state)
{
    (void)state;
#define ALL CHILDREN(REF("a") "," REF("b") "," REF("c"))
    static const struct {
        const char *status, *task_runs;
        int completed, total;
    } rows[] = {
        {ALL, "{" TASK("a", "True", "") "," TASK("b", "True", "") "," TASK("c", "False", "") "}", 2,
         3},
        {ALL, "{" TASK("a", "False", "") "," TASK("b", "Unknown", "") "}", 0, 3},
        {ALL, "{" TASK("a", "True", "") "," TASK("c", "True", "") "}", 2, 3}, /* b is gone */
        {CHILDREN(REF("a") "," REF("b")), "{" TASK("a", "True", "") "," TASK("b", "True", "") "}",
         2, 2},
        {"'x':1", "{" TASK("a", "True", "") "}", 0, 0},
        {CHILDREN("{'name':'a'},{'kind':'CustomRun','name':'a'}"), "{" TASK("a", "True", "") "}", 0,
         2},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *run = run_of(rows[i].status), *task_runs = json(rows[i].task_runs);
        const struct df_workflow_status s = df_pipeline_status(run, task_runs);
        assert_int_equal(s.summary.completed_tasks, rows[i].completed);
        assert_int_equal(s.summary.total_tasks, rows[i].total);
    }
}

/* ---- failures ---- */

#define STARTED "'startTime':'2026-11-29T12:00:00Z',"
#define CHILD CHILDREN(REF("a")) ","

/* begun: members of the status before its conditions. */
static const struct {
    const char *begun, *reason, *message, *class, *word;
    bool was_execution;
} failures[] = {
    /* Classification */
    {"", "Failed", "Container killed: OOMKilled", "OOMKilled", "OOMKilled", true},
    {"", "Failed", "task failed due to oom", "OOMKilled", "WorkflowFailed", true},
    {"", "Failed", "Exit code 137 - OOMkilled by kernel", "OOMKilled", "OOMKilled", true},
    {"", "PipelineRunTimeout", "Pipeline timed out", "DeadlineExceeded", "DeadlineExceeded", true},
    {"", "Failed", "Task timeout exceeded", "DeadlineExceeded", "DeadlineExceeded", true},
    {"", "Failed", "deadline exceeded for task", "DeadlineExceeded", "DeadlineExceeded", true},
    {"", "Failed", "RBAC: forbidden to create pods", "Forbidden", "WorkflowFailed", true},
    {"", "Failed", "rbac error occurred", "Forbidden", "WorkflowFailed", true},
    {"", "Failed", "permission denied for resource", "Forbidden", "WorkflowFailed", true},
    {"", "Failed", "exceeded quota for namespace", "ResourceExhausted", "QuotaExceeded", false},
    {"", "Failed", "resource exhausted in cluster", "ResourceExhausted", "WorkflowFailed", false},
    {"", "Failed", "ImagePullBackOff: image not found", "ImagePullBackOff", "ImagePullFailed",
     false},
    {"", "Failed", "failed to image pull from registry", "ImagePullBackOff", "ImagePullFailed",
     false},
    {"", "Failed", "invalid parameter value", "ConfigurationError", "WorkflowFailed", false},
    {"", "Failed", "configuration error in pipeline", "ConfigurationError", "WorkflowFailed",
     false},
    {"", "Failed", "Some unknown error occurred", "Unknown", "WorkflowFailed", false},
    {"", "Failed", "", "Unknown", "WorkflowFailed", false},
    {"", "TaskRunFailed", "Task exited with code 1", "Unknown", "WorkflowFailed", false},
    /* the rows of the contract that no case of its own reaches */
    {"", "TaskFailed", "", "TaskFailed", "WorkflowFailed", true},
    /* Integration */
    {STARTED, "TaskRunFailed", "task failed with exit code 1", "TaskFailed", "WorkflowFailed",
     true},
    {STARTED, "TaskRunFailed", "task failed: OOMKilled", "OOMKilled", "OOMKilled", true},
    {STARTED, "PipelineRunTimeout", "PipelineRun exceeded timeout of 10 minutes",
     "DeadlineExceeded", "DeadlineExceeded", true},
    {STARTED, "TaskRunFailed", "task failed: pods is forbidden: User cannot create resource",
     "Forbidden", "WorkflowFailed", true},
    {"", "TaskRunCreationFailed", "exceeded quota: compute resources", "ResourceExhausted",
     "QuotaExceeded", false},
    {"", "TaskRunValidationFailed", "invalid configuration: missing required parameter",
     "ConfigurationError", "WorkflowFailed", false},
    {"", "TaskRunImagePullFailed", "Failed to pull image: image pull backoff", "ImagePullBackOff",
     "ImagePullFailed", false},
    {"", "PipelineRunFailed", "unexpected error occurred", "Unknown", "WorkflowFailed", false},
    /* wasExecutionFailure */
    {STARTED, "Failed", "ImagePullBackOff", "ImagePullBackOff", "ImagePullFailed", false},
    {STARTED, "Failed", "Invalid configuration detected", "ConfigurationError", "WorkflowFailed",
     false},
    {STARTED, "Failed", "Resource quota exceeded", "ResourceExhausted", "WorkflowFailed", false},
    {CHILD, "Failed", "Unknown failure", "Unknown", "WorkflowFailed", true},
    {"", "Failed", "Unknown failure", "Unknown", "WorkflowFailed", false},
    {"", "Failed", "Pipeline timeout: deadline exceeded", "DeadlineExceeded", "DeadlineExceeded",
     true},
    {STARTED, "Failed", "Unknown failure", "Unknown", "WorkflowFailed", true},
};

static void a_failure_is_of_the_first_class_that_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(failures); i++) {
        DF_FREE char *status = df_strf("%s" SUCCEEDED("False", "%s", "%s"), failures[i].begun,
                                       failures[i].reason, failures[i].message);
        DF_JSON cJSON *run = run_of(status);
        const struct df_workflow_status s = df_pipeline_status(run, NULL);
        assert_string_equal(s.failure.reason, failures[i].class);
        assert_string_equal(s.failure.word, failures[i].word);
        if (s.failure.was_execution != failures[i].was_execution)
            fail_msg("%s: %s", failures[i].reason, failures[i].message);
        assert_string_equal(s.failure.task, "");
        assert_int_equal(s.failure.task_index, 0);
        assert_int_equal(s.failure.exit_code, 0);
    }
    assert_null(df_pipeline_status(NULL, NULL).failure.reason);
    assert_false(df_pipeline_status(NULL, NULL).failure.was_execution);
}

/* FindFailedTaskRun and exit codes */
static void the_first_task_run_that_failed_is_named_with_its_exit_code(void **state)
{
    (void)state;
#define TWO CHILDREN(REF("a") "," REF("b"))
    static const struct {
        const char *children, *task_runs, *task;
        int index, exit_code;
    } rows[] = {
        {TWO, "{" TASK("a", "True", "") "," TASK("b", "False", ENDED(137)) "}", "b", 1, 137},
        {TWO, "{" TASK("a", "True", "") "," TASK("b", "True", "") "}", "", 0, 0},
        {TWO, "{}", "", 0, 0},
        {CHILDREN("{'kind':'Run','name':'a'}," REF("b")),
         "{" TASK("a", "False", ENDED(3)) "," TASK("b", "False", ENDED(4)) "}", "b", 1, 4},
        {TWO, "{" TASK("a", "False", ENDED(0) "," ENDED(137) "," ENDED(1)) "}", "a", 0, 137},
        {TWO, "{" TASK("a", "False", ENDED(0) "," ENDED(0)) "}", "a", 0, 0},
        {TWO, "{" TASK("a", "False", "{'running':{}}") "}", "a", 0, 0},
        {TWO, "{" TASK("a", "False", "") "}", "a", 0, 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *status = df_strf("%s," SUCCEEDED("False", "Failed", ""), rows[i].children);
        DF_JSON cJSON *run = run_of(status), *task_runs = json(rows[i].task_runs);
        const struct df_workflow_status s = df_pipeline_status(run, task_runs);
        assert_string_equal(s.failure.task, rows[i].task);
        assert_int_equal(s.failure.task_index, rows[i].index);
        assert_int_equal(s.failure.exit_code, rows[i].exit_code);
    }
}

static void the_result_tells_why_a_run_failed(void **state)
{
    (void)state;
    DF_JSON cJSON *task_runs = json("{" TASK("b", "False", ENDED(7)) "}"), *result = NULL;
    DF_JSON cJSON *run = run_of(STARTED SUCCEEDED("False", "Failed", "task b failed") "," TWO);
    const struct df_workflow_status s = df_pipeline_status(run, task_runs);
    const struct df_workflow_object object = {"PipelineRun", "wfe-1", "build", "u9", "account"};
    assert_int_equal(df_workflow_result(&object, &s, &result, NULL), 0);
    assert_json(result,
                "{'engineRef':{'kind':'PipelineRun','name':'wfe-1','namespace':'build','uid':'u9',"
                "'serviceAccountName':'account'},'executionStatus':{'status':'False','reason':"
                "'Failed','message':'task b failed','totalTasks':2},'failureDetails':{"
                "'failedTaskName':'b','failedTaskIndex':1,'exitCode':7,'reason':'TaskFailed',"
                "'message':'task b failed','wasExecutionFailure':true}}",
                "result");
}

static void a_run_that_succeeds_has_no_failure_and_no_counts_of_zero(void **state)
{
    (void)state;
    DF_JSON cJSON *run = run_of(SUCCEEDED("True", "Completed", "")), *result = NULL;
    const struct df_workflow_status s = df_pipeline_status(run, NULL);
    const struct df_workflow_object object = {"PipelineRun", "wfe-1", "build", "u9", "account"};
    assert_int_equal(df_workflow_result(&object, &s, &result, NULL), 0);
    assert_at(result, "executionStatus", "{'status':'True','reason':'Completed'}");
    assert_null(df_json_at(result, "failureDetails"));
}

/* ---- what people see meanwhile ---- */

static void a_run_has_begun_with_its_condition_and_its_start(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        bool has_begun;
    } rows[] = {
        {"'x':1", false},
        {STARTED "'x':1", false},
        {SUCCEEDED("Unknown", "PipelineRunPending", ""), false},
        {STARTED SUCCEEDED("Unknown", "Started", ""), true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *run = run_of(rows[i].status);
        assert_int_equal(df_pipeline_has_begun(run), rows[i].has_begun);
    }
}

static void a_task_that_waits_for_its_pod_is_named(void **state)
{
    (void)state;
    const char *name = NULL;
    DF_JSON cJSON *run =
        run_of(CHILDREN(REF("a") ",{'kind':'TaskRun','name':'wfe-1-b','pipelineTaskName':'b'}"));
    DF_JSON cJSON *waits =
        json("{'wfe-1-b':{'status':{" SUCCEEDED("Unknown", "Pending", "0/1 nodes") "}}}");
    DF_JSON cJSON *runs = json("{'wfe-1-b':{'status':{" SUCCEEDED("Unknown", "Running", "") "}}}");
    assert_string_equal(df_pipeline_waits_for(run, waits, &name), "0/1 nodes");
    assert_string_equal(name, "b");
    assert_null(df_pipeline_waits_for(run, runs, &name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_condition_says_how_far_a_run_is),
        cmocka_unit_test(only_task_runs_that_succeeded_are_completed),
        cmocka_unit_test(a_failure_is_of_the_first_class_that_fits),
        cmocka_unit_test(the_first_task_run_that_failed_is_named_with_its_exit_code),
        cmocka_unit_test(the_result_tells_why_a_run_failed),
        cmocka_unit_test(a_run_that_succeeds_has_no_failure_and_no_counts_of_zero),
        cmocka_unit_test(a_run_has_begun_with_its_condition_and_its_start),
        cmocka_unit_test(a_task_that_waits_for_its_pod_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
