#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/cli/reasons.h"
#include "spawner/engine/diagnosis/pod_cause.h"
#include "tests/unit/pods.h"

/* ---- start failures ---- */

#define EVENT(kind, name, reason, message)                                                         \
    "[{'involvedObject':{'kind':'" kind "','name':'" name "'},'type':'Warning','reason':'" reason  \
    "','message':'" message "','lastTimestamp':'2026-11-21T10:00:05Z'}]"
#define ON_POD(reason, message) EVENT("Pod", "j-x", reason, message)
#define ON_JOB(message) EVENT("Job", "j", "FailedCreate", message)
#define CREATING WAITING("ContainerCreating", "")
#define Q "\\\""

static const struct {
    const char *reason, *pod, *events;
    const char *words; /* of Kubernetes, in the message */
} starts[] = {
    {"Unschedulable",
     POD("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
         "'Unschedulable','message':'0/3 nodes are available: 3 node(s) did not match'}]"),
     NULL, "0/3 nodes are available"},
    {"Unschedulable", POD("'phase':'Pending'"),
     ON_POD("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu."),
     "Insufficient cpu"},
    {"ClaimMissing",
     POD("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"
         "'Unschedulable','message':'0/1 nodes are available: persistentvolumeclaim " Q "cache" Q
         " not found.'}]"),
     NULL, "\"cache\" not found"},
    {"ImagePullFailed", WAITING("ErrImagePull", "manifest unknown"), NULL, "manifest unknown"},
    {"ImagePullFailed", WAITING("ImagePullBackOff", "Back-off pulling image"), NULL, "Back-off"},
    {"ImagePullFailed", WAITING("ErrImageNeverPull", "not present with pull policy of Never"), NULL,
     "Never"},
    {"ImageNameInvalid", WAITING("InvalidImageName", "could not parse reference"), NULL,
     "could not parse"},
    {"SecretMissing", WAITING("CreateContainerConfigError", "secret " Q "creds" Q " not found"),
     NULL, "\"creds\" not found"},
    {"ConfigMapMissing", WAITING("CreateContainerConfigError", "configmap " Q "cm" Q " not found"),
     NULL, "\"cm\" not found"},
    {"KeyMissing",
     WAITING("CreateContainerConfigError", "couldn\\u0027t find key pw in Secret ns/creds"), NULL,
     "key pw in Secret ns/creds"},
    {"KeyMissing", CREATING,
     ON_POD("FailedMount", "MountVolume.SetUp failed for volume " Q "v" Q
                           " : references non-existent secret key: pw"),
     "non-existent secret key: pw"},
    {"SecretMissing", CREATING,
     ON_POD("FailedMount",
            "MountVolume.SetUp failed for volume " Q "v" Q " : secret " Q "creds" Q " not found"),
     "\"creds\" not found"},
    {"ConfigMapMissing", CREATING,
     ON_POD("FailedMount",
            "MountVolume.SetUp failed for volume " Q "v" Q " : configmap " Q "cm" Q " not found"),
     "\"cm\" not found"},
    {"VolumeFailed", CREATING,
     ON_POD("FailedMount",
            "MountVolume.SetUp failed for volume " Q "v" Q " : mount failed: exit status 32"),
     "exit status 32"},
    {"VolumeFailed", CREATING,
     ON_POD("FailedAttachVolume", "AttachVolume.Attach failed: volume is in use"), "in use"},
    {"VolumeFailed",
     WAITING("CreateContainerConfigError", "failed to prepare subPath for volumeMount"), NULL,
     "subPath"},
    {"NodeFailed", CREATING,
     ON_POD("FailedCreatePodSandBox", "failed to setup network for sandbox"), "network"},
    {"RunsAsRoot", WAITING("CreateContainerConfigError", "runAsUser breaks non-root policy"), NULL,
     "breaks non-root"},
    {"RunsAsRoot",
     WAITING("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
     NULL, "image will run as root"},
    {"CommandMissing", WAITING("CreateContainerError", "no command specified"), NULL,
     "no command specified"},
    {"CommandMissing",
     TERMINATED("Failed", "",
                "'reason':'StartError','exitCode':128,'message':'exec: " Q "runner" Q
                ": executable file not found in $PATH'"),
     NULL, "not found in $PATH"},
    {"ContainerFailed", WAITING("CreateContainerError", "context deadline exceeded"), NULL,
     "context deadline"},
    {"ContainerFailed", WAITING("RunContainerError", "cgroup trouble"), NULL, "cgroup trouble"},
    {"ServiceAccountMissing", NULL,
     ON_JOB("Error creating: pods " Q "j-" Q " is forbidden: error looking up service account "
            "ns/tofu: serviceaccount " Q "tofu" Q " not found"),
     "\"tofu\" not found"},
    {"QuotaExceeded", NULL,
     ON_JOB("Error creating: pods " Q "j-x" Q " is forbidden: exceeded quota: small, requested: "
            "pods=1, used: pods=1, limited: pods=1"),
     "exceeded quota: small"},
    {"AdmissionRefused", NULL,
     ON_JOB("Error creating: pods " Q "j-x" Q " is forbidden: violates PodSecurity " Q
            "restricted:latest" Q ": privileged"),
     "restricted:latest"},
    {"AdmissionRefused", NULL,
     ON_JOB("Error creating: admission webhook " Q "policy.example" Q " denied the request: no"),
     "policy.example"},
    {"AdmissionRefused", NULL,
     ON_JOB("Error creating: pods " Q "j-x" Q " is forbidden: no PriorityClass with name high was "
            "found"),
     "name high"},
    {"ObjectRefused", NULL,
     ON_JOB("Error creating: Pod " Q "j-x" Q " is invalid: spec.volumes[0].name: Invalid value"),
     "spec.volumes[0].name"},
    {"NodeFailed", POD("'phase':'Failed','reason':'OutOfcpu','message':'Node did not have enough'"),
     NULL, "did not have enough"},
    {"NodeFailed",
     POD("'phase':'Failed','reason':'UnexpectedAdmissionError','message':'Allocate failed'"), NULL,
     "Allocate failed"},
};

static void each_start_failure_has_its_reason_kubernetes_words_and_a_way_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(starts); i++) {
        struct df_pod_diagnosis v = judge(starts[i].pod, starts[i].events, AFTER, AFTER);
        if (!df_streq(v.reason, starts[i].reason))
            fail_msg("%zu: %s is not %s: %s", i, v.reason, starts[i].reason, v.message);
        if (!strstr(v.message, starts[i].words))
            fail_msg("\"%s\" is not in \"%s\"", starts[i].words, v.message);
        assert_non_null(strstr(v.message, "; "));
        assert_true(v.never_started);
        assert_true(v.phase == DF_ENGINE_ENDED || v.give_up);
    }
}

