#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/engine/placement/placement.h"
#include "spawner/model/model.h"
#include "spawner/model/placement.h"
#include "tests/unit/kube_words.h"

/* ---- what a placement may say ---- */

#define TERM "[{'matchExpressions':[{'key':'disk','operator':'In','values':['ssd']}]}]"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static const char *const accepted[] = {
    "'image':'busybox'",
    "'image':'registry.example:5000/team/runner:v1.2@sha256:0123'",
    "'image':'localhost/r','imagePullPolicy':'IfNotPresent','imagePullSecrets':[{'name':'r.x'}]",
    "'nodeSelector':{'kubernetes.io/arch':'amd64','disk':''}",
    "'tolerations':[{'operator':'Exists'},{'key':'a','value':'b','effect':'NoExecute',"
    "'tolerationSeconds':60},{'key':'a','operator':'Exists'}]",
    "'affinity':{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':" TERM "},'" PREFERRED
    "':[{'weight':1,'preference':{'matchFields':[{'key':'metadata.name','operator':'In',"
    "'values':['n']}]}}]},'podAntiAffinity':{'" REQUIRED
    "':[{'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'a':'b'}}}]}}",
    "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"
    "'ScheduleAnyway'}]",
    "'priorityClassName':'system-node-critical','runtimeClassName':'gvisor',"
    "'serviceAccountName':'tofu'",
    "'resources':{'requests':{'cpu':'0.5','memory':'128974848','example.com/gpu':'1'},"
    "'limits':{'cpu':'500m','memory':'129e6','ephemeral-storage':'1Gi','example.com/"
    "gpu':'1','hugepages-2Mi':'4Mi'}}",
    "'resources':{'requests':{'cpu':1,'memory':1e9},'limits':{'cpu':1.5}}",
    "'labels':{'team':'net'},'annotations':{'a.b/c':'x y\\nz'},'podAnnotations':{'a':''}",
    "'env':[{'name':'HTTPS_PROXY','value':'http://p'},{'name':'N','valueFrom':{'fieldRef':"
    "{'fieldPath':'spec.nodeName'}}}]",
    "'envFrom':[{'secretRef':{'name':'s','optional':true}},{'prefix':'P_','configMapRef':"
    "{'name':'c'}}]",
    "'volumes':[{'name':'c','mountPath':'/c','emptyDir':{'medium':'Memory','sizeLimit':'1Gi'}},"
    "{'name':'d','mountPath':'/d','persistentVolumeClaim':{'claimName':'x'},'subPath':'a'}]",
    "'secretMounts':[{'name':'s','mountPath':'/etc/s','items':[{'key':'k','path':'p','mode':256}"
    "],'defaultMode':288,'optional':true}],'configMapMounts':[{'name':'c','mountPath':'/etc/c'}]",
    "'pluginCache':{'claimName':'p','mountPath':'/cache','readOnly':true}",
    "'podSecurityContext':{'runAsUser':1000,'fsGroup':0,'seccompProfile':{'type':'Localhost',"
    "'localhostProfile':'p.json'},'sysctls':[{'name':'a','value':'1'}]}",
    "'securityContext':{'capabilities':{'add':['NET_ADMIN']},'privileged':true,'"
    "allowPrivilegeEscalation':true}",
    "'dnsPolicy':'None','dnsConfig':{'nameservers':['1.1.1.1','::1'],'searches':['a.b'],"
    "'options':[{'name':'ndots','value':'2'},{'name':'edns0'}]}",
    "'podTemplate':{'spec':{'anything':[1,null]}}",
    "'podTemplate':[{'metadata':{}},{'spec':{}}]",
};

static cJSON *placement_with(const char *members)
{
    DF_FREE char *text = df_strf("{%s}", members);
    return json(text);
}

static void every_field_takes_what_kubernetes_takes(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(accepted); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *placement = placement_with(accepted[i]);
        if (df_placement_check(placement, "placement", &err) < 0)
            fail_msg("%s: %s", accepted[i], err.message);
    }
}

