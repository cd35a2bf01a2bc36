#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/tekton/pipeline_run.h"
#include "tests/unit/kube_words.h"

/* Inputs and expected values are those of kubernaut's own cases for its Tekton engine; their ids
 * stand beside them. Where its two versions differ the PipelineRun has the later one's hardening
 * and the earlier one's default service account. */

/* What a case says; the rest is as in its fixture. */
struct given {
    const char *name, *name_space, *target, *id, *image;
    const char *parameters, *declared, *secrets, *config_maps, *resources, *placement, *account;
};

static cJSON *json_or_null(const char *text)
{
    return text ? json(text) : NULL;
}

static const char *or_else(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static int build(const struct given *g, const struct df_never *never, cJSON **ret,
                 struct df_err *err)
{
    DF_JSON cJSON *parameters = json_or_null(g->parameters), *declared = json_or_null(g->declared);
    DF_JSON cJSON *secrets = json_or_null(g->secrets), *maps = json_or_null(g->config_maps);
    DF_JSON cJSON *resources = json_or_null(g->resources);
    DF_JSON cJSON *placement = json_or_null(g->placement);
    const struct df_workflow w = {
        .name = or_else(g->name, "test-wfe"),
        .never = never,
        .source_namespace = or_else(g->name_space, "default"),
        .workflow_id = or_else(g->id, "restart-deployment"),
        .version = "v1.0.0",
        .target = or_else(g->target, "default/deployment/my-app"),
        .image = or_else(g->image, "ghcr.io/kubernaut/workflows/restart:v1.0.0"),
        .service_account = or_else(g->account, "kubernaut-workflow-runner"),
        .parameters = parameters,
        .declared = declared,
        .secrets = secrets,
        .config_maps = maps,
        .resources = resources,
        .placement = placement,
        .namespace = "kubernaut-workflows",
        .uid = "u1",
        .deadline_seconds = 1800,
    };
    return df_pipeline_run_build(&w, ret, err);
}

static cJSON *built(struct given g)
{
    struct df_err err = {0};
    cJSON *run = NULL;
    if (build(&g, NULL, &run, &err) < 0)
        fail_msg("%s", err.message);
    return run;
}

static void assert_refused(struct given g, const struct df_never *never, const char *reason,
                           const char *message)
{
    struct df_err err = {0};
    cJSON *run = NULL;
    if (build(&g, never, &run, &err) == 0)
        fail_msg("not refused: %s", message);
    assert_null(run);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.reason, reason);
    assert_message(&err, message);
}

#define POD "spec.taskRunTemplate.podTemplate"

/* BuildPipelineRun: name, namespace, bundle, parameters, default account; UT-WE-014-060, -061,
 * TEK-002, TEK-007, TEK-010. The account when none is set is the earlier version's. */
static void a_run_is_the_pipeline_of_the_bundle(void **state)
{
    (void)state;
    DF_JSON cJSON *run =
        built((struct given){.name = "test-wfe",
                             .name_space = "payment",
                             .target = "payment/deployment/payment-api",
                             .image = "ghcr.io/kubernaut/workflows/restart-deployment:v1.0.0",
                             .parameters = "{'NAMESPACE':'payment',"
                                           "'DEPLOYMENT_NAME':'payment-api'}"});
    assert_at(run, "apiVersion", "'tekton.dev/v1'");
    assert_at(run, "kind", "'PipelineRun'");
    assert_at(run, "metadata.name", "'wfe-cf0cc089293b1165'");
    assert_at(run, "metadata.namespace", "'kubernaut-workflows'");
    assert_at(run, "spec.pipelineRef",
              "{'resolver':'bundles','params':[{'name':'bundle','value':"
              "'ghcr.io/kubernaut/workflows/restart-deployment:v1.0.0'},"
              "{'name':'name','value':'workflow'},{'name':'kind','value':'pipeline'}]}");
    assert_at(run, "spec.params",
              "[{'name':'DEPLOYMENT_NAME','value':'payment-api'},"
              "{'name':'NAMESPACE','value':'payment'},"
              "{'name':'TARGET_RESOURCE','value':'payment/deployment/payment-api'}]");
    assert_at(run, "spec.taskRunTemplate",
              "{'serviceAccountName':'kubernaut-workflow-runner','podTemplate':{'securityContext':"
              "{'runAsNonRoot':true,'seccompProfile':{'type':'RuntimeDefault'}}}}");
    assert_null(df_json_at(run, "spec.workspaces"));
    assert_null(df_json_at(run, "spec.status"));
}

