/* The policy placement.allow: who may set what at which level, and what nobody gets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/allow.h"
#include "tests/unit/kube_words.h"

/* The configuration of these tests. */
#define DEFAULTS "{'serviceAccountName':'steps','image':'configured:1','priorityClassName':'usual'}"
#define CLASSES                                                                                    \
    "{'small':{'placement':{'resources':{'limits':{'memory':'1Gi','cpu':'2'}}}},"                  \
    "'deploy':{'placement':{'serviceAccountName':'deployer'}},'free':{}}"

struct policy {
    cJSON *defaults, *classes, *rule;
    struct df_never never;
    struct df_allow allow;
};

/* rule: what the configuration says about write and this level; NULL: nothing. */
static void open_policy(struct policy *p, enum df_allow_level level, const char *rule)
{
    *p = (struct policy){.defaults = json(DEFAULTS), .classes = json(CLASSES)};
    p->rule = rule ? json(rule) : NULL;
    assert_int_equal(df_strs_add(&p->never.accounts, "spawner"), 0);
    assert_int_equal(df_strs_add(&p->never.secrets, "tls"), 0);
    assert_int_equal(df_strs_add(&p->never.claims, "data"), 0);
    p->allow = (struct df_allow){
        .defaults = p->defaults, .classes = p->classes, .image = "runner:1", .never = &p->never};
    p->allow.rules[DF_ALLOW_WRITE][level] = p->rule;
}

static void close_policy(struct policy *p)
{
    df_never_free(&p->never);
    cJSON_Delete(p->defaults);
    cJSON_Delete(p->classes);
    cJSON_Delete(p->rule);
}

enum who { R = DF_ROLE_READ, W = DF_ROLE_WRITE, A = DF_ROLE_ADMIN };
enum level {
    EXECUTOR = DF_ALLOW_EXECUTOR,
    RUN = DF_ALLOW_RUN,
    WORKFLOW = DF_ALLOW_WORKFLOW,
    TERRAKUBE = DF_ALLOW_TERRAKUBE
};

/* message NULL: it is allowed. */
struct row {
    enum who role;
    enum level level;
    const char *placement;
    const char *message;
    const char *class_name;
    const char *rule;
};

#define HOST                                                                                       \
    "{'podTemplate':{'spec':{'hostPID':true,'volumes':[{'name':'h','hostPath':{'path':'/'}}]}}}"
#define OURS "belongs to dayfly itself: no step gets it, whoever asks"

