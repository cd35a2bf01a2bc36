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
    {"'storage':{'type':'s3','path':'a/./b','config':{'bucket':'b','region':'r'}}", "./"},
    {"'storage':{'type':'s3','path':'a//b','config':{'bucket':'b','region':'r'}}", "//"},
    {"'storage':{'type':'s3','path':'./a','config':{'bucket':'b','region':'r'}}", "./"},
    {"'storage':{'type':'s3','path':'a.','config':{'bucket':'b','region':'r'}}", "or ."},
    {"'storage':{'type':'s3','path':'a\\\\b','config':{'bucket':'b','region':'r'}}", "\\"},
    {"'storage':{'type':'s3','path':'a?b','config':{'bucket':'b','region':'r'}}",
     "may not have ? or # in it"},
    {"'storage':{'type':'s3','config':{'bucket':123456,'region':'r'}}", NULL},
    {"'storage':{'type':'s3','config':{'bucket':true,'region':'r'}}",
     "spec.storage.config.bucket: must be a string"},
    {"'storage':{'type':'s3','config':{'bucket':'','region':'r'}}", "bucket: must be a string"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','endpoint':'minio:9000'}}",
     "spec.storage.config.endpoint: must be a URL such as https://HOST:PORT"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','endpoints':{'s3':'http://h?x'}}}",
     "spec.storage.config.endpoints.s3: must be a URL"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','endpoint':"
     "'https://other.s3.amazonaws.com'}}",
     "has the name of a bucket in its host"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','endpoint':"
     "'https://s3-mine.s3.eu-west-1.amazonaws.com'}}",
     "has the name of a bucket in its host"},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','endpoint':"
     "'https://bucket.vpce-1a2b.s3.us-east-1.vpce.amazonaws.com'}}",
     NULL},
    {"'storage':{'type':'s3','config':{'bucket':'b','region':'r','endpoint':"
     "'https://s3.dualstack.eu-west-1.amazonaws.com'}}",
     NULL},
    {"'storage':{'type':'gcs','config':{'bucket':'b','storage_custom_endpoint':"
     "'https://other.storage.googleapis.com'}}",
     "has the name of a bucket in its host"},
    {"'storage':{'type':'local','path':'/proc/self/root/s'}",
     "spec.storage.path: may not be in /proc, /sys or /dev"},
    {"'storage':{'type':'local','path':'/dev/shm/s'}", "may not be in /proc, /sys or /dev"},
    {"'storage':{'type':'local','path':'/sys/s'}", "may not be in /proc, /sys or /dev"},
    {"'storage':{'type':'local','path':'/process/s?'}", NULL},
    {"'storage':{'type':'s3','path':'a%2fb','config':{'bucket':'b','region':'r'}}", "%"},
    {"'storage':{'type':'s3','path':'a/','config':{'bucket':'b','region':'r'}}", "end with /"},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':'b','region':'r','assume_role':"
     "{'role_arn':'x','tags':{'a':'b'},'policy_arns':['p']},'endpoints':{'s3':'http://x'}}}",
     NULL},
    {"'storage':{'type':'s3','path':'a','config':{'bucket':'b','region':'r','assume_role':"
     "{'token':'x'}}}",
     "spec.storage.config.assume_role.token: is a secret"},
    {"'storage':{'type':'s3','path':'a'}", "spec.storage.config.bucket: is required for type s3"},
    {"'storage':{'type':'s3','config':{'buket':'a','region':'b','use_lockfile':true}}",
     "spec.storage.config.bucket: is required for type s3; is \"buket\" meant to be it?"},
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
        {"{'type':'gcs','path':'p','config':{'bucket':12345678901234567890123}}",
         "{'type':'gcs','path':'p','config':{'bucket':'12345678901234567890123'}}"},
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

#define S3(bucket, more) "{'type':'s3','path':'p/q','config':{'bucket':" bucket more "}}"
#define S3_AT(address) S3("'b'", ",'region':'eu-west-1','endpoints':{'s3':'" address "'}")
#define AZURE(account, more)                                                                       \
    "{'type':'azurerm','path':'p','config':{'storage_account_name':'" account                      \
    "','container_name':'c'" more "}}"
