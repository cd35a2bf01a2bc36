#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "tests/unit/pods.h"

/* ---- the classes: inputs and expected values of Flyte's own cases, whose ids stand beside ---- */

static const struct {
    const char *id, *pod;
    int64_t seconds;
    enum df_pod_class class;
    enum df_fault fault;
    const char *code; /* or NULL: not looked at */
} classes[] = {
    {"D1", SCHEDULED("PodScheduled", "False"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"D2", SCHEDULED("PodScheduled", "True"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"D3", SCHEDULED("Unschedulable", "False"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"D4", SCHEDULED("Unschedulable", "Unknown"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"nothing known", POD("'phase':'Pending'"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"D5", WAITING("ContainerCreating", "m"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"D6", WAITING("ErrImagePull", "m"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"D7", WAITING("PodInitializing", "m"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"D8", WAITING("ImagePullBackOff", "m"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"D9", WAITING("ImagePullBackOff", "m"), AFTER, DF_POD_RETRYABLE, USER,
     "ContainersNotReady|ImagePullBackOff"},
    {"D10", WAITING("ImagePullBackOff", "429 Too Many Requests"), AFTER, DF_POD_RETRYABLE, SYSTEM,
     "ContainersNotReady|ImagePullBackOff"},
    {"D11", WAITING("InvalidImageName", "m"), WITHIN, DF_POD_PERMANENT, USER,
     "ContainersNotReady|InvalidImageName"},
    {"D12", WAITING("RegistryUnavailable", "m"), WITHIN, DF_POD_RETRYABLE, SYSTEM,
     "ContainersNotReady|RegistryUnavailable"},
    {"D13", WAITING("RandomError", "m"), WITHIN, DF_POD_RETRYABLE, SYSTEM,
     "ContainersNotReady|RandomError"},
    {"D14", WAITING("CreateContainerConfigError", "m"), WITHIN, DF_POD_PERMANENT, USER,
     "ContainersNotReady|CreateContainerConfigError"},
    {"D15", WAITING("CreateContainerConfigError", "m"), AFTER, DF_POD_PERMANENT, USER, NULL},
    {"D16", WAITING("CreateContainerError", "m"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"D17", WAITING("CreateContainerError", "m"), AFTER, DF_POD_PERMANENT, USER,
     "ContainersNotReady|CreateContainerError"},
    {"D18", INIT_WAITING("ErrImagePull"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"D19", INIT_WAITING("ImagePullBackOff"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"D20", INIT_WAITING("ImagePullBackOff"), AFTER, DF_POD_RETRYABLE, USER, NULL},
    {"D21", INIT_WAITING("InvalidImageName"), WITHIN, DF_POD_PERMANENT, USER, NULL},
    {"D22", INIT_WAITING("CreateContainerConfigError"), WITHIN, DF_POD_PERMANENT, USER, NULL},
    {"D23", INIT_WAITING("CreateContainerError"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"D24", INIT_WAITING("RandomError"), WITHIN, DF_POD_RETRYABLE, SYSTEM, NULL},
    {"D25",
     POD(UNREADY ",'initContainerStatuses':[{'name':'i','state':{'terminated':{'exitCode':0}}}],"
                 "'containerStatuses':[{'name':'runner','state':{'waiting':{'reason':"
                 "'InvalidImageName'}}}]"),
     WITHIN, DF_POD_PERMANENT, USER, NULL},
    {"D27", TERMINATED("Succeeded", "", "'reason':'OOMKilled','exitCode':0"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"D27, init",
     POD("'phase':'Succeeded','initContainerStatuses':[{'name':'i','state':{'terminated':{"
         "'reason':'OOMKilled','exitCode':137}}}]"),
     0, DF_POD_RETRYABLE, USER, "OOMKilled"},
    {"D28", POD("'phase':'Succeeded'"), 0, DF_POD_SUCCEEDED, NONE, NULL},
    {"D29", POD("'phase':'Failed'"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"D30", POD("'phase':'Failed','reason':'hello','message':'m'"), 0, DF_POD_RETRYABLE, USER,
     "hello"},
    {"D31", TERMINATED("Failed", "", "'reason':'OOMKilled','exitCode':137"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"D32", OTHER_TERMINATED("Failed", "'exitCode':137"), 0, DF_POD_RETRYABLE, USER, "Interrupted"},
    {"D33", TERMINATED("Failed", "", "'exitCode':137"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"D34a", POD("'phase':'Failed','reason':'Terminated'"), 0, DF_POD_RETRYABLE, SYSTEM,
     "Interrupted"},
    {"D34b", POD("'phase':'Failed','reason':'Shutdown'"), 0, DF_POD_RETRYABLE, SYSTEM,
     "Interrupted"},
    {"D34c", POD("'phase':'Failed','reason':'NodeShutdown'"), 0, DF_POD_RETRYABLE, SYSTEM,
     "Interrupted"},
    {"D35", POD("'phase':'Failed','reason':'NodeAffinity'"), 0, DF_POD_RETRYABLE, SYSTEM,
     "Interrupted"},
    {"D36",
     POD("'phase':'Running','containerStatuses':[{'name':'runner','state':{'waiting':{'reason':"
         "'ContainerCreating'}}}]"),
     0, DF_POD_RUNNING, NONE, NULL},
    {"D37", POD("'phase':'Running','containerStatuses':[{'name':'runner','state':{'running':{}}}]"),
     0, DF_POD_RUNNING, NONE, NULL},
    {"D38", TERMINATED("Running", "", "'exitCode':1,'reason':'Error'"), 0, DF_POD_RETRYABLE, USER,
     "Error"},
    {"D39", TERMINATED("Running", "", "'exitCode':137"), 0, DF_POD_RETRYABLE, SYSTEM, NULL},
    {"D40", TERMINATED("Running", "", "'exitCode':247"), 0, DF_POD_RETRYABLE, SYSTEM, NULL},
    {"D41, D46", TERMINATED("Running", "", "'exitCode':0"), 0, DF_POD_SUCCEEDED, NONE, NULL},
    {"D42, in the spec", POD("'phase':'Running'"), 0, DF_POD_RUNNING, NONE, NULL},
    {"D42", "{'metadata':{},'spec':{'containers':[{'name':'x'}]},'status':{'phase':'Running'}}", 0,
     DF_POD_PERMANENT, USER, "PrimaryContainerNotFound"},
    {"D43", TERMINATED("Running", "", "'reason':'OOMKilled','exitCode':0"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"D44", TERMINATED("Running", "", "'reason':'OOMKilled','exitCode':137"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"PodUnknown", POD("'phase':'Unknown'"), 0, DF_POD_UNKNOWN, NONE, NULL},
    {"deleted while not finished",
     "{'metadata':{'deletionTimestamp':'" SINCE "'},'spec':{'containers':[{'name':'runner'}]},"
     "'status':{'phase':'Running'}}",
     0, DF_POD_RETRYABLE, SYSTEM, "UnexpectedObjectDeletion"},
};

static void pods_are_classed_as_flyte_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(classes); i++) {
        struct df_pod_verdict v = judge(classes[i].pod, NULL, classes[i].seconds, 0);
        if (v.class != classes[i].class || v.fault != classes[i].fault)
            fail_msg("%s: class %d, fault %d, %s", classes[i].id, (int)v.class, (int)v.fault,
                     v.message);
        if (classes[i].code && !df_streq(v.code, classes[i].code))
            fail_msg("%s: code %s", classes[i].id, v.code);
    }
}

/* D26, and the same for each class that would wait for ever */
static void a_start_that_takes_too_long_is_given_up(void **state)
{
    (void)state;
    static const char *const pods[] = {SCHEDULED("PodScheduled", "False"),
                                       WAITING("ContainerCreating", "m"),
                                       WAITING("ErrImagePull", "m"), POD("'phase':'Pending'")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(pods); i++) {
        struct df_pod_verdict early = judge(pods[i], NULL, 119, 120);
        struct df_pod_verdict late = judge(pods[i], NULL, 120, 120);
        assert_false(early.give_up);
        assert_true(early.class < DF_POD_RETRYABLE);
        assert_true(late.give_up);
        assert_int_equal(late.phase, DF_ENGINE_PENDING);
        assert_int_equal(late.class, DF_POD_RETRYABLE);
        assert_int_equal(late.fault, DF_FAULT_SYSTEM);
        assert_string_equal(late.code, "PodPendingTimeout");
        assert_true(late.never_started);
        assert_true(late.reason[0] && late.message[0]);
    }
}

static void what_runs_or_has_ended_is_not_given_up(void **state)
{
    (void)state;
    static const char *const pods[] = {
        POD("'phase':'Running','containerStatuses':[{'name':'runner','state':{'running':{}}}]"),
        TERMINATED("Failed", "", "'exitCode':1"), POD("'phase':'Unknown'")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(pods); i++)
        assert_false(judge(pods[i], NULL, AFTER, 120).give_up);
}

/* D45: a pod as a real API server describes it. */
static void a_real_pod_without_its_image_has_the_code_of_both_words(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *pod = NULL;
    if (df_json_load("tests/fixtures/pods/image-pull-back-off.json", DF_MIB, &pod, &err) < 0)
        fail_msg("%s", err.message);
    int64_t made_us = 0;
    assert_int_equal(df_time_parse(df_json_str(pod, "metadata.creationTimestamp"), &made_us, &err),
                     0);
    const struct df_pod_view view = {
        .pod = pod, .container = "runner", .was_created = true, .now_us = made_us + AFTER * SECOND};
    struct df_pod_verdict v = df_pod_verdict(&view);
    assert_int_equal(v.class, DF_POD_RETRYABLE);
    assert_int_equal(v.fault, USER);
    assert_string_equal(v.code, "ContainersNotReady|ImagePullBackOff");
    assert_string_equal(v.reason, "ImagePullFailed");
}

/* C11, and what never started, which may be tried again whosever fault it was. */
static void only_what_the_system_lost_is_tried_again(void **state)
{
    (void)state;
    static const struct {
        const char *what, *pod;
        bool is_lost;
    } rows[] = {
        {"system-retryable", TERMINATED("Failed", "", "'exitCode':137"), true},
        {"user-retryable", TERMINATED("Failed", "", "'exitCode':1"), false},
        {"permanent", WAITING("InvalidImageName", "m"), false},
        {"running", POD("'phase':'Running'"), false},
        {"a success", TERMINATED("Succeeded", "", "'exitCode':0"), false},
        {"out of memory", TERMINATED("Failed", "", "'reason':'OOMKilled','exitCode':137"), false},
        {"a node that was shut down", POD("'phase':'Failed','reason':'NodeShutdown'"), true},
        {"refused by its node", POD("'phase':'Failed','reason':'OutOfcpu'"), true},
        {"no process could be made",
         TERMINATED("Failed", "", "'exitCode':128,'reason':'StartError','message':'out of pids'"),
         true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_pod_verdict v = judge(rows[i].pod, NULL, AFTER, 0);
        if (df_pod_is_lost(&v) != rows[i].is_lost)
            fail_msg("%s", rows[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_classed_as_flyte_does),
        cmocka_unit_test(a_start_that_takes_too_long_is_given_up),
        cmocka_unit_test(what_runs_or_has_ended_is_not_given_up),
        cmocka_unit_test(a_real_pod_without_its_image_has_the_code_of_both_words),
        cmocka_unit_test(only_what_the_system_lost_is_tried_again),
    };
    return cmocka_run_group_tests_name("pod_class", tests, NULL, NULL);
}