static void the_latest_event_of_this_very_object_is_told(void **state)
{
    (void)state;
    const char *events =
        "[{'involvedObject':{'kind':'Pod','name':'j-x','uid':'pu'},'reason':'FailedMount',"
        "'message':'new','lastTimestamp':'2026-11-21T10:00:09Z'},"
        "{'involvedObject':{'kind':'Pod','name':'j-x','uid':'pu'},'reason':'FailedMount',"
        "'message':'old','eventTime':'2026-11-21T10:00:08.123456Z'},"
        "{'involvedObject':{'kind':'Pod','name':'j-x','uid':'former'},'reason':'FailedMount',"
        "'message':'former','lastTimestamp':'2026-11-21T10:01:00Z'},"
        "{'involvedObject':{'kind':'Pod','name':'j-y'},'reason':'FailedMount','message':'other',"
        "'lastTimestamp':'2026-11-21T10:02:00Z'},"
        "{'involvedObject':{'kind':'Pod','name':'j-x'},'reason':'Scheduled','message':'fine',"
        "'lastTimestamp':'2026-11-21T10:03:00Z'}]";
    struct df_pod_diagnosis v = judge(CREATING, events, WITHIN, 0);
    assert_non_null(strstr(v.message, "(new)"));
    assert_int_equal(v.class, DF_POD_INITIALIZING);
}

