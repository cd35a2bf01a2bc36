#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "tests/unit/pods.h"

/* ---- the classes: inputs and expected values of Flyte's own cases ---- */

static const struct {
    const char *what, *pod;
    int64_t seconds;
    enum df_pod_class class;
    enum df_fault fault;
    const char *code; /* or NULL: not looked at */
} classes[] = {
    /* clang-format off */
    {"waits for a node",
     SCHEDULED("PodScheduled", "False"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"has its node",
     SCHEDULED("PodScheduled", "True"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"unschedulable: false",
     SCHEDULED("Unschedulable", "False"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"unschedulable: unknown",
     SCHEDULED("Unschedulable", "Unknown"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"nothing known",
     POD("'phase':'Pending'"), AFTER, DF_POD_QUEUED, NONE, NULL},
    {"container is created",
     WAITING("ContainerCreating", "m"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"first failed pull",
     WAITING("ErrImagePull", "m"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"pod initializes",
     WAITING("PodInitializing", "m"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"image pull back-off, within the grace",
     WAITING("ImagePullBackOff", "m"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"image pull back-off, after the grace",
     WAITING("ImagePullBackOff", "m"), AFTER, DF_POD_RETRYABLE, USER,
     "ContainersNotReady|ImagePullBackOff"},
    {"image pull back-off, registry too busy",
     WAITING("ImagePullBackOff", "429 Too Many Requests"), AFTER, DF_POD_RETRYABLE, SYSTEM,
     "ContainersNotReady|ImagePullBackOff"},
    {"invalid image name",
     WAITING("InvalidImageName", "m"), WITHIN, DF_POD_PERMANENT, USER,
     "ContainersNotReady|InvalidImageName"},
    {"registry unavailable",
     WAITING("RegistryUnavailable", "m"), WITHIN, DF_POD_RETRYABLE, SYSTEM,
     "ContainersNotReady|RegistryUnavailable"},
    {"unknown reason",
     WAITING("RandomError", "m"), WITHIN, DF_POD_RETRYABLE, SYSTEM,
     "ContainersNotReady|RandomError"},
    {"container config error, within the grace",
     WAITING("CreateContainerConfigError", "m"), WITHIN, DF_POD_INITIALIZING, NONE,
     "ContainersNotReady|CreateContainerConfigError"},
    {"container config error that no waiting mends",
     WAITING("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
     WITHIN, DF_POD_PERMANENT, USER, "ContainersNotReady|CreateContainerConfigError"},
    {"container config error, after the grace",
     WAITING("CreateContainerConfigError", "m"), AFTER, DF_POD_PERMANENT, USER, NULL},
    {"create container error, within the grace",
     WAITING("CreateContainerError", "m"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"create container error, after the grace",
     WAITING("CreateContainerError", "m"), AFTER, DF_POD_PERMANENT, USER,
     "ContainersNotReady|CreateContainerError"},
    {"init: first failed pull",
     INIT_WAITING("ErrImagePull"), AFTER, DF_POD_INITIALIZING, NONE, NULL},
    {"init: image pull back-off, within the grace",
     INIT_WAITING("ImagePullBackOff"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"init: image pull back-off, after the grace",
     INIT_WAITING("ImagePullBackOff"), AFTER, DF_POD_RETRYABLE, USER, NULL},
    {"init: invalid image name",
     INIT_WAITING("InvalidImageName"), WITHIN, DF_POD_PERMANENT, USER, NULL},
    {"init: container config error, within the grace",
     INIT_WAITING("CreateContainerConfigError"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"init: container config error, after the grace",
     INIT_WAITING("CreateContainerConfigError"), AFTER, DF_POD_PERMANENT, USER, NULL},
    {"init: create container error",
     INIT_WAITING("CreateContainerError"), WITHIN, DF_POD_INITIALIZING, NONE, NULL},
    {"init: unknown reason",
     INIT_WAITING("RandomError"), WITHIN, DF_POD_RETRYABLE, SYSTEM, NULL},
    {"init succeeded, main has an invalid image name",
     POD(UNREADY ",'initContainerStatuses':[{'name':'i','state':{'terminated':{'exitCode':0}}}],"
                 "'containerStatuses':[{'name':'runner','state':{'waiting':{'reason':"
                 "'InvalidImageName'}}}]"),
     WITHIN, DF_POD_PERMANENT, USER, NULL},
    {"succeeded, but out of memory",
     TERMINATED("Succeeded", "", "'reason':'OOMKilled','exitCode':0"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"succeeded, but init was out of memory",
     POD("'phase':'Succeeded','initContainerStatuses':[{'name':'i','state':{'terminated':{"
         "'reason':'OOMKilled','exitCode':137}}}]"),
     0, DF_POD_RETRYABLE, USER, "OOMKilled"},
    {"succeeded",
     POD("'phase':'Succeeded'"), 0, DF_POD_SUCCEEDED, NONE, NULL},
    {"failed without any information",
     POD("'phase':'Failed'"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"failed with a reason",
     POD("'phase':'Failed','reason':'hello','message':'m'"), 0, DF_POD_RETRYABLE, USER, "hello"},
    {"out of memory",
     TERMINATED("Failed", "", "'reason':'OOMKilled','exitCode':137"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"another container was killed",
     OTHER_TERMINATED("Failed", "'exitCode':137"), 0, DF_POD_RETRYABLE, USER, "Interrupted"},
    {"the runner was killed",
     TERMINATED("Failed", "", "'exitCode':137"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"terminated",
     POD("'phase':'Failed','reason':'Terminated'"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"shutdown",
     POD("'phase':'Failed','reason':'Shutdown'"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"node shutdown",
     POD("'phase':'Failed','reason':'NodeShutdown'"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"node affinity",
     POD("'phase':'Failed','reason':'NodeAffinity'"), 0, DF_POD_RETRYABLE, SYSTEM, "Interrupted"},
    {"running, the runner waits",
     POD("'phase':'Running','containerStatuses':[{'name':'runner','state':{'waiting':{'reason':"
         "'ContainerCreating'}}}]"),
     0, DF_POD_RUNNING, NONE, NULL},
    {"running",
     POD("'phase':'Running','containerStatuses':[{'name':'runner','state':{'running':{}}}]"),
     0, DF_POD_RUNNING, NONE, NULL},
    {"running, the runner failed",
     TERMINATED("Running", "", "'exitCode':1,'reason':'Error'"), 0, DF_POD_RETRYABLE, USER,
     "Error"},
    {"running, the runner was killed",
     TERMINATED("Running", "", "'exitCode':137"), 0, DF_POD_RETRYABLE, SYSTEM, NULL},
    {"running, the runner ended with 247",
     TERMINATED("Running", "", "'exitCode':247"), 0, DF_POD_RETRYABLE, SYSTEM, NULL},
    {"running, the runner succeeded",
     TERMINATED("Running", "", "'exitCode':0"), 0, DF_POD_SUCCEEDED, NONE, NULL},
    {"running, the runner has no status yet",
     POD("'phase':'Running'"), 0, DF_POD_RUNNING, NONE, NULL},
    {"running, without the runner",
     "{'metadata':{},'spec':{'containers':[{'name':'x'}]},'status':{'phase':'Running'}}", 0,
     DF_POD_PERMANENT, USER, "PrimaryContainerNotFound"},
    {"running, out of memory with exit code 0",
     TERMINATED("Running", "", "'reason':'OOMKilled','exitCode':0"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"running, out of memory with exit code 137",
     TERMINATED("Running", "", "'reason':'OOMKilled','exitCode':137"), 0, DF_POD_RETRYABLE,
     USER, "OOMKilled"},
    {"PodUnknown",
     POD("'phase':'Unknown'"), 0, DF_POD_UNKNOWN, NONE, NULL},
    {"deleted while not finished",
     "{'metadata':{'deletionTimestamp':'" SINCE "'},'spec':{'containers':[{'name':'runner'}]},"
     "'status':{'phase':'Running'}}",
     0, DF_POD_RETRYABLE, SYSTEM, "UnexpectedObjectDeletion"},
    /* clang-format on */
};

static void pods_are_classed_as_flyte_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(classes); i++) {
        struct df_pod_diagnosis v = judge(classes[i].pod, NULL, classes[i].seconds, 0);
        if (v.class != classes[i].class || v.fault != classes[i].fault)
            fail_msg("%s: class %d, fault %d, %s", classes[i].what, (int)v.class, (int)v.fault,
                     v.message);
        if (classes[i].code && !df_streq(v.code, classes[i].code))
            fail_msg("%s: code %s", classes[i].what, v.code);
    }
}

/* Each class that would otherwise wait for ever. */
static void a_start_that_takes_too_long_is_given_up(void **state)
{
    (void)state;
    static const char *const pods[] = {SCHEDULED("PodScheduled", "False"),
                                       WAITING("ContainerCreating", "m"),
                                       WAITING("ErrImagePull", "m"), POD("'phase':'Pending'")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(pods); i++) {
        struct df_pod_diagnosis early = judge(pods[i], NULL, 119, 120);
        struct df_pod_diagnosis late = judge(pods[i], NULL, 120, 120);
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

/* A pod as a real API server describes it. */
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
    struct df_pod_diagnosis v = df_pod_diagnose(&view);
    assert_int_equal(v.class, DF_POD_RETRYABLE);
    assert_int_equal(v.fault, USER);
    assert_string_equal(v.code, "ContainersNotReady|ImagePullBackOff");
    assert_string_equal(v.reason, "ImagePullFailed");
}

/* And what never started, which may be tried again whosever fault it was. */
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
        struct df_pod_diagnosis v = judge(rows[i].pod, NULL, AFTER, 0);
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
