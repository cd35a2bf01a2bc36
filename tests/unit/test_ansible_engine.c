/* What the engine `ansible` asks AWX for until a job runs. The cases of kubernaut's ansible
 * executor have their ids here and in test_ansible_jobs.c, where they are not of the parts alone
 * (test_awx_client.c, test_extra_vars.c, test_awx_credentials.c). */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/workflow/workflow.h"
#include "tests/unit/ansible_world.h"

static void assert_launched(struct world *w, const char *member, const char *expected)
{
    DF_JSON cJSON *body = awx_body(&w->awx, "POST", LAUNCH);
    assert_at(body, member, expected);
}

/* ---- what a job is launched with ---- */

/* (engine), UT-WE-015-001, -032 */
static void a_workflow_becomes_a_job_with_its_parameters(void **state)
{
    struct world *w = *state;
    (void)awx_keep(&w->awx, "job_templates", json("{'id':99,'name':'restart-pod'}"));
    plan(w, "{'engineConfig':{'playbookPath':'playbooks/restart.yml',"
            "'jobTemplateName':'restart-pod','inventoryName':'production'},"
            "'parameters':{'NAMESPACE':'default','REPLICAS':'3'}}");
    start(w);
    assert_string_equal(w->engine->kind->name, "ansible");
    assert_null(w->engine->ops->runner);
    assert_json(w->ref,
                "{'kind':'AWXJob','name':'awx-job-42','namespace':'kw','uid':'42',"
                "'credentials':[]}",
                "the reference");
    DF_JSON cJSON *body = awx_body(&w->awx, "POST", "job_templates/99/launch/");
    assert_at(body, "extra_vars.NAMESPACE", "'default'");
    assert_at(body, "extra_vars.REPLICAS", "3");
    assert_null(df_json_at(body, "credentials"));
    assert_int_equal(awx_count(&w->awx, NULL, "job_templates/99/credentials/"), 0);
}

/* UT-WE-015-006, -007, UT-WE-243-042 */
static void the_playbook_is_told_of_its_action(void **state)
{
    struct world *w = *state;
    be(w, "we-rr-abc123", "uid-6");
    plan(w, "{" CONFIG ",'remediationRequestRef':{'name':'rr-we-rr-abc123','namespace':'kw'},"
            "'parameters':{'TARGET_NAMESPACE':'demo-ns','NEW_MEMORY_LIMIT':'512Mi',"
            "'WFE_NAME':'spoofed-wfe','RR_NAMESPACE':'spoofed-ns'}}");
    start(w);
    assert_launched(w, "extra_vars",
                    "{'TARGET_NAMESPACE':'demo-ns','NEW_MEMORY_LIMIT':'512Mi',"
                    "'WFE_NAME':'we-rr-abc123','WFE_NAMESPACE':'kw','RR_NAME':'rr-we-rr-abc123',"
                    "'RR_NAMESPACE':'kw','DAYFLY_UID':'uid-6'}");
    be(w, "wfe-no-rr", "uid-7");
    plan(w, "{" CONFIG "}");
    start(w);
    assert_launched(w, "extra_vars.RR_NAME", "''");
    assert_launched(w, "extra_vars.RR_NAMESPACE", "''");
}

/* UT-WE-243-040, -041 */
static void a_parameter_that_is_not_declared_is_dropped(void **state)
{
    struct world *w = *state;
    plan(w, "{" CONFIG ",'declaredParameterNames':{'REPLICAS':true},"
            "'parameters':{'REPLICAS':'3','HALLUCINATED':'x'}}");
    start(w);
    DF_JSON cJSON *body = awx_body(&w->awx, "POST", LAUNCH);
    assert_at(body, "extra_vars.REPLICAS", "3");
    assert_null(df_json_at(body, "extra_vars.HALLUCINATED"));
    be(w, "we-2", "uid-2");
    plan(w, "{" CONFIG ",'parameters':{'CUSTOM':'user-value'}}");
    start(w);
    assert_launched(w, "extra_vars.CUSTOM", "'user-value'");
}