/* Of the two watches either may be the first to tell. */
static void a_deadline_that_ends_a_pod_before_its_start_hides_no_cause(void **state)
{
    (void)state;
    static const struct {
        bool is_deleted;
        const char *events, *reason;
    } rows[] = {
        {false, ON_POD("FailedMount", "secret " Q "creds" Q " not found"), "SecretMissing"},
        {true, ON_POD("FailedMount", "secret " Q "creds" Q " not found"), "SecretMissing"},
        {false, "[]", "DeadlineExceeded"},
        {true, "[]", "DeadlineExceeded"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *job = json("{'status':{'conditions':[{'type':'FailureTarget','status':"
                                  "'True','reason':'DeadlineExceeded'}]}}");
        DF_JSON cJSON *pod = json(CREATING), *events = json(rows[i].events);
        if (rows[i].is_deleted)
            assert_int_equal(df_json_add_str(df_json_object_at(pod, "metadata"),
                                             "deletionTimestamp", SINCE, NULL),
                             0);
        const struct df_pod_view view = {.job = job,
                                         .pod = pod,
                                         .events = events,
                                         .container = "runner",
                                         .was_created = true,
                                         .now_us = at(WITHIN)};
        struct df_pod_diagnosis v = df_pod_diagnose(&view);
        if (!df_streq(v.reason, rows[i].reason) || v.class != DF_POD_RETRYABLE)
            fail_msg("%zu: %s", i, v.message);
    }
}

static void a_job_whose_pod_is_still_to_come_is_waited_for(void **state)
{
    (void)state;
    struct df_pod_diagnosis v = judge(NULL, NULL, WITHIN, 120);
    assert_int_equal(v.phase, DF_ENGINE_PENDING);
    assert_int_equal(v.class, DF_POD_QUEUED);
    assert_string_equal(v.reason, "");
    assert_true(v.never_started);
    v = judge(NULL, NULL, 120, 120);
    assert_true(v.give_up);
    assert_string_equal(v.reason, "NeverClaimed");
}

static void a_container_that_waits_beside_a_sidecar_is_pending_still(void **state)
{
    (void)state;
    const char *pod = POD("'phase':'Running','containerStatuses':[{'name':'side','state':{"
                          "'running':{}}},{'name':'runner','state':{'waiting':{'reason':"
                          "'ImagePullBackOff','message':'nope'}}}]");
    struct df_pod_diagnosis v = judge(pod, NULL, WITHIN, 120);
    assert_int_equal(v.phase, DF_ENGINE_PENDING);
    assert_string_equal(v.reason, "ImagePullFailed");
    assert_true(v.never_started && !v.give_up);
    assert_true(judge(pod, NULL, 120, 120).give_up);
}

/* ---- ends ---- */

#define TARGET(why, message)                                                                       \
    ",'conditions':[{'type':'DisruptionTarget','status':'True','reason':'" why                     \
    "','message':'" message "'}]"
#define DELETED_JOB_POD(finished)                                                                  \
    "{'metadata':{'name':'j-x','deletionTimestamp':'2026-11-21T10:16:00Z',"                        \
    "'deletionGracePeriodSeconds':900},'status':{'phase':'Failed','containerStatuses':[{'name':"   \
    "'runner','state':{'terminated':{'exitCode':1,'finishedAt':'" finished "'}}}]}}"

static const struct {
    const char *reason, *pod;
    const char *words;
    int exit_code;
} ends[] = {
    {"OOMKilled", TERMINATED("Failed", "", "'reason':'OOMKilled','exitCode':137"), "memory", 137},
    {"Evicted",
     POD("'phase':'Failed','reason':'Evicted','message':'The node was low on resource: "
         "ephemeral-storage.'" TARGET("TerminationByKubelet", "low on resource")),
     "ephemeral-storage", -1},
    {"Evicted",
     TERMINATED("Failed", TARGET("EvictionByEvictionAPI", "Eviction API: evicting"),
                "'exitCode':143"),
     "evicting", 143},
    {"Evicted",
     TERMINATED("Failed", TARGET("TerminationByKubelet", "by kubelet"), "'exitCode':137"),
     "by kubelet", 137},
    {"Preempted",
     TERMINATED("Failed", TARGET("PreemptionByScheduler", "default-scheduler: preempting"),
                "'exitCode':143"),
     "preempting", 143},
    {"NodeLost",
     TERMINATED("Failed", TARGET("DeletionByTaintManager", "Taint manager: deleting"),
                "'exitCode':143"),
     "Taint manager", 143},
    {"NodeLost", POD("'phase':'Failed'" TARGET("DeletionByPodGC", "PodGC: node no longer exists")),
     "node no longer exists", -1},
    {"NodeLost", POD("'phase':'Failed','reason':'NodeLost','message':'unresponsive'"),
     "unresponsive", -1},
    {"NodeShutdown",
     POD("'phase':'Failed','reason':'Terminated','message':'imminent node shutdown'" TARGET(
         "TerminationByKubelet", "x")),
     "imminent node shutdown", -1},
    {"DeadlineExceeded", POD("'phase':'Failed','reason':'DeadlineExceeded','message':'active'"),
     "active", -1},
    {"PodDeleted", DELETED_JOB_POD("2026-11-21T10:02:00Z"), "somebody deleted the pod", 1},
    {"RunnerFailed", DELETED_JOB_POD("2026-11-21T10:00:59Z"), "exit code 1", 1},
    {"RunnerFailed", TERMINATED("Failed", "", "'exitCode':1,'message':'no such module'"),
     "exit code 1, failed: no such module", 1},
    {"RunnerFailed", TERMINATED("Failed", "", "'exitCode':2"),
     "exit code 2, failed after it had changed something", 2},
    {"InvalidStep", TERMINATED("Failed", "", "'exitCode':3"), "exit code 3, invalid input", 3},
    {"NeverClaimed", TERMINATED("Failed", "", "'exitCode':3,'message':'claim: not trusted'"),
     "claim: not trusted", 3},
    {"TimedOut", TERMINATED("Failed", "", "'exitCode':4"), "exit code 4, timed out", 4},
    {"RunnerFailed", TERMINATED("Failed", "", "'exitCode':5"), "exit code 5", 5},
    {"RunnerFailed", TERMINATED("Failed", "", "'exitCode':255"), "exit code 255", 255},
    {"RunnerKilled", TERMINATED("Failed", "", "'exitCode':137"), "signal 9", 137},
    {"RunnerKilled", TERMINATED("Failed", "", "'exitCode':139"), "signal 11", 139},
    {"RunnerKilled", OTHER_TERMINATED("Failed", "'exitCode':137"), "another container", 1},
    {"", TERMINATED("Succeeded", "", "'exitCode':0"), "", 0},
    {"", TERMINATED("Running", "", "'exitCode':0"), "", 0},
};

static void each_end_is_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++) {
        struct df_pod_diagnosis v = judge(ends[i].pod, NULL, AFTER, 0);
        if (!df_streq(v.reason, ends[i].reason))
            fail_msg("%zu: %s is not %s: %s", i, v.reason, ends[i].reason, v.message);
        if (!strstr(v.message, ends[i].words))
            fail_msg("\"%s\" is not in \"%s\"", ends[i].words, v.message);
        assert_int_equal(v.phase, DF_ENGINE_ENDED);
        assert_int_equal(v.exit_code, ends[i].exit_code);
        assert_false(v.give_up);
    }
}

