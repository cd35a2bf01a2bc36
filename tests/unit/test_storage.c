#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/storage.h"
#include "tests/unit/model_words.h"

/* ---- rules ---- */

static const struct {
    const char *member;
    const char *fault; /* NULL: admitted */
} members[] = {
    {"'storage':{'type':'managed','path':'a/b'}", NULL},
    {"'storage':{'type':'managed','config':{}}", NULL},
    {"'storage':{'type':'managed','config':{'bucket':'b'}}", "is for other types than managed"},
    {"'storage':{'type':'ftp'}", "spec.storage.type: \"ftp\" is not one of managed, module, s3"},
    {"'storage':{'type':'http'}", "spec.storage.config.address: is required for type http"},
    {"'storage':{'type':'http','config':{'address':'https://x/s'}}", NULL},
    {"'storage':{'type':'http','path':'a','config':{'address':'https://x/s'}}",
     "spec.storage.path: is not allowed for type http: config.address names the state"},
    {"'storage':{'type':'http','config':{'address':'ftp://x/s'}}",
     "spec.storage.config.address: must be a URL with https:// or http://"},
    {"'storage':{'type':'http','config':{'address':'https://x/s','lock_address':''}}",
     "spec.storage.config.lock_address: must be a URL"},
    {"'storage':{'type':'http','config':{'address':'https://me:pw@x/s'}}",
     "spec.storage.config.address: has a user in its URL"},
    {"'storage':{'type':'http','config':{'address':'https://x/s','username':'me'}}",
     "is a secret; store it with `dayfly secret set NAME KEY` and use spec.secrets: [{name: NAME, "
     "keys: [KEY], as: env, env: TF_HTTP_USERNAME}]"},
    {"'storage':{'type':'http','config':{'address':'https://x/s','password':'pw'}}",
     "env: TF_HTTP_PASSWORD"},
    {"'storage':{'type':'http','config':{'address':'https://x/s','headers':{'X-Api-Key':'k'}}}",
     "spec.storage.config.headers.X-Api-Key: is a secret"},
    {"'storage':{'type':'http','config':{'address':'https://x/s','headers':{'X-Team':'net'}}}",
     NULL},
    {"'storage':{'type':'http','config':{'address':'https://x/s'}},'secrets':[{'name':'s','keys':"
     "['p'],'as':'env','env':'TF_HTTP_PASSWORD'}]",
     NULL},
    {"'secrets':[{'name':'s','keys':['p'],'as':'env','env':'TF_HTTP_PASSWORD'}]",
     "spec.secrets[0].env: TF_HTTP_PASSWORD is for spec.storage of the type http"},
    {"'storage':{'type':'http','config':{'address':'https://x/s'}},'secrets':[{'name':'s','keys':"
     "['p'],'as':'env','env':'TF_HTTP_ADDRESS'}]",
     "TF_HTTP_ADDRESS is refused"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','use_lockfile':false}}",
     "spec.storage.config.use_lockfile: must be true without a dynamodb_table: nothing else would "
     "lock the state"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','dynamodb_table':''}}",
     "nothing else would lock the state"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','use_lockfile':'true'}}",
     "spec.storage.config.use_lockfile: must be true or false"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','use_lockfile':false,"
     "'dynamodb_table':'locks'}}",
     NULL},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','access_key':'x'}}",
     "is a secret; use an integration (spec.integrations) of the provider aws"},
    {"'storage':{'type':'azurerm','config':{'resource_group_name':'r','storage_account_name':'s',"
     "'container_name':'c','access_key':'x'}}",
     "env: ARM_ACCESS_KEY"},
    {"'storage':{'type':'azurerm','config':{'resource_group_name':'r','storage_account_name':'s',"
     "'container_name':'c','sas_token':'x'}}",
     "env: ARM_SAS_TOKEN"},
    {"'storage':{'type':'azurerm','config':{'resource_group_name':'r','storage_account_name':'s',"
     "'container_name':'c','client_secret':'x'}}",
     "of the provider azurerm"},
    {"'storage':{'type':'gcs','config':{'bucket':'b','credentials':'{}'}}", "of the provider gcp"},
    {"'storage':{'type':'gcs','config':{'bucket':'b','encryption_key':'x'}}",
     "env: GOOGLE_ENCRYPTION_KEY"},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':'b','region':'r'}}", NULL},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r'}}", NULL},
    {"'storage':{'type':'local'}", "spec.storage.path: is required for type local"},
    {"'storage':{'type':'module'}", NULL},
    {"'storage':{'type':'module','path':'a'}", "spec.storage.path: is not allowed for type module"},
    {"'storage':{'type':'module','overrideBackend':true}", "is for other types than module"},
    {"'storage':{'type':'managed','overrideBackend':true}", NULL},
    {"'storage':{'type':'module','config':{'bucket':'b'}}", "is for other types than module"},
    {"'storage':{'type':'s3','path':'a/./b','config':{'bucket':'b','region':'r'}}", "/./"},
    {"'storage':{'type':'s3','path':'a%2fb','config':{'bucket':'b','region':'r'}}", "%"},
    {"'storage':{'type':'s3','path':'a/','config':{'bucket':'b','region':'r'}}", "end with /"},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':'b','region':'r','assume_role':"
     "{'role_arn':'x','tags':{'a':'b'},'policy_arns':['p']},'endpoints':{'s3':'http://x'}}}",
     NULL},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':'b','region':'r','assume_role':"
     "{'token':'x'}}}",
     "spec.storage.config.assume_role.token: is a secret"},
    {"'storage':{'type':'s3','path':'a'}", "spec.storage.config.bucket: is required for type s3"},
    {"'storage':{'type':'s3','path':'/a','config':{'bucket':'b','region':'r'}}",
     "spec.storage.path: may not begin with /"},
    {"'storage':{'type':'s3','path':'a/../b','config':{'bucket':'b','region':'r'}}",
     "may not have"},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':'b','region':'r','key':'x'}}",
     "spec.storage.config.key: is set by spec.storage.path"},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':'b','region':'r','secret_key':'x'}}",
     "spec.storage.config.secret_key: is a secret"},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':{},'region':'r'}}",
     "spec.storage.config.bucket: must be a string"},
    {"'storage':{'type':'azurerm','path':'a','config':{'resource_group_name':'r',"
     "'storage_account_name':'s'}}",
     "spec.storage.config.container_name: is required for type azurerm"},
    {"'storage':{'type':'gcs','path':'a','config':{'bucket':'b'}}", NULL},
    {"'storage':{'type':'gcs','path':'a','config':{'bucket':'b','prefix':'x'}}", "is set by"},
    {"'storage':{'type':'local','path':'/var/lib/x.tfstate'}", NULL},
    {"'storage':{'type':'local','path':'x.tfstate'}", "spec.storage.path: must be absolute"},
};