/* UT-WE-015-040, -042 */
static void a_config_map_becomes_variables(void **state)
{
    struct world *w = *state;
    put_object(w, &df_kube_config_maps, "app-config", "{'log-level':'debug','max-retries':'5'}");
    plan(w, "{" CONFIG ",'dependencies':{'configMaps':[{'name':'app-config'}]},"
            "'parameters':{'TARGET_NAMESPACE':'demo-ns'}}");
    start(w);
    assert_launched(w, "extra_vars",
                    "{'KUBERNAUT_CONFIGMAP_APP_CONFIG_LOG_LEVEL':'debug',"
                    "'KUBERNAUT_CONFIGMAP_APP_CONFIG_MAX_RETRIES':'5','TARGET_NAMESPACE':'demo-ns',"
                    "'WFE_NAME':'we-1','WFE_NAMESPACE':'kw','RR_NAME':'','RR_NAMESPACE':'',"
                    "'DAYFLY_UID':'uid-1'}");
    assert_int_equal(awx_count(&w->awx, NULL, "cred"), 0);
    be(w, "we-2", "uid-2");
    plan(w, "{" CONFIG ",'dependencies':{'configMaps':[{'name':'nonexistent-configmap'}]}}");
    assert_no_start(w, DF_ERR_USER, "ConfigMapMissing",
                    "inject dependency configmaps: read dependency configmap "
                    "\"nonexistent-configmap\" in \"build\"");
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 1);
}

/* ---- Secrets ---- */

/* UT-WE-015-030, -041, UT-WE-365-003 */
static void a_secret_becomes_a_credential_of_the_job(void **state)
{
    struct world *w = *state;
    put_object(w, &df_kube_config_maps, "app-settings", "{'timeout':'30s'}");
    plan_gitea(w);
    plan(w, "{" CONFIG ",'dependencies':{'secrets':[{'name':'gitea-repo-creds'}],"
            "'configMaps':[{'name':'app-settings'}]}}");
    start(w);
    DF_JSON cJSON *type = awx_body(&w->awx, "POST", "credential_types/");
    DF_JSON cJSON *credential = awx_body(&w->awx, "POST", "credentials/");
    int type_id = awx_first(&w->awx, "credential_types");
    int id = awx_first(&w->awx, "credentials");
    DF_FREE char *ids = df_strf("[%d]", id);
    assert_at(type, "name", "'kubernaut-secret-gitea-repo-creds'");
    assert_at(credential, "name", "'kubernaut-ephemeral-gitea-repo-creds-we-1-uid-1'");
    assert_int_equal(df_json_int(credential, "credential_type", 0), type_id);
    assert_at(credential, "organization", "1");
    assert_at(credential, "inputs", "{'username':'admin','password':'secret123'}");
    assert_launched(w, "credentials", ids);
    assert_launched(w, "extra_vars.KUBERNAUT_CONFIGMAP_APP_SETTINGS_TIMEOUT", "'30s'");
    assert_at(w->ref, "credentials", ids);
}

#define FIELD(id) "{'id':'" id "','label':'" id "','type':'string','secret':true}"
#define ENV(key) "'KUBERNAUT_SECRET_GITEA_REPO_CREDS_" key "'"

/* UT-WE-015-031 */
static void a_credential_type_is_used_again(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    (void)awx_keep(
        &w->awx, "credential_types",
        json("{'id':15,'name':'kubernaut-secret-gitea-repo-creds',"
             "'inputs':{'fields':[" FIELD("username") "," FIELD(
                 "password") "]},"
                             "'injectors':{'env':{" ENV("USERNAME") ":'{{username}}'," ENV(
                                 "PASSWORD") ":'{{password}}'}}}"));
    start(w);
    DF_JSON cJSON *credential = awx_body(&w->awx, "POST", "credentials/");
    assert_at(credential, "credential_type", "15");
    assert_int_equal(awx_count(&w->awx, "POST", "credential_types/"), 0);
}

static void a_credential_type_that_somebody_changed_is_not_used(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    (void)awx_keep(&w->awx, "credential_types",
                   json("{'id':15,'name':'kubernaut-secret-gitea-repo-creds','inputs':{}}"));
    start(w);
    DF_JSON cJSON *type = awx_body(&w->awx, "POST", "credential_types/");
    assert_true(df_starts_with(df_json_str(type, "name"), "kubernaut-secret-gitea-repo-creds-"));
}

