/* What people may hand to the tool, and what of it is the service's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/model_words.h"

static void arguments_of_dayfly_are_refused_in_every_spelling(void **state)
{
    (void)state;
    static const char *const names[] = {
        "chdir",
        "state",
        "state-out",
        "backup",
        "backend",
        "backend-config",
        "lock",
        "lock-timeout",
        "auto-approve",
        "destroy",
        "out",
        "json",
        "json-into",
        "input",
        "detailed-exitcode",
        "var",
        "show-sensitive",
        "generate-config-out",
        "help",
        "h",
        "version",
    };
    static const char *const forms[] = {"'-%s'",        "'--%s'",    "'-%s=x'",
                                        "'--%s=false'", "'-%s','x'", "'--%s','x'"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names) * DF_ARRAY_SIZE(forms); i++) {
        const char *name = names[i / DF_ARRAY_SIZE(forms)];
        DF_BUF struct df_buf b = DF_BUF_INIT(200);
        const char *form = forms[i % DF_ARRAY_SIZE(forms)], *hole = strstr(form, "%s");
        (void)df_buf_addf(&b, "'arguments':['-parallelism=2',%.*s%s%s]", (int)(hole - form), form,
                          name, hole + 2);
        DF_FREE char *fault = df_strf("spec.arguments[1]: -%s is refused: ", name);
        DF_JSON cJSON *j = executor_with(df_buf_str(&b));
        assert_refused(DF_KIND_EXECUTOR, j, df_buf_str(&b), fault);
    }
}

static void other_arguments_are_the_users_business(void **state)
{
    (void)state;
    static const struct {
        const char *member, *fault;
    } cases[] = {
        {"'arguments':[]", NULL},
        {"'arguments':['-target=a','--target=b','-target','c','-replace','d']", NULL},
        {"'arguments':['-exclude=a','-parallelism=1','-refresh-only','-compact-warnings']", NULL},
        {"'arguments':['-var-file=environments/dev/eu-west-1.tfvars']", NULL},
        {"'arguments':['--var-file','../environments/dev.tfvars']", NULL},
        {"'arguments':['-var-file=/etc/passwd']", "spec.arguments[0]: \"/etc/passwd\" is absolute"},
        {"'arguments':['--var-file=/x']", "spec.arguments[0]: \"/x\" is absolute"},
        {"'arguments':['-var-file','/x']", "spec.arguments[1]: \"/x\" is absolute"},
        {"'arguments':['-var-file=']", "spec.arguments[0]: -var-file needs the name of a file"},
        {"'arguments':['-target-file=../x','--exclude-file','y']", NULL},
        {"'arguments':['-target-file=/x']", "spec.arguments[0]: \"/x\" is absolute"},
        {"'arguments':['--exclude-file=/x']", "spec.arguments[0]: \"/x\" is absolute"},
        {"'arguments':['-exclude-file','/x']", "spec.arguments[1]: \"/x\" is absolute"},
        {"'arguments':['--target-file=']",
         "spec.arguments[0]: -target-file needs the name of a file"},
        {"'variableFiles':['environments/dev.tfvars','../x.tfvars.json']", NULL},
        {"'variableFiles':['/x.tfvars']", "spec.variableFiles[0]: \"/x.tfvars\" is absolute"},
        {"'variableFiles':['']", "spec.variableFiles[0]: is empty"},
        {"'arguments':['-target=out']", NULL},
        {"'arguments':['-target','out']", NULL},
        {"'arguments':['-target','-out=x']", "-out is refused"},
        {"'arguments':['plan.bin']", "spec.arguments[0]: \"plan.bin\" does not begin with -"},
        {"'arguments':['-target=a','b']", "spec.arguments[1]: \"b\" does not begin with -"},
        {"'arguments':['-target','a','b']", "spec.arguments[2]: \"b\" does not begin with -"},
        {"'arguments':['-']", "is not an option"},
        {"'arguments':['--']", "is not an option"},
        {"'arguments':['---out=x']", "is not an option"},
        {"'arguments':['-=x']", "is not an option"},
        {"'arguments':['']", "spec.arguments[0]: is empty"},
        {"'arguments':['-target=a\\nb']", "has a control character"},
        {"'arguments':'-target=a'", "spec.arguments: must be a list"},
        {"'arguments':[5]", "spec.arguments[0]: must be a string"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = executor_with(cases[i].member);
        if (cases[i].fault)
            assert_refused(DF_KIND_EXECUTOR, j, cases[i].member, cases[i].fault);
        else
            assert_admitted(DF_KIND_EXECUTOR, j, cases[i].member);
    }
}

static void variables_of_dayfly_are_refused_in_the_environment(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool refused;
    } cases[] = {
        {"TF_HTTP_ADDRESS", true},
        {"TF_HTTP_", true},
        {"TF_CLI_CONFIG_FILE", true},
        {"TF_DATA_DIR", true},
        {"TF_INPUT", true},
        {"TF_IN_AUTOMATION", true},
        {"TF_CLI_ARGS", true},
        {"TF_CLI_ARGS_plan", true},
        {"TF_WORKSPACE", true},
        {"PATH", true},
        {"HOME", true},
        {"DAYFLY_TOKEN", true},
        {"LD_PRELOAD", true},
        {"TF_LOG_PATH", true},
        {"TF_TEMP_LOG_PATH", true},
        {"TF_LOG_PROVIDER", false},
        {"TMPDIR", true},
        {"TF_REATTACH_PROVIDERS", true},
        {"TERRAFORM_CONFIG", true},
        {"TF_LOG", false},
        {"TF_VAR_x", false},
        {"TF_ENCRYPTION", false},
        {"AWS_REGION", false},
        {"PATHS", false},
        {"GOPATH", false},
        {"path", false},
        {"HTTPS_PROXY", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *member = df_strf("'environment':[{'name':'%s','value':'x'}]", cases[i].name);
        DF_JSON cJSON *j = executor_with(member);
        if (cases[i].refused)
            assert_refused(DF_KIND_EXECUTOR, j, member, "is refused: ");
        else
            assert_admitted(DF_KIND_EXECUTOR, j, member);
    }
}

static void only_an_admin_gives_a_run_what_may_run_code_or_lead_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_admins;
    } cases[] = {
        {"TF_VAR_x", false},
        {"TF_VAR_", false},
        {"TF_LOG", false},
        {"TF_LOG_PROVIDER_AWS", false},
        {"AWS_ACCESS_KEY_ID", false},
        {"ARM_CLIENT_SECRET", false},
        {"GITHUB_TOKEN", false},
        {"NAMED", false},
        {"OF_US_x", false},
        {"TF_ENCRYPTION", true},
        {"TF_LOG_PATH_MASK", true},
        {"TF_LOGS", true},
        {"TF_PLUGIN_CACHE_DIR", true},
        {"BASH_ENV", true},
        {"ENV", true},
        {"PYTHONPATH", true},
        {"NODE_OPTIONS", true},
        {"GIT_SSH_COMMAND", true},
        {"GIT_CONFIG_COUNT", true},
        {"SSH_AUTH_SOCK", true},
        {"HTTPS_PROXY", true},
        {"https_proxy", true},
        {"SSL_CERT_FILE", true},
        {"AWS_ENDPOINT_URL", true},
        {"AWS_ENDPOINT_URL_STS", true},
        {"AWS_CA_BUNDLE", true},
        {"AWS_CONFIG_FILE", true},
        {"AWS_PROFILE", true},
        {"ARM_METADATA_HOSTNAME", true},
        {"GOOGLE_CREDENTIALS", true},
        {"GOOGLE_APPLICATION_CREDENTIALS", true},
        {"VAULT_ADDR", true},
        {"DD_HOST", true},
        {"NAMED_too", true},
        {"aws_access_key_id", true},
    };
    char none[] = "", name[] = "NAMED", prefix[] = "OF_US_*";
    char *items[] = {none, name, prefix};
    const struct df_strs named = {.items = items, .len = DF_ARRAY_SIZE(items)};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *given = json("{'TF_VAR_y':'1'}");
        assert_int_equal(df_json_set_str(given, cases[i].name, "x", NULL), 0);
        const char *found = df_model_admins_variable(given, &named);
        if (cases[i].is_admins)
            assert_string_equal(found, cases[i].name);
        else
            assert_null(found);
    }
    DF_JSON cJSON *ours = json("{'NAMED':'1'}");
    assert_string_equal(df_model_admins_variable(ours, NULL), "NAMED");
    assert_null(df_model_admins_variable(NULL, NULL));
}

static void a_caller_leaves_the_credentials_of_the_executor_alone(void **state)
{
    (void)state;
    char name[] = "AWS_REGION";
    char *items[] = {name};
    const struct df_strs named = {.items = items, .len = 1};
    DF_JSON cJSON *given = json("{'TF_VAR_y':'1','AWS_REGION':'r','AWS_ACCESS_KEY_ID':'k'}");
    DF_JSON cJSON *role = json("{'TF_VAR_z':'1','AWS_ROLE_ARN':'arn'}");
    DF_JSON cJSON *others = json("{'TF_VAR_y':'1','AW':'1','AWSX_ROLE':'1','ARM_CLIENT_ID':'i'}");
    assert_string_equal(df_model_foreign_variable(given, role, &named), "AWS_ACCESS_KEY_ID");
    assert_string_equal(df_model_foreign_variable(given, role, NULL), "AWS_REGION");
    assert_null(df_model_foreign_variable(given, others, NULL));
    assert_null(df_model_foreign_variable(given, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_of_dayfly_are_refused_in_every_spelling),
        cmocka_unit_test(other_arguments_are_the_users_business),
        cmocka_unit_test(variables_of_dayfly_are_refused_in_the_environment),
        cmocka_unit_test(a_caller_leaves_the_credentials_of_the_executor_alone),
        cmocka_unit_test(only_an_admin_gives_a_run_what_may_run_code_or_lead_elsewhere),
    };
    return cmocka_run_group_tests_name("model_arguments", tests, NULL, NULL);
}