/* clang-format off */
static const struct row rows[] = {
    /* a run of `write`: what decides where and how large, nothing that decides what it can reach */
    {W, RUN, "{}", NULL},
    {W, RUN, "{'nodeSelector':{'image':'x'},'tolerations':[{'key':'a'}],'labels':{'secretName':'b'}}", NULL},
    {W, RUN, "{'resources':{'requests':{'memory':'64Gi'}}}", NULL},
    {W, RUN, "{'podTemplate':{}}", "placement.podTemplate: a caller with the role write may not set it for a Run; the operator can add it to placement.allow.write.run.fields of the service's configuration, or a caller with the role admin can set it"},
    {W, RUN, "{'serviceAccountName':'steps'}", "placement.serviceAccountName: a caller with the role write may not set it for a Run"},
    {W, RUN, "{'image':'evil:1'}", "placement.image: a caller with the role write may not set it"},
    {W, RUN, "{'secretMounts':[{'name':'db','mountPath':'/s'}]}", "placement.secretMounts: "},
    {W, RUN, "{'configMapMounts':[{'name':'db','mountPath':'/s'}]}", "placement.configMapMounts: "},
    {W, RUN, "{'env':[{'name':'A','value':'b'}]}", "placement.env: "},
    {W, RUN, "{'envFrom':[{'secretRef':{'name':'db'}}]}", "placement.envFrom: "},
    {W, RUN, "{'volumes':[{'name':'v','mountPath':'/v','emptyDir':{}}]}", "placement.volumes: "},
    {W, RUN, "{'podSecurityContext':{'runAsUser':0}}", "placement.podSecurityContext: "},
    {W, RUN, "{'securityContext':{'privileged':true}}", "placement.securityContext: "},
    {W, RUN, "{'runtimeClassName':'runc'}", "placement.runtimeClassName: "},
    {W, RUN, "{'priorityClassName':'usual'}", "placement.priorityClassName: "},
    {W, RUN, "{'annotations':{'a':'b'}}", "placement.annotations: "},
    {R, RUN, "{'podTemplate':{}}", "placement.podTemplate: a caller with the role write may not"},
    /* resources within the class's */
    {W, RUN, "{'resources':{'limits':{'memory':'1024Mi','cpu':'2000m','ephemeral-storage':'9Gi'}}}", NULL, "small"},
    {W, RUN, "{'resources':{'limits':{'memory':'1025Mi'}}}", "placement.resources.limits.memory: 1025Mi is more than the class small allows (1Gi); take another class, or the operator can raise classes.small.placement.resources.limits.memory of the service's configuration, or a caller with the role admin can set it", "small"},
    {W, RUN, "{'resources':{'requests':{'cpu':'2001m'}}}", "placement.resources.requests.cpu: 2001m is more than the class small allows (2)", "small"},
    {W, RUN, "{'resources':{'limits':{'memory':'64Gi'}}}", NULL, "free"},
    {A, RUN, "{'resources':{'limits':{'memory':'64Gi'}}}", NULL, "small"},
    {W, EXECUTOR, "{'resources':{'limits':{'memory':'64Gi'}}}", "is more than the class small allows", "small"},
    /* an executor of `write`: all but what isolates the pod, and names from lists */
    {W, EXECUTOR, "{'nodeSelector':{'a':'b'},'affinity':{},'dnsPolicy':'None','podAnnotations':{'a':'b'},'env':[{'name':'A','value':'b'}]}", NULL},
    {W, EXECUTOR, "{'image':'mine:1','imagePullPolicy':'Always'}", NULL},
    {W, EXECUTOR, "{'configMapMounts':[{'name':'any','mountPath':'/c'}],'envFrom':[{'configMapRef':{'name':'any'}}]}", NULL},
    {W, EXECUTOR, "{'volumes':[{'name':'a','mountPath':'/a','emptyDir':{}},{'name':'b','mountPath':'/b','persistentVolumeClaim':{'claimName':'c'}}]}", NULL},
    {W, EXECUTOR, "{'pluginCache':{'claimName':'cache','mountPath':'/c'}}", NULL},
    {W, EXECUTOR, "{'serviceAccountName':'steps','priorityClassName':'usual'}", NULL},
    {W, EXECUTOR, "{'serviceAccountName':'deployer'}", NULL},
    {W, EXECUTOR, "{'serviceAccountName':'other'}", "placement.serviceAccountName: a caller with the role write may not take the service account \"other\" for an Executor; the operator can add it to placement.allow.write.executor.serviceAccounts of the service's configuration, or a caller with the role admin can set it"},
    {W, EXECUTOR, HOST, "placement.podTemplate: a caller with the role write may not set it for an Executor"},
    {W, EXECUTOR, "{'securityContext':{'runAsUser':1000}}", "placement.securityContext: "},
    {W, EXECUTOR, "{'podSecurityContext':{'fsGroup':1}}", "placement.podSecurityContext: "},
    {W, EXECUTOR, "{'runtimeClassName':'runc'}", "placement.runtimeClassName: "},
    {W, EXECUTOR, "{'priorityClassName':'system-node-critical'}", "may not take the priority class \"system-node-critical\" for an Executor; the operator can add it to placement.allow.write.executor.priorityClasses of"},
    {W, EXECUTOR, "{'secretMounts':[{'name':'db','mountPath':'/s'}]}", "placement.secretMounts[0].name: a caller with the role write may not take the Secret \"db\" for an Executor; the operator can add it to placement.allow.write.executor.secrets of the service's configuration, or a caller with the role admin can set it"},
    {W, EXECUTOR, "{'envFrom':[{'configMapRef':{'name':'a'}},{'secretRef':{'name':'db'}}]}", "placement.envFrom[1].secretRef.name: "},
    {W, EXECUTOR, "{'env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'db','key':'k'}}}]}", "placement.env[0].valueFrom.secretKeyRef.name: "},
    {W, EXECUTOR, "{'imagePullSecrets':[{'name':'registry'}]}", "placement.imagePullSecrets[0].name: "},
    {W, EXECUTOR, "{'volumes':[{'name':'v','mountPath':'/v','secret':{'secretName':'db'}}]}", "placement.volumes[0].secret.secretName: "},
    {W, EXECUTOR, "{'volumes':[{'name':'v','mountPath':'/v','csi':{'driver':'d','volumeAttributes':{'secretProviderClass':'all'}}}]}", "placement.volumes[0]: a caller with the role write may not take the volume kind \"csi\" for an Executor"},
    {W, EXECUTOR, "{'volumes':[{'name':'v','mountPath':'/v','nfs':{'server':'s','path':'/'}}]}", "volume kind \"nfs\""},
    /* keys that the node, the cloud, a mesh or an injector reads; and those of nobody */
    {W, EXECUTOR, "{'podAnnotations':{'iam.amazonaws.com/role':'admin'}}", "may not take the key \"iam.amazonaws.com/role\" for an Executor; the operator can add it to placement.allow.write.executor.metadata of the service's configuration, or a caller with the role admin can set it"},
    {W, EXECUTOR, "{'podAnnotations':{'container.apparmor.security.beta.kubernetes.io/runner':'unconfined'}}", "container.apparmor.security.beta.kubernetes.io/runner"},
    {W, EXECUTOR, "{'annotations':{'vault.hashicorp.com/agent-inject':'true'}}", "\"vault.hashicorp.com/agent-inject\""},
    {W, EXECUTOR, "{'podAnnotations':{'io.kubernetes.cri-o.userns-mode':'host'}}", "\"io.kubernetes.cri-o.userns-mode\""},
    {W, EXECUTOR, "{'labels':{'azure.workload.identity/use':'true'}}", "\"azure.workload.identity/use\""},
    {W, EXECUTOR, "{'labels':{'aadpodidbinding':'owner'}}", "\"aadpodidbinding\""},
    {W, RUN, "{'labels':{'app.kubernetes.io/name':'dayfly','team':'a'}}", "may not take the key \"app.kubernetes.io/name\" for a Run"},
    {W, TERRAKUBE, "{'podAnnotations':{'sidecar.istio.io/inject':'false'}}", "may not take the key \"sidecar.istio.io/inject\" for a workspace of Terrakube"},
    {W, WORKFLOW, "{'labels':{'k8s.example/x':'y'}}", "\"k8s.example/x\""},
    {W, EXECUTOR, "{'labels':{'example.com/team':'a'},'podAnnotations':{'note':'b'}}", NULL, NULL, "{'metadata':['example.com/*']}"},
    {W, EXECUTOR, "{'labels':{'example.community/team':'a'}}", "\"example.community/team\"", NULL, "{'metadata':['example.com/*']}"},
    {A, EXECUTOR, "{'podAnnotations':{'iam.amazonaws.com/role':'admin'},'labels':{'aadpodidbinding':'owner'}}", NULL},
    /* what the configuration adds and takes; the other lists stay as they are */
    {W, EXECUTOR, "{'secretMounts':[{'name':'team-db','mountPath':'/s'}],'image':'mine:1'}", NULL, NULL, "{'secrets':['team-*']}"},
    {W, EXECUTOR, "{'secretMounts':[{'name':'steam-db','mountPath':'/s'}]}", "Secret \"steam-db\"", NULL, "{'secrets':['team-*']}"},
    {W, EXECUTOR, "{'serviceAccountName':'tofu'}", NULL, NULL, "{'serviceAccounts':['tofu']}"},
    {W, EXECUTOR, "{'serviceAccountName':'tofu-2'}", "service account \"tofu-2\"", NULL, "{'serviceAccounts':['tofu']}"},
    {W, EXECUTOR, "{'image':'other/runner:1'}", "placement.image: a caller with the role write may not take the image \"other/runner:1\"", NULL, "{'images':['ours/*']}"},
    {W, EXECUTOR, "{'image':'ours/runner:1'}", NULL, NULL, "{'images':['ours/*']}"},
    {W, EXECUTOR, "{'image':'runner:1'}", NULL, NULL, "{'images':[]}"},
    {W, EXECUTOR, "{'image':'configured:1'}", NULL, NULL, "{'images':[]}"},
    {W, EXECUTOR, "{'volumes':[{'name':'v','mountPath':'/v','image':{'reference':'other:1'}}]}", "placement.volumes[0].image.reference: ", NULL, "{'images':['ours/*']}"},
    {W, EXECUTOR, "{'pluginCache':{'claimName':'cache','mountPath':'/c'}}", "placement.pluginCache: a caller with the role write may not take the volume kind \"persistentVolumeClaim\"", NULL, "{'volumes':['emptyDir']}"},
    {W, EXECUTOR, HOST, NULL, NULL, "{'fields':['*','podTemplate']}"},
    {W, RUN, "{'labels':{'a':'b'}}", "placement.labels: ", NULL, "{'fields':['nodeSelector']}"},
    {W, RUN, "{'nodeSelector':{'a':'b'}}", "placement.nodeSelector: ", NULL, "{'fields':[]}"},
    /* an admin */
    {A, RUN, HOST, NULL},
    {A, EXECUTOR, "{'serviceAccountName':'any','priorityClassName':'any','secretMounts':[{'name':'any','mountPath':'/s'}],'securityContext':{'privileged':true},'runtimeClassName':'r',"
                  "'volumes':[{'name':'v','mountPath':'/v','csi':{'driver':'d'}}]}", NULL},
    {A, WORKFLOW, HOST, NULL},
    /* a workflow of `write`; its image and account are below */
    {W, WORKFLOW, "{'nodeSelector':{'a':'b'},'tolerations':[{'key':'a'}]}", NULL},
    {W, WORKFLOW, "{'annotations':{'a':'b'}}", "placement.annotations: a caller with the role write may not set it for a workflow"},
    {W, WORKFLOW, HOST, "placement.podTemplate: "},
    /* a workspace of Terrakube: where its steps run as before, nothing that it can reach */
    {W, TERRAKUBE, "{'nodeSelector':{'a':'b'},'tolerations':[{'key':'a'}],'labels':{'c':'d'},'annotations':{'a':'b'},'podAnnotations':{'a':'b'},"
                   "'resources':{'requests':{'memory':'64Gi'}},'env':[{'name':'A','value':'b'}]}", NULL},
    {W, TERRAKUBE, "{'pluginCache':{'claimName':'cache','mountPath':'/c'}}", NULL},
    {W, TERRAKUBE, "{'envFrom':[{'configMapRef':{'name':'terrakube-executor-config'}}],'serviceAccountName':'steps'}", NULL},
    {W, TERRAKUBE, "{'envFrom':[{'configMapRef':{'name':'any'}}]}", "placement.envFrom[0].configMapRef.name: a caller with the role write may not take the ConfigMap \"any\" for a workspace of Terrakube; the operator can add it to placement.allow.write.terrakube.configMaps of"},
    {W, TERRAKUBE, "{'configMapMounts':[{'name':'any','mountPath':'/data'}]}", "ConfigMap \"any\""},
    {W, TERRAKUBE, "{'configMapMounts':[{'name':'any','mountPath':'/data'}]}", NULL, NULL, "{'configMaps':['*']}"},
    {W, TERRAKUBE, "{'serviceAccountName':'terrakube-api'}", "may not take the service account \"terrakube-api\" for a workspace of Terrakube"},
    {W, TERRAKUBE, "{'serviceAccountName':'deployer-2'}", NULL, NULL, "{'serviceAccounts':['deployer-*']}"},
    {W, TERRAKUBE, "{'podSecurityContext':{'runAsUser':0}}", "placement.podSecurityContext: a caller with the role write may not set it for a workspace of Terrakube; the operator can add it to placement.allow.write.terrakube.fields of"},
    {W, TERRAKUBE, "{'securityContext':{'allowPrivilegeEscalation':true}}", "placement.securityContext: "},
    {W, TERRAKUBE, "{'podSecurityContext':{'fsGroup':1000}}", NULL, NULL, "{'fields':['*','podSecurityContext']}"},
    {W, TERRAKUBE, "{'serviceAccountName':'spawner'}", OURS, NULL, "{'serviceAccounts':['*']}"},
    /* nobody */
    {A, RUN, "{'serviceAccountName':'spawner'}", "placement.serviceAccountName: the service account \"spawner\" " OURS},
    {A, EXECUTOR, "{'secretMounts':[{'name':'ok','mountPath':'/a'},{'name':'dayfly-key','mountPath':'/s'}]}", "placement.secretMounts[1].name: the Secret \"dayfly-key\" " OURS},
    {A, EXECUTOR, "{'envFrom':[{'secretRef':{'name':'dayfly-authority'}}]}", "placement.envFrom[0].secretRef.name: the Secret \"dayfly-authority\" " OURS},
    {A, EXECUTOR, "{'env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'dfb-5f1c','key':'k'}}}]}", "the Secret \"dfb-5f1c\" " OURS},
    {A, EXECUTOR, "{'volumes':[{'name':'v','mountPath':'/v','secret':{'secretName':'tls'}}]}", "the Secret \"tls\" " OURS},
    {A, EXECUTOR, "{'volumes':[{'name':'v','mountPath':'/v','persistentVolumeClaim':{'claimName':'data'}}]}", "the volume claim \"data\" " OURS},
    {A, EXECUTOR, "{'pluginCache':{'claimName':'data','mountPath':'/c'}}", "the volume claim \"data\" " OURS},
    {A, EXECUTOR, "{'configMapMounts':[{'name':'dfb-5f1c-0','mountPath':'/c'}]}", "the ConfigMap \"dfb-5f1c-0\" " OURS},
    {A, EXECUTOR, "{'secretMounts':[{'name':'dayfly-tls','mountPath':'/s'},{'name':'dayfly-keys','mountPath':'/t'}]}", NULL},
    {A, RUN, "{'podTemplate':{'spec':{'serviceAccount':'spawner'}}}", "placement.podTemplate.spec.serviceAccount: "},
    {A, RUN, "{'podTemplate':[{},{'spec':{'initContainers':[{'name':'i','envFrom':[{'secretRef':{'name':'dayfly-key'}}]}]}}]}", "placement.podTemplate[1].spec.initContainers[0].envFrom[0].secretRef.name: "},
    {A, RUN, "{'podTemplate':{'spec':{'volumes':[{'name':'t','projected':{'sources':[{'serviceAccountToken':{'audience':'dayfly','path':'t'}}]}}]}}}", "the token audience \"dayfly\" " OURS},
    {A, RUN, "{'podTemplate':{'spec':{'volumes':[{'name':'t','projected':{'sources':[{'secret':{'name':'dayfly-key'}}]}}]}}}", "the Secret \"dayfly-key\" " OURS},
    {A, RUN, "{'podTemplate':{'spec':{'volumes':[{'name':'t','flexVolume':{'driver':'d','secretRef':{'name':'dayfly-key'}}}]}}}", "the Secret \"dayfly-key\" " OURS},
    {A, RUN, "{'podTemplate':{'spec':{'volumes':[{'name':'t','projected':{'sources':[{'serviceAccountToken':{'audience':'dayflyer','path':'t'}}]}}]}}}", NULL},
    {W, EXECUTOR, "{'podTemplate':{'spec':{'serviceAccountName':'spawner'}}}", OURS, NULL, "{'fields':['podTemplate']}"},
    {W, EXECUTOR, "{'serviceAccountName':'spawner'}", OURS, NULL, "{'serviceAccounts':['*']}"},
    {W, EXECUTOR, "{'secretMounts':[{'name':'dayfly-key','mountPath':'/s'}]}", OURS, NULL, "{'secrets':['*','dayfly-key']}"},
};
/* clang-format on */