static void a_type_that_another_workflow_has_just_created_is_used(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    start(w);
    be(w, "we-2", "uid-2");
    awx_break(&w->awx, "GET", "credential_types/", 200, "{\"results\":[]}");
    start(w);
    assert_int_equal(awx_count(&w->awx, "POST", "credential_types/"), 2);
    assert_int_equal(awx_size(&w->awx, "credential_types"), 1);
    assert_int_equal(awx_size(&w->awx, "credentials"), 2);
}

/* UT-WE-015-033 */
static void a_secret_that_is_missing_is_named(void **state)
{
    struct world *w = *state;
    plan(w, "{" CONFIG ",'dependencies':{'secrets':[{'name':'nonexistent-secret'}]}}");
    assert_no_start(w, DF_ERR_USER, "SecretMissing",
                    "inject dependency secrets: read dependency secret \"nonexistent-secret\" in "
                    "\"build\"");
    assert_int_equal(awx_count(&w->awx, "POST", ""), 0);
}

static void the_secrets_of_the_service_are_not_given_to_a_playbook(void **state)
{
    struct world *w = *state;
    put_object(w, &df_kube_secrets, "dayfly-key", "{'key':'k'}");
    put_object(w, &df_kube_secrets, "mine", "{'key':'k'}");
    const struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = "build", .name = "mine"};
    DF_JSON cJSON *mine = NULL;
    assert_int_equal(df_kube_get(w->kube, &at, &mine, NULL), 0);
    cJSON *labels = df_json_object_at(cJSON_GetObjectItem(mine, "metadata"), "labels");
    assert_int_equal(df_json_set_str(labels, "dayfly.dev/vault", "true", NULL), 0);
    assert_int_equal(df_kube_update(w->kube, &at, mine, NULL, NULL), 0);
    plan(w, "{" CONFIG ",'dependencies':{'secrets':[{'name':'dayfly-key'}]}}");
    assert_no_start(w, DF_ERR_USER, "PlacementDenied", "the Secret \"dayfly-key\" is");
    plan(w, "{" CONFIG ",'dependencies':{'secrets':[{'name':'mine'}]}}");
    assert_no_start(w, DF_ERR_USER, "PlacementDenied", "the Secret \"mine\" is");
    assert_int_equal(awx_count(&w->awx, "POST", ""), 0);
}

static const struct {
    const char *of_template, *launched; /* %d: ours */
} merges[] = {
    {"[100,200]", "[100,200,%d]"}, /* UT-WE-365-001 */
    {"[100,2]", "[100,%d]"},       /* UT-WE-365-002: ours is 2 */
};

static void the_credentials_of_the_template_stay(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(merges); i++) {
        DF_FREE char *uid = df_strf("uid-%zu", i);
        be(w, "we-1", uid);
        awx_begin_again(&w->awx);
        awx_set(&w->awx, "job_templates", 10, "credentials", json(merges[i].of_template));
        start(w);
        int id = (int)df_json_at(w->ref, "credentials")->child->valuedouble;
        DF_BUF struct df_buf launched = DF_BUF_INIT(100);
        const char *at = strstr(merges[i].launched, "%d");
        (void)df_buf_addf(&launched, "%.*s%d]", (int)(at - merges[i].launched), merges[i].launched,
                          id);
        assert_int_equal(id, 2);
        assert_launched(w, "credentials", df_buf_str(&launched));
        assert_at(w->ref, "credentials", "[2]");
    }
}

/* UT-WE-365-005 */
static void a_template_whose_credentials_cannot_be_read_is_launched(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "GET", "job_templates/10/credentials/", 500, NULL);
    start(w);
    DF_FREE char *ids = df_json_print(df_json_at(w->ref, "credentials"));
    assert_launched(w, "credentials", ids);
    assert_string_equal(df_json_str(w->ref, "name"), "awx-job-42");
}

