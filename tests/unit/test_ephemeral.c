#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/ephemeral.h"
#include "spawner/model/model.h"
#include "tests/unit/kube_words.h"

static int parse(const char *environment, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = json(environment);
    return df_ephemeral_placement(list, ret, err);
}

#define ONE(key, value) "[{'name':'" key "','value':'" value "'}]"

static const struct {
    const char *environment, *expected;
} accepted[] = {
    {"[]", "{}"},
    {"[{'name':'AWS_REGION','value':'eu'}]", "{}"},
    {ONE("TERRAKUBE_ENABLE_EPHEMERAL_EXECUTOR", "0"), "{}"},
    /* pairs: `;` separates, the first = splits, blanks go, no = is no value, the last wins */
    {ONE("EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS", "disktype=ssd;zone=a"),
     "{'nodeSelector':{'disktype':'ssd','zone':'a'}}"},
    {ONE("EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS", " a = b ;; ;c;a=d;"),
     "{'nodeSelector':{'a':'d','c':''}}"},
    {ONE("EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS", ""), "{'nodeSelector':{}}"},
    {ONE("EPHEMERAL_CONFIG_ANNOTATIONS", "a=x=y;b=1"), "{'annotations':{'a':'x=y','b':'1'}}"},
    {ONE("EPHEMERAL_CONFIG_POD_ANNOTATIONS", "vault.hashicorp.com/agent-inject=true"),
     "{'podAnnotations':{'vault.hashicorp.com/agent-inject':'true'}}"},
    {ONE("EPHEMERAL_CONFIG_LABELS", "environment=production"),
     "{'labels':{'environment':'production'}}"},
    {ONE("EPHEMERAL_JOB_ENV_VARS", "TerrakubeRedisSSL=true;A.b-c= x "),
     "{'env':[{'name':'TerrakubeRedisSSL','value':'true'},{'name':'A.b-c','value':'x'}]}"},
    {ONE("EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP", "a, b,,c"),
     "{'envFrom':[{'configMapRef':{'name':'a'}},{'configMapRef':{'name':'b'}},"
     "{'configMapRef':{'name':'c'}}]}"},
    {ONE("EPHEMERAL_CONFIG_SERVICE_ACCOUNT", "terrakube-api-sa"),
     "{'serviceAccountName':'terrakube-api-sa'}"},
    {ONE("EPHEMERAL_CONFIG_SERVICE_ACCOUNT", ""), "{}"},
    /* tolerations: key[=value][:operator[:effect]], nothing trimmed, more parts not looked at */
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "gpu:Exists:NoSchedule;dedicated=ci:Equal:NoExecute"),
     "{'tolerations':[{'key':'gpu','operator':'Exists','effect':'NoSchedule'},"
     "{'key':'dedicated','value':'ci','operator':'Equal','effect':'NoExecute'}]}"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "foo"),
     "{'tolerations':[{'key':'foo','operator':'Exists'}]}"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "a=b=c:Equal"),
     "{'tolerations':[{'key':'a','value':'b','operator':'Equal'}]}"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "a:Exists:NoExecute:60;"),
     "{'tolerations':[{'key':'a','operator':'Exists','effect':'NoExecute'}]}"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "a::NoSchedule"),
     "{'tolerations':[{'key':'a','effect':'NoSchedule'}]}"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", ":Exists:NoSchedule"),
     "{'tolerations':[{'operator':'Exists','effect':'NoSchedule'}]}"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", ""), "{'tolerations':[{'operator':'Exists'}]}"},
    {ONE("EPHEMERAL_CONFIG_MAP_NAME", "certs"),
     "{'configMapMounts':[{'name':'certs','mountPath':'/data'}]}"},
    {"[{'name':'EPHEMERAL_CONFIG_MAP_NAME','value':'certs'},"
     "{'name':'EPHEMERAL_CONFIG_MAP_MOUNT_PATH','value':'/mnt/certs'}]",
     "{'configMapMounts':[{'name':'certs','mountPath':'/mnt/certs'}]}"},
    {ONE("EPHEMERAL_CONFIG_MAP_MOUNT_PATH", "/mnt"), "{}"},
    {ONE("PVC_CLAIM_NAME", "c"), "{}"},
    {ONE("TF_PLUGIN_CACHE_DIR", "cache"), "{}"},
    {ONE("TF_PLUGIN_CACHE_DIR", "$HOME/.cache"), "{}"},
    {ONE("TF_PLUGIN_CACHE_DIR", "/cache"),
     "{'pluginCache':{'claimName':'terrakube-plugin-pvc','mountPath':'/cache','optional':true}}"},
    {"[{'name':'PVC_CLAIM_NAME','value':'mine'},{'name':'TF_PLUGIN_CACHE_DIR','value':'/cache'}]",
     "{'pluginCache':{'claimName':'mine','mountPath':'/cache'}}"},
    {ONE("EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT", "fsGroup=2000;runAsNonRoot=TRUE; runAsUser = +7"),
     "{'podSecurityContext':{'fsGroup':2000,'runAsNonRoot':true,'runAsUser':7}}"},
    {ONE("EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT", "runAsNonRoot=yes"),
     "{'podSecurityContext':{'runAsNonRoot':false}}"},
    {ONE("EPHEMERAL_CONFIG_SECURITY_CONTEXT", "allowPrivilegeEscalation=false"),
     "{'securityContext':{'allowPrivilegeEscalation':false}}"},
    {"[{'name':'EPHEMERAL_CPU_REQUEST','value':'100m'},{'name':'EPHEMERAL_CPU_LIMIT','value':'200m'"
     "},{'name':'EPHEMERAL_MEMORY_REQUEST','value':'50Mi'},{'name':'EPHEMERAL_MEMORY_LIMIT',"
     "'value':'100Mi'},{'name':'EPHEMERAL_STORAGE_REQUEST','value':'1Gi'},"
     "{'name':'EPHEMERAL_STORAGE_LIMIT','value':'2Gi'}]",
     "{'resources':{'requests':{'cpu':'100m','memory':'50Mi','ephemeral-storage':'1Gi'},"
     "'limits':{'cpu':'200m','memory':'100Mi','ephemeral-storage':'2Gi'}}}"},
};