static const struct {
    const char *members, *message;
} refused[] = {
    {"'nodeselector':{}", "placement.nodeselector: is not a field; did you mean \"nodeSelector\"?"},
    {"'toleration':[]", "did you mean \"tolerations\"?"},
    {"'namespace':'x'", "placement.namespace: is not a field (there are: image, "},
    {"'image':'https://r/x'",
     "placement.image: \"https://r/x\" is not an image: an image has no sch"},
    {"'image':'r/Team/x'", "a repository is written in lower case"},
    {"'image':'a b'", "only letters, digits"},
    {"'image':'r.x/'", "a part of it is empty"},
    {"'image':'a:'", "a part of it is empty"},
    {"'image':'a//b'", "a part of it is empty"},
    {"'imagePullPolicy':'Sometimes'", "\"Sometimes\" is not one of Always, IfNotPresent, Never"},
    {"'imagePullSecrets':['s']", "placement.imagePullSecrets[0]: must be an object"},
    {"'nodeSelector':{'a b':'c'}", "\"a b\" is not a key"},
    {"'nodeSelector':{'a':true}", "placement.nodeSelector.a: must be a string; put it in quotes"},
    {"'tolerations':[{'key':'a','operator':'Is'}]",
     "placement.tolerations[0].operator: \"Is\" is not one of Exists, Equal"},
    {"'tolerations':[{'key':'a','operator':'Exists','value':'b'}]",
     "placement.tolerations[0]: the value \"b\" is ignored by the operator Exists"},
    {"'tolerations':[{'operator':'Equal'}]", "without a key the operator must be Exists"},
    {"'tolerations':[{}]", "without a key the operator must be Exists"},
    {"'tolerations':[{'key':'a','effect':'NoSchedule','tolerationSeconds':1}]",
     "tolerationSeconds is for the effect NoExecute alone"},
    {"'tolerations':[{'key':'a','effect':'NoRun'}]", "\"NoRun\" is not one of NoSchedule, "},
    {"'tolerations':[{'key':'a','value':'b c'}]", "the value \"b c\" is not a label"},
    {"'affinity':{'node':{}}", "placement.affinity.node: is not a field"},
    {"'affinity':{'nodeAffinity':{'" REQUIRED "':{}}}", "nodeSelectorTerms: is required"},
    {"'affinity':{'nodeAffinity':{'" PREFERRED "':[{'weight':101,'preference':{}}]}}",
     "weight: must be from 1 to 100"},
    {"'affinity':{'podAffinity':{'" REQUIRED "':[{}]}}", "topologyKey: is required"},
    {"'affinity':{'nodeAffinity':{'" REQUIRED
     "':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'In'}]}]}}}",
     "the operator In needs values"},
    {"'affinity':{'nodeAffinity':{'" REQUIRED
     "':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'Exists','values':['x']}"
     "]}]}}}",
     "the operator Exists takes no values"},
    {"'affinity':{'nodeAffinity':{'" REQUIRED
     "':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'Gt','values':['x']}]}]}}"
     "}",
     "the operator Gt needs one value"},
    {"'topologySpreadConstraints':[{'maxSkew':0,'topologyKey':'z','whenUnsatisfiable':"
     "'DoNotSchedule'}]",
     "maxSkew: must be from 1"},
    {"'priorityClassName':'High'", "\"High\" is not a valid name"},
    {"'serviceAccountName':'a..b'", "\"a..b\" is not a valid name"},
    {"'resources':{'requests':{'memory':'512MB'}}",
     "placement.resources.requests.memory: \"512MB\" is not a quantity"},
    {"'resources':{'requests':{'memory':true}}", "is not a quantity"},
    {"'resources':{'requests':{'memory':-1}}", "is not a quantity"},
    {"'resources':{'requests':{'cpu':2},'limits':{'cpu':'1'}}", "2 is more than the limit \"1\""},
    {"'resources':{'requests':{'cpu':'-1'}}", "\"-1\" is not a quantity"},
    {"'resources':{'requests':{'ram':'1'}}", "\"ram\" is not a resource"},
    {"'resources':{'requests':{'cpu':'1'},'limits':{'cpu':'999m'}}",
     "placement.resources.requests.cpu: \"1\" is more than the limit \"999m\""},
    {"'labels':{'dayfly.dev/run':'x'}", "\"dayfly.dev/run\" is set by the service"},
    {"'labels':{'job-name':'x'}", "\"job-name\" is set by the service"},
    {"'podAnnotations':{'dayfly.dev/handoff':'x'}", "is set by the service"},
    {"'env':[{'name':'A=B','value':''}]", "\"A=B\" is not the name of an environment variable"},
    {"'env':[{'name':'A'},{'name':'A'}]", "\"A\" occurs twice"},
    {"'env':[{'name':'A','value':'','valueFrom':{'fieldRef':{'fieldPath':'x'}}}]",
     "A has a value and a valueFrom"},
    {"'env':[{'name':'A','valueFrom':{}}]", "needs exactly one of secretKeyRef"},
    {"'env':[{'name':'LD_PRELOAD','value':'/cache/x.so'}]",
     "placement.env[0]: LD_PRELOAD is refused: it changes which code the runner loads"},
    {"'env':[{'name':'LOCALDOMAIN','value':'evil.example'}]",
     "LOCALDOMAIN is refused: it changes which hosts the runner speaks to"},
    {"'env':[{'name':'OPENSSL_CONF','valueFrom':{'fieldRef':{'fieldPath':'spec.nodeName'}}}]",
     "OPENSSL_CONF is refused: "},
    {"'env':[{'name':'DAYFLY_X','value':''}]", "DAYFLY_X is refused: it is set by the service"},
    {"'envFrom':[{}]", "needs exactly one of secretRef, configMapRef"},
    {"'volumes':[{'name':'v','mountPath':'/v'}]", "needs exactly one of emptyDir"},
    {"'volumes':[{'name':'v','mountPath':'/v','emptyDir':{},'nfs':{'server':'s','path':'/'}}]",
     "needs exactly one of emptyDir"},
    {"'volumes':[{'name':'v','mountPath':'/v','hostPath':{'path':'/'}}]",
     "hostPath: is not a field"},
    {"'volumes':[{'name':'dayfly-x','mountPath':'/v','emptyDir':{}}]", "begins with dayfly-"},
    {"'volumes':[{'name':'v','mountPath':'/v','emptyDir':{}},{'name':'v','mountPath':'/w',"
     "'emptyDir':{}}]",
     "the volume \"v\" occurs twice"},
    {"'volumes':[{'name':'v','mountPath':'/v','emptyDir':{}}],'secretMounts':[{'name':'s',"
     "'mountPath':'/v/'}]",
     "placement.secretMounts[0]: something else is mounted at \"/v/\""},
    {"'secretMounts':[{'name':'s','mountPath':'/c'}],'pluginCache':{'claimName':'p','mountPath':"
     "'/c'}",
     "placement.pluginCache: something else is mounted at"},
    {"'secretMounts':[{'name':'s','mountPath':'c'}]", "\"c\" is not a path to mount at"},
    {"'secretMounts':[{'name':'s','mountPath':'/c/../work'}]", "is not a path to mount at"},
    {"'secretMounts':[{'name':'s','mountPath':'/tmp/'}]", "is needed by the runner itself"},
    {"'secretMounts':[{'name':'s','mountPath':'/run/dayfly/token'}]", "is needed by the runner"},
    {"'podSecurityContext':{'runAsNonRoot':true,'runAsUser':0}", "runAsUser is 0, which is root"},
    {"'podSecurityContext':{'runAsUser':-1}", "runAsUser: must be from 0"},
    {"'securityContext':{'privileged':true,'allowPrivilegeEscalation':false}",
     "privileged needs allowPrivilegeEscalation: true beside it"},
    {"'securityContext':{'capabilities':{'add':['SYS_ADMIN']}}", "the capability SYS_ADMIN needs"},
    {"'resources':{'requests':{'example.com/gpu':'1'}}", "needs a limit that is the same"},
    {"'resources':{'requests':{'hugepages-2Mi':'2Mi'},'limits':{'hugepages-2Mi':'4Mi'}}",
     "needs a limit that is the same"},
    {"'dnsConfig':{'nameservers':['dns']}", "\"dns\" is no IP address"},
    {"'dnsConfig':{'nameservers':['1.1.1.1','1.1.1.2','1.1.1.3','1.1.1.4']}",
     "has 4 entries; 3 are allowed"},
    {"'podTemplate':'x'", "placement.podTemplate: must be an object with metadata or spec"},
    {"'podTemplate':{'containers':[]}", "placement.podTemplate.containers: is not a field"},
    {"'podTemplate':{'spec':1}", "placement.podTemplate.spec: must be an object"},
    {"'podTemplate':[{},1]", "placement.podTemplate[1]: must be an object"},
    {"'podTemplate':[{},{},{},{},{},{},{},{},{}]", "has 9 patches; 8 are allowed"},
};

