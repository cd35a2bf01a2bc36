#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/parse.h"
#include "spawner/model/integration_spec.h"
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

/* Applies the secret to fresh places, which the caller deletes, or to an environment that has
 * something already. */
struct given {
    cJSON *environment, *files, *binary;
    struct df_err err;
    int result;
};

static struct given apply_to(cJSON *environment, const char *provider, const char *secret_words)
{
    DF_JSON cJSON *secret = json(secret_words);
    struct given g = {
        .environment = environment, .files = cJSON_CreateObject(), .binary = cJSON_CreateObject()};
    const struct df_integration_places to = {g.environment, g.files, g.binary};
    g.result = df_integration_apply(provider, secret, &to, &g.err);
    return g;
}

static struct given apply(const char *provider, const char *secret_words)
{
    return apply_to(cJSON_CreateObject(), provider, secret_words);
}

static void given_free(struct given *g)
{
    cJSON_Delete(g->environment);
    cJSON_Delete(g->files);
    cJSON_Delete(g->binary);
}
#define GIVEN DF_CLEANUP(given_free) struct given

static void secrets_become_the_variables_of_the_contract(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        GIVEN g = apply(cases[i].provider, cases[i].secret);
        if (g.result < 0)
            fail_msg("%s: %s", cases[i].provider, g.err.message);
        assert_json(g.environment, cases[i].environment, cases[i].provider);
        assert_json(g.files, cases[i].files, cases[i].provider);
        assert_null(g.binary->child);
    }
}

static void ssh_providers_check_the_host_key(void **state)
{
    (void)state;
    static const char *const providers[] = {"github_ssh", "bitbucket_ssh", "azure_devops_ssh"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(providers); i++) {
        GIVEN g = apply(providers[i], "{'ssh-privatekey':'K','known_hosts':'H\\n'}");
        assert_int_equal(g.result, 0);
        const char *command = df_json_str(g.environment, "GIT_SSH_COMMAND");
        assert_non_null(strstr(command, "StrictHostKeyChecking=yes"));
        assert_non_null(strstr(command, "-i '@files/ssh_key'"));
        assert_json(g.files, "{'ssh_key':'K\\n','known_hosts':'H\\n'}", providers[i]);
        GIVEN bare = apply(providers[i], "{'ssh-privatekey':'K'}");
        assert_int_equal(bare.result, -1);
        assert_non_null(strstr(bare.err.message, "lacks the key known_hosts"));
    }
}

#define AZURE "'client_id':'A','tenant_id':'C','subscription_id':'D'"

