#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/parse.h"
#include "spawner/model/integration.h"
#include "spawner/model/model.h"
#include "tests/unit/json_words.h"

/* The contract's table of names: what each provider's secret becomes. */
static const struct {
    const char *provider, *secret, *environment, *files;
} cases[] = {
    {"aws", "{'aws_access_key_id':'A','aws_secret_access_key':'B'}",
     "{'AWS_ACCESS_KEY_ID':'A','AWS_SECRET_ACCESS_KEY':'B','AWS_REGION':'us-east-1'}", "{}"},
    {"aws",
     "{'aws_access_key_id':'A','aws_secret_access_key':'B','aws_session_token':'C',"
     "'aws_account':'D','aws_default_region':'eu-west-1'}",
     "{'AWS_ACCESS_KEY_ID':'A','AWS_SECRET_ACCESS_KEY':'B','AWS_SESSION_TOKEN':'C',"
     "'AWS_ACCOUNT':'D','AWS_REGION':'eu-west-1'}",
     "{}"},
    {"azurerm", "{'client_id':'A','client_secret':'B','tenant_id':'C','subscription_id':'D'}",
     "{'ARM_CLIENT_ID':'A','ARM_CLIENT_SECRET':'B','ARM_TENANT_ID':'C','ARM_SUBSCRIPTION_ID':'D',"
     "'AZURE_CLIENT_ID':'A','AZURE_CLIENT_SECRET':'B','AZURE_TENANT_ID':'C',"
     "'AZURE_SUBSCRIPTION_ID':'D'}",
     "{}"},
    {"gcp", "{'service_account_key':'{}','gcp_project_id':'p'}",
     "{'GOOGLE_APPLICATION_CREDENTIALS':'@files/gcp_service_account_key.json',"
     "'GOOGLE_PROJECT':'p'}",
     "{'gcp_service_account_key.json':'{}'}"},
    {"mongodb_atlas", "{'org_id':'A','public_key':'B','private_key':'C'}",
     "{'MONGODB_ATLAS_ORG_ID':'A','MONGODB_ATLAS_PUBLIC_KEY':'B','MONGODB_ATLAS_PRIVATE_KEY':'C'}",
     "{}"},
    {"datadog", "{'api_url':'A','api_key':'B','app_key':'C'}",
     "{'DD_HOST':'A','DD_API_KEY':'B','DD_APP_KEY':'C'}", "{}"},
    {"github", "{'token':'A'}", "{'GITHUB_TOKEN':'A'}", "{}"},
    {"gitlab", "{'token':'A'}", "{'GITLAB_TOKEN':'A','GITLAB_SERVER_URL':'https://gitlab.com'}",
     "{}"},
    {"gitlab", "{'token':'A','server_url':'https://g'}",
     "{'GITLAB_TOKEN':'A','GITLAB_SERVER_URL':'https://g'}", "{}"},
    {"bitbucket", "{'user':'A','key':'B'}", "{'BITBUCKET_USER':'A','BITBUCKET_KEY':'B'}", "{}"},
    {"azure_devops", "{'token':'A','organization':'B'}",
     "{'AZURE_TOKEN':'A','AZURE_ORGANIZATION':'B'}", "{}"},
};

static void secrets_become_the_variables_of_the_contract(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *secret = json(cases[i].secret), *environment = cJSON_CreateObject();
        DF_JSON cJSON *files = cJSON_CreateObject();
        struct df_err err = {0};
        if (df_integration_apply(cases[i].provider, secret, environment, files, &err) < 0)
            fail_msg("%s: %s", cases[i].provider, err.message);
        DF_JSON cJSON *expected = json(cases[i].environment),
                      *expected_files = json(cases[i].files);
        if (!df_json_equal(environment, expected) || !df_json_equal(files, expected_files))
            fail_msg("%s: %s", cases[i].provider, df_json_print(environment));
    }
}