static void what_kubernetes_would_refuse_is_refused_with_key_value_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(refused); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *placement = placement_with(refused[i].members);
        if (df_placement_check(placement, "placement", &err) == 0)
            fail_msg("accepted: %s", refused[i].members);
        assert_string_equal(err.reason, "InvalidPlacement");
        assert_message(&err, refused[i].message);
    }
}

static void lists_end_at_their_limits(void **state)
{
    (void)state;
    static const struct {
        const char *list, *item;
        int limit;
    } lists[] = {
        {"tolerations", "{'operator':'Exists'}", DF_LIMIT_TOLERATIONS},
        {"envFrom", "{'secretRef':{'name':'s'}}", DF_LIMIT_MOUNTS},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(lists); i++) {
        for (int more = 0; more < 2; more++) {
            DF_JSON cJSON *placement = cJSON_CreateObject();
            cJSON *list = df_json_array_at(placement, lists[i].list);
            for (int n = 0; n < lists[i].limit + more; n++)
                assert_int_equal(df_json_append(list, json(lists[i].item), NULL), 0);
            assert_int_equal(df_placement_check(placement, "placement", NULL), more ? -1 : 0);
        }
    }
}

static void executors_runs_and_steps_are_checked(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *executor = json("{'metadata':{'name':'net'},'spec':{'source':{'url':"
                                   "'file:///s'},'placement':{'image':'A'}}}");
    DF_JSON cJSON *run = json("{'metadata':{'name':'net-1'},'spec':{'executorRef':{'name':'net'},"
                              "'action':'provision','placement':{'labels':{'a':'b c'}}}}");
    DF_JSON cJSON *good = json("{'metadata':{'name':'net-1'},'spec':{'executorRef':{'name':'net'},"
                               "'action':'provision','placement':{'labels':{'a':'b'}}}}");
    assert_int_equal(df_model_admit(DF_KIND_EXECUTOR, executor, NULL, &err), -1);
    assert_message(&err, "spec.placement.image: \"A\" is not an image");
    assert_int_equal(df_model_admit(DF_KIND_RUN, run, NULL, &err), -1);
    assert_message(&err, "spec.placement.labels: the value \"b c\" is not a label");
    assert_int_equal(df_model_admit(DF_KIND_RUN, good, NULL, NULL), 0);
}