#define GCS(more) "{'type':'gcs','path':'p','config':{'bucket':'b'" more "}}"
#define WEB(address) "{'type':'http','config':{'address':'" address "'}}"

static char *location_of(const char *storage)
{
    DF_FREE char *member = df_strf("'storage':%s", storage);
    DF_JSON cJSON *executor = executor_with(member);
    char *location = NULL;
    assert_int_equal(df_storage_location(executor, &location, NULL), 0);
    return location;
}

/* Each pair leads to one object. */
static void one_place_has_one_text_however_it_is_written(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other;
    } same[] = {
        {S3("'b'", ""), S3("'b'", ",'region':'r','encrypt':false")},
        {S3("'b'", ""), S3("'b'", ",'endpoint':''")},
        {S3("'b'", ""), S3("'b'", ",'endpoints':{'s3':''}")},
        {S3("'123456'", ""), S3("123456", "")},
        {S3("'b'", ",'endpoint':'http://x'"), S3_AT("http://x")},
        {S3("'b'", ",'endpoint':'http://y','endpoints':{'s3':'http://x'}"), S3_AT("http://x")},
        {S3_AT("http://x"), S3_AT("HTTP://X:80/")},
        {S3_AT("http://x"), S3_AT("http://x.:0080//")},
        {S3_AT("https://x"), S3_AT("https://x:443/")},
        {S3_AT("https://x"), S3_AT("http://x")},
        {S3_AT("http://[::1]:9000"), S3_AT("http://[::1]:9000/")},
        {S3("'b'", ""), S3_AT("https://s3.eu-west-1.amazonaws.com")},
        {S3("'b'", ""), S3_AT("https://s3.amazonaws.com")},
        {S3("'b'", ""), S3_AT("https://s3.amazonaws.com.")},
        {S3("'b'", ""), S3_AT("https://S3-eu-west-1.AmazonAWS.com:443/")},
        {S3("'b'", ""), S3_AT("https://s3.dualstack.eu-west-1.amazonaws.com")},
        {S3("'b'", ""), S3_AT("https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com")},
        {S3("'b'", ",'region':'cn-north-1'"), S3_AT("https://s3.cn-north-1.amazonaws.com.cn")},
        {S3("'b'", ",'region':'us-gov-west-1'"), S3_AT("https://s3.us-gov-east-1.amazonaws.com")},
        /* A path before the bucket: the first part of the object's name. */
        {"{'type':'s3','path':'q','config':{'bucket':'p','endpoint':'http://x/b'}}",
         S3_AT("http://x")},
        {S3_AT("http://x/a/%62"), S3_AT("http://x/./a//b/")},
        {AZURE("a", ""), AZURE("a", ",'environment':'public'")},
        {AZURE("a", ""), AZURE("A", ",'environment':'AzurePublicCloud'")},
        {AZURE("a", ""), AZURE("a", ",'environment':''")},
        {AZURE("a", ""), AZURE("a", ",'metadata_host':'management.azure.com:443'")},
        {AZURE("a", ",'environment':'china'"),
         AZURE("a", ",'metadata_host':'https://management.chinacloudapi.cn/'")},
        {"{'type':'gcs','config':{'bucket':'b'}}",
         "{'type':'gcs','path':'executors/net','config':{'bucket':'b'}}"},
        {GCS(""), GCS(",'storage_custom_endpoint':'https://storage.googleapis.com/storage/v1/b'")},
        {GCS(""), GCS(",'storage_custom_endpoint':'https://restricted.googleapis.com'")},
        {GCS(",'storage_custom_endpoint':'http://x:4443/storage/v1/'"),
         GCS(",'storage_custom_endpoint':'http://X:4443'")},
        {GCS(""), "{'type':'s3','path':'p/default.tfstate','config':{'bucket':'b','endpoint':"
                  "'https://storage.googleapis.com'}}"},
        {WEB("https://x/s"), WEB("https://X:443/s/")},
        {WEB("https://x/s"), WEB("http://x/s")},
        {WEB("https://x/s"), WEB("https://x/a/../%73")},
        {WEB("https://x/s"), WEB("https://x//./s#part")},
        {WEB("https://x/s"), WEB("https://x/s?")},
        {WEB("https://x/a%2fb?c=%2f"), WEB("https://x/a%2Fb?c=%2F#d")},
        {"{'type':'local','path':'/a/b'}", "{'type':'local','path':'//a/./c/../b'}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(same); i++) {
        DF_FREE char *one = location_of(same[i].one), *other = location_of(same[i].other);
        assert_non_null(one);
        if (!df_streq(one, other))
            fail_msg("%s: \"%s\"; %s: \"%s\"", same[i].one, one, same[i].other, other);
    }
}