static void terrakubes_keys_mean_what_they_mean_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(accepted); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *placement = NULL;
        if (parse(accepted[i].environment, &placement, &err) < 0)
            fail_msg("%s: %s", accepted[i].environment, err.message);
        assert_json(placement, accepted[i].expected, accepted[i].environment);
    }
}

static const struct {
    const char *environment, *message;
} refused[] = {
    /* what crashed the parser */
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "k="),
     "EPHEMERAL_CONFIG_TOLERATIONS: \"k=\" has no value behind the ="},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "="), "\"=\" has no value behind the ="},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "::"), "\"::\" is not a toleration: key[=value]"},
    {ONE("EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT", "runAsUser=abc"),
     "EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT: \"abc\" is not a user or group"},
    {ONE("EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT", "runAsUser"), "\"\" is not a user or group"},
    {ONE("EPHEMERAL_CPU_REQUEST", "lots"),
     "EPHEMERAL_CPU_REQUEST.resources.requests.cpu: \"lots\""},
    {ONE("EPHEMERAL_MEMORY_LIMIT", "2 GB"), "\"2 GB\" is not a quantity"},
    /* what failed the job there */
    {ONE("EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT", "runAsGroup=1"),
     "\"runAsGroup\" is not a setting; there are fsGroup, runAsNonRoot and runAsUser"},
    {ONE("EPHEMERAL_CONFIG_SECURITY_CONTEXT", "privileged=true"),
     "EPHEMERAL_CONFIG_SECURITY_CONTEXT: \"privileged\" is not a setting; there is allowPriv"},
    /* what the API server refused */
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "foo=bar"), "the value \"bar\" is ignored by"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "caas=true:NoSchedule"), "\"NoSchedule\" is not one of"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "a:Exists:Sometimes"), "\"Sometimes\" is not one of"},
    {ONE("EPHEMERAL_CONFIG_TOLERATIONS", "a:Exists:NoSchedule; b"), "\" b\" is not a key"},
    {ONE("EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS", "disk type=ssd"), "\"disk type\" is not a key"},
    {ONE("EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS", "=ssd"), "\"\" is not a key"},
    {ONE("EPHEMERAL_CONFIG_LABELS", "a=b c"), "the value \"b c\" is not a label"},
    {ONE("EPHEMERAL_CONFIG_LABELS", "dayfly.dev/run=x"), "is set by the service"},
    {ONE("EPHEMERAL_JOB_ENV_VARS", "1A=b"), "\"1A\" is not the name of an environment variable"},
    {ONE("EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP", "A_b"), "\"A_b\" is not a valid name"},
    {ONE("EPHEMERAL_CONFIG_SERVICE_ACCOUNT", "my account"), "\"my account\" is not a valid name"},
    {ONE("EPHEMERAL_CONFIG_MAP_NAME", ""), "name: is empty"},
    {"[{'name':'EPHEMERAL_CONFIG_MAP_NAME','value':'c'},"
     "{'name':'EPHEMERAL_CONFIG_MAP_MOUNT_PATH','value':'data'}]",
     "\"data\" is not a path to mount at"},
    {"[{'name':'PVC_CLAIM_NAME','value':'mine'},{'name':'TF_PLUGIN_CACHE_DIR','value':'cache'}]",
     "TF_PLUGIN_CACHE_DIR.pluginCache.mountPath: \"cache\""},
    {"[{'name':'EPHEMERAL_CPU_REQUEST','value':'2'},{'name':'EPHEMERAL_CPU_LIMIT','value':'500m'}]",
     "\"2\" is more than the limit \"500m\""},
    /* slips */
    {ONE("EPHEMERAL_CONFIG_TOLERATION", "a"), "did you mean EPHEMERAL_CONFIG_TOLERATIONS?"},
    {ONE("EPHEMERAL_CPU_REQUESTS", "1"), "did you mean EPHEMERAL_CPU_REQUEST?"},
};