static void quantities_are_those_of_kubernetes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"1", 1},      {"0", 0},      {"500m", 0.5}, {"1.5Gi", 1.5 * 0x1p30},
                {"2e3", 2000}, {"1E3", 1000}, {"1E", 1e18},  {"+1k", 1000},
                {".5", 0.5},   {"5.", 5},     {"2n", 2e-9},  {"3Ki", 3072},
                {"", -1},      {"-1", -1},    {"1KB", -1},   {"1 Gi", -1},
                {"Gi", -1},    {".", -1},     {"1,5", -1},   {"1e", -1},
                {"0x10", -1},  {"1gi", -1},   {"1K", -1},    {"1.2.3", -1},
                {"1e99", -1}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        if (df_quantity(rows[i].text) != rows[i].value)
            fail_msg("%s: %g", rows[i].text, df_quantity(rows[i].text));
}

/* ---- the levels ---- */

static const struct {
    const char *what, *defaults, *executor, *run, *expected;
} merges[] = {
    {"plain fields are replaced", "{'image':'a','dnsPolicy':'None'}", "{'image':'b'}",
     "{'image':'c'}", "{'image':'c','dnsPolicy':'None'}"},
    {"maps merge by key", "{'nodeSelector':{'a':'1','b':'1'},'labels':{'x':'1'}}",
     "{'nodeSelector':{'b':'2'}}", "{'nodeSelector':{'c':'3'},'labels':{'x':'2'}}",
     "{'nodeSelector':{'a':'1','b':'2','c':'3'},'labels':{'x':'2'}}"},
    {"tolerations add up, the same one once",
     "{'tolerations':[{'key':'a','operator':'Exists'},{'key':'c','operator':'Exists'}]}",
     "{'tolerations':[{'operator':'Exists','key':'a'},{'key':'b','operator':'Exists'}]}", NULL,
     "{'tolerations':[{'key':'a','operator':'Exists'},{'key':'c','operator':'Exists'},"
     "{'key':'b','operator':'Exists'}]}"},
    {"sources of the environment add up",
     "{'envFrom':[{'secretRef':{'name':'a'}},{'secretRef':{'name':'b'}}]}",
     "{'envFrom':[{'secretRef':{'name':'b'}},{'configMapRef':{'name':'a'}}]}", NULL,
     "{'envFrom':[{'secretRef':{'name':'a'}},{'secretRef':{'name':'b'}},"
     "{'configMapRef':{'name':'a'}}]}"},
    {"volumes merge by name",
     "{'volumes':[{'name':'a','mountPath':'/a','emptyDir':{}},{'name':'b','mountPath':'/b',"
     "'emptyDir':{}}]}",
     "{'volumes':[{'name':'a','mountPath':'/c','emptyDir':{'medium':'Memory'}}]}", NULL,
     "{'volumes':[{'name':'a','mountPath':'/c','emptyDir':{'medium':'Memory'}},{'name':'b',"
     "'mountPath':'/b','emptyDir':{}}]}"},
    {"spread constraints merge by topology",
     "{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'a','whenUnsatisfiable':"
     "'DoNotSchedule'},{'maxSkew':1,'topologyKey':'b','whenUnsatisfiable':'DoNotSchedule'}]}",
     "{'topologySpreadConstraints':[{'maxSkew':2,'topologyKey':'a','whenUnsatisfiable':"
     "'ScheduleAnyway'}]}",
     NULL,
     "{'topologySpreadConstraints':[{'maxSkew':2,'topologyKey':'a','whenUnsatisfiable':"
     "'ScheduleAnyway'},{'maxSkew':1,'topologyKey':'b','whenUnsatisfiable':'DoNotSchedule'}]}"},
    {"a plugin cache is replaced",
     "{'pluginCache':{'claimName':'a','mountPath':'/a','optional':true}}",
     "{'pluginCache':{'claimName':'b','mountPath':'/b'}}", NULL,
     "{'pluginCache':{'claimName':'b','mountPath':'/b'}}"},
    {"resources merge by resource",
     "{'resources':{'requests':{'cpu':'1','memory':'1Gi'},'limits':{'memory':'2Gi'}}}",
     "{'resources':{'requests':{'cpu':'2'}}}", NULL,
     "{'resources':{'requests':{'cpu':'2','memory':'1Gi'},'limits':{'memory':'2Gi'}}}"},
    {"named lists merge by name and keep their order",
     "{'env':[{'name':'A','value':'1'},{'name':'B','value':'1'}],'imagePullSecrets':[{'name':'p'}]"
     "}",
     "{'env':[{'name':'A','value':'2'}],'imagePullSecrets':[{'name':'q'},{'name':'p'}]}",
     "{'env':[{'name':'C','value':'3'}]}",
     "{'env':[{'name':'A','value':'2'},{'name':'B','value':'1'},{'name':'C','value':'3'}],"
     "'imagePullSecrets':[{'name':'p'},{'name':'q'}]}"},
    {"mounts merge by path",
     "{'secretMounts':[{'name':'a','mountPath':'/s'},{'name':'c','mountPath':'/u'}],"
     "'configMapMounts':[{'name':'x','mountPath':'/x'},{'name':'y','mountPath':'/y'}]}",
     "{'secretMounts':[{'name':'b','mountPath':'/s'},{'name':'a','mountPath':'/t'}],"
     "'configMapMounts':[{'name':'z','mountPath':'/y'}]}",
     NULL,
     "{'secretMounts':[{'name':'b','mountPath':'/s'},{'name':'c','mountPath':'/u'},"
     "{'name':'a','mountPath':'/t'}],"
     "'configMapMounts':[{'name':'x','mountPath':'/x'},{'name':'z','mountPath':'/y'}]}"},
    {"each affinity is replaced",
     "{'affinity':{'podAffinity':{},'nodeAffinity':{'" PREFERRED "':[]}}}",
     "{'affinity':{'nodeAffinity':{}}}", NULL, "{'affinity':{'podAffinity':{},'nodeAffinity':{}}}"},
    {"security contexts merge by member", "{'podSecurityContext':{'runAsUser':1,'fsGroup':1}}",
     "{'podSecurityContext':{'runAsUser':2}}", NULL,
     "{'podSecurityContext':{'runAsUser':2,'fsGroup':1}}"},
    {"so do the container's, annotations and DNS",
     "{'securityContext':{'runAsUser':1,'runAsGroup':1},'annotations':{'a':'1','b':'1'},"
     "'podAnnotations':{'a':'1','b':'1'},'dnsConfig':{'searches':['a'],'nameservers':['::1']}}",
     "{'securityContext':{'runAsUser':2},'annotations':{'a':'2'},'podAnnotations':{'b':'2'},"
     "'dnsConfig':{'searches':['b']}}",
     NULL,
     "{'securityContext':{'runAsUser':2,'runAsGroup':1},'annotations':{'a':'2','b':'1'},"
     "'podAnnotations':{'a':'1','b':'2'},'dnsConfig':{'searches':['b'],'nameservers':['::1']}}"},
    {"pod templates are kept in their order", "{'podTemplate':{'metadata':{}}}",
     "{'podTemplate':[{'spec':{}}]}", "{'podTemplate':{'spec':{'a':1}}}",
     "{'podTemplate':[{'metadata':{}},{'spec':{}},{'spec':{'a':1}}]}"},
    {"nothing is nothing", NULL, NULL, NULL, "{}"},
};