static void a_refusal_for_want_of_the_templates_credentials_is_tried_again(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "GET", "job_templates/10/credentials/", 500, NULL);
    awx_break(&w->awx, "POST", LAUNCH, 400, "{\"credentials\":[\"Removing Vault\"]}");
    assert_no_start(w, DF_ERR_RETRY, "", "Removing Vault");
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
}

/* ---- what is refused ---- */

/* UT-WE-015-004 */
static void a_workflow_without_a_config_is_refused(void **state)
{
    struct world *w = *state;
    plan(w, "{}");
    assert_no_start(w, DF_ERR_USER, "InvalidStep",
                    "parse ansible engineConfig: engineConfig is required for ansible engine");
    plan(w, "{'engineConfig':{'playbookPath':'a.yml'}}");
    assert_no_start(w, DF_ERR_USER, "InvalidStep",
                    "resolve AWX job template: jobTemplateName is required");
    plan(w, "{'engineConfig':{'playbookPath':'a.yml','jobTemplateName':'tset-template'}}");
    assert_no_start(w, DF_ERR_USER, "InvalidStep", "its nearest are \"test-template\"");
    plan(w, "{" CONFIG ",'parameters':{'LIMIT':'nan'}}");
    assert_no_start(w, DF_ERR_USER, "InvalidStep", "spec.workflow.parameters.LIMIT");
    assert_int_equal(awx_count(&w->awx, "POST", ""), 0);
}

/* UT-WE-015-005 */
static void a_service_without_rights_in_awx_says_so(void **state)
{
    struct world *w = *state;
    awx_set_away(&w->awx, 403);
    assert_no_start(w, DF_ERR_USER, "NotAllowed", "AWX job template search returned 403");
    awx_set_away(&w->awx, 0);
    awx_set_token(&w->awx, "another-token");
    assert_no_start(w, DF_ERR_USER, "NotAllowed",
                    "AWX refuses the token of ansible.tokenSecretRef");
}

static void a_launch_that_is_refused_leaves_no_credential(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "POST", LAUNCH, 400, "{\"detail\":\"no, secret123\"}");
    assert_no_start(w, DF_ERR_USER, "InvalidStep",
                    "launch AWX job template 10: AWX launch returned "
                    "400");
    assert_int_equal(awx_count(&w->awx, "POST", "credentials/"), 1);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
}

static void a_secret_that_fails_takes_the_credentials_of_others_along(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    plan(w, "{" CONFIG ",'dependencies':{'secrets':[{'name':'gitea-repo-creds'},{'name':'b'}]}}");
    assert_no_start(w, DF_ERR_USER, "SecretMissing", "\"b\"");
    assert_int_equal(awx_count(&w->awx, "POST", "credentials/"), 1);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
}

static void a_job_that_lacks_its_parameters_is_canceled(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_ignore(&w->awx, json("{'extra_vars':{'A':1}}"));
    assert_no_start(w, DF_ERR_USER, "InvalidStep",
                    "AWX ignored extra_vars: set \"Prompt on launch\" for it in the job template; "
                    "the job 42 was canceled");
    assert_true(awx_is(&w->awx, 42, "canceled"));
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
}

static void a_job_that_lacks_its_parameters_and_cannot_be_canceled_is_named(void **state)
{
    struct world *w = *state;
    awx_ignore(&w->awx, json("{'extra_vars':{'A':1}}"));
    awx_break(&w->awx, "POST", "jobs/42/cancel/", 503, NULL);
    assert_no_start(w, DF_ERR_USER, "InvalidStep",
                    "the job 42 must be canceled by you: AWX cancel returned 503");
}

#define OWN "WFE_NAME, WFE_NAMESPACE, RR_NAME, RR_NAMESPACE, DAYFLY_UID"
#define QUESTION(v) "{'variable':'" v "','required':false}"

static const struct {
    const char *member, *value, *survey, *fault; /* fault: NULL: it is launched */
} prompts[] = {
    {"ask_variables_on_launch", "false", NULL,
     "variables of the job template; it does not take " OWN ", A"},
    {"ask_credential_on_launch", "false", NULL, "AWX would ignore the Secrets of the workflow"},
    {"ask_variables_on_launch", "false", "{'spec':[" QUESTION("A") "]}",
     "or add them to its survey; it does not take " OWN},
    {"ask_variables_on_launch", "false", "{}", "it does not take " OWN ", A"},
    {"ask_variables_on_launch", "false",
     "{'spec':[" QUESTION("A") "," QUESTION("WFE_NAME") "," QUESTION("WFE_NAMESPACE") "," QUESTION(
         "RR_NAME") "," QUESTION("RR_NAMESPACE") "," QUESTION("DAYFLY_UID") "]}",
     NULL},
    {"ask_inventory_on_launch", "false", NULL, NULL},
};