static void a_certificate_is_a_binary_file_and_excludes_a_client_secret(void **state)
{
    (void)state;
    GIVEN g = apply("azurerm",
                    "{" AZURE ",'client_certificate':'AAEC','client_certificate_password':'P'}");
    assert_int_equal(g.result, 0);
    assert_json(g.binary, "{'azure_client_certificate.pfx':'AAEC'}", "azurerm");
    assert_string_equal(df_json_str(g.environment, "ARM_CLIENT_CERTIFICATE_PATH"),
                        "@files/azure_client_certificate.pfx");
    assert_string_equal(df_json_str(g.environment, "ARM_CLIENT_CERTIFICATE_PASSWORD"), "P");
    assert_null(df_json_str(g.environment, "ARM_CLIENT_SECRET"));
    static const struct {
        const char *secret, *words;
    } wrong[] = {
        {"{" AZURE "}", "exactly one of the keys client_secret and client_certificate"},
        {"{" AZURE ",'client_certificate':'AAEC','client_secret':'S'}", "exactly one of the keys"},
        {"{" AZURE ",'client_certificate':'-----BEGIN'}", "client_certificate is not base64"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(wrong); i++) {
        GIVEN refused = apply("azurerm", wrong[i].secret);
        assert_int_equal(refused.result, -1);
        assert_string_equal(refused.err.reason, "InvalidStep");
        assert_non_null(strstr(refused.err.message, wrong[i].words));
        assert_null(strstr(refused.err.message, "BEGIN"));
    }
}

/* Every provider of the list is known, each of its keys is needed or has a default, and a variable
 * that is set already is not overwritten. */
static void a_secret_that_lacks_a_key_is_refused_by_name_and_without_a_value(void **state)
{
    (void)state;
    for (size_t i = 0; df_integration_providers[i]; i++) {
        GIVEN g = apply(df_integration_providers[i], "{}");
        assert_int_equal(g.result, -1);
        assert_string_equal(g.err.reason, "InvalidStep");
        assert_non_null(strstr(g.err.message, "lacks the key"));
    }
    GIVEN foreign = apply("github", "{'token':'hunter2','user':'hunter2'}");
    assert_int_equal(foreign.result, -1);
    assert_string_equal(foreign.err.message,
                        "integration github does not know the key \"user\" of its secret");
    assert_null(foreign.environment->child);
    GIVEN unknown = apply("ibm", "{}"), empty = apply("github", "{'token':''}");
    assert_int_equal(unknown.result, -1);
    assert_int_equal(empty.result, -1);
}

static void two_that_set_the_same_variable_are_refused(void **state)
{
    (void)state;
    GIVEN g = apply_to(json("{'GITHUB_TOKEN':'old'}"), "github", "{'token':'A'}");
    assert_int_equal(g.result, -1);
    assert_string_equal(g.err.message,
                        "integration github sets GITHUB_TOKEN, which something else sets, too");
    assert_string_equal(df_json_str(g.environment, "GITHUB_TOKEN"), "old");
}

/* ---- entries of an executor ---- */

static void assert_entries(const char *entries, const char *words)
{
    DF_FREE char *text =
        df_strf("{'metadata':{'name':'net'},'spec':{'source':{'url':'file:///src'},"
                "'integrations':[%s]}}",
                entries);
    DF_JSON cJSON *j = json(text);
    struct df_err err = {0};
    int result = df_model_admit(DF_KIND_EXECUTOR, j, NULL, &err);
    if (words ? result == 0 || !strstr(err.message, words) : result < 0)
        fail_msg("%s: %s", entries, err.message);
}

static void an_entry_names_an_integration_or_has_a_provider_and_a_secret(void **state)
{
    (void)state;
    assert_entries("{'name':'prod'},{'name':'hub'},{'provider':'gcp','secretRef':{'name':'g'}}",
                   NULL);
    assert_entries("{}",
                   "spec.integrations[0].provider: is required, unless the entry has the name");
    assert_entries("{'name':'prod','provider':'aws'}",
                   "spec.integrations[0].provider: is not for an entry with the name");
    assert_entries("{'name':'prod','secretRef':{'name':'x'}}",
                   "spec.integrations[0].secretRef: is not for an entry with the name");
    assert_entries("{'name':'prod'},{'name':'hub'},{'name':'prod'}",
                   "spec.integrations[2]: is the integration prod a second time");
}

/* ---- the document ---- */

static int admit(const char *spec_words, const char *old_words, struct df_err *err)
{
    DF_FREE char *text = df_strf("{'metadata':{'name':'prod'},'spec':%s}", spec_words);
    DF_JSON cJSON *doc = json(text), *old = old_words ? json(old_words) : NULL;
    return df_model_admit(DF_KIND_INTEGRATION, doc, old, err);
}

#define ROLE "'roleArn':'arn:aws:iam::1:role/r'"

static void an_integration_has_one_way_to_credentials_of_its_provider(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *words; /* NULL: it is valid */
    } documents[] = {
        {"{'provider':'github','secretRef':{'name':'s'},'executors':['a','b']}", NULL},
        {"{'provider':'github','secretRef':{'name':'s'},'executors':['*']}", NULL},
        {"{'provider':'aws','assumeRole':{" ROLE
         ",'externalId':'x','duration':'12h','sessionPolicy':'{}'}}",
         NULL},
        {"{'provider':'aws','secretRef':{'name':'s'},'assumeRole':{" ROLE "}}", NULL},
        {"{'provider':'aws','webIdentity':{" ROLE "}}", NULL},
        {"{'provider':'azurerm','workloadIdentity':{'clientId':'c','tenantId':'t','subscriptionId':"
         "'s'}}",
         NULL},
        {"{'provider':'gcp','federation':{'projectId':'p','provider':'//iam/x'}}", NULL},
        {"{'secretRef':{'name':'s'}}", "spec.provider: is required"},
        {"{'provider':'github'}", "spec: needs secretRef, or an identity"},
        {"{'provider':'gcp','assumeRole':{" ROLE "}}", "spec.assumeRole: is for the provider aws"},
        {"{'provider':'aws','assumeRole':{" ROLE "},'webIdentity':{" ROLE "}}",
         "spec.webIdentity: stands beside assumeRole"},
        {"{'provider':'aws','secretRef':{'name':'s'},'webIdentity':{" ROLE "}}",
         "spec.webIdentity: stands beside secretRef"},
        {"{'provider':'aws','assumeRole':{'roleArn':'deployer'}}", "is not the ARN of a role"},
        {"{'provider':'aws','assumeRole':{" ROLE ",'duration':'14m'}}",
         "spec.assumeRole.duration: \"14m\" is not from 15m to 12h"},
        {"{'provider':'aws','assumeRole':{" ROLE ",'duration':'1d'}}",
         "spec.assumeRole.duration: \"1d\" is not a duration: h is the longest unit, say 24h"},
        {"{'provider':'aws','assumeRole':{" ROLE ",'duration':'13h'}}", "from 15m to 12h"},
        {"{'provider':'aws','assumeRole':{" ROLE ",'sessionPolicy':'Allow'}}",
         "spec.assumeRole.sessionPolicy: is not a policy in JSON"},
        {"{'provider':'aws','assumeRole':{" ROLE ",'region':'cn-north-1'}}", NULL},
        {"{'provider':'aws','assumeRole':{" ROLE ",'region':'x@evil.example/?'}}",
         "spec.assumeRole.region: \"x@evil.example/?\" is not a region"},
        {"{'provider':'aws','assumeRole':{" ROLE ",'region':'evil.example:443'}}",
         "is not a region"},
        {"{'provider':'aws','webIdentity':{" ROLE ",'region':'a/b'}}",
         "spec.webIdentity.region: \"a/b\" is not a region"},
        {"{'provider':'aws','webIdentity':{" ROLE ",'region':'eu-central-1-0123456789-012345678'}}",
         "spec.webIdentity.region: is longer than 32 bytes"},
        {"{'provider':'github','secretRef':{'name':'s'},'executors':['*','a']}", "stands alone"},
        {"{'provider':'github','secretRef':{'name':'s'},'executors':['A']}",
         "spec.executors[0]: \"A\" is not a valid name"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(documents); i++) {
        struct df_err err = {0};
        int result = admit(documents[i].spec, NULL, &err);
        if (documents[i].words ? result == 0 || !strstr(err.message, documents[i].words)
                               : result < 0)
            fail_msg("%s: %s", documents[i].spec, err.message);
    }
    struct df_err err = {0};
    assert_int_equal(admit("{'provider':'gitlab','secretRef':{'name':'s'}}",
                           "{'spec':{'provider':'github'}}", &err),
                     -1);
    assert_non_null(strstr(err.message, "spec.provider: cannot be changed: it is github"));
}

static void only_keys_of_a_secret_are_no_identity(void **state)
{
    (void)state;
    DF_JSON cJSON *keys = json("{'secretRef':{'name':'s'}}");
    DF_JSON cJSON *by_keys = json("{'secretRef':{'name':'s'},'assumeRole':{" ROLE "}}");
    DF_JSON cJSON *by_service = json("{'assumeRole':{" ROLE "}}");
    DF_JSON cJSON *by_token = json("{'webIdentity':{" ROLE "}}");
    assert_false(df_integration_has_identity(keys));
    assert_false(df_integration_has_identity(by_keys));
    assert_true(df_integration_has_identity(by_service));
    assert_true(df_integration_has_identity(by_token));
}

static void a_role_comes_from_the_document_or_from_the_keys_of_the_contract(void **state)
{
    (void)state;
    DF_JSON cJSON *spec = json("{'assumeRole':{" ROLE ",'externalId':'x','duration':'30m'}}");
    DF_JSON cJSON *secret = json("{'aws_assumed_role_name':'deployer','aws_account':'12',"
                                 "'aws_session_duration':'900','aws_default_region':'eu-west-1'}");
    DF_JSON cJSON *plain = json("{'aws_access_key_id':'A'}"),
                  *lacking = json("{'aws_assumed_role_name':'r'}");
    DF_JSON cJSON *wrong =
        json("{'aws_assumed_role_name':'r','aws_account':'1','aws_session_duration':'899'}");
    DF_INTEGRATION_ROLE of_spec = {0}, of_secret = {0}, none = {0};
    struct df_err err = {0};
    assert_int_equal(df_integration_role_of(spec, NULL, &of_spec, NULL), 0);
    assert_string_equal(of_spec.role.arn, "arn:aws:iam::1:role/r");
    assert_string_equal(of_spec.role.external_id, "x");
    assert_int_equal(of_spec.role.duration_s, 1800);
    assert_string_equal(of_spec.region, "us-east-1");
    assert_int_equal(df_integration_role_of(NULL, secret, &of_secret, NULL), 0);
    assert_string_equal(of_secret.role.arn, "arn:aws:iam::12:role/deployer");
    assert_int_equal(of_secret.role.duration_s, 900);
    assert_string_equal(of_secret.region, "eu-west-1");
    assert_int_equal(df_integration_role_of(NULL, plain, &none, NULL), 0);
    assert_null(none.role.arn);
    assert_int_equal(df_integration_role_of(NULL, lacking, &none, &err), -1);
    assert_non_null(strstr(err.message, "lacks the key aws_account"));
    assert_int_equal(df_integration_role_of(NULL, wrong, &none, &err), -1);
    assert_non_null(strstr(err.message, "seconds from 900 to 43200"));
}

/* The region becomes a part of the host that gets the keys. A stored document is older than the
 * rule. */
static void a_region_that_names_another_host_is_not_asked(void **state)
{
    (void)state;
    static const char *const regions[] = {
        "a@evil.example/?", "evil.example#", "a.b",
        "EU-WEST-1",        "eu west",       "0123456789-0123456789-0123456789"};
    DF_JSON cJSON *keys = json("{'aws_assumed_role_name':'r','aws_account':'1'}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(regions) - 1; i++) {
        DF_JSON cJSON *spec = json("{'assumeRole':{" ROLE "}}");
        DF_JSON cJSON *secret = cJSON_Duplicate(keys, true);
        DF_INTEGRATION_ROLE role = {0};
        DF_AWS_KEYS got = {0};
        const struct df_sts sts = {.region = regions[i]};
        struct df_err err = {0};
        assert_int_equal(df_json_add_str(secret, "aws_default_region", regions[i], NULL), 0);
        assert_int_equal(df_integration_role_of(NULL, secret, &role, &err), -1);
        assert_non_null(strstr(err.message, "the key aws_default_region of its secret"));
        assert_int_equal(
            df_json_add_str(cJSON_GetObjectItem(spec, "assumeRole"), "region", regions[i], NULL),
            0);
        assert_int_equal(df_integration_role_of(spec, NULL, &role, &err), -1);
        assert_string_equal(err.reason, "InvalidStep");
        assert_int_equal(df_sts_assume_role(
                             &sts, &(struct df_aws_role){"arn:", "s", NULL, NULL, 900}, &got, &err),
                         -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_non_null(strstr(err.message, "is not a region of AWS"));
        df_integration_role_free(&role);
    }
    assert_true(df_aws_region_is_good(regions[DF_ARRAY_SIZE(regions) - 1]));
}

static void the_audience_of_a_token_is_that_of_the_cloud_unless_the_document_names_one(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *audience; /* NULL: no token is exchanged */
    } cases_of[] = {
        {"{'webIdentity':{'audience':'sts.amazonaws.com'}}", "sts.amazonaws.com"},
        {"{'federation':{'provider':'//iam/x'}}", "https://iam/x"},
        {"{'federation':{'provider':'//iam/x','audience':'mine'}}", "mine"},
        {"{'assumeRole':{" ROLE "}}", NULL},
        {"{'secretRef':{'name':'s'}}", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases_of); i++) {
        DF_JSON cJSON *spec = json(cases_of[i].spec);
        DF_FREE char *made = NULL;
        const char *audience = df_integration_audience(spec, &made);
        assert_true(cases_of[i].audience ? df_streq(audience, cases_of[i].audience) : !audience);
    }
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
        cmocka_unit_test(a_certificate_is_a_binary_file_and_excludes_a_client_secret),
        cmocka_unit_test(an_entry_names_an_integration_or_has_a_provider_and_a_secret),
        cmocka_unit_test(an_integration_has_one_way_to_credentials_of_its_provider),
        cmocka_unit_test(only_keys_of_a_secret_are_no_identity),
        cmocka_unit_test(a_region_that_names_another_host_is_not_asked),
        cmocka_unit_test(a_role_comes_from_the_document_or_from_the_keys_of_the_contract),
        cmocka_unit_test(
            the_audience_of_a_token_is_that_of_the_cloud_unless_the_document_names_one),
        cmocka_unit_test(a_secret_that_lacks_a_key_is_refused_by_name_and_without_a_value),
        cmocka_unit_test(two_that_set_the_same_variable_are_refused),
        cmocka_unit_test(every_provider_of_the_list_is_admitted),
    };
    return cmocka_run_group_tests_name("model_integration", tests, NULL, NULL);
}