static void what_would_fail_later_is_an_error_with_key_value_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(refused); i++) {
        struct df_err err = {0};
        cJSON *placement = NULL;
        if (parse(refused[i].environment, &placement, &err) == 0)
            fail_msg("accepted: %s", refused[i].environment);
        assert_null(placement);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_string_equal(err.reason, "InvalidPlacement");
        assert_message(&err, refused[i].message);
    }
}

static void an_executor_with_a_wrong_key_is_refused_and_with_right_ones_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *message;
    } rows[] = {
        {"EPHEMERAL_CONFIG_TOLERATIONS", "gpu:Exists:NoSchedule", NULL},
        {"TF_PLUGIN_CACHE_DIR", "/cache", NULL},
        {"EPHEMERAL_CONFIG_TOLERATIONS",
         "k=", "spec.environment: EPHEMERAL_CONFIG_TOLERATIONS: \"k=\" has no value"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_FREE char *text = df_strf("{'metadata':{'name':'net'},'spec':{'source':{'url':"
                                     "'file:///src'},'environment':[{'name':'%s','value':'%s'}]}}",
                                     rows[i].name, rows[i].value);
        DF_JSON cJSON *executor = json(text);
        int result = df_model_admit(DF_KIND_EXECUTOR, executor, NULL, &err);
        if (!rows[i].message && result < 0)
            fail_msg("%s: %s", rows[i].name, err.message);
        if (rows[i].message) {
            assert_int_equal(result, -1);
            assert_message(&err, rows[i].message);
        }
    }
}

static void no_environment_is_no_placement(void **state)
{
    (void)state;
    DF_JSON cJSON *placement = NULL;
    assert_int_equal(df_ephemeral_placement(NULL, &placement, NULL), 0);
    assert_json(placement, "{}", "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terrakubes_keys_mean_what_they_mean_there),
        cmocka_unit_test(what_would_fail_later_is_an_error_with_key_value_and_reason),
        cmocka_unit_test(an_executor_with_a_wrong_key_is_refused_and_with_right_ones_accepted),
        cmocka_unit_test(no_environment_is_no_placement),
    };
    return cmocka_run_group_tests_name("ephemeral", tests, NULL, NULL);
}
