#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/engine.h"
#include "spawner/engine/job/workflow_job.h"
#include "tests/unit/kube_words.h"

/* Inputs and expected values are those of kubernaut's own cases for naming, registry, job engine,
 * collision and cleanup; their ids stand beside them. Where its two versions differ the Job has the
 * later one's hardening and the earlier one's default service account. */

/* ---- naming ---- */

static const struct {
    const char *target, *name;
} names[] = {
    {"default/deployment/my-app", "wfe-c00449355dfb987a"},
    {"payment/deployment/payment-api", "wfe-cf0cc089293b1165"},
    {"node/worker-node-1", "wfe-ac45b7d6911e97a5"},
    {"default/deployment/nginx", "wfe-f3457dcc8fbcb6d9"},
    {"default/Deployment/nginx", "wfe-041822837d0914fa"},
    {"prod/deployment/nginx", "wfe-caf256ebfba4b9b1"},
    {"ns1/deployment/app1", "wfe-9e19027f929fcd8a"},
    {"ns1/deployment/app2", "wfe-371e8ee8d2426653"},
    {"ns2/deployment/app1", "wfe-3d5760a9f2fd3a08"},
    {"ns2/deployment/app2", "wfe-d2771ac9cb43e04c"},
    {"kube-system/configmap/coredns", "wfe-facb8fdea3f26897"},
    {"prod-ns/deployment/api-server", "wfe-42da7e4e56e06a44"},
    {"default/deployment/cleanup-app", "wfe-35e4cc71d0768c6b"},
    {"default/deployment/running-app", "wfe-d23c239f230595f9"},
    {"default/deployment/failed-app", "wfe-a4cc9c37cf2b1e4b"},
    {"default/deployment/vanished-app", "wfe-6962f3e7d994e414"},
    {"default/deployment/dup-app", "wfe-19627ac18f56fa81"},
    {"prod/statefulset/postgres", "wfe-1f4fb7d98c50f67a"},
    {"kube-system/daemonset/fluentd", "wfe-7c93af5fe98b915c"},
    {"ns-1/deployment/app", "wfe-f29840fc4f7935e1"},
    {"ns123/deployment/app", "wfe-eec1e4898db912b9"},
    {"a/deployment/app", "wfe-f955dfcebda32bec"},
    {"default/deployment/app123", "wfe-5c69aa62c3dd3147"},
    {"default/replicaset/my-rs", "wfe-74db4d3ae5d9edf3"},
    {"default/pod/my-pod", "wfe-2d36de3e23a27115"},
    {"ns-1-2/deployment/app-1-2", "wfe-b246b9bdce38f1be"},
    {"default/deployment/shared", "wfe-13394380cf6bab91"},
    {"very-long-namespace/deployment/very-long-deployment-name-that-exceeds-normal-limits",
     "wfe-edd4678a5b7aa505"},
    {"very-long-namespace/deployment/very-long-deployment-name-exceeds", "wfe-d2b768e690a7627b"},
    {"test-namespace/deployment/deterministic-test", "wfe-ed2abdf7f0ff122f"},
    {"kubernaut-system/deployment/crashloop-app", "wfe-ebabf11295d2e31a"},
    {"", "wfe-e3b0c44298fc1c14"},
};

/* UT-WE-014-010 to -013, UTIL-001, "pipelineRunName" and its table */
static void the_name_is_the_lock_on_the_target(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        char name[21], again[21];
        assert_int_equal(df_workflow_name(names[i].target, name, NULL), 0);
        assert_int_equal(df_workflow_name(names[i].target, again, NULL), 0);
        assert_string_equal(name, names[i].name);
        assert_string_equal(name, again);
        assert_int_equal(strlen(name), 20);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(names[i].name, names[j].name);
}

#define LONG_TARGET                                                                                \
    "very-long-namespace/deployment/very-long-deployment-name-that-exceeds-sixty-three-chars"