/* The step may have another pod: only time ends it. */
static void a_pod_that_is_taken_away_before_it_started_is_not_given_up(void **state)
{
    (void)state;
    static const char *const pods[] = {
        "{'metadata':{'deletionTimestamp':'" SINCE "'},'status':{'phase':'Pending'}}",
        POD("'phase':'Pending'" TARGET("PreemptionByScheduler", "m"))};
    for (size_t i = 0; i < DF_ARRAY_SIZE(pods); i++) {
        struct df_pod_diagnosis v = judge(pods[i], NULL, 119, 120);
        assert_int_equal(v.phase, DF_ENGINE_PENDING);
        assert_true(v.never_started && !v.give_up && v.reason[0]);
        assert_true(judge(pods[i], NULL, 120, 120).give_up);
    }
}

static void what_admission_refuses_for_good_is_not_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        bool give_up;
    } rows[] = {
        {"violates PodSecurity " Q "restricted:latest" Q, true},
        {"pods " Q "p" Q " is forbidden: ValidatingAdmissionPolicy p denied request: no", true},
        {"pods " Q "p" Q " is forbidden: no PriorityClass with name x was found", true},
        {"pods " Q "p" Q " is forbidden: maximum memory usage per Container is 1Gi", true},
        {"Pod " Q "p" Q " is invalid: spec.x: Invalid value", true},
        {"failed calling webhook " Q "w" Q ": connection refused", false},
        {"pods " Q "p" Q " is forbidden: exceeded quota: q", false},
        {"pods " Q "p" Q " is forbidden: error looking up service account n/a: serviceaccount " Q
         "a" Q " not found",
         false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *events = df_strf(ON_JOB("%s"), rows[i].message);
        struct df_pod_diagnosis v = judge(NULL, events, WITHIN, 120);
        if (v.give_up != rows[i].give_up)
            fail_msg("%s: %s", rows[i].message, v.message);
    }
}

