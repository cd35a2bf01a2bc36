/* What the result of a workflow's Job says about its failure: of which kind it was, and whether
 * anything had run. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/job_world.h"

#define FAILED(reason)                                                                             \
    JOB("restart", "u1",                                                                           \
        "{'conditions':[{'type':'Failed','status':'True','reason':'" reason "','message':'m'}]}")
#define ACTIVE JOB("restart", "u1", "{'active':1}")
#define POD(status)                                                                                \
    "{'metadata':{'name':'" NAME "-abcde','namespace':'build','uid':'p2','resourceVersion':'7',"   \
    "'creationTimestamp':'2026-11-21T12:00:30Z'," LABELS(                                          \
        "restart", "u1") "},'spec':{'containers':[{'name':'workflow'}]},'status':{" status "}}"
#define CONTAINER(phase, state)                                                                    \
    POD("'phase':'" phase "','containerStatuses':[{'name':'workflow','state':{" state "}}]")
#define ENDED(code, reason, message)                                                               \
    CONTAINER("Failed",                                                                            \
              "'terminated':{'exitCode':" code ",'reason':'" reason "','message':'" message "'}")
#define WAITS(reason, message)                                                                     \
    CONTAINER("Pending", "'waiting':{'reason':'" reason "','message':'" message "'}")
#define REMOVED(message)                                                                           \
    CONTAINER("Failed", "'terminated':{'exitCode':137,'startedAt':null,'reason':"                  \
                        "'ContainerStatusUnknown','message':'" message "'}")
#define UNLOCATED "The container could not be located when the pod was "
#define EVENT(kind, name, uid, reason, message)                                                    \
    "{'metadata':{'name':'e','namespace':'build','uid':'e','resourceVersion':'6',"                 \
    "'creationTimestamp':'2026-11-21T12:01:00Z'},'involvedObject':{'kind':'" kind                  \
    "','name':'" name "','uid':'" uid "'},'type':'Warning','reason':'" reason                      \
    "','message':'" message "'}"
#define CREATIONS(count)                                                                           \
    "{'metadata':{'name':'c','namespace':'build','uid':'c','resourceVersion':'6'},"                \
    "'involvedObject':{'kind':'Job','name':'" NAME "','uid':'j2'},'type':'Normal',"                \
    "'reason':'SuccessfulCreate','count':" count "}"

static const struct {
    struct objects objects;
    bool was_started; /* the service had seen it run */
    const char *reason;
    int exit_code; /* 0: none is told */
    bool was_execution;
    const char *message; /* a part of it */
} rows[] = {
    /* something ran */
    {{FAILED("BackoffLimitExceeded"), ENDED("3", "Error", "no such host"), ""},
     .reason = "TaskFailed",
     .exit_code = 3,
     .was_execution = true,
     .message = "exit code 3: no such host (BackoffLimitExceeded)"},
    {{FAILED("BackoffLimitExceeded"), ENDED("1", "Error", "invalid configuration"), ""},
     .reason = "TaskFailed",
     .exit_code = 1,
     .was_execution = true,
     .message = "invalid configuration"},
    {{FAILED("PodFailurePolicy"), ENDED("137", "OOMKilled", ""), ""},
     .reason = "OOMKilled",
     .exit_code = 137,
     .was_execution = true,
     .message = "exit code 137"},
    {{FAILED("DeadlineExceeded"), "", ""},
     .reason = "DeadlineExceeded",
     .was_execution = true,
     .message = "DeadlineExceeded: m"},
    {{ACTIVE, WAITS("ContainerCreating", ""), CREATIONS("4")},
     .reason = "Unknown",
     .was_execution = true,
     .message = "evicted or killed again"},
    /* the pod that ran was replaced by one that does not start */
    {{FAILED("DeadlineExceeded"), WAITS("ImagePullBackOff", "Back-off pulling image x"), ""},
     .was_started = true,
     .reason = "ImagePullBackOff",
     .was_execution = true,
     .message = "x"},
    {{FAILED("DeadlineExceeded"), WAITS("ImagePullBackOff", "Back-off pulling image x"),
      CREATIONS("2")},
     .reason = "ImagePullBackOff",
     .was_execution = true,
     .message = "x"},
    /* nothing ran */
    {{ACTIVE, WAITS("ImagePullBackOff", "Back-off pulling image x"), ""},
     .reason = "ImagePullBackOff",
     .message = "Back-off pulling image x"},
    {{ACTIVE, WAITS("InvalidImageName", "X is no name"), ""},
     .reason = "ConfigurationError",
     .message = "X is no name"},
    {{ACTIVE, WAITS("CreateContainerConfigError", "secret \\\"s\\\" not found"), ""},
     .reason = "ConfigurationError",
     .message = "a Secret that the pod needs does not exist"},
    {{ACTIVE,
      POD("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
          "'Unschedulable','message':'0/3 nodes are available'}]"),
      ""},
     .reason = "ResourceExhausted",
     .message = "0/3 nodes are available"},
    {{ACTIVE, "", EVENT("Job", NAME, "j2", "FailedCreate", "pods is forbidden: exceeded quota: q")},
     .reason = "ResourceExhausted",
     .message = "exceeded quota: q"},
    {{ACTIVE, "", EVENT("Job", NAME, "j2", "FailedCreate", "violates PodSecurity: baseline")},
     .reason = "Forbidden",
     .message = "violates PodSecurity"},
    {{FAILED("BackoffLimitExceeded"),
      ENDED("128", "StartError", "exec: go: executable file not found"), ""},
     .reason = "ConfigurationError",
     .message = "executable file not found"},
    {{FAILED("DeadlineExceeded"), "",
      EVENT("Pod", NAME "-abcde", "p2", "Failed", "Failed to pull image x: i/o timeout")},
     .reason = "ImagePullBackOff",
     .message = "Failed to pull image x"},
    {{FAILED("DeadlineExceeded"), REMOVED(UNLOCATED "terminated"),
      EVENT("Pod", NAME "-abcde", "p2", "FailedMount", "secret \\\"s\\\" not found")},
     .reason = "ConfigurationError",
     .message = "not found"},
    {{FAILED("DeadlineExceeded"), "",
      EVENT("Pod", NAME "-abcde", "p2", "FailedMount", "secret \\\"s\\\" not found")},
     .reason = "ConfigurationError",
     .message = "not found"},
};