static void different_places_have_different_texts(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other;
    } different[] = {
        {S3("'b'", ""), S3("'c'", "")},
        {S3("'1'", ""), S3("2", "")},
        {S3("'b'", ""), "{'type':'s3','path':'P/q','config':{'bucket':'b'}}"},
        {S3("'b'", ""), S3_AT("https://notamazonaws.com")},
        {S3("'b'", ""), S3("'b'", ",'region':'cn-north-1'")},
        {S3("'b'", ""), S3("'b'", ",'region':'us-gov-west-1'")},
        {S3_AT("https://x"), S3_AT("https://x:4430")},
        {S3_AT("https://x"), S3_AT("https://y")},
        {S3_AT("https://x"), S3_AT("https://x/tenant")},
        {S3_AT("https://x:80"), S3_AT("http://x:80")},
        {S3_AT("http://[::1]:9000"), S3_AT("http://[::1]:9001")},
        {AZURE("a", ""), AZURE("a", ",'environment':'china'")},
        {AZURE("a", ""), AZURE("a", ",'metadata_host':'stack.example.org'")},
        {AZURE("a", ""), AZURE("b", "")},
        {GCS(""), S3("'b'", "")},
        {GCS(""), GCS(",'storage_custom_endpoint':'http://x:4443'")},
        {GCS(""), "{'type':'gcs','path':'q','config':{'bucket':'b'}}"},
        {WEB("https://x/s"), WEB("https://x/S")},
        {WEB("https://x/s"), WEB("https://x/s?of=b")},
        {WEB("https://x/s?of=a"), WEB("https://x/s?of=b")},
        {WEB("https://x/a/b"), WEB("https://x/a%2Fb")},
        {WEB("https://x/a"), WEB("https://x/%zz")},
        {"{'type':'local','path':'/a'}", "{'type':'local','path':'/b'}"},
        {"{'type':'local','path':'/a'}", "{'type':'local','path':'/A'}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(different); i++) {
        DF_FREE char *one = location_of(different[i].one), *other = location_of(different[i].other);
        assert_non_null(one);
        if (df_streq(one, other))
            fail_msg("%s and %s: \"%s\"", different[i].one, different[i].other, one);
    }
}

/* ---- the environment ---- */

#define BUCKET(more) "'storage':{'type':'s3','config':{'bucket':'b','region':'r'" more "}}"
#define SETS(name, value) ",'environment':[{'name':'" name "','value':'" value "'}]"
#define BLOB                                                                                       \
    "'storage':{'type':'azurerm','config':{'resource_group_name':'r','storage_account_name':'s',"  \
    "'container_name':'c'}}"
#define GOOGLE "'storage':{'type':'gcs','config':{'bucket':'b'}}"