static void assert_verdict(int result, const struct df_err *err, const char *placement,
                           const char *message)
{
    if ((result == 0) != !message)
        fail_msg("%s: %s", placement, result ? err->message : "allowed");
    if (!message)
        return;
    assert_int_equal(err->cls, DF_ERR_USER);
    assert_string_equal(err->reason, "PlacementDenied");
    assert_message(err, message);
}

static void what_a_caller_may_set_is_what_the_rule_of_role_and_level_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct row *r = &rows[i];
        struct df_err err = {0};
        struct policy p;
        open_policy(&p, (enum df_allow_level)r->level, r->rule);
        DF_JSON cJSON *placement = json(r->placement);
        const struct df_allow_ask ask = {(enum df_role)r->role, (enum df_allow_level)r->level,
                                         r->class_name, "placement"};
        int result = df_allow_check(&p.allow, &ask, placement, NULL, &err);
        assert_verdict(result, &err, r->placement, r->message);
        close_policy(&p);
    }
}

/* What an admin gave stays when somebody with the role write changes something else. */
static void only_what_a_change_changes_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *message;
    } cases[] = {
        {HOST, HOST, NULL},
        {"{'serviceAccountName':'root','labels':{'a':'b'}}",
         "{'serviceAccountName':'root','labels':{'a':'c'}}", NULL},
        {"{'serviceAccountName':'root'}", "{'serviceAccountName':'boot'}",
         "service account \"boot\""},
        {"{'labels':{'a':'b'}}", "{}", NULL},
        {"{'labels':{'x.y/z':'b'}}", "{'labels':{'x.y/z':'b','a':'c'}}", NULL},
        {"{'labels':{'x.y/z':'b'}}", "{'labels':{'x.y/z':'c'}}", "the key \"x.y/z\""},
        {"{'labels':{'x.y/z':'b','a':'b'}}", "{'labels':{'a':'b'}}", "the key \"x.y/z\""},
        {"{'annotations':{'x.y/z':'b'}}", "{}", "the key \"x.y/z\""},
        {HOST, "{}", "placement.podTemplate: a caller with the role write may not set it"},
        {"{'runtimeClassName':'gvisor'}", "{}", "placement.runtimeClassName"},
        {"{'serviceAccountName':'spawner'}", "{'serviceAccountName':'spawner'}", NULL},
    };
    const struct df_allow_ask ask = {DF_ROLE_WRITE, DF_ALLOW_EXECUTOR, NULL, "placement"};
    struct policy p;
    open_policy(&p, DF_ALLOW_EXECUTOR, NULL);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *old = json(cases[i].old), *new = json(cases[i].new);
        int result = df_allow_check(&p.allow, &ask, new, old, &err);
        assert_verdict(result, &err, cases[i].new, cases[i].message);
    }
    close_policy(&p);
}