static void a_node_that_is_silent_about_its_pod_is_named(void **state)
{
    (void)state;
    const char *pod = "{'metadata':{'name':'j-x'},'spec':{'nodeName':'node7'},'status':{'phase':"
                      "'Pending','conditions':[{'type':'PodScheduled','status':'True',"
                      "'lastTransitionTime':'" SINCE "'}]}}";
    struct df_pod_diagnosis v = judge_as(false, pod, NULL, DF_POD_KUBELET_SECONDS, 120);
    assert_string_equal(v.reason, "NodeFailed");
    assert_non_null(strstr(v.message, "node7"));
    assert_false(v.give_up);
    assert_string_equal(judge_as(false, pod, NULL, DF_POD_KUBELET_SECONDS - 1, 120).reason, "");
    /* A busy kubelet tells of a pod later than the pod's runner claims. */
    assert_string_equal(judge_as(true, pod, NULL, DF_POD_KUBELET_SECONDS, 120).reason, "");
}

static void an_end_in_mid_step_is_no_start_failure(void **state)
{
    (void)state;
    assert_false(judge(TERMINATED("Failed", "", "'exitCode':137"), NULL, 0, 0).never_started);
    assert_true(judge(TERMINATED("Failed", "", "'exitCode':128,'reason':'StartError'"), NULL, 0, 0)
                    .never_started);
    assert_true(judge(POD("'phase':'Failed','reason':'OutOfpods'"), NULL, 0, 0).never_started);
}

static void a_program_that_is_not_in_the_image_will_not_be_there_the_next_time(void **state)
{
    (void)state;
#define START_ERROR(message)                                                                       \
    TERMINATED("Failed", "", "'exitCode':128,'reason':'StartError','message':'" message "'")
    assert_int_equal(judge(START_ERROR("exec: x: no such file or directory"), NULL, 0, 0).class,
                     DF_POD_PERMANENT);
    assert_int_equal(judge(START_ERROR("out of pids"), NULL, 0, 0).class, DF_POD_RETRYABLE);
}

static void a_result_document_is_not_shown_as_a_message(void **state)
{
    (void)state;
    const char *text = TERMINATED("Failed", "", "'exitCode':1,'message':'{" Q "exitCode" Q ":1}'");
    struct df_pod_diagnosis v = judge(text, NULL, 0, 0);
    DF_JSON cJSON *pod = json(text), *result = NULL;
    assert_null(strstr(v.message, "{"));
    assert_int_equal(df_pod_result(pod, "runner", &result, NULL), 0);
    assert_json(result, "{'exitCode':1}", "the result");
}

static void what_is_no_whole_result_is_none(void **state)
{
    (void)state;
    static const char *const pods[] = {
        TERMINATED("Failed", "", "'exitCode':1"),
        TERMINATED("Failed", "", "'exitCode':1,'message':'panic'"),
        TERMINATED("Failed", "", "'exitCode':1,'message':'{" Q "exitCode" Q ":'"),
        TERMINATED("Failed", "", "'exitCode':1,'message':'[]'"), POD("'phase':'Pending'")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(pods); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *pod = json(pods[i]);
        cJSON *result = NULL;
        assert_int_equal(df_pod_result(pod, "runner", &result, &err), -1);
        assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
        assert_null(result);
    }
}

/* ---- the Job's own end ---- */