static void ssh_providers_check_the_host_key(void **state)
{
    (void)state;
    static const char *const providers[] = {"github_ssh", "bitbucket_ssh", "azure_devops_ssh"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(providers); i++) {
        DF_JSON cJSON *secret = json("{'ssh-privatekey':'K','known_hosts':'H\\n'}");
        DF_JSON cJSON *environment = cJSON_CreateObject(), *files = cJSON_CreateObject();
        assert_int_equal(df_integration_apply(providers[i], secret, environment, files, NULL), 0);
        const char *command = df_json_str(environment, "GIT_SSH_COMMAND");
        assert_non_null(strstr(command, "StrictHostKeyChecking=yes"));
        assert_non_null(strstr(command, "-i '@files/ssh_key'"));
        DF_JSON cJSON *expected = json("{'ssh_key':'K\\n','known_hosts':'H\\n'}");
        assert_true(df_json_equal(files, expected));
        struct df_err err = {0};
        DF_JSON cJSON *bare = json("{'ssh-privatekey':'K'}");
        DF_JSON cJSON *fresh = cJSON_CreateObject();
        assert_int_equal(df_integration_apply(providers[i], bare, fresh, files, &err), -1);
        assert_non_null(strstr(err.message, "lacks the key known_hosts"));
    }
}

/* Every provider of the list is known, each of its keys is needed or has a default, and a variable
 * that is set already is not overwritten. */
static void a_secret_that_lacks_a_key_is_refused_by_name_and_without_a_value(void **state)
{
    (void)state;
    for (size_t i = 0; df_integration_providers[i]; i++) {
        DF_JSON cJSON *secret = cJSON_CreateObject(), *environment = cJSON_CreateObject();
        DF_JSON cJSON *files = cJSON_CreateObject();
        struct df_err err = {0};
        assert_int_equal(
            df_integration_apply(df_integration_providers[i], secret, environment, files, &err),
            -1);
        assert_string_equal(err.reason, "InvalidStep");
        assert_non_null(strstr(err.message, "lacks the key"));
    }
    DF_JSON cJSON *secret = json("{'token':'hunter2','user':'hunter2'}");
    DF_JSON cJSON *environment = cJSON_CreateObject(), *files = cJSON_CreateObject();
    struct df_err err = {0};
    assert_int_equal(df_integration_apply("github", secret, environment, files, &err), -1);
    assert_string_equal(err.message,
                        "integration github does not know the key \"user\" of its secret");
    assert_null(environment->child);
    assert_int_equal(df_integration_apply("ibm", secret, environment, files, &err), -1);
    DF_JSON cJSON *empty = json("{'token':''}");
    assert_int_equal(df_integration_apply("github", empty, environment, files, &err), -1);
    assert_null(strstr(err.message, "hunter2"));
}

static void two_that_set_the_same_variable_are_refused(void **state)
{
    (void)state;
    DF_JSON cJSON *secret = json("{'token':'A'}"), *environment = json("{'GITHUB_TOKEN':'old'}");
    DF_JSON cJSON *files = cJSON_CreateObject();
    struct df_err err = {0};
    assert_int_equal(df_integration_apply("github", secret, environment, files, &err), -1);
    assert_string_equal(err.message,
                        "integration github sets GITHUB_TOKEN, which something else sets, too");
    assert_string_equal(df_json_str(environment, "GITHUB_TOKEN"), "old");
}

static void every_provider_of_the_list_is_admitted(void **state)
{
    (void)state;
    for (size_t i = 0; df_integration_providers[i]; i++) {
        DF_FREE char *text = df_strf("{'metadata':{'name':'net'},'spec':{'source':{'url':"
                                     "'file:///src'},'integrations':[{'provider':'%s',"
                                     "'secretRef':{'name':'s'}}]}}",
                                     df_integration_providers[i]);
        DF_JSON cJSON *j = json(text);
        assert_int_equal(df_model_admit(DF_KIND_EXECUTOR, j, NULL, NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_become_the_variables_of_the_contract),
        cmocka_unit_test(ssh_providers_check_the_host_key),
        cmocka_unit_test(a_secret_that_lacks_a_key_is_refused_by_name_and_without_a_value),
        cmocka_unit_test(two_that_set_the_same_variable_are_refused),
        cmocka_unit_test(every_provider_of_the_list_is_admitted),
    };
    return cmocka_run_group_tests_name("model_integration", tests, NULL, NULL);
}