/* clang-format off */
static const struct {
    enum who role;
    const char *workflow, *message, *class_name, *rule;
} workflows[] = {
    {W, "{'executionBundle':'runner:1'}", NULL},
    {W, "{'executionBundle':'runner:1','serviceAccountName':'kubernaut-workflow-runner','resources':{'limits':{'memory':'1Gi'}},'parameters':{'image':'x','secretName':'y'}}", NULL},
    {W, "{'executionBundle':'other:1'}", "workflow.executionBundle: a caller with the role write may not take the image \"other:1\" for a workflow; the operator can add it to placement.allow.write.workflow.images of the service's configuration, or a caller with the role admin can set it"},
    {W, "{'executionBundle':'ours/fix:1'}", NULL, NULL, "{'images':['ours/*']}"},
    {W, "{'executionBundle':'runner:1','serviceAccountName':'cluster-admin'}", "workflow.serviceAccountName: a caller with the role write may not take the service account \"cluster-admin\""},
    {W, "{'executionBundle':'runner:1'}", "workflow.serviceAccountName: a caller with the role write may not take the service account \"kubernaut-workflow-runner\"", NULL, "{'serviceAccounts':['other']}"},
    {W, "{'executionBundle':'runner:1','dependencies':{'secrets':[{'name':'db'}]}}", "workflow.dependencies.secrets[0].name: a caller with the role write may not take the Secret \"db\""},
    {W, "{'executionBundle':'runner:1','dependencies':{'configMaps':[{'name':'db'}]}}", "workflow.dependencies.configMaps[0].name: "},
    {W, "{'executionBundle':'runner:1','dependencies':{'configMaps':[{'name':'db'}]}}", NULL, NULL, "{'configMaps':['*']}"},
    {W, "{'executionBundle':'runner:1','resources':{'limits':{'memory':'2Gi'}}}", "workflow.resources.limits.memory: 2Gi is more than", "small"},
    {W, "{'executionBundle':'runner:1','resources':{}}", "workflow.resources: a caller", NULL, "{'fields':[]}"},
    {A, "{'executionBundle':'other:1','serviceAccountName':'cluster-admin','dependencies':{'secrets':[{'name':'db'}]}}", NULL},
    {A, "{'executionBundle':'other:1','serviceAccountName':'spawner'}", "workflow.serviceAccountName: the service account \"spawner\" " OURS},
    {A, "{'executionBundle':'other:1','dependencies':{'secrets':[{'name':'dayfly-key'}]}}", "workflow.dependencies.secrets[0].name: the Secret \"dayfly-key\" " OURS},
};
/* clang-format on */