#define A16 "aaaaaaaaaaaaaaaa"
#define B63 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* CTRL-LABEL-01 to -03, UT-WE-014-087 and -088 */
static void targets_become_labels(void **state)
{
    (void)state;
    static const struct {
        const char *target, *label;
    } rows[] = {
        {"prod-ns/deployment/api-server", "prod-ns__deployment__api-server"},
        {"namespace/deployment/app-name", "namespace__deployment__app-name"},
        {"path//to///resource", "path____to______resource"},
        {"///", "______"},
        {A16 A16 A16 A16, A16 A16 A16 "aaaaaaaaaaaaaaa"},
        {B63, B63},
        {LONG_TARGET, "very-long-namespace__deployment__very-long-deployment-name-that"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        char label[64];
        df_workflow_sanitize(rows[i].target, label);
        assert_string_equal(label, rows[i].label);
        assert_true(strlen(label) <= 63);
    }
}

/* ---- parameters ---- */

/* UT-WE-243-001 to -007, FILTER-001 to -003 */
static void only_declared_parameters_pass(void **state)
{
    (void)state;
    static const struct {
        const char *parameters, *declared, *expected; /* NULL: none at all */
    } rows[] = {
        {"{'NAMESPACE':'default','REPLICAS':'3'}", "{'NAMESPACE':true,'REPLICAS':true}",
         "{'NAMESPACE':'default','REPLICAS':'3'}"},
        {"{'NAMESPACE':'default','REPLICAS':'3','HALLUCINATED':'x','INJECTED_KEY':'y'}",
         "{'NAMESPACE':true,'REPLICAS':true}", "{'NAMESPACE':'default','REPLICAS':'3'}"},
        {"{'NAMESPACE':'default','CUSTOM':'value'}", NULL,
         "{'NAMESPACE':'default','CUSTOM':'value'}"},
        {"{'NAMESPACE':'default'}", "{}", "{}"},
        {"{}", "{'NAMESPACE':true}", "{}"},
        {"{}", "{}", "{}"},
        {NULL, NULL, NULL},
        {"{'TIMEOUT':'30s','SECRET_KEY':'leaked','MODE':'fast'}", "{'TIMEOUT':true,'MODE':true}",
         "{'TIMEOUT':'30s','MODE':'fast'}"},
        {"{'A':'1'}", "{'A':false}", "{}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *parameters = rows[i].parameters ? json(rows[i].parameters) : NULL;
        DF_JSON cJSON *declared = rows[i].declared ? json(rows[i].declared) : NULL;
        DF_JSON cJSON *kept = NULL;
        assert_int_equal(df_workflow_parameters(parameters, declared, &kept, NULL), 0);
        if (rows[i].expected)
            assert_json(kept, rows[i].expected, rows[i].parameters);
        else
            assert_null(kept);
    }
}

/* ---- the Job ---- */

/* What a case says; the rest is as in its fixture. */
struct given {
    const char *target, *parameters, *declared, *secrets, *config_maps, *resources;
    const char *service_account;
};

static const struct df_workflow fixture = {
    .name = "test-wfe",
    .source_namespace = "default",
    .workflow_id = "restart-deployment",
    .version = "v1.0.0",
    .image = "ghcr.io/kubernaut/workflows/restart:v1.0.0",
    .namespace = "kubernaut-workflows",
    .deadline_seconds = DF_WORKFLOW_DEADLINE_SECONDS,
};

static cJSON *json_or_null(const char *text)
{
    return text ? json(text) : NULL;
}

static int build(const struct given *g, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *parameters = json_or_null(g->parameters), *declared = json_or_null(g->declared);
    DF_JSON cJSON *secrets = json_or_null(g->secrets), *maps = json_or_null(g->config_maps);
    DF_JSON cJSON *resources = json_or_null(g->resources);
    struct df_workflow w = fixture;
    w.target = g->target ? g->target : "default/deployment/my-app";
    w.parameters = parameters;
    w.declared = declared;
    w.secrets = secrets;
    w.config_maps = maps;
    w.resources = resources;
    w.service_account = g->service_account ? g->service_account : "kubernaut-workflow-runner";
    return df_workflow_job_build(&w, ret, err);
}

static cJSON *built(struct given g)
{
    struct df_err err = {0};
    cJSON *job = NULL;
    if (build(&g, &job, &err) < 0)
        fail_msg("%s", err.message);
    return job;
}

static const cJSON *container_of(const cJSON *job)
{
    return named(job, "spec.template.spec.containers", "workflow");
}

/* UT-WE-014-020 */
static void a_job_has_the_name_image_labels_and_environment_of_its_workflow(void **state)
{
    (void)state;
    DF_JSON cJSON *job = built(
        (struct given){.parameters = "{'NAMESPACE':'default'}", .service_account = "test-sa"});
    assert_at(job, "metadata.name", "'wfe-c00449355dfb987a'");
    assert_at(job, "metadata.namespace", "'kubernaut-workflows'");
    assert_int_equal(cJSON_GetArraySize(df_json_at(job, "spec.template.spec.containers")), 1);
    assert_at(container_of(job), "image", "'ghcr.io/kubernaut/workflows/restart:v1.0.0'");
    assert_null(df_json_at(container_of(job), "command"));
    assert_null(df_json_at(container_of(job), "imagePullPolicy"));
    assert_at(job, "spec.template.spec.restartPolicy", "'Never'");
    assert_at(job, "spec.template.spec.enableServiceLinks", "false");
    assert_at(job, "spec.template.spec.serviceAccountName", "'test-sa'");
    assert_at(container_of(job), "env",
              "[{'name':'TARGET_RESOURCE','value':'default/deployment/my-app'},"
              "{'name':'NAMESPACE','value':'default'},{'name':'HOME','value':'/tmp'},"
              "{'name':'TMPDIR','value':'/tmp'}]");
    static const char *const labels[][2] = {
        {"kubernaut.ai/workflow-execution", "test-wfe"},
        {"kubernaut.ai/source-namespace", "default"},
        {"kubernaut.ai/workflow-id", "restart-deployment"},
        {"kubernaut.ai/workflow-version", "v1.0.0"},
        {"kubernaut.ai/target-resource", "default__deployment__my-app"},
        {"kubernaut.ai/execution-engine", "job"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(labels); i++)
        assert_string_equal(keyed(job, "metadata.labels", labels[i][0]), labels[i][1]);
    assert_string_equal(keyed(job, "metadata.annotations", "kubernaut.ai/target-resource"),
                        "default/deployment/my-app");
    assert_string_equal(
        keyed(job, "spec.template.metadata.labels", "kubernaut.ai/workflow-execution"), "test-wfe");
    assert_string_equal(
        keyed(job, "spec.template.metadata.labels", "kubernaut.ai/execution-engine"), "job");
}

/* UT-WE-014-021 */
static void a_workflow_that_names_no_service_account_has_the_configured_one(void **state)
{
    (void)state;
    static const char *const specs[][2] = {{"{}", "configured"},
                                           {"{'serviceAccountName':''}", "configured"},
                                           {"{'serviceAccountName':'its-own'}", "its-own"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(specs); i++) {
        DF_JSON cJSON *spec = json(specs[i][0]);
        const struct df_engine_step step = {.workflow = {.spec = spec}};
        assert_string_equal(df_workflow_of(&step, "configured").service_account, specs[i][1]);
    }
}

/* UT-WE-006-020 to -023, JOB-003, JOB-015 */
static void dependencies_are_mounted_and_tmp_comes_last(void **state)
{
    (void)state;
    static const struct {
        const char *secrets, *config_maps, *volumes, *mounts;
    } rows[] = {
        {"[{'name':'gitea-repo-creds'}]", NULL,
         "[{'name':'secret-gitea-repo-creds','secret':{'secretName':'gitea-repo-creds'}},"
         "{'name':'tmp','emptyDir':{}}]",
         "[{'name':'secret-gitea-repo-creds','mountPath':'/run/kubernaut/secrets/gitea-repo-creds'"
         ",'readOnly':true},{'name':'tmp','mountPath':'/tmp'}]"},
        {NULL, "[{'name':'remediation-config'}]",
         "[{'name':'configmap-remediation-config','configMap':{'name':'remediation-config'}},"
         "{'name':'tmp','emptyDir':{}}]",
         "[{'name':'configmap-remediation-config','mountPath':"
         "'/run/kubernaut/configmaps/remediation-config','readOnly':true},"
         "{'name':'tmp','mountPath':'/tmp'}]"},
        {"[{'name':'db-creds'}]", "[{'name':'app-config'}]",
         "[{'name':'secret-db-creds','secret':{'secretName':'db-creds'}},"
         "{'name':'configmap-app-config','configMap':{'name':'app-config'}},"
         "{'name':'tmp','emptyDir':{}}]",
         "[{'name':'secret-db-creds','mountPath':'/run/kubernaut/secrets/db-creds','readOnly':true}"
         ",{'name':'configmap-app-config','mountPath':'/run/kubernaut/configmaps/app-config',"
         "'readOnly':true},{'name':'tmp','mountPath':'/tmp'}]"},
        {NULL, NULL, "[{'name':'tmp','emptyDir':{}}]", "[{'name':'tmp','mountPath':'/tmp'}]"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *job =
            built((struct given){.secrets = rows[i].secrets, .config_maps = rows[i].config_maps});
        assert_at(job, "spec.template.spec.volumes", rows[i].volumes);
        assert_at(container_of(job), "volumeMounts", rows[i].mounts);
    }
}

/* UT-WE-243-010 and -011, JOB-002 */
static void parameters_stand_in_the_environment_as_they_are_called(void **state)
{
    (void)state;
    DF_JSON cJSON *filtered = built(
        (struct given){.parameters = "{'REPLICAS':'3','NAMESPACE':'default','HALLUCINATED':'x'}",
                       .declared = "{'NAMESPACE':true,'REPLICAS':true}"});
    DF_JSON cJSON *all =
        built((struct given){.parameters = "{'NAMESPACE':'default','CUSTOM':'value'}"});
    assert_non_null(named(container_of(filtered), "env", "TARGET_RESOURCE"));
    assert_at(named(container_of(filtered), "env", "NAMESPACE"), "value", "'default'");
    assert_at(named(container_of(filtered), "env", "REPLICAS"), "value", "'3'");
    assert_null(named(container_of(filtered), "env", "HALLUCINATED"));
    assert_at(named(container_of(all), "env", "CUSTOM"), "value", "'value'");
}

/* JOB-014, -021 to -024 */
static void a_job_is_restricted_limited_and_tried_once(void **state)
{
    (void)state;
    const char *resources = "{'requests':{'cpu':'100m','memory':'128Mi'},'limits':{'cpu':'500m',"
                            "'memory':'256Mi'}}";
    DF_JSON cJSON *job = built((struct given){.resources = resources});
    DF_JSON cJSON *plain = built((struct given){0});
    assert_at(job, "spec.backoffLimit", "0");
    assert_at(job, "spec.ttlSecondsAfterFinished", "600");
    assert_at(job, "spec.activeDeadlineSeconds", "1800");
    assert_at(job, "spec.podFailurePolicy.rules",
              "[{'action':'Ignore','onPodConditions':[{'type':'DisruptionTarget','status':'True'}]"
              "},{'action':'Ignore','onExitCodes':{'containerName':'workflow','operator':'In',"
              "'values':[137]}}]");
    assert_at(job, "spec.template.spec.securityContext",
              "{'runAsNonRoot':true,'seccompProfile':{'type':'RuntimeDefault'}}");
    assert_at(container_of(job), "securityContext",
              "{'allowPrivilegeEscalation':false,'readOnlyRootFilesystem':true,"
              "'runAsNonRoot':true,'capabilities':{'drop':['ALL']}}");
    assert_at(container_of(job), "resources", resources);
    assert_null(df_json_at(container_of(plain), "resources"));
}

/* JOB-016, -017, UT-WE-2176-001 */
static void the_deadline_is_what_is_left_of_the_timeout(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1800000000000000), second = 1000000;
    assert_int_equal(df_workflow_deadline(0, now), 1800);
    assert_int_equal(df_workflow_deadline(now + 300 * second, now), 300);
    assert_int_equal(df_workflow_deadline(now - 60 * second, now), 1);
    assert_int_equal(df_workflow_deadline(now, now), 1);
}

static void what_could_stand_for_the_systems_values_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct given given;
        const char *message;
    } rows[] = {
        {{.parameters = "{'TARGET_RESOURCE':'x'}"}, "TARGET_RESOURCE is refused"},
        {{.parameters = "{'HOME':'x'}"}, "HOME is refused"},
        {{.parameters = "{'TMPDIR':'x'}"}, "TMPDIR is refused"},
        {{.parameters = "{'PATH':'x'}"}, "PATH is refused"},
        {{.parameters = "{'LD_PRELOAD':'x'}"}, "LD_PRELOAD is refused"},
        {{.parameters = "{'a-b':'x'}"}, "a-b is not the name of an environment variable"},
        {{.parameters = "{'A':3}"}, "A is not a string; put it in quotes"},
        {{.secrets = "[{'name':'../etc'}]"}, "\"../etc\" is not the name of a secret"},
        {{.config_maps = "[{}]"}, "\"\" is not the name of a configMap"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        cJSON *job = NULL;
        assert_int_equal(build(&rows[i].given, &job, &err), -1);
        assert_null(job);
        assert_string_equal(err.reason, "InvalidStep");
        assert_message(&err, rows[i].message);
    }
}

static bool is_label(const char *s)
{
    return *s && strlen(s) <= 63 && !strchr("-_.", *s) && !strchr("-_.", s[strlen(s) - 1]);
}

/* The sanitiser alone leaves "______", and a cut may end in "_". */
static void labels_and_volume_names_are_always_valid(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "///", LONG_TARGET, "default/deployment/my-app",
        "namespace/deployment/a-name-that-is-cut-just-behind-its-dashes--/x"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(targets); i++) {
        DF_JSON cJSON *job = built((struct given){.target = targets[i]});
        assert_true(is_label(keyed(job, "metadata.labels", "kubernaut.ai/target-resource")));
        assert_string_equal(keyed(job, "metadata.annotations", "kubernaut.ai/target-resource"),
                            targets[i]);
    }
    DF_JSON cJSON *dotted = built((struct given){.secrets = "[{'name':'my.secret'}]"});
    const cJSON *volume = df_json_at(dotted, "spec.template.spec.volumes")->child;
    assert_null(strchr(df_json_str(volume, "name"), '.'));
    assert_at(volume, "secret.secretName", "'my.secret'");
    assert_at(df_json_at(container_of(dotted), "volumeMounts")->child, "mountPath",
              "'/run/kubernaut/secrets/my.secret'");
}

static void a_placement_goes_into_a_workflows_pod_too(void **state)
{
    (void)state;
    struct df_workflow w = fixture;
    DF_JSON cJSON *placement = json("{'nodeSelector':{'disk':'ssd'},'podTemplate':{'metadata':{"
                                    "'labels':{'kubernaut.ai/workflow-execution':'forged'}}}}");
    DF_JSON cJSON *loop = json("{'podTemplate':{'spec':{'restartPolicy':'OnFailure'}}}");
    DF_JSON cJSON *job = NULL;
    w.target = "default/deployment/my-app";
    w.placement = placement;
    assert_int_equal(df_workflow_job_build(&w, &job, NULL), 0);
    assert_at(job, "spec.template.spec.nodeSelector", "{'disk':'ssd'}");
    assert_string_equal(
        keyed(job, "spec.template.metadata.labels", "kubernaut.ai/workflow-execution"), "test-wfe");
    cJSON *refused = NULL;
    w.placement = loop;
    assert_int_equal(df_workflow_job_build(&w, &refused, NULL), -1);
}

/* ---- status ---- */

static const struct {
    const char *job;
    enum df_workflow_phase phase;
    const char *reason, *message, *status, *summary_reason, *summary_message;
    int completed;
} statuses[] = {
    /* UT-WE-014-030, JOB-007 */
    {"{'status':{'active':1}}", DF_WORKFLOW_RUNNING, "Running", "Job running (1/1 pods active)",
     "Unknown", "Running", "1 pod(s) active", 0},
    {"{'spec':{'completions':2},'status':{'active':1}}", DF_WORKFLOW_RUNNING, "Running",
     "Job running (1/2 pods active)", "Unknown", "Running", "1 pod(s) active", 0},
    /* UT-WE-014-031, JOB-005 */
    {"{'status':{'succeeded':1,'conditions':[{'type':'Complete','status':'True','message':'done'}]"
     "}}",
     DF_WORKFLOW_COMPLETED, "Complete", "done", "True", "Succeeded", "", 1},
    /* UT-WE-014-032, JOB-006 */
    {"{'status':{'failed':1,'conditions':[{'type':'Failed','status':'True','reason':"
     "'BackoffLimitExceeded','message':'limit'}]}}",
     DF_WORKFLOW_FAILED, "BackoffLimitExceeded", "limit", "False", "Failed", "limit", 0},
    /* It never had a pod: [H] */
    {"{'status':{'conditions':[{'type':'Failed','status':'True','reason':'DeadlineExceeded',"
     "'message':'too long'}]}}",
     DF_WORKFLOW_FAILED, "DeadlineExceeded", "too long", "Unknown", "", "too long", 0},
    {"{'status':{'failed':1}}", DF_WORKFLOW_RUNNING, "Running", "Job running (0/1 pods active)",
     "False", "Failed", "1 pod(s) failed", 0},
    {"{'status':{}}", DF_WORKFLOW_RUNNING, "Running", "Job running (0/1 pods active)", "Unknown",
     "", "", 0},
    /* Conditions that decide nothing */
    {"{'status':{'conditions':[{'type':'FailureTarget','status':'True'},{'type':'Suspended',"
     "'status':'True'},{'type':'SuccessCriteriaMet','status':'True'},{'type':'Complete','status':"
     "'False'}]}}",
     DF_WORKFLOW_RUNNING, "Running", "Job running (0/1 pods active)", "Unknown", "", "", 0},
};

static void conditions_and_counts_become_phase_and_summary(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++) {
        DF_JSON cJSON *job = json(statuses[i].job);
        struct df_workflow_status s = df_workflow_status(job, NULL);
        assert_int_equal(s.phase, statuses[i].phase);
        assert_string_equal(s.reason, statuses[i].reason);
        assert_string_equal(s.message, statuses[i].message);
        assert_string_equal(s.summary.status, statuses[i].status);
        assert_string_equal(s.summary.reason, statuses[i].summary_reason);
        assert_string_equal(s.summary.message, statuses[i].summary_message);
        assert_int_equal(s.summary.completed_tasks, statuses[i].completed);
        assert_int_equal(s.summary.total_tasks, 1);
    }
    assert_int_equal(df_workflow_status(NULL, NULL).phase, DF_WORKFLOW_ABSENT);
}

#define FAILED_JOB                                                                                 \
    "{'metadata':{'name':'wfe-c00449355dfb987a'},'status':{'failed':1,'conditions':[{'type':"      \
    "'Failed','status':'True','reason':'DeadlineExceeded','message':'too long'}]}}"

/* JOB-018 to -020, JOB-028 to -030 */
static void a_failure_is_told_by_the_event_that_names_its_cause(void **state)
{
    (void)state;
    static const struct {
        const char *pod, *reason, *message;
        bool told;
    } rows[] = {
        {"wfe-c00449355dfb987a-abcde", "FailedMount",
         "MountVolume.SetUp failed for volume \"x\" : secret \"my-creds\" not found", true},
        {"wfe-c00449355dfb987a-x7k2m", "FailedMount", "secret e2e-dep-secret not found", true},
        {"wfe-c00449355dfb987a-abcde", "CreateContainerConfigError", "configmap missing", true},
        {"wfe-c00449355dfb987a-abcde", "Failed",
         "Failed to pull image quay.io/kubernaut/bad-bundle:v1: manifest unknown", true},
        {"wfe-c00449355dfb987a-abcde", "Failed", "Error: ImagePullBackOff", true},
        {"wfe-c00449355dfb987a-abcde", "BackOff", "Back-off pulling: ErrImagePull", true},
        {"wfe-c00449355dfb987a-abcde", "Failed", "Liveness probe failed: HTTP 500", false},
        {"wfe-c00449355dfb987a-abcdef", "FailedMount", "another's", false},
        {"wfe-c00449355dfb987b-abcde", "FailedMount", "another's", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *text =
            df_strf("[{'involvedObject':{'kind':'Pod','name':'%s'},'reason':'%s'}]", rows[i].pod,
                    rows[i].reason);
        DF_JSON cJSON *events = json(text), *job = json(FAILED_JOB);
        assert_int_equal(df_json_set_str(events->child, "message", rows[i].message, NULL), 0);
        struct df_workflow_status s = df_workflow_status(job, events);
        assert_string_equal(s.reason, "DeadlineExceeded");
        assert_string_equal(s.message, rows[i].told ? rows[i].message : "too long");
        assert_string_equal(s.summary.message, s.message);
    }
}

/* But not what a kubelet says of its caches when it has only just heard of a pod, or lets go of it.
 */
static void of_several_causes_the_latest_is_told(void **state)
{
    (void)state;
    static const char *const orders[] = {
        "[{'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'first','lastTimestamp':'2026-11-21T12:00:00Z'},{"
        "'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'last','lastTimestamp':'2026-11-21T12:00:01Z'}]",
        "[{'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'last','lastTimestamp':'2026-11-21T12:00:01Z'},{"
        "'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'first','metadata':{'creationTimestamp':"
        "'2026-11-21T12:00:00Z'}}]",
        "[{'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'last','lastTimestamp':'2026-11-21T12:00:00Z'},{"
        "'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'MountVolume.SetUp failed: object \\\"n\\\"/\\\"s\\\" not "
        "registered','lastTimestamp':'2026-11-21T12:00:01Z'}]",
        "[{'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'MountVolume.SetUp failed: failed to sync secret cache: timed out "
        "waiting for the condition','lastTimestamp':'2026-11-21T12:00:01Z'},{"
        "'involvedObject':{'kind':'Pod','name':'wfe-c00449355dfb987a-abcde'},'reason':"
        "'FailedMount','message':'last','lastTimestamp':'2026-11-21T12:00:00Z'}]",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(orders); i++) {
        DF_JSON cJSON *events = json(orders[i]), *job = json(FAILED_JOB);
        assert_string_equal(df_workflow_status(job, events).message, "last");
    }
}

/* JOB-025 to -027, and the end that Kubernetes' policy does not have */
static void retries_are_counted_and_come_to_an_end(void **state)
{
    (void)state;
    static const struct {
        const char *counts[4];
        int retries;
        bool out_of_pods;
    } rows[] = {
        {{"1", "1", "1"}, 2, false}, {{"1"}, 0, false}, {{NULL}, 0, false},
        {{"0", "0"}, 1, false},      {{"3"}, 2, false}, {{"3", "1"}, 3, true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *events = json("[{'involvedObject':{'kind':'Job','name':'other'},'reason':"
                                     "'SuccessfulCreate','count':9}]");
        DF_JSON cJSON *job = json("{'metadata':{'name':'j'},'status':{'active':1}}");
        for (int n = 0; n < 4 && rows[i].counts[n]; n++) {
            DF_FREE char *event = df_strf("{'involvedObject':{'kind':'Job','name':'j'},'reason':"
                                          "'SuccessfulCreate','count':%s}",
                                          rows[i].counts[n]);
            assert_int_equal(df_json_append(events, json(event), NULL), 0);
        }
        struct df_workflow_status s = df_workflow_status(job, events);
        assert_int_equal(s.summary.retry_count, rows[i].retries);
        assert_true(s.out_of_pods == rows[i].out_of_pods);
    }
}

/* UT-WE-374-001 to -004, JOB-012, JOB-013; absent is an answer */
static void a_job_is_completed_when_a_condition_says_so(void **state)
{
    (void)state;
    static const struct {
        const char *job;
        bool completed;
    } rows[] = {
        {"{'status':{'succeeded':1,'conditions':[{'type':'Complete','status':'True'}]}}", true},
        {"{'status':{'active':1}}", false},
        {"{'status':{'failed':1,'conditions':[{'type':'Failed','status':'True','reason':"
         "'BackoffLimitExceeded'}]}}",
         true},
        {"{'status':{'conditions':[{'type':'Complete','status':'False'}]}}", false},
        {"{}", false},
        {NULL, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *job = json_or_null(rows[i].job);
        assert_true(df_job_is_completed(job) == rows[i].completed);
    }
}

/* ---- cleanup and collision ---- */

#define LABELLED(name, ns)                                                                         \
    "{'metadata':{'labels':{'kubernaut.ai/workflow-execution':'" name                              \
    "','kubernaut.ai/source-namespace':'" ns "'}},'status':{}}"
#define ENDED(name, ns)                                                                            \
    "{'metadata':{'labels':{'kubernaut.ai/workflow-execution':'" name                              \
    "','kubernaut.ai/source-namespace':'" ns "'}},'status':{'conditions':[{'type':'Complete',"     \
    "'status':'True'}]}}"

/* UT-WE-014-040, JOB-009, JOB-010, and the namespace that was not looked at */
static void only_the_owner_may_delete_a_job(void **state)
{
    (void)state;
    static const struct {
        const char *name, *job;
        bool owns;
    } rows[] = {
        {"", "{'metadata':{}}", true},
        {NULL, "{'metadata':{}}", true},
        {"wfe-cleanup", "{'metadata':{'labels':{'kubernaut.ai/workflow-execution':'wfe-cleanup'}}}",
         true},
        {"wfe-old", "{'metadata':{'labels':{'kubernaut.ai/workflow-execution':'wfe-other'}}}",
         false},
        {"wfe-old", "{'metadata':{}}", false},
        {"a", LABELLED("a", "default"), true},
        {"a", LABELLED("a", "elsewhere"), false},
        {"a",
         "{'metadata':{'labels':{'kubernaut.ai/workflow-execution':'a','dayfly.dev/step-uid':"
         "'other'}}}",
         false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_workflow w = {.name = rows[i].name, .source_namespace = "default", .uid = "mine"};
        DF_JSON cJSON *job = json(rows[i].job);
        assert_true(df_workflow_owns(&w, job) == rows[i].owns);
    }
}

static void a_long_name_is_the_owner_by_its_raw_text(void **state)
{
    (void)state;
    struct df_workflow w = fixture;
    DF_JSON cJSON *job = NULL;
    w.name = B63 "-and-more";
    w.target = "a/b";
    assert_int_equal(df_workflow_job_build(&w, &job, NULL), 0);
    assert_true(is_label(keyed(job, "metadata.labels", "kubernaut.ai/workflow-execution")));
    assert_true(df_workflow_owns(&w, job));
    w.name = B63 "-and-other";
    assert_false(df_workflow_owns(&w, job));
}

/* HandleAlreadyExists-1 to -3, UT-WE-190-005 to -007, with the rulings: our own is adopted, an
 * ended one of another action's is replaced, a live one is waited for, and so is one of nobody. */
static void a_job_in_the_way_is_adopted_replaced_or_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *job; /* NULL: gone again */
        enum df_workflow_clash clash;
        const char *owner;
    } rows[] = {
        {NULL, DF_WORKFLOW_CLASH_GONE, ""},
        {LABELLED("test-wfe", "default"), DF_WORKFLOW_CLASH_ADOPT, "test-wfe"},
        {ENDED("test-wfe", "default"), DF_WORKFLOW_CLASH_ADOPT, "test-wfe"},
        {LABELLED("other-wfe", "default"), DF_WORKFLOW_CLASH_WAIT, "other-wfe"},
        {LABELLED("test-wfe", "elsewhere"), DF_WORKFLOW_CLASH_WAIT, "test-wfe"},
        {ENDED("other-wfe", "default"), DF_WORKFLOW_CLASH_REPLACE, "other-wfe"},
        {"{'metadata':{},'status':{}}", DF_WORKFLOW_CLASH_WAIT, ""},
        {"{'metadata':{},'status':{'conditions':[{'type':'Complete','status':'True'}]}}",
         DF_WORKFLOW_CLASH_WAIT, ""},
        {"{'metadata':{'labels':{'kubernaut.ai/workflow-execution':'test-wfe'}}}",
         DF_WORKFLOW_CLASH_WAIT, "test-wfe"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *job = json_or_null(rows[i].job);
        assert_int_equal(df_workflow_clash(&fixture, job, df_job_is_completed(job)), rows[i].clash);
        assert_string_equal(df_workflow_owner(job), rows[i].owner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_the_lock_on_the_target),
        cmocka_unit_test(targets_become_labels),
        cmocka_unit_test(only_declared_parameters_pass),
        cmocka_unit_test(a_job_has_the_name_image_labels_and_environment_of_its_workflow),
        cmocka_unit_test(a_workflow_that_names_no_service_account_has_the_configured_one),
        cmocka_unit_test(dependencies_are_mounted_and_tmp_comes_last),
        cmocka_unit_test(parameters_stand_in_the_environment_as_they_are_called),
        cmocka_unit_test(a_job_is_restricted_limited_and_tried_once),
        cmocka_unit_test(the_deadline_is_what_is_left_of_the_timeout),
        cmocka_unit_test(what_could_stand_for_the_systems_values_is_refused),
        cmocka_unit_test(labels_and_volume_names_are_always_valid),
        cmocka_unit_test(a_placement_goes_into_a_workflows_pod_too),
        cmocka_unit_test(conditions_and_counts_become_phase_and_summary),
        cmocka_unit_test(a_failure_is_told_by_the_event_that_names_its_cause),
        cmocka_unit_test(of_several_causes_the_latest_is_told),
        cmocka_unit_test(retries_are_counted_and_come_to_an_end),
        cmocka_unit_test(a_job_is_completed_when_a_condition_says_so),
        cmocka_unit_test(only_the_owner_may_delete_a_job),
        cmocka_unit_test(a_long_name_is_the_owner_by_its_raw_text),
        cmocka_unit_test(a_job_in_the_way_is_adopted_replaced_or_waited_for),
    };
    return cmocka_run_group_tests_name("workflow_job", tests, NULL, NULL);
}