static void jobs_that_are_gone_or_over_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *job, *pod;
        bool was_created, had_pod;
        enum df_engine_phase phase;
        const char *reason;
        bool never_started;
    } rows[] = {
        {NULL, NULL, false, false, DF_ENGINE_ABSENT, "", false},
        {NULL, NULL, true, false, DF_ENGINE_ABSENT, "JobDeleted", true},
        {NULL, NULL, true, true, DF_ENGINE_ABSENT, "JobDeleted", false},
        /* Deleted, and its pod still ends: not over before that is gone. */
        {NULL,
         "{'metadata':{'deletionTimestamp':'" SINCE "'},'status':{'phase':'Running',"
         "'containerStatuses':[{'name':'runner','state':{'running':{}}}]}}",
         true, true, DF_ENGINE_RUNNING, "JobDeleted", false},
        {JOB, NULL, true, true, DF_ENGINE_ENDED, "PodDeleted", false},
        {"{'status':{'failed':1}}", NULL, true, false, DF_ENGINE_ENDED, "PodDeleted", true},
        {"{'status':{'conditions':[{'type':'Failed','status':'True','reason':'DeadlineExceeded',"
         "'message':'Job was active longer'}]}}",
         NULL, true, true, DF_ENGINE_ENDED, "DeadlineExceeded", false},
        {"{'status':{'conditions':[{'type':'FailureTarget','status':'True','reason':"
         "'DeadlineExceeded'}]}}",
         "{'metadata':{'deletionTimestamp':'" SINCE "'},'status':{'phase':'Running',"
         "'containerStatuses':[{'name':'runner','state':{'running':{}}}]}}",
         true, true, DF_ENGINE_RUNNING, "DeadlineExceeded", false},
        {"{'status':{'conditions':[{'type':'Complete','status':'True'}]}}", NULL, true, true,
         DF_ENGINE_ENDED, "", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *job = rows[i].job ? json(rows[i].job) : NULL;
        DF_JSON cJSON *pod = rows[i].pod ? json(rows[i].pod) : NULL;
        const struct df_pod_view view = {.job = job,
                                         .pod = pod,
                                         .container = "runner",
                                         .was_created = rows[i].was_created,
                                         .had_pod = rows[i].had_pod,
                                         .now_us = at(0)};
        struct df_pod_diagnosis v = df_pod_diagnose(&view);
        if (v.phase != rows[i].phase || !df_streq(v.reason, rows[i].reason) ||
            v.never_started != rows[i].never_started)
            fail_msg("%zu: phase %d, %s, %d", i, (int)v.phase, v.reason, v.never_started);
    }
}

static void refusals_of_the_api_server_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *message;
        enum df_pod_class class;
        const char *code, *reason;
    } rows[] = {
        {400, "webhook said no", DF_POD_PERMANENT, "BadRequest", "ObjectRefused"},
        {400,
         "Job in version \"v1\" cannot be handled: quantities must match the regular expression",
         DF_POD_PERMANENT, "BadRequest", "ObjectRefused"},
        {422,
         "Job.batch \"j\" is invalid: spec.template.spec.tolerations[0].operator: Invalid "
         "value",
         DF_POD_PERMANENT, "InvalidResource", "ObjectRefused"},
        {403, "jobs.batch \"j\" is forbidden: exceeded quota: q", DF_POD_RETRYABLE,
         "RuntimeFailure", "QuotaExceeded"},
        {403, "jobs.batch is forbidden: User \"system:serviceaccount:a:b\" cannot create resource",
         DF_POD_RETRYABLE, "RuntimeFailure", "NotAllowed"},
        {403, "admission webhook \"w\" denied the request", DF_POD_PERMANENT, "RuntimeFailure",
         "AdmissionRefused"},
        {403, "failed calling webhook \"w\": connection refused", DF_POD_RETRYABLE,
         "RuntimeFailure", "AdmissionRefused"},
        {403, "unable to create new content in namespace x because it is being terminated",
         DF_POD_PERMANENT, "RuntimeFailure", "NamespaceMissing"},
        {422, "jobs.batch \"j\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no",
         DF_POD_PERMANENT, "InvalidResource", "AdmissionRefused"},
        {404, "namespaces \"x\" not found", DF_POD_PERMANENT, "NotFound", "NamespaceMissing"},
        {413, "too large", DF_POD_PERMANENT, "EntityTooLarge", "ObjectRefused"},
        {500, "Internal error occurred: failed calling webhook \"w\": connection refused",
         DF_POD_RETRYABLE, "RuntimeFailure", "AdmissionRefused"},
        {500, "etcd away", DF_POD_RETRYABLE, "RuntimeFailure", "EngineFailed"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_pod_diagnosis v = df_pod_rejection(rows[i].status, rows[i].message, false);
        assert_int_equal(v.class, rows[i].class);
        assert_string_equal(v.code, rows[i].code);
        assert_string_equal(v.reason, rows[i].reason);
        assert_non_null(strstr(v.message, rows[i].message));
        assert_true(v.never_started);
        assert_true(v.lacks_room == df_streq(v.reason, "QuotaExceeded"));
        assert_int_equal(v.fault, rows[i].status == 500 ? DF_FAULT_SYSTEM : DF_FAULT_USER);
    }
}