static cJSON *json_or_null(const char *text)
{
    return text ? json(text) : NULL;
}

static void levels_merge_field_by_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(merges); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *defaults = json_or_null(merges[i].defaults);
        DF_JSON cJSON *executor = json_or_null(merges[i].executor);
        DF_JSON cJSON *run = json_or_null(merges[i].run);
        const struct df_placement_levels levels = {
            .defaults = defaults, .executor = executor, .run = run};
        DF_JSON cJSON *merged = NULL, *above = NULL, *again = NULL;
        if (df_placement_resolve(&levels, &merged, &err) < 0)
            fail_msg("%s: %s", merges[i].what, err.message);
        assert_json(merged, merges[i].expected, merges[i].what);

        /* The upper two first, as a step stores them, is the same. */
        const struct df_placement_levels upper = {.executor = executor, .run = run};
        assert_int_equal(df_placement_resolve(&upper, &above, NULL), 0);
        const struct df_placement_levels both = {.defaults = defaults, .executor = above};
        assert_int_equal(df_placement_resolve(&both, &again, NULL), 0);
        assert_json(again, merges[i].expected, merges[i].what);
    }
}

static void terrakubes_keys_stand_between_defaults_and_executor(void **state)
{
    (void)state;
    DF_JSON cJSON *defaults = json("{'nodeSelector':{'pool':'a'},'serviceAccountName':'d',"
                                   "'labels':{'x':'1'}}");
    DF_JSON cJSON *environment =
        json("[{'name':'EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS','value':'disk=ssd'},"
             "{'name':'EPHEMERAL_CONFIG_SERVICE_ACCOUNT','value':'e'},"
             "{'name':'EPHEMERAL_CONFIG_LABELS','value':'y=2'}]");
    DF_JSON cJSON *executor = json("{'serviceAccountName':'f','nodeSelector':{'zone':'z'}}");
    DF_JSON cJSON *merged = NULL;
    const struct df_placement_levels levels = {
        .defaults = defaults, .environment = environment, .executor = executor};
    assert_int_equal(df_placement_resolve(&levels, &merged, NULL), 0);
    assert_json(merged,
                "{'nodeSelector':{'disk':'ssd','zone':'z'},'serviceAccountName':'f',"
                "'labels':{'x':'1','y':'2'}}",
                "merged");
}