/* A job that lacked them would run for a while before it could be canceled. */
static void what_awx_would_ignore_is_refused_before_anything_is_made(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    plan(w, "{" CONFIG "," GITEA ",'parameters':{'A':'1'}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(prompts); i++) {
        awx_set(&w->awx, "job_templates", 10, "ask_variables_on_launch", json("true"));
        awx_set(&w->awx, "job_templates", 10, "ask_credential_on_launch", json("true"));
        awx_set(&w->awx, "job_templates", 10, prompts[i].member, json(prompts[i].value));
        awx_set(&w->awx, "job_templates", 10, "survey_enabled",
                cJSON_CreateBool(prompts[i].survey != NULL));
        awx_set(&w->awx, "job_templates", 10, "survey",
                json(prompts[i].survey ? prompts[i].survey : "{}"));
        int posts = awx_count(&w->awx, "POST", "");
        if (prompts[i].fault) {
            assert_no_start(w, DF_ERR_USER, "InvalidStep", prompts[i].fault);
            assert_int_equal(awx_count(&w->awx, "POST", ""), posts);
            continue;
        }
        DF_FREE char *uid = df_strf("uid-%zu", i);
        be(w, "we-1", uid);
        start(w);
    }
}

/* ---- launches whose answer was lost ---- */

static void a_job_whose_launch_was_not_answered_is_found_again(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "POST", LAUNCH, AWX_LOST, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "launch AWX job template 10: AWX launch");
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
    start(w);
    int id = awx_first(&w->awx, "credentials");
    DF_FREE char *ids = df_strf("[%d]", id);
    assert_string_equal(df_json_str(w->ref, "name"), "awx-job-42");
    assert_at(w->ref, "credentials", ids);
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 1);
}

/* A proxy gave up, or answers with another success: AWX may have launched. */
static void a_launch_that_only_a_proxy_refuses_keeps_its_credentials(void **state)
{
    static const struct {
        int status;
        enum df_err_class cls;
    } rows[] = {{408, DF_ERR_RETRY}, {425, DF_ERR_RETRY},  {499, DF_ERR_RETRY},
                {503, DF_ERR_RETRY}, {200, DF_ERR_SYSTEM}, {202, DF_ERR_SYSTEM}};
    struct world *w = *state;
    plan_gitea(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *uid = df_strf("uid-%zu", i);
        be(w, "we-1", uid);
        awx_break(&w->awx, "POST", LAUNCH, rows[i].status, "");
        assert_no_start(w, rows[i].cls, "", "AWX launch returned");
        assert_int_equal(awx_size(&w->awx, "credentials"), (int)i + 1);
        assert_no_start(w, DF_ERR_RETRY, "", "is not launched again");
    }
}

/* None of these has reached AWX, or AWX has refused it. */
static void a_launch_that_certainly_came_to_nothing_is_repeated(void **state)
{
    static const int statuses[] = {404, 429};
    struct world *w = *state;
    plan_gitea(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++) {
        awx_break(&w->awx, "POST", LAUNCH, statuses[i], "");
        assert_no_start(w, DF_ERR_RETRY, "", "AWX launch returned");
        assert_int_equal(awx_size(&w->awx, "credentials"), 0);
    }
    start(w);
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 3);
}

static void nothing_is_launched_while_that_is_undecided(void **state)
{
    static const int statuses[] = {403, 404, 429, 500};
    struct world *w = *state;
    awx_break(&w->awx, "POST", LAUNCH, AWX_LOST, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX launch");
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++) {
        struct df_err err = {0};
        cJSON *ref = NULL;
        awx_break(&w->awx, "GET", "job_templates/10/jobs/", statuses[i], NULL);
        assert_int_equal(ops_of(w)->create(w->engine, &w->step, &ref, &err), -1);
        assert_int_equal(err.cls, DF_ERR_RETRY);
        assert_message(&err, "look for a job of this action, before one is launched: AWX jobs");
    }
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 1);
    start(w);
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 1);
}