static cJSON *result_of(struct world *w, const struct df_engine_step *step)
{
    cJSON *result = NULL;
    struct df_err err = {0};
    if (w->engine->ops->workflow->step.result(w->engine, step, &result, &err) < 0)
        fail_msg("%s", err.message);
    return result;
}

/* D6: not each one is "Unknown", and not each one has touched its target. */
static void a_failure_says_its_kind_and_whether_anything_had_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world w;
        open_world(&w, &rows[i].objects);
        struct df_engine_step step = step_of(&w, "restart", true);
        step.was_claimed = rows[i].was_started;
        DF_JSON cJSON *result = result_of(&w, &step);
        const cJSON *details = df_json_at(result, "failureDetails");
        const char *reason = df_json_text(details, "reason");
        const char *message = df_json_text(details, "message");
        bool was_execution = df_json_bool(details, "wasExecutionFailure", false);
        if (strcmp(reason, rows[i].reason) != 0 || was_execution != rows[i].was_execution ||
            !strstr(message, rows[i].message) ||
            df_json_int(details, "exitCode", 0) != rows[i].exit_code)
            fail_msg("%s, %s: %s (row %zu)", reason, was_execution ? "ran" : "did not run", message,
                     i);
        assert_at(details, "failedTaskName", "''");
        assert_at(details, "failedTaskIndex", "0");
        close_world(&w);
    }
}

static const struct objects healthy[] = {
    {ACTIVE, CONTAINER("Running", "'running':{}"), ""},
    {ACTIVE, POD("'phase':'Pending'"), ""},
    {JOB("restart", "u1", "{'succeeded':1,'conditions':[{'type':'Complete','status':'True'}]}"),
     CONTAINER("Succeeded", "'terminated':{'exitCode':0}"), ""},
};

static void what_has_not_failed_has_no_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(healthy); i++) {
        struct world w;
        open_world(&w, &healthy[i]);
        struct df_engine_step step = step_of(&w, "restart", true);
        step.pending_seconds = INT64_C(1000000000);
        DF_JSON cJSON *result = result_of(&w, &step);
        assert_null(df_json_at(result, "failureDetails"));
        close_world(&w);
    }
}

/* A Job at its deadline removes its pod before it has its final condition. */
static void a_container_that_was_removed_before_it_began_has_not_started(void **state)
{
    (void)state;
    static const struct {
        struct objects objects;
        enum df_engine_phase phase;
    } ends[] = {
        {{ACTIVE, REMOVED(UNLOCATED "terminated"), ""}, DF_ENGINE_PENDING},
        {{ACTIVE, REMOVED(UNLOCATED "deleted.  The container used to be Running"), ""},
         DF_ENGINE_RUNNING},
        {{ACTIVE, ENDED("128", "StartError", ""), ""}, DF_ENGINE_PENDING},
        {{ACTIVE, ENDED("137", "Error", ""), ""}, DF_ENGINE_RUNNING},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++) {
        struct world w;
        struct df_engine_observation seen;
        open_world(&w, &ends[i].objects);
        struct df_engine_step step = step_of(&w, "restart", true);
        assert_int_equal(w.engine->ops->workflow->step.status(w.engine, &step, &seen, NULL), 0);
        if (seen.phase != ends[i].phase)
            fail_msg("row %zu", i);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_says_its_kind_and_whether_anything_had_run),
        cmocka_unit_test(what_has_not_failed_has_no_failure),
        cmocka_unit_test(a_container_that_was_removed_before_it_began_has_not_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