/* BuildPipelineRun: custom-sa, TEK-002: kubernaut-runner */
static void the_account_of_the_workflow_is_that_of_its_tasks(void **state)
{
    (void)state;
    DF_JSON cJSON *run = built((struct given){.account = "custom-sa"});
    assert_at(run, "spec.taskRunTemplate.serviceAccountName", "'custom-sa'");
}

/* UT-WE-014-064, BuildPipelineRun: labels and annotation, target as a label */
static void a_run_says_whose_it_is(void **state)
{
    (void)state;
    static const char *const labels[][2] = {
        {"kubernaut.ai/workflow-execution", "test-wfe-labels"},
        {"kubernaut.ai/workflow-id", "scale-up"},
        {"kubernaut.ai/source-namespace", "prod-ns"},
        {"kubernaut.ai/target-resource", "prod-ns__deployment__api-server"},
        {"dayfly.dev/step-uid", "u1"},
        {"app.kubernetes.io/name", "dayfly-runner"},
        {"app.kubernetes.io/managed-by", "dayfly"},
    };
    DF_JSON cJSON *run = built((struct given){.name = "test-wfe-labels",
                                              .name_space = "prod-ns",
                                              .target = "prod-ns/deployment/api-server",
                                              .id = "scale-up",
                                              .image = "ghcr.io/kubernaut/workflows/scale:v2.0.0"});
    for (size_t i = 0; i < DF_ARRAY_SIZE(labels); i++)
        assert_string_equal(keyed(run, "metadata.labels", labels[i][0]), labels[i][1]);
    assert_null(keyed(run, "metadata.labels", "kubernaut.ai/execution-engine"));
    assert_string_equal(keyed(run, "metadata.annotations", "kubernaut.ai/target-resource"),
                        "prod-ns/deployment/api-server");
}

