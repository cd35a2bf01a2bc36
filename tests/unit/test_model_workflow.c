#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/model.h"
#include "spawner/model/workflow.h"
#include "tests/unit/json_words.h"

/* ---- what may be asked for ---- */

#define TARGET "'targetResource':'default/deployment/nginx'"
#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_DIGEST "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define IMAGE "'executionBundle':'registry.example.com/workflow:v1'"

/* spec: members besides the action. */
static cJSON *asking(const char *spec)
{
    DF_FREE char *text =
        df_strf("{'kind':'TaskAction','metadata':{'name':'restart'},'spec':{'action':'workflow',%s}"
                "}",
                spec);
    return json(text);
}

static void a_small_workflow_gets_its_defaults(void **state)
{
    (void)state;
    DF_JSON cJSON *j = asking(TARGET ",'workflow':{" IMAGE "}");
    assert_int_equal(df_model_admit(DF_KIND_TASK_ACTION, j, NULL, NULL), 0);
    assert_string_equal(df_json_str(j, "spec.engine"), "job");
    assert_int_equal(df_json_int(j, "spec.timeoutSeconds", 0), DF_WORKFLOW_DEADLINE_SECONDS);
    assert_null(df_json_at(j, "spec.source"));
}

static void a_workflow_may_say_everything(void **state)
{
    (void)state;
    DF_JSON cJSON *j = asking(
        TARGET ",'engine':'tekton','timeoutSeconds':60,'pendingSeconds':5,'placement':{"
               "'nodeSelector':{'disk':'ssd'}},'workflow':{" IMAGE ",'workflowId':'wf-001',"
               "'version':'v1.0.0','parameters':{'TIMEOUT':'30s','lines':'a\\nb','EMPTY':''},"
               "'declaredParameterNames':{'TIMEOUT':true,'MODE':false},'dependencies':{'secrets':["
               "{'name':'db-creds'},{'name':'my.secret'}],'configMaps':[{'name':'app-config'}]},"
               "'resources':{'requests':{'cpu':'100m'},'limits':{'cpu':'500m','memory':'256Mi'}},"
               "'serviceAccountName':'kubernaut-runner','timesOutAt':'2026-11-21T12:00:00Z'}");
    struct df_err err = {0};
    if (df_model_admit(DF_KIND_TASK_ACTION, j, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

/* The targets of ValidateSpec. */
static void a_target_has_two_or_three_parts(void **state)
{
    (void)state;
    static const struct {
        const char *target, *fault; /* NULL: none */
    } rows[] = {
        {"default/deployment/nginx", NULL},
        {"prod/statefulset/postgres", NULL},
        {"kube-system/daemonset/fluentd", NULL},
        {"default/replicaset/my-rs", NULL},
        {"ns-1/deployment/app", NULL},
        {"default/deployment/app123", NULL},
        {"node/worker-node-1", NULL},
        {"persistentvolume/pv-data-01", NULL},
        {"clusterrole/admin", NULL},
        {"namespace/production", NULL},
        {"", "targetResource: is empty"},
        {"default", "must be in format"},
        {"default/deployment/app/extra", "must be in format"},
        {"default//app", "has empty part at position 1"},
        {"/deployment/app", "has empty part at position 0"},
        {"default/deployment/", "has empty part at position 2"},
        {"/", "has empty part at position 0"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_FREE char *spec =
            df_strf("'targetResource':'%s','workflow':{" IMAGE "}", rows[i].target);
        DF_JSON cJSON *j = asking(spec);
        int result = df_model_admit(DF_KIND_TASK_ACTION, j, NULL, &err);
        assert_int_equal(result, rows[i].fault ? -1 : 0);
        if (rows[i].fault && !strstr(err.message, rows[i].fault))
            fail_msg("%s: %s", rows[i].target, err.message);
    }
}

static void the_engine_decides_which_names_parameters_may_have(void **state)
{
    (void)state;
    static const struct {
        const char *engine, *name, *fault; /* NULL: none */
    } rows[] = {
        {"tekton", "log-level.x", NULL},
        {"tekton", "HOME", NULL},
        {"tekton", "a b", "is not the name of a Pipeline's parameter"},
        {"tekton", "1st", "is not the name of a Pipeline's parameter"},
        {"tekton", "TARGET_RESOURCE", "is refused: it is set by the system"},
        {"job", "log-level", "is not the name of an environment variable"},
        {"job", "HOME", "is refused: it is set by the system"},
        {"ansible", "HOME", NULL},
        {"ansible", "ansible", NULL},
        {"ansible", "ansible_ssh_common_args",
         "is refused: variables of Ansible itself are the inventory's and the template's"},
        {"ansible", "log-level", "is not the name of a playbook's variable"},
        {"ansible", "TARGET_RESOURCE", "is refused: it is set by the system"},
        {"unheard-of", "log-level", "is not the name of an environment variable"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_FREE char *spec = df_strf("'engine':'%s'," TARGET ",'workflow':{" IMAGE
                                     ",'engineConfig':{'playbookPath':'a','jobTemplateName':'b'},"
                                     "'parameters':{'%s':'x'}}",
                                     rows[i].engine, rows[i].name);
        DF_JSON cJSON *j = asking(spec);
        int result = df_model_admit(DF_KIND_TASK_ACTION, j, NULL, &err);
        if (result != (rows[i].fault ? -1 : 0) ||
            (rows[i].fault && !strstr(err.message, rows[i].fault)))
            fail_msg("%s %s: %s", rows[i].engine, rows[i].name, err.message);
    }
}

static void a_playbook_needs_its_config_and_a_bundle_without_a_password(void **state)
{
    (void)state;
    static const struct {
        const char *workflow, *fault; /* NULL: none */
    } rows[] = {
        {"'engineConfig':{'playbookPath':'a','jobTemplateName':'b'},"
         "'executionBundle':'https://github.com/kubernaut/playbooks.git'",
         NULL},
        {"'executionBundle':'https://github.com/kubernaut/playbooks.git'",
         "engineConfig.playbookPath: is required for the engine ansible"},
        {"'engineConfig':{'playbookPath':'a'}", "engineConfig.jobTemplateName: is required"},
        {"'engineConfig':{'playbookPath':'a','jobTemplateName':'b'},"
         "'executionBundle':'https://u:secret@github.com/a.git'",
         "executionBundle: must not contain a password"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_FREE char *spec =
            df_strf("'engine':'ansible'," TARGET ",'workflow':{%s}", rows[i].workflow);
        DF_JSON cJSON *j = asking(spec);
        assert_int_equal(df_model_admit(DF_KIND_TASK_ACTION, j, NULL, &err),
                         rows[i].fault ? -1 : 0);
        if (rows[i].fault && !strstr(err.message, rows[i].fault))
            fail_msg("%s", err.message);
        assert_null(strstr(err.message, "secret"));
    }
}

static void what_a_workflow_may_not_say_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *fault;
    } rows[] = {
        {"'workflow':{" IMAGE "}", "spec.targetResource: is required"},
        {TARGET, "spec.workflow: is required"},
        {TARGET ",'workflow':{'executionBundle':'a b'}", "is not an image"},
        {TARGET ",'workflow':{" IMAGE ",'parameters':{'TARGET_RESOURCE':'x'}}",
         "spec.workflow.parameters.TARGET_RESOURCE: is refused: it is set by the system"},
        {TARGET ",'workflow':{" IMAGE ",'parameters':{'HOME':'x','TMPDIR':'y','PATH':'z'}}",
         "parameters.TMPDIR: is refused"},
        {TARGET ",'workflow':{" IMAGE ",'parameters':{'LD_PRELOAD':'x'}}",
         "parameters.LD_PRELOAD: is refused"},
        {TARGET ",'workflow':{" IMAGE ",'parameters':{'KUBERNETES_SERVICE_HOST':'x'}}",
         "parameters.KUBERNETES_SERVICE_HOST: is refused"},
        {TARGET ",'workflow':{'executionBundle':'https://git.example.com/a.git'}",
         "an image has no scheme"},
        {TARGET ",'workflow':{" IMAGE ",'executionBundleDigest':'sha256:1'}",
         "executionBundleDigest: must be sha256: and 64 lower-case hex digits"},
        {TARGET ",'workflow':{" IMAGE ",'executionBundleDigest':'" DIGEST "'}",
         "spec.workflow.executionBundle: must end with @" DIGEST},
        {TARGET ",'workflow':{'executionBundle':'a@" OTHER_DIGEST
                "','executionBundleDigest':'" DIGEST "'}",
         "spec.workflow.executionBundle: must end with @" DIGEST},
        {TARGET ",'workflow':{" IMAGE ",'engineConfig':{'playbook':'x'}}",
         "spec.workflow.engineConfig.playbook: is not a field"},
        {TARGET ",'workflow':{" IMAGE ",'remediationRequestRef':{'name':'../x'}}",
         "spec.workflow.remediationRequestRef.name: "},
        {TARGET ",'workflow':{" IMAGE ",'parameters':{'a-b':'x'}}",
         "parameters.a-b: is not the name of an environment variable"},
        {TARGET ",'workflow':{" IMAGE ",'parameters':{'A':3}}",
         "parameters.A: must be a string; put it in quotes"},
        {TARGET ",'workflow':{" IMAGE ",'declaredParameterNames':{'A':'yes'}}",
         "declaredParameterNames.A: must be true or false"},
        {TARGET ",'workflow':{" IMAGE ",'dependencies':{'secrets':[{'name':'../etc'}]}}",
         "secrets[0].name: \"../etc\" is not a valid name"},
        {TARGET ",'workflow':{" IMAGE ",'dependencies':{'secrets':[{'name':'a'},{'name':'a'}]}}",
         "dependencies.secrets: names a twice"},
        {TARGET ",'workflow':{" IMAGE ",'resources':{'requests':{'cpu':'2'},'limits':{'cpu':'1'}}}",
         "is more than the limit"},
        {TARGET ",'workflow':{" IMAGE ",'timesOutAt':'soon'}", "spec.workflow.timesOutAt: "},
        {TARGET ",'workflow':{" IMAGE "},'placement':{'image':'x'}",
         "spec.placement.image: is not allowed for a workflow: use spec.workflow.executionBundle"},
        {TARGET ",'workflow':{" IMAGE "},'placement':{'serviceAccountName':'x'}",
         "use spec.workflow.serviceAccountName"},
        {TARGET ",'workflow':{" IMAGE "},'cancel':{}", "spec.cancel: is not a field"},
        {TARGET ",'workflow':{" IMAGE "},'runRef':{'name':'x'}", "spec.runRef: is not a field"},
        {TARGET ",'workflow':{" IMAGE "},'timeoutSeconds':0", "spec.timeoutSeconds: must be from"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *j = asking(rows[i].spec);
        assert_int_equal(df_model_admit(DF_KIND_TASK_ACTION, j, NULL, &err), -1);
        assert_string_equal(err.reason, "InvalidDocument");
        if (!strstr(err.message, rows[i].fault))
            fail_msg("\"%s\" does not say \"%s\"", err.message, rows[i].fault);
    }
}

static void parameters_end_at_their_limit(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        DF_JSON cJSON *j = asking(TARGET ",'workflow':{" IMAGE "}");
        cJSON *workflow =
            cJSON_GetObjectItemCaseSensitive(df_json_object_at(j, "spec"), "workflow");
        cJSON *parameters = df_json_object_at(workflow, "parameters");
        for (int i = 0; i < DF_LIMIT_ENVIRONMENT + more; i++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "P%d", i);
            assert_int_equal(df_json_add_str(parameters, name, "x", NULL), 0);
        }
        assert_int_equal(df_model_admit(DF_KIND_TASK_ACTION, j, NULL, NULL), -more);
    }
}

/* ---- what is next ---- */

#define SECOND INT64_C(1000000)
#define EPOCH (INT64_C(1800000000) * SECOND) /* when it was asked for */

struct moment {
    const char *what;
    int at;      /* seconds after EPOCH */
    int created; /* the engine was asked then; 0: never */
    bool has_ref, canceled, held;
    int times_out; /* spec.workflow.timesOutAt; 0: none */
    enum df_outcome end;
    enum df_engine_phase phase;
    int since, exit_code;
    bool unknown;  /* the engine does not answer */
    int reachable; /* the service works since then; 0: ever */
    bool gives_up, takes_none;
    const char *seen; /* the engine's reason, or NULL */
    enum df_task_next next;
    const char *reason;
    int wake;
};

static cJSON *task_of(const struct moment *m)
{
    cJSON *task = asking(TARGET ",'timeoutSeconds':1800,'pendingSeconds':120,'workflow':{}");
    cJSON *spec = df_json_object_at(task, "spec"), *status = df_json_object_at(task, "status");
    if (m->times_out)
        (void)df_json_add_time(df_json_object_at(spec, "workflow"), "timesOutAt",
                               EPOCH + m->times_out * SECOND, NULL);
    if (m->canceled)
        (void)df_json_add_time(df_json_object_at(spec, "cancel"), "at", EPOCH + 50 * SECOND, NULL);
    if (m->held)
        (void)df_json_add_str(status, "lockedBy", "taskaction/other", NULL);
    if (m->has_ref)
        (void)df_json_object_at(status, "engineRef");
    assert_int_equal(df_task_add_time(task, "queued", EPOCH, NULL), 0);
    if (m->created)
        assert_int_equal(df_task_add_time(task, "created", EPOCH + m->created * SECOND, NULL), 0);
    assert_int_equal(df_task_set_conditions(task, m->end, "Queued", "", EPOCH, NULL), 0);
    return task;
}

#define MARGIN DF_TIMEOUT_MARGIN_SECONDS
static const struct moment moments[] = {
    {"a new one is made", .next = DF_TASK_CREATE},
    {"one that was asked for is asked for again", .at = 100, .created = 1, .next = DF_TASK_CREATE},
    {"what refuses it for too long ends it", .at = 121, .created = 1, .seen = "QuotaExceeded",
     .next = DF_TASK_FAIL, .reason = "QuotaExceeded"},
    {"what was asked for long ago may have run", .at = 121, .created = 1, .next = DF_TASK_FAIL,
     .reason = "JobDeleted"},
    {"it waits for its target", .at = 1799, .held = true, .next = DF_TASK_CREATE},
    {"but not for ever", .at = 1800, .held = true, .next = DF_TASK_FAIL, .reason = "TargetLocked"},
    {"it is not asked for while it is seen to be held", .at = 20, .held = true,
     .seen = "TargetLocked", .next = DF_TASK_WAIT, .wake = 25},
    {"what refused it once does not keep it from another try", .at = 20, .seen = "QuotaExceeded",
     .next = DF_TASK_CREATE},
    {"while the engine can start none, it is not asked", .at = 20, .takes_none = true,
     .seen = "EngineFailed", .next = DF_TASK_WAIT, .wake = 25},
    {"as long as that takes", .at = 99999, .takes_none = true, .seen = "EngineFailed",
     .next = DF_TASK_WAIT, .wake = 100004},
    {"and until then it is canceled at once", .at = 51, .canceled = true, .takes_none = true,
     .seen = "EngineFailed", .next = DF_TASK_FAIL, .reason = "Canceled"},
    {"a place is waited for as long as it takes", .at = 99999, .next = DF_TASK_CREATE},
    {"unless it has a time", .at = 60, .times_out = 60, .next = DF_TASK_FAIL, .reason = "TimedOut"},
    {"one that was made and is gone is not made again", .at = 20, .created = 1, .has_ref = true,
     .next = DF_TASK_FAIL, .reason = "JobDeleted"},
    {"one that is not made yet is canceled at once", .at = 51, .canceled = true,
     .next = DF_TASK_FAIL, .reason = "Canceled"},
    {"while it starts, its deadline is awaited", .at = 20, .created = 1, .phase = DF_ENGINE_PENDING,
     .since = 2, .next = DF_TASK_WAIT, .wake = 122},
    {"while it runs, its end is", .at = 20, .created = 1, .phase = DF_ENGINE_RUNNING, .since = 2,
     .next = DF_TASK_WAIT, .wake = 2 + 1800 + 2 * MARGIN},
    {"or the time it has", .at = 20, .created = 1, .times_out = 300, .phase = DF_ENGINE_RUNNING,
     .since = 2, .next = DF_TASK_WAIT, .wake = 300 + 2 * MARGIN},
    {"what nobody ends is given up", .at = 2 + 1800 + 2 * MARGIN, .created = 1,
     .phase = DF_ENGINE_RUNNING, .since = 2, .next = DF_TASK_FAIL, .reason = "TimedOut"},
    {"what nobody knows of ends, counted from when it was asked for", .at = 1000, .created = 900,
     .phase = DF_ENGINE_RUNNING, .unknown = true, .next = DF_TASK_WAIT,
     .wake = 900 + 1800 + 2 * MARGIN},
    {"at its limit", .at = 900 + 1800 + 2 * MARGIN, .created = 900, .phase = DF_ENGINE_RUNNING,
     .unknown = true, .next = DF_TASK_FAIL, .reason = "TimedOut"},
    {"but not before the engine was asked for a while", .at = 5000, .reachable = 4990,
     .created = 900, .phase = DF_ENGINE_RUNNING, .unknown = true, .next = DF_TASK_WAIT,
     .wake = 4990 + 2 * MARGIN},
    {"what was never asked for is canceled at once, though the engine does not answer", .at = 51,
     .reachable = 50, .canceled = true, .unknown = true, .next = DF_TASK_FAIL,
     .reason = "Canceled"},
    {"canceled, it is told to end though nobody knows of it", .at = 51, .created = 1,
     .canceled = true, .phase = DF_ENGINE_RUNNING, .unknown = true, .next = DF_TASK_CANCEL,
     .wake = 56},
    {"and is not waited for without end", .at = 50 + 2 * MARGIN, .created = 1, .canceled = true,
     .phase = DF_ENGINE_RUNNING, .unknown = true, .next = DF_TASK_FAIL, .reason = "Canceled"},
    {"but while the engine may still answer", .at = 5000, .reachable = 4990, .created = 1,
     .canceled = true, .phase = DF_ENGINE_RUNNING, .unknown = true, .next = DF_TASK_CANCEL,
     .wake = 5005},
    {"what cannot start is given up", .at = 20, .created = 1, .phase = DF_ENGINE_PENDING,
     .since = 2, .gives_up = true, .seen = "ImagePullFailed", .next = DF_TASK_FAIL,
     .reason = "ImagePullFailed"},
    {"given up, it is ended", .at = 20, .created = 1, .end = DF_OUTCOME_FAILED,
     .phase = DF_ENGINE_PENDING, .since = 2, .next = DF_TASK_CANCEL, .wake = 25},
    {"a canceled one is ended", .at = 51, .created = 1, .canceled = true,
     .phase = DF_ENGINE_RUNNING, .since = 2, .next = DF_TASK_CANCEL, .wake = 56},
    {"and has its end when it is gone", .at = 55, .created = 1, .canceled = true, .has_ref = true,
     .next = DF_TASK_FAIL, .reason = "Canceled"},
    {"or when it does not go", .at = 50 + 2 * MARGIN, .created = 1, .canceled = true,
     .phase = DF_ENGINE_RUNNING, .since = 2, .next = DF_TASK_FAIL, .reason = "Canceled"},
    {"a success is one, though it was to be canceled", .at = 55, .created = 1, .canceled = true,
     .phase = DF_ENGINE_ENDED, .since = 2, .next = DF_TASK_SUCCEED, .reason = "Completed"},
    {"a failure of a canceled one is the cancel's", .at = 55, .created = 1, .canceled = true,
     .phase = DF_ENGINE_ENDED, .since = 2, .exit_code = 143, .seen = "WorkflowFailed",
     .next = DF_TASK_FAIL, .reason = "Canceled"},
    {"a success needs no runner to say so", .at = 20, .created = 1, .phase = DF_ENGINE_ENDED,
     .since = 2, .next = DF_TASK_SUCCEED, .reason = "Completed"},
    {"a failure is told as it was seen", .at = 20, .created = 1, .phase = DF_ENGINE_ENDED,
     .since = 2, .exit_code = 3, .seen = "WorkflowFailed", .next = DF_TASK_FAIL,
     .reason = "WorkflowFailed"},
    {"an unknown exit code is no success", .at = 20, .created = 1, .phase = DF_ENGINE_ENDED,
     .since = 2, .exit_code = -1, .seen = "DeadlineExceeded", .next = DF_TASK_FAIL,
     .reason = "DeadlineExceeded"},
    {"after its end nothing is done", .at = 20, .created = 1, .has_ref = true,
     .end = DF_OUTCOME_SUCCEEDED, .phase = DF_ENGINE_ENDED, .since = 2, .next = DF_TASK_WAIT},
    {"nor made again when it is gone", .at = 9999, .created = 1, .has_ref = true,
     .end = DF_OUTCOME_SUCCEEDED, .next = DF_TASK_WAIT},
};

static void a_workflow_is_decided_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(moments); i++) {
        const struct moment *m = &moments[i];
        DF_JSON cJSON *task = task_of(m);
        struct df_engine_observation seen = {.phase = m->phase,
                                             .exit_code = m->exit_code,
                                             .gives_up = m->gives_up,
                                             .takes_none = m->takes_none,
                                             .is_unknown = m->unknown,
                                             .reachable_since_us =
                                                 m->reachable ? EPOCH + m->reachable * SECOND : 0,
                                             .since_us = m->since ? EPOCH + m->since * SECOND : 0};
        if (m->seen) {
            (void)snprintf(seen.reason, sizeof(seen.reason), "%s", m->seen);
            (void)snprintf(seen.cause, sizeof(seen.cause), "because");
        }
        struct df_task_verdict v = df_task_next(task, &seen, EPOCH + m->at * SECOND);
        if (v.next != m->next || strcmp(v.reason, m->reason ? m->reason : "") != 0 ||
            v.wake_us != (m->wake ? EPOCH + m->wake * SECOND : 0))
            fail_msg("%s: next %d %s, wake after %lld s", m->what, (int)v.next, v.reason,
                     (long long)((v.wake_us - EPOCH) / SECOND));
    }
}

static void a_target_that_stays_locked_names_its_holder(void **state)
{
    (void)state;
    const struct moment m = {.held = true};
    DF_JSON cJSON *task = task_of(&m);
    const struct df_engine_observation seen = {.exit_code = -1};
    struct df_task_verdict v = df_task_next(task, &seen, EPOCH + 1800 * SECOND);
    assert_string_equal(v.message, "its target is still held by taskaction/other");
}

/* It may live, and its message does not say that it ended. */
static void what_ends_while_nobody_knows_of_it_says_what_does_not_answer(void **state)
{
    (void)state;
    static const struct {
        bool canceled;
        const char *message;
    } rows[] = {
        {false, "it ran out of time; whether it has ended is not known: AWX is away"},
        {true,
         "canceled, and it did not end in time; whether it has ended is not known: AWX is away"}};
    const struct df_engine_observation seen = {
        .phase = DF_ENGINE_RUNNING, .exit_code = -1, .is_unknown = true, .cause = "AWX is away"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct moment m = {.created = 1, .canceled = rows[i].canceled};
        DF_JSON cJSON *task = task_of(&m);
        struct df_task_verdict v = df_task_next(task, &seen, EPOCH + 5000 * SECOND);
        assert_int_equal(v.next, DF_TASK_FAIL);
        assert_string_equal(v.message, rows[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_workflow_gets_its_defaults),
        cmocka_unit_test(a_workflow_may_say_everything),
        cmocka_unit_test(a_target_has_two_or_three_parts),
        cmocka_unit_test(the_engine_decides_which_names_parameters_may_have),
        cmocka_unit_test(a_playbook_needs_its_config_and_a_bundle_without_a_password),
        cmocka_unit_test(what_a_workflow_may_not_say_is_named),
        cmocka_unit_test(parameters_end_at_their_limit),
        cmocka_unit_test(a_workflow_is_decided_as_the_table_says),
        cmocka_unit_test(a_target_that_stays_locked_names_its_holder),
        cmocka_unit_test(what_ends_while_nobody_knows_of_it_says_what_does_not_answer),
    };
    return cmocka_run_group_tests_name("model_workflow", tests, NULL, NULL);
}