static void storage_is_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        DF_JSON cJSON *j = executor_with(members[i].member);
        if (members[i].fault)
            assert_refused(DF_KIND_EXECUTOR, j, members[i].member, members[i].fault);
        else
            assert_admitted(DF_KIND_EXECUTOR, j, members[i].member);
    }
}

/* ---- defaults ---- */

static void a_state_is_locked_and_encrypted_by_default(void **state)
{
    (void)state;
    static const struct {
        const char *given, *filled;
    } cases[] = {
        {"{'type':'s3','config':{'bucket':'b'}}",
         "{'type':'s3','path':'executors/net/terraform.tfstate','config':{'bucket':'b',"
         "'use_lockfile':true,'encrypt':true}}"},
        {"{'type':'s3','path':'p','config':{'dynamodb_table':'t','encrypt':false}}",
         "{'type':'s3','path':'p','config':{'dynamodb_table':'t','encrypt':false}}"},
        {"{'type':'http','config':{'address':'https://x/s'}}",
         "{'type':'http','config':{'address':'https://x/s','lock_address':'https://x/s',"
         "'unlock_address':'https://x/s'}}"},
        {"{'type':'http','config':{'address':'https://x/s','lock_address':'https://x/l'}}",
         "{'type':'http','config':{'address':'https://x/s','lock_address':'https://x/l',"
         "'unlock_address':'https://x/l'}}"},
        {"{'type':'gcs','config':{'bucket':'b'}}",
         "{'type':'gcs','path':'executors/net','config':{'bucket':'b'}}"},
        {"{'type':'managed'}", "{'type':'managed'}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *spec = json("{}"), *filled = json(cases[i].filled);
        assert_int_equal(df_json_add(spec, "storage", json(cases[i].given), NULL), 0);
        assert_int_equal(df_storage_fill(spec, "net", NULL), 0);
        if (!df_json_equal(df_json_at(spec, "storage"), filled))
            fail_msg("%s is not filled to %s", cases[i].given, cases[i].filled);
    }
}

/* ---- locations ---- */

#define S3(bucket, more) "{'type':'s3','path':'p','config':{'bucket':'" bucket "'" more "}}"
#define AZURE(account, more)                                                                       \
    "{'type':'azurerm','path':'p','config':{'storage_account_name':'" account                      \
    "','container_name':'c'" more "}}"
#define WEB(address) "{'type':'http','config':{'address':'" address "'}}"

static char *location_of(const char *storage)
{
    DF_FREE char *member = df_strf("'storage':%s", storage);
    DF_JSON cJSON *executor = executor_with(member);
    char *location = NULL;
    assert_int_equal(df_storage_location(executor, &location, NULL), 0);
    return location;
}

static void executors_with_one_state_have_one_location(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other;
        bool same;
    } cases[] = {
        {S3("b", ""), S3("b", ",'region':'r','encrypt':false"), true},
        {S3("b", ""), S3("c", ""), false},
        {S3("b", ",'endpoint':'http://x:80'"), S3("b", ",'endpoints':{'s3':'HTTP://X/'}"), true},
        {S3("b", ",'endpoint':'https://x'"), S3("b", ",'endpoint':'https://x:443/'"), true},
        {S3("b", ",'endpoint':'https://x'"), S3("b", ",'endpoint':'https://x:4430'"), false},
        {S3("b", ",'endpoint':'https://x'"), S3("b", ",'endpoint':'http://x'"), false},
        {S3("b", ""), S3("b", ",'endpoints':{'s3':'https://s3.eu-west-1.amazonaws.com'}"), true},
        {S3("b", ""), S3("b", ",'endpoints':{'s3':'https://notamazonaws.com'}"), false},
        {AZURE("a", ""), AZURE("a", ",'environment':'public'"), true},
        {AZURE("a", ""), AZURE("a", ",'environment':'china'"), false},
        {AZURE("a", ""), AZURE("b", ""), false},
        {WEB("https://x/s"), WEB("https://X:443/s/"), true},
        {WEB("https://x/s"), WEB("https://x/S"), false},
        {"{'type':'gcs','config':{'bucket':'b'}}",
         "{'type':'gcs','path':'executors/net','config':{'bucket':'b'}}", true},
        {"{'type':'gcs','path':'p','config':{'bucket':'b'}}", S3("b", ""), false},
        {"{'type':'local','path':'/a'}", "{'type':'local','path':'/b'}", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *one = location_of(cases[i].one), *other = location_of(cases[i].other);
        assert_non_null(one);
        if (df_streq(one, other) != cases[i].same)
            fail_msg("%s: \"%s\"; %s: \"%s\"", cases[i].one, one, cases[i].other, other);
    }
}

static void states_that_dayfly_or_the_module_places_have_no_location(void **state)
{
    (void)state;
    assert_null(location_of("{'type':'managed'}"));
    assert_null(location_of("{'type':'module'}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage_is_checked),
        cmocka_unit_test(a_state_is_locked_and_encrypted_by_default),
        cmocka_unit_test(executors_with_one_state_have_one_location),
        cmocka_unit_test(states_that_dayfly_or_the_module_places_have_no_location),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