static void class_and_workspace_stand_between_defaults_and_terrakubes_keys(void **state)
{
    (void)state;
    DF_JSON cJSON *defaults = json("{'priorityClassName':'d','runtimeClassName':'d',"
                                   "'serviceAccountName':'d','image':'d','labels':{'d':'1'}}");
    DF_JSON cJSON *class = json("{'runtimeClassName':'c','serviceAccountName':'c','image':'c',"
                                "'labels':{'c':'1'}}");
    DF_JSON cJSON *workspace = json("{'serviceAccountName':'w','image':'w','labels':{'w':'1'}}");
    DF_JSON cJSON *environment = json("[{'name':'EPHEMERAL_CONFIG_SERVICE_ACCOUNT','value':'e'}]");
    DF_JSON cJSON *executor = json("{'image':'x'}");
    DF_JSON cJSON *merged = NULL;
    const struct df_placement_levels levels = {.defaults = defaults,
                                               .class = class,
                                               .workspace = workspace,
                                               .environment = environment,
                                               .executor = executor};
    assert_int_equal(df_placement_resolve(&levels, &merged, NULL), 0);
    assert_json(merged,
                "{'priorityClassName':'d','runtimeClassName':'c','serviceAccountName':'e',"
                "'image':'x','labels':{'d':'1','c':'1','w':'1'}}",
                "merged");
}