static void variables_do_not_lead_the_state_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *member, *fault;
    } cases[] = {
        {BUCKET("") SETS("AWS_ENDPOINT_URL_S3", "http://x"),
         "spec.environment[0]: AWS_ENDPOINT_URL_S3 would lead the state to another place than "
         "spec.storage says; set spec.storage.config.endpoints.s3, which comes first"},
        {BUCKET("") SETS("AWS_ENDPOINT_URL", "http://x"), "config.endpoints.s3"},
        {BUCKET("") SETS("AWS_S3_ENDPOINT", "http://x"), "config.endpoints.s3"},
        {BUCKET(",'endpoint':''") SETS("AWS_ENDPOINT_URL", "http://x"), "config.endpoints.s3"},
        {BUCKET("") ",'secrets':[{'name':'s','keys':['k'],'as':'env','env':'AWS_ENDPOINT_URL'}]",
         "spec.secrets: AWS_ENDPOINT_URL would lead"},
        {BUCKET("") SETS("AWS_ENDPOINT_URL_S3", ""), NULL},
        {BUCKET("") SETS("AWS_ENDPOINT_URL_S3", "https://s3.eu-west-1.amazonaws.com"), NULL},
        {BUCKET("") SETS("AWS_ENDPOINT_URL_EC2", "http://x"), NULL},
        {BUCKET(",'endpoint':'http://y'") SETS("AWS_ENDPOINT_URL", "http://x"), NULL},
        {BUCKET(",'endpoints':{'s3':'http://y'}") SETS("AWS_ENDPOINT_URL", "http://x"), NULL},
        {"'storage':{'type':'managed'}" SETS("AWS_ENDPOINT_URL_S3", "http://x"), NULL},
        {BLOB SETS("ARM_ENVIRONMENT", "china"), "config.environment"},
        {BLOB SETS("ARM_ENVIRONMENT", "public"), NULL},
        {BLOB SETS("ARM_METADATA_HOSTNAME", "x"), "config.metadata_host"},
        {BLOB SETS("ARM_METADATA_HOST", "x"), "config.metadata_host"},
        {BLOB SETS("AWS_ENDPOINT_URL", "http://x"), NULL},
        {GOOGLE SETS("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "http://x"),
         "config.storage_custom_endpoint"},
        {GOOGLE SETS("GOOGLE_STORAGE_CUSTOM_ENDPOINT", "http://x"),
         "config.storage_custom_endpoint"},
        {GOOGLE SETS("STORAGE_EMULATOR_HOST", "x:80"), "config.storage_custom_endpoint"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = executor_with(cases[i].member);
        if (cases[i].fault)
            assert_refused(DF_KIND_EXECUTOR, j, cases[i].member, cases[i].fault);
        else
            assert_admitted(DF_KIND_EXECUTOR, j, cases[i].member);
    }
}

static void states_that_dayfly_or_the_module_places_have_no_location(void **state)
{
    (void)state;
    assert_null(location_of("{'type':'managed'}"));
    assert_null(location_of("{'type':'module'}"));
}

static void a_message_says_where_a_storage_is(void **state)
{
    (void)state;
    static const struct {
        const char *storage, *words;
    } rows[] = {
        {"{'type':'s3','path':'a/b','config':{'bucket':'states','region':'r','use_lockfile':true}}",
         "the s3 storage a/b, bucket states, region r"},
        {"{'type':'s3','path':'a','config':{'bucket':'b','endpoints':{'s3':'https://e'}}}",
         "the s3 storage a, bucket b, endpoint https://e"},
        {"{'type':'local','path':'/s/net'}", "the local storage /s/net"},
        {"{'type':'managed'}", "the managed storage"},
        {"{}", "the managed storage"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *storage = json(rows[i].storage);
        DF_FREE char *words = df_storage_words(storage);
        assert_string_equal(words, rows[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage_is_checked),
        cmocka_unit_test(a_state_is_locked_and_encrypted_by_default),
        cmocka_unit_test(one_place_has_one_text_however_it_is_written),
        cmocka_unit_test(different_places_have_different_texts),
        cmocka_unit_test(variables_do_not_lead_the_state_elsewhere),
        cmocka_unit_test(states_that_dayfly_or_the_module_places_have_no_location),
        cmocka_unit_test(a_message_says_where_a_storage_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