/* UT-WE-014-062, -063, -085, -086, UT-WE-243-020, -021, BuildPipelineRun: nil parameters */
static void the_target_is_the_last_parameter(void **state)
{
    (void)state;
#define LAST "{'name':'TARGET_RESOURCE','value':'default/deployment/my-app'}"
    static const struct {
        const char *parameters, *declared, *expected;
    } rows[] = {
        {NULL, NULL, "[" LAST "]"},
        {"{}", NULL, "[" LAST "]"},
        {"{'REPLICAS':'3','NAMESPACE':'default','IMAGE':'nginx:latest'}", NULL,
         "[{'name':'IMAGE','value':'nginx:latest'},{'name':'NAMESPACE','value':'default'},"
         "{'name':'REPLICAS','value':'3'}," LAST "]"},
        {"{'NAMESPACE':'default','REPLICAS':'3','HALLUCINATED':'x'}",
         "{'NAMESPACE':true,'REPLICAS':true}",
         "[{'name':'NAMESPACE','value':'default'},{'name':'REPLICAS','value':'3'}," LAST "]"},
        {"{'NAMESPACE':'default','CUSTOM':'value'}", NULL,
         "[{'name':'CUSTOM','value':'value'},{'name':'NAMESPACE','value':'default'}," LAST "]"},
        /* names that are none of environment variables; HOME is no hazard here */
        {"{'dry-run':'no','app.name':'x','HOME':'/root'}", NULL,
         "[{'name':'HOME','value':'/root'},{'name':'app.name','value':'x'},"
         "{'name':'dry-run','value':'no'}," LAST "]"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *run =
            built((struct given){.parameters = rows[i].parameters, .declared = rows[i].declared});
        assert_at(run, "spec.params", rows[i].expected);
    }
}

/* UT-WE-006-024 to -027, TEK-003 */
static void dependencies_are_workspaces_and_secrets_come_first(void **state)
{
    (void)state;
#define TLS "{'name':'secret-tls-cert','secret':{'secretName':'tls-cert'}}"
#define CONFIG "{'name':'configmap-pipeline-config','configMap':{'name':'pipeline-config'}}"
    static const struct {
        const char *secrets, *config_maps, *expected;
    } rows[] = {
        {"[{'name':'tls-cert'}]", NULL, "[" TLS "]"},
        {NULL, "[{'name':'pipeline-config'}]", "[" CONFIG "]"},
        {"[{'name':'tls-cert'}]", "[{'name':'pipeline-config'}]", "[" TLS "," CONFIG "]"},
        /* never hashed, as the volumes of a Job are */
        {"[{'name':'a-secret.with.dots-and-a-name-that-is-longer-than-a-volume-may-be-called'}]",
         NULL,
         "[{'name':'secret-a-secret.with.dots-and-a-name-that-is-longer-than-a-volume-may-be-called"
         "','secret':{'secretName':"
         "'a-secret.with.dots-and-a-name-that-is-longer-than-a-volume-may-be-called'}}]"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *run =
            built((struct given){.secrets = rows[i].secrets, .config_maps = rows[i].config_maps});
        assert_at(run, "spec.workspaces", rows[i].expected);
    }
}

static void the_deadline_is_a_duration_of_go(void **state)
{
    (void)state;
    DF_JSON cJSON *run = built((struct given){0});
    assert_at(run, "spec.timeouts", "{'pipeline':'1800s'}");
}

static void what_no_pipeline_takes_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct given given;
        const char *message;
    } rows[] = {
        {{.parameters = "{'TARGET_RESOURCE':'x'}"}, "TARGET_RESOURCE is refused"},
        {{.parameters = "{'1st':'x'}"}, "1st is not the name of a Pipeline's parameter"},
        {{.parameters = "{'a b':'x'}"}, "a b is not the name of a Pipeline's parameter"},
        {{.parameters = "{'A':3}"}, "A is not a string; put it in quotes"},
        {{.secrets = "[{'name':'../etc'}]"}, "\"../etc\" is not the name of a secret"},
        {{.config_maps = "[{}]"}, "\"\" is not the name of a configMap"},
        {{.image = ""}, "executionBundle"},
        {{.resources = "{'limits':{'memory':'1Gi'}}"}, "spec.workflow.resources"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        assert_refused(rows[i].given, NULL, "InvalidStep", rows[i].message);
}

/* ---- the placement ---- */

static void a_placement_goes_into_the_pod_template(void **state)
{
    (void)state;
    DF_JSON cJSON *run = built((struct given){
        .placement = "{'nodeSelector':{'disk':'ssd'},'tolerations':[{'key':'gpu','operator':"
                     "'Exists'}],'priorityClassName':'high','runtimeClassName':'gvisor',"
                     "'imagePullSecrets':[{'name':'registry'}],'dnsPolicy':'Default',"
                     "'env':[{'name':'HTTPS_PROXY','value':'http://proxy'}],"
                     "'podSecurityContext':{'runAsUser':1000},'podPerStep':true,"
                     "'labels':{'team':'a'},'annotations':{'run':'x'},'podAnnotations':{'pod':'y'},"
                     "'podTemplate':{'spec':{'hostAliases':[{'ip':'10.0.0.1'}],"
                     "'schedulerName':'mine','serviceAccountName':'patched',"
                     "'volumes':[{'name':'ca','configMap':{'name':'ca'}}]}}}"});
    assert_at(run, "spec.taskRunTemplate",
              "{'serviceAccountName':'patched','podTemplate':{'nodeSelector':{'disk':'ssd'},"
              "'tolerations':[{'key':'gpu','operator':'Exists'}],'priorityClassName':'high',"
              "'runtimeClassName':'gvisor','imagePullSecrets':[{'name':'registry'}],"
              "'dnsPolicy':'Default','env':[{'name':'HTTPS_PROXY','value':'http://proxy'}],"
              "'securityContext':{'runAsNonRoot':true,'seccompProfile':{'type':'RuntimeDefault'},"
              "'runAsUser':1000},'hostAliases':[{'ip':'10.0.0.1'}],'schedulerName':'mine',"
              "'volumes':[{'name':'ca','configMap':{'name':'ca'}}]}}");
    assert_string_equal(keyed(run, "metadata.labels", "team"), "a");
    assert_string_equal(keyed(run, "metadata.annotations", "run"), "x");
    assert_string_equal(keyed(run, "metadata.annotations", "pod"), "y");
}

/* Nothing of a placement is dropped without a word. */
static void a_part_of_a_placement_for_which_tekton_has_no_place_is_named(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{'volumes':[{'name':'v','mountPath':'/v','emptyDir':{}}]}", "placement.volumes"},
        {"{'secretMounts':[{'secret':'s','mountPath':'/s'}]}", "placement.secretMounts"},
        {"{'configMapMounts':[{'configMap':'c','mountPath':'/c'}]}", "placement.configMapMounts"},
        {"{'pluginCache':{'claimName':'c','mountPath':'/p'}}", "placement.pluginCache"},
        {"{'envFrom':[{'secretRef':{'name':'s'}}]}", "placement.envFrom"},
        {"{'securityContext':{'privileged':true}}", "placement.securityContext"},
        {"{'imagePullPolicy':'Always'}", "placement.imagePullPolicy"},
        {"{'image':'i'}", "placement.image"},
        {"{'resources':{}}", "placement.resources"},
        {"{'podTemplate':{'spec':{'restartPolicy':'Never'}}}", "podTemplate.spec.restartPolicy"},
        {"{'podTemplate':{'spec':{'terminationGracePeriodSeconds':9}}}",
         "podTemplate.spec.terminationGracePeriodSeconds"},
        {"{'podTemplate':{'spec':{'initContainers':[{'name':'i'}]}}}",
         "podTemplate.spec.initContainers"},
        {"{'podTemplate':{'spec':{'containers':[{'name':'workflow','tty':true}]}}}",
         "podTemplate.spec.containers[].tty"},
        {"{'podTemplate':{'spec':{'containers':[{'name':'sidecar','image':'i'}]}}}",
         "podTemplate.spec.containers: only"},
        {"{'podTemplate':{'spec':{'containers':[{'name':'workflow','$patch':'delete'}]}}}",
         "podTemplate.spec.containers: only"},
        {"{'podTemplate':{'metadata':{'finalizers':['f']}}}", "podTemplate.metadata.finalizers"},
        {"{'podTemplate':{'metadata':{'labels':{'kubernaut.ai/workflow-execution':'forged'}}}}",
         "kubernaut.ai/workflow-execution is set by the system"},
        {"{'annotations':{'kubernaut.ai/workflow-execution':'forged'}}",
         "kubernaut.ai/workflow-execution is set by the system"},
        {"{'podAnnotations':{'dayfly.dev/step-uid':'forged'}}",
         "dayfly.dev/step-uid is set by the system"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        assert_refused((struct given){.placement = rows[i][0]}, NULL, "InvalidPlacement",
                       rows[i][1]);
}

static void what_is_the_services_own_is_in_no_run(void **state)
{
    (void)state;
    static const struct given rows[] = {
        {.secrets = "[{'name':'dayfly-key'}]"},
        {.config_maps = "[{'name':'dfb-1'}]"},
        {.placement = "{'imagePullSecrets':[{'name':'dayfly-key'}]}"},
        {.placement = "{'env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'dayfly-key',"
                      "'key':'k'}}}]}"},
        {.placement = "{'podTemplate':{'spec':{'volumes':[{'name':'v','secret':{'secretName':"
                      "'dayfly-key'}}]}}}"},
        {.account = "dayfly"},
    };
    struct df_never never = {0};
    (void)df_strs_add(&never.accounts, "dayfly");
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        assert_refused(rows[i], &never, "PlacementDenied", "belongs to dayfly itself");
    df_never_free(&never);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_the_pipeline_of_the_bundle),
        cmocka_unit_test(the_account_of_the_workflow_is_that_of_its_tasks),
        cmocka_unit_test(a_run_says_whose_it_is),
        cmocka_unit_test(the_target_is_the_last_parameter),
        cmocka_unit_test(dependencies_are_workspaces_and_secrets_come_first),
        cmocka_unit_test(the_deadline_is_a_duration_of_go),
        cmocka_unit_test(what_no_pipeline_takes_is_refused),
        cmocka_unit_test(a_placement_goes_into_the_pod_template),
        cmocka_unit_test(a_part_of_a_placement_for_which_tekton_has_no_place_is_named),
        cmocka_unit_test(what_is_the_services_own_is_in_no_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