static void the_job_of_another_action_of_this_name_is_not_ours(void **state)
{
    struct world *w = *state;
    start(w);
    be(w, "we-1", "uid-2");
    start(w);
    assert_string_equal(df_json_str(w->ref, "name"), "awx-job-43");
}

static void an_attempt_that_failed_half_way_is_repeated(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "POST", "credentials/", AWX_LOST, NULL);
    assert_no_start(w, DF_ERR_RETRY, "",
                    "create ephemeral credential for secret \"gitea-repo-creds\"");
    int old = awx_first(&w->awx, "credentials");
    world_later(131);
    start(w);
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
    assert_true(df_json_at(w->ref, "credentials")->child->valuedouble > old);
}

static void a_launch_on_which_awx_may_still_work_is_not_repeated(void **state)
{
    struct world *w = *state;
    awx_break(&w->awx, "POST", LAUNCH, 504, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX launch returned 504");
    world_later(100000);
    assert_no_start(
        w, DF_ERR_RETRY, "",
        "AWX did not answer its launch, and AWX has no job of it: it may have run, and is "
        "not launched again. Look in AWX for a job with the variable DAYFLY_UID uid-1");
    assert_string_equal(observe(w).reason, "JobDeleted");
    assert_non_null(strstr(observe(w).cause, "DAYFLY_UID uid-1"));
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 1);
    awx_launch_later(&w->awx, 10, "uid-1");
    start(w);
    assert_string_equal(df_json_str(w->ref, "name"), "awx-job-42");
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 1);
    assert_string_equal(observe(w).cause, "AWX job is queued");
}

/* Nobody knows what the process before has asked for, but AWX ends a request by itself. */
static void
a_launch_that_a_process_before_may_have_asked_for_is_waited_for_and_then_done(void **state)
{
    struct world *w = *state;
    assert_int_equal(w->engine->ops->watch(w->engine, NULL), 0);
    world_later(125);
    assert_no_start(w, DF_ERR_RETRY, "",
                    "the process that asked for it is gone, and AWX has no job of it");
    assert_non_null(strstr(observe(w).cause, "is not launched again yet"));
    world_later(6);
    start(w);
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 1);
}

/* ---- replicas ---- */

/* The last leader may have launched it in its last moment. */
static void a_new_leader_gives_awx_time_before_it_launches_what_was_asked_for(void **state)
{
    struct world *w = *state;
    assert_int_equal(w->engine->ops->watch(w->engine, NULL), 0);
    assert_no_start(w, DF_ERR_RETRY, "",
                    "the process that asked for it is gone, and AWX has no job of it");
    assert_int_equal(awx_count(&w->awx, "POST", ""), 0);
    awx_launch_later(&w->awx, 10, "uid-1");
    start(w);
    assert_string_equal(df_json_str(w->ref, "name"), "awx-job-42");
    assert_int_equal(awx_count(&w->awx, "POST", ""), 0);
}

static void a_new_leader_launches_at_once_what_nobody_has_asked_for(void **state)
{
    struct world *w = *state;
    assert_int_equal(w->engine->ops->watch(w->engine, NULL), 0);
    w->step.was_created = false;
    start(w);
}

static void a_start_that_failed_is_repeated_at_once_by_who_has_asked_for_it(void **state)
{
    struct world *w = *state;
    assert_int_equal(w->engine->ops->watch(w->engine, NULL), 0);
    w->step.was_created = false;
    awx_break(&w->awx, "GET", "job_templates/", 503, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX job template search returned 503");
    w->step.was_created = true;
    start(w);
}

/* As one that was stopped between its look for a job and the launch. */
static void who_leads_no_more_launches_nothing(void **state)
{
    struct world *w = *state;
    w->does_not_lead = true;
    assert_no_start(w, DF_ERR_RETRY, "NotLeader", "this replica does not lead");
    assert_int_equal(awx_count(&w->awx, "GET", "job_templates/10/jobs/"), 1);
    assert_int_equal(awx_count(&w->awx, "POST", ""), 0);
}

static void who_leads_no_more_leaves_the_credentials_of_the_next_leader(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    start(w);
    awx_move(&w->awx, 42, "successful");
    w->does_not_lead = true;
    assert_int_equal(clean(w, NULL), -1);
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), -1);
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
    assert_int_equal(awx_count(&w->awx, "POST", "jobs/42/cancel/"), 0);
}