static void a_rejected_workflow_is_told_its_own_keys(void **state)
{
    (void)state;
    static const char quota[] = "exceeded quota: q";
    const struct df_pod_diagnosis workflow = df_pod_rejection(403, quota, true);
    const struct df_pod_diagnosis step = df_pod_rejection(403, quota, false);
    assert_non_null(strstr(workflow.message, "request less in spec.workflow.resources"));
    assert_non_null(strstr(step.message, "request less in placement.resources"));
}

static void every_reason_has_its_sentence_for_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(starts); i++)
        assert_non_null(df_reason_find(starts[i].reason));
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++)
        if (ends[i].reason[0])
            assert_non_null(df_reason_find(ends[i].reason));
}

/* Compares `text` with the beginning of `sentence`, whose first letter is a capital. */
static void assert_same_words(const char *reason, const char *sentence, const char *text, size_t n)
{
    if (!sentence || tolower((unsigned char)sentence[0]) != tolower((unsigned char)text[0]) ||
        strncmp(sentence + 1, text + 1, n - 1) != 0)
        fail_msg("%s: \"%s\" and \"%.*s\" differ", reason, sentence ? sentence : "", (int)n, text);
}

/* The message is "what happened; what to do", the two texts that `dayfly why` also prints. */
static void why_explains_a_pod_in_the_words_of_its_diagnosis(void **state)
{
    (void)state;
    static const char *const reasons[] = {
        "Unschedulable",    "ImagePullFailed",  "ImageNameInvalid", "SecretMissing",
        "ConfigMapMissing", "KeyMissing",       "ClaimMissing",     "ServiceAccountMissing",
        "NamespaceMissing", "QuotaExceeded",    "AdmissionRefused", "VolumeFailed",
        "RunsAsRoot",       "CommandMissing",   "ContainerFailed",  "NodeFailed",
        "ObjectRefused",    "NotAllowed",       "OOMKilled",        "Evicted",
        "Preempted",        "DeadlineExceeded", "NodeLost",         "NodeShutdown",
        "PodDeleted",       "JobDeleted",       "RunnerKilled"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(reasons); i++) {
        struct df_pod_diagnosis v = {0};
        df_pod_explain(&v, reasons[i], NULL);
        const struct df_reason *r = df_reason_find(reasons[i]);
        const char *next = strstr(v.message, "; ");
        assert_non_null(r);
        assert_non_null(next);
        assert_same_words(reasons[i], r->meaning, v.message, (size_t)(next - v.message));
        assert_same_words(reasons[i], r->next, next + 2, strlen(next + 2));
    }
}

#define UNSCHEDULED(message)                                                                       \
    POD("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':"        \
        "'Unschedulable','message':'" message "'}]")