static void levels_that_make_no_pod_together_are_refused(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *defaults = json("{'resources':{'limits':{'cpu':'1'}}}");
    DF_JSON cJSON *run = json("{'resources':{'requests':{'cpu':'2'}}}");
    cJSON *merged = NULL;
    const struct df_placement_levels levels = {.defaults = defaults, .run = run};
    assert_int_equal(df_placement_resolve(&levels, &merged, &err), -1);
    assert_null(merged);
    assert_message(&err, "placement.resources.requests.cpu: \"2\" is more than the limit \"1\"");
}

/* ---- into the pod ---- */

#define POD                                                                                        \
    "{'metadata':{},'spec':{'securityContext':{'runAsUser':65532,'fsGroup':65532},'containers':["  \
    "{'name':'runner','image':'d','env':[{'name':'HOME','value':'/work'}],'securityContext':"      \
    "{'capabilities':{'drop':['ALL']}},'volumeMounts':[{'name':'w','mountPath':'/work'}]}],"       \
    "'volumes':[{'name':'w','emptyDir':{}}]}}"

static cJSON *pod_with(const char *members, bool has_claim)
{
    struct df_err err = {0};
    const struct df_placement_target target = {"runner", has_claim};
    DF_JSON cJSON *placement = placement_with(members);
    cJSON *pod = json(POD);
    if (df_placement_apply(placement, &target, &pod, &err) < 0)
        fail_msg("%s: %s", members, err.message);
    return pod;
}