/* ---- others that hold the target ---- */

static void a_target_that_another_engine_holds_is_waited_for(void **state)
{
    struct world *w = *state;
    char name[21];
    assert_int_equal(df_workflow_name(w->step.workflow.target, name, NULL), 0);
    put_object(w, &df_kube_jobs, name, "{}");
    assert_no_start(w, DF_ERR_CONFLICT, "TargetLocked", name);
    assert_string_equal(observe(w).reason, "");
    w->step.workflow.was_locked = true;
    assert_string_equal(observe(w).reason, "TargetLocked");
    assert_non_null(strstr(observe(w).cause, "the Job build/wfe-"));
    remove_object(w, &df_kube_jobs, name);
    assert_string_equal(observe(w).reason, "");
    start(w);
}

/* ---- the service asks ---- */

static void the_engine_says_whether_it_can_take_a_step(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    assert_int_equal(w->engine->ops->check(w->engine, NULL), 0);
    awx_set_away(&w->awx, 503);
    assert_failed(w->engine->ops->check(w->engine, &err), &err, DF_ERR_RETRY, "", "AWX");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_workflow_becomes_a_job_with_its_parameters),
        TEST(the_playbook_is_told_of_its_action),
        TEST(a_parameter_that_is_not_declared_is_dropped),
        TEST(a_config_map_becomes_variables),
        TEST(a_secret_becomes_a_credential_of_the_job),
        TEST(a_credential_type_is_used_again),
        TEST(a_credential_type_that_somebody_changed_is_not_used),
        TEST(a_type_that_another_workflow_has_just_created_is_used),
        TEST(a_secret_that_is_missing_is_named),
        TEST(the_secrets_of_the_service_are_not_given_to_a_playbook),
        TEST(the_credentials_of_the_template_stay),
        TEST(a_template_whose_credentials_cannot_be_read_is_launched),
        TEST(a_refusal_for_want_of_the_templates_credentials_is_tried_again),
        TEST(a_workflow_without_a_config_is_refused),
        TEST(a_service_without_rights_in_awx_says_so),
        TEST(a_launch_that_is_refused_leaves_no_credential),
        TEST(a_secret_that_fails_takes_the_credentials_of_others_along),
        TEST(a_job_that_lacks_its_parameters_is_canceled),
        TEST(a_job_that_lacks_its_parameters_and_cannot_be_canceled_is_named),
        TEST(what_awx_would_ignore_is_refused_before_anything_is_made),
        TEST(a_job_whose_launch_was_not_answered_is_found_again),
        TEST(a_launch_that_only_a_proxy_refuses_keeps_its_credentials),
        TEST(a_launch_that_certainly_came_to_nothing_is_repeated),
        TEST(nothing_is_launched_while_that_is_undecided),
        TEST(the_job_of_another_action_of_this_name_is_not_ours),
        TEST(an_attempt_that_failed_half_way_is_repeated),
        TEST(a_launch_on_which_awx_may_still_work_is_not_repeated),
        TEST(a_launch_that_a_process_before_may_have_asked_for_is_waited_for_and_then_done),
        TEST(a_new_leader_gives_awx_time_before_it_launches_what_was_asked_for),
        TEST(a_new_leader_launches_at_once_what_nobody_has_asked_for),
        TEST(a_start_that_failed_is_repeated_at_once_by_who_has_asked_for_it),
        TEST(who_leads_no_more_launches_nothing),
        TEST(who_leads_no_more_leaves_the_credentials_of_the_next_leader),
        TEST(a_target_that_another_engine_holds_is_waited_for),
        TEST(the_engine_says_whether_it_can_take_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