static void a_workflow_takes_images_and_accounts_that_its_caller_may_take(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(workflows); i++) {
        struct df_err err = {0};
        struct policy p;
        open_policy(&p, DF_ALLOW_WORKFLOW, workflows[i].rule);
        DF_JSON cJSON *workflow = json(workflows[i].workflow);
        const struct df_allow_ask ask = {(enum df_role)workflows[i].role, DF_ALLOW_WORKFLOW,
                                         workflows[i].class_name, "workflow"};
        int result = df_allow_check_workflow(&p.allow, &ask, workflow, &err);
        assert_verdict(result, &err, workflows[i].workflow, workflows[i].message);
        close_policy(&p);
    }
}

static void the_configured_account_of_workflows_stands_for_the_default_one(void **state)
{
    (void)state;
    struct policy p;
    struct df_err err;
    const struct df_allow_ask ask = {DF_ROLE_WRITE, DF_ALLOW_WORKFLOW, NULL, "workflow"};
    DF_JSON cJSON *none = json("{'executionBundle':'runner:1'}");
    DF_JSON cJSON *named = json("{'executionBundle':'runner:1','serviceAccountName':'fixer'}");
    DF_JSON cJSON *old =
        json("{'executionBundle':'runner:1','serviceAccountName':'kubernaut-workflow-runner'}");
    open_policy(&p, DF_ALLOW_WORKFLOW, NULL);
    p.allow.workflow_account = "fixer";
    assert_int_equal(df_allow_check_workflow(&p.allow, &ask, none, NULL), 0);
    assert_int_equal(df_allow_check_workflow(&p.allow, &ask, named, NULL), 0);
    assert_int_equal(df_allow_check_workflow(&p.allow, &ask, old, &err), -1);
    struct df_never never = {0};
    assert_int_equal(df_strs_add(&never.accounts, "fixer"), 0);
    p.allow.never = &never;
    assert_int_equal(df_allow_check_workflow(&p.allow, &ask, none, &err), -1);
    assert_message(&err,
                   "workflow.serviceAccountName: the service account \"fixer\" belongs to dayfly");
    df_never_free(&never);
    close_policy(&p);
}