static void every_field_lands_in_the_pod(void **state)
{
    (void)state;
    static const struct {
        const char *members, *path, *expected;
    } rows[] = {
        {"'image':'i'", "image", "'i'"},
        {"'imagePullPolicy':'Never'", "imagePullPolicy", "'Never'"},
        {"'resources':{'limits':{'cpu':'1'}}", "resources", "{'limits':{'cpu':'1'}}"},
        {"'env':[{'name':'A','value':'1'},{'name':'HOME','value':'/h'}]", "env",
         "[{'name':'HOME','value':'/h'},{'name':'A','value':'1'}]"},
        {"'envFrom':[{'secretRef':{'name':'s'}}]", "envFrom", "[{'secretRef':{'name':'s'}}]"},
        {"'securityContext':{'runAsUser':1}", "securityContext",
         "{'capabilities':{'drop':['ALL']},'runAsUser':1}"},
        {"'imagePullSecrets':[{'name':'p'}]", "/imagePullSecrets", "[{'name':'p'}]"},
        {"'nodeSelector':{'a':'b'}", "/nodeSelector", "{'a':'b'}"},
        {"'tolerations':[{'key':'a','operator':'Equal','value':'v','effect':'NoExecute',"
         "'tolerationSeconds':9}]",
         "/tolerations",
         "[{'key':'a','operator':'Equal','value':'v','effect':'NoExecute','tolerationSeconds':9}]"},
        {"'affinity':{'nodeAffinity':{}}", "/affinity", "{'nodeAffinity':{}}"},
        {"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':"
         "'DoNotSchedule'}]",
         "/topologySpreadConstraints",
         "[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'DoNotSchedule'}]"},
        {"'priorityClassName':'p'", "/priorityClassName", "'p'"},
        {"'runtimeClassName':'r'", "/runtimeClassName", "'r'"},
        {"'serviceAccountName':'s'", "/serviceAccountName", "'s'"},
        {"'podSecurityContext':{'runAsUser':1}", "/securityContext",
         "{'runAsUser':1,'fsGroup':65532}"},
        {"'dnsPolicy':'None'", "/dnsPolicy", "'None'"},
        {"'dnsConfig':{'searches':['a']}", "/dnsConfig", "{'searches':['a']}"},
        {"'labels':{'a':'b'}", "//labels", "{'a':'b'}"},
        {"'podAnnotations':{'a':'b'}", "//annotations", "{'a':'b'}"},
        {"'volumes':[{'name':'v','mountPath':'/v','subPath':'s','readOnly':true,"
         "'persistentVolumeClaim':{'claimName':'c'}}]",
         "/volumes",
         "[{'name':'w','emptyDir':{}},{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]"},
        {"'volumes':[{'name':'v','mountPath':'/v','subPath':'s','readOnly':true,'emptyDir':{}}]",
         "volumeMounts",
         "[{'name':'w','mountPath':'/work'},{'name':'v','mountPath':'/v','subPath':'s',"
         "'readOnly':true}]"},
        {"'podTemplate':{'spec':{'hostNetwork':true}}", "/hostNetwork", "true"},
        {"'image':'i','podTemplate':[{'spec':{'containers':[{'name':'runner','image':'j'}]}},"
         "{'spec':{'containers':[{'name':'runner','image':'k'}]}}]",
         "image", "'k'"},
        {"", "image", "'d'"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *pod = pod_with(rows[i].members, false);
        const char *path = rows[i].path + strspn(rows[i].path, "/");
        size_t up = (size_t)(path - rows[i].path);
        const cJSON *part = up == 2   ? df_json_at(pod, "metadata")
                            : up == 1 ? df_json_at(pod, "spec")
                                      : named(pod, "spec.containers", "runner");
        assert_at(part, path, rows[i].expected);
    }
}

static void secrets_and_config_maps_are_mounted_read_only(void **state)
{
    (void)state;
    DF_JSON cJSON *pod =
        pod_with("'secretMounts':[{'name':'s','mountPath':'/s','items':[{'key':'k','path':'p'}],"
                 "'defaultMode':288,'optional':true}],'configMapMounts':[{'name':'c','mountPath':"
                 "'/c'}]",
                 false);
    const cJSON *volumes = df_json_at(pod, "spec.volumes");
    const cJSON *secret = cJSON_GetArrayItem(volumes, 1), *config = cJSON_GetArrayItem(volumes, 2);
    assert_at(secret, "secret",
              "{'secretName':'s','items':[{'key':'k','path':'p'}],'defaultMode':288,"
              "'optional':true}");
    assert_at(config, "configMap", "{'name':'c'}");
    const cJSON *runner = named(pod, "spec.containers", "runner");
    assert_true(df_json_bool(named(runner, "volumeMounts", df_json_str(secret, "name")), "readOnly",
                             false));
    assert_string_equal(
        df_json_str(named(runner, "volumeMounts", df_json_str(config, "name")), "mountPath"), "/c");
}

static void a_plugin_cache_is_a_claim_or_for_want_of_it_an_empty_directory(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        bool has_claim;
        const char *source, *expected;
    } rows[] = {
        {"'optional':true", true, "persistentVolumeClaim", "{'claimName':'p'}"},
        {"'optional':true", false, "emptyDir", "{}"},
        {"'optional':false", false, "persistentVolumeClaim", "{'claimName':'p'}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *members =
            df_strf("'pluginCache':{'claimName':'p','mountPath':'/cache',%s}", rows[i].members);
        DF_JSON cJSON *placement = placement_with(members);
        DF_JSON cJSON *pod = pod_with(members, rows[i].has_claim);
        assert_at(named(pod, "spec.volumes", "plugin-cache"), rows[i].source, rows[i].expected);
        assert_string_equal(df_placement_plugin_cache(placement), "/cache");
    }
    assert_null(df_placement_plugin_cache(NULL));
}

static void a_patch_that_cannot_be_applied_changes_nothing(void **state)
{
    (void)state;
    struct df_err err = {0};
    const struct df_placement_target target = {"runner", false};
    DF_JSON cJSON *placement = json("{'image':'i','podTemplate':{'spec':{'volumes':[{}]}}}");
    DF_JSON cJSON *pod = json(POD);
    assert_int_equal(df_placement_apply(placement, &target, &pod, &err), -1);
    assert_message(&err, "podTemplate.spec.volumes: an item has no \"name\"");
    assert_json(pod, POD, "the pod");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_takes_what_kubernetes_takes),
        cmocka_unit_test(what_kubernetes_would_refuse_is_refused_with_key_value_and_reason),
        cmocka_unit_test(lists_end_at_their_limits),
        cmocka_unit_test(executors_runs_and_steps_are_checked),
        cmocka_unit_test(quantities_are_those_of_kubernetes),
        cmocka_unit_test(levels_merge_field_by_field),
        cmocka_unit_test(terrakubes_keys_stand_between_defaults_and_executor),
        cmocka_unit_test(class_and_workspace_stand_between_defaults_and_terrakubes_keys),
        cmocka_unit_test(levels_that_make_no_pod_together_are_refused),
        cmocka_unit_test(every_field_lands_in_the_pod),
        cmocka_unit_test(secrets_and_config_maps_are_mounted_read_only),
        cmocka_unit_test(a_plugin_cache_is_a_claim_or_for_want_of_it_an_empty_directory),
        cmocka_unit_test(a_patch_that_cannot_be_applied_changes_nothing),
    };
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