/* A pod that fits no node starts no sooner when others end. */
static void room_is_lacked_only_where_others_have_it(void **state)
{
    (void)state;
    static const struct {
        const char *pod, *events;
        bool lacks_room;
    } rows[] = {
        {UNSCHEDULED("0/3 nodes are available: 3 Insufficient cpu."), NULL, true},
        {UNSCHEDULED("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn\\u0027t match "
                     "Pod\\u0027s node affinity/selector. preemption: not eligible."),
         NULL, true},
        {UNSCHEDULED("0/1 nodes are available: 1 Too many pods."), NULL, true},
        {POD("'phase':'Pending'"),
         ON_POD("FailedScheduling", "0/1 nodes are available: 1 Insufficient memory."), true},
        {NULL, ON_JOB("Error creating: pods " Q "j-x" Q " is forbidden: exceeded quota: small"),
         true},
        {UNSCHEDULED("0/3 nodes are available: 3 node(s) didn\\u0027t match Pod\\u0027s node "
                     "affinity/selector."),
         NULL, false},
        {UNSCHEDULED("0/3 nodes are available: 3 node(s) had untolerated taint {a: b}."), NULL,
         false},
        {UNSCHEDULED("0/1 nodes are available: persistentvolumeclaim " Q "cache" Q " not found."),
         NULL, false},
        {POD("'phase':'Pending'"), NULL, false},
        {WAITING("CreateContainerConfigError", "Insufficient luck"), NULL, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_pod_diagnosis v = judge(rows[i].pod, rows[i].events, AFTER, AFTER);
        if (v.lacks_room != rows[i].lacks_room)
            fail_msg("%zu: %d: %s", i, v.lacks_room, v.message);
    }
}

/* A pod of another shape than a kubelet's must not harm. */
static void odd_documents_are_no_harm(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "{}",
        "[]",
        "'x'",
        "{'status':[]}",
        "{'status':{'phase':7}}",
        "{'status':{'phase':'Failed','containerStatuses':{'a':1}}}",
        "{'status':{'phase':'Pending','containerStatuses':[{'state':{'waiting':{}}}]}}",
        "{'status':{'phase':'Failed','containerStatuses':[{'name':'runner','state':{'terminated':{"
        "'exitCode':'x'}}}]}}",
        "{'metadata':{'deletionTimestamp':'never'},'status':{'phase':'Running'}}",
        "{'status':{'phase':'Pending','conditions':[{'type':'Ready','lastTransitionTime':'x'}],"
        "'containerStatuses':[{'state':{'waiting':{'reason':'ImagePullBackOff'}}}]}}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(odd); i++)
        for (size_t j = 0; j < DF_ARRAY_SIZE(odd); j++) {
            struct df_pod_diagnosis v = judge(odd[i], odd[j], AFTER, 120);
            assert_true(strlen(v.message) < sizeof(v.message));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_start_failure_has_its_reason_kubernetes_words_and_a_way_out),
        cmocka_unit_test(the_latest_event_of_this_very_object_is_told),
        cmocka_unit_test(a_deadline_that_ends_a_pod_before_its_start_hides_no_cause),
        cmocka_unit_test(a_job_whose_pod_is_still_to_come_is_waited_for),
        cmocka_unit_test(a_container_that_waits_beside_a_sidecar_is_pending_still),
        cmocka_unit_test(each_end_is_told_apart),
        cmocka_unit_test(a_pod_that_is_taken_away_before_it_started_is_not_given_up),
        cmocka_unit_test(what_admission_refuses_for_good_is_not_waited_for),
        cmocka_unit_test(a_node_that_is_silent_about_its_pod_is_named),
        cmocka_unit_test(an_end_in_mid_step_is_no_start_failure),
        cmocka_unit_test(a_program_that_is_not_in_the_image_will_not_be_there_the_next_time),
        cmocka_unit_test(a_result_document_is_not_shown_as_a_message),
        cmocka_unit_test(what_is_no_whole_result_is_none),
        cmocka_unit_test(jobs_that_are_gone_or_over_are_told_apart),
        cmocka_unit_test(refusals_of_the_api_server_are_told_apart),
        cmocka_unit_test(a_rejected_workflow_is_told_its_own_keys),
        cmocka_unit_test(every_reason_has_its_sentence_for_why),
        cmocka_unit_test(why_explains_a_pod_in_the_words_of_its_diagnosis),
        cmocka_unit_test(room_is_lacked_only_where_others_have_it),
        cmocka_unit_test(odd_documents_are_no_harm),
    };
    return cmocka_run_group_tests_name("pod_diagnosis", tests, NULL, NULL);
}