static void every_fault_is_named_at_once(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct policy p;
    const struct df_allow_ask ask = {DF_ROLE_WRITE, DF_ALLOW_RUN, NULL, "placement"};
    DF_JSON cJSON *placement = json("{'image':'x:1','env':[],'labels':{}}");
    open_policy(&p, DF_ALLOW_RUN, NULL);
    assert_int_equal(df_allow_check(&p.allow, &ask, placement, NULL, &err), -1);
    assert_message(&err, "placement.image: ");
    assert_message(&err, "placement.env: ");
    assert_null(strstr(err.message, "placement.labels"));
    close_policy(&p);
}

static void a_rule_is_told_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *line;
    } cases[] = {
        {NULL, "resources nodeSelector tolerations labels"},
        {"{'fields':[]}", "nothing"},
        {"{'fields':['*'],'secrets':['a','b-*'],'images':[]}", "*, secrets a b-*"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_BUF struct df_buf line = DF_BUF_INIT(500);
        struct policy p;
        open_policy(&p, DF_ALLOW_RUN, cases[i].rule);
        df_allow_describe(&p.allow, &(struct df_allow_cell){DF_ALLOW_WRITE, DF_ALLOW_RUN}, &line);
        assert_string_equal(df_buf_str(&line), cases[i].line);
        close_policy(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_caller_may_set_is_what_the_rule_of_role_and_level_says),
        cmocka_unit_test(only_what_a_change_changes_is_checked),
        cmocka_unit_test(a_workflow_takes_images_and_accounts_that_its_caller_may_take),
        cmocka_unit_test(the_configured_account_of_workflows_stands_for_the_default_one),
        cmocka_unit_test(every_fault_is_named_at_once),
        cmocka_unit_test(a_rule_is_told_in_one_line),
    };
    return cmocka_run_group_tests_name("allow", tests, NULL, NULL);
}
