#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/model/integration.h"
#include "spawner/model/tables.h"
#include "tests/unit/model_words.h"

/* ---- names ---- */

static void actions_and_roles_are_known_by_their_names(void **state)
{
    (void)state;
    enum df_action action;
    enum df_role role;
    for (int i = DF_ACTION_PROVISION; i <= DF_ACTION_STATE; i++) {
        assert_int_equal(df_action_parse(df_action_name((enum df_action)i), &action, NULL), 0);
        assert_int_equal(action, i);
    }
    for (int i = DF_ROLE_READ; i <= DF_ROLE_ADMIN; i++) {
        assert_int_equal(df_role_parse(df_role_name((enum df_role)i), &role, NULL), 0);
        assert_int_equal(role, i);
    }
    assert_int_equal(df_action_parse("apply", &action, NULL), -1);
    assert_int_equal(df_role_parse("none", &role, NULL), -1);
    assert_int_equal(df_role_parse("root", &role, NULL), -1);
}

static void names_of_runs_and_steps_stay_dns_labels(void **state)
{
    (void)state;
    char longest[64], name[64], other[64], step[64];
    memset(longest, 'a', 63);
    longest[63] = '\0';
    assert_int_equal(df_model_name("net-prod", "3", name, NULL), 0);
    assert_string_equal(name, "net-prod-3");
    assert_int_equal(df_model_name(name, "apply", step, NULL), 0);
    assert_string_equal(step, "net-prod-3-apply");
    /* 61 characters and a number of one digit fit exactly; 62 do not. */
    assert_int_equal(df_model_name(longest + 2, "7", name, NULL), 0);
    assert_int_equal(strlen(name), 63);
    assert_string_equal(name + 61, "-7");
    assert_int_equal(df_model_name(longest + 1, "7", name, NULL), 0);
    assert_int_equal(strlen(name), 63);
    assert_true(df_is_dns_label(name));
    for (size_t n = 40; n <= 63; n++) {
        assert_int_equal(df_model_name(longest + 63 - n, "2147483647", name, NULL), 0);
        assert_int_equal(df_model_name(name, "apply", step, NULL), 0);
        assert_true(df_is_dns_label(name) && df_is_dns_label(step));
        assert_true(df_ends_with(step, "-apply"));
    }
    /* Two that are cut at the same place stay two. */
    longest[62] = 'b';
    assert_int_equal(df_model_name(longest, "7", name, NULL), 0);
    longest[62] = 'c';
    assert_int_equal(df_model_name(longest, "7", other, NULL), 0);
    assert_string_not_equal(name, other);
}

/* A step is named after its run; what is too long is always cut in the same way. */
static void names_are_kept_while_they_fit_and_always_cut_alike(void **state)
{
    (void)state;
    static const char too_long[] =
        "a-very-long-task-execution-generated-name-that-exceeds-the-limit-12345";
    char name[64], again[64];
    assert_int_equal(df_model_name("rabc123", "train", name, NULL), 0);
    assert_string_equal(name, "rabc123-train");
    assert_int_equal(df_model_name(too_long, "plan", name, NULL), 0);
    assert_int_equal(df_model_name(too_long, "plan", again, NULL), 0);
    assert_string_equal(name, again);
    assert_int_equal(strlen(name), 63);
    assert_true(df_is_dns_label(name));
}

/* ---- whole documents ---- */

static void a_small_executor_gets_its_defaults(void **state)
{
    (void)state;
    DF_JSON cJSON *j = executor_with("");
    assert_admitted(DF_KIND_EXECUTOR, j, "small");
    DF_JSON cJSON *expected = json("{'apiVersion':'dayfly.dev/v1alpha1','kind':'Executor',"
                                   "'metadata':{'name':'net','namespace':'default'},'spec':{"
                                   "'source':{'url':'file:///src'},'runtime':{},"
                                   "'storage':{'type':'managed'},'approval':'required'}}");
    assert_true(df_json_equal(j, expected));
}

static void an_executor_may_say_everything(void **state)
{
    (void)state;
    DF_JSON cJSON *j =
        json("{'apiVersion':'dayfly.dev/v1alpha1','kind':'Executor','metadata':{'name':'net-prod',"
             "'namespace':'default','labels':{'team':'net','example.com/tier':'one'},"
             "'annotations':{'note':'two\\nlines'},'resourceVersion':'12'},'spec':{"
             "'description':'The\\nnetwork.','runtime':{'name':'terraform','version':'~> 1.9, != "
             "1.9.3'},'source':{'url':'https://git.example/net.git','branch':'main',"
             "'folder':'envs/prod','submodules':true,'secretRef':{'name':'git'}},"
             "'variables':{'region':'eu','zones':['a','b'],'size':{'n':3,'big':9007199254740993},"
             "'none':null,'my-var':true},'arguments':['-parallelism=5','-target','module.a',"
             "'-replace=aws_instance.x[0]','-refresh=false'],'environment':[{'name':'AWS_REGION',"
             "'value':'eu-west-1'},{'name':'TF_LOG','value':''}],'secrets':[{'name':'db',"
             "'keys':['password']},{'name':'all'}],'integrations':[{'provider':'aws',"
             "'secretRef':{'name':'aws-prod'}},{'provider':'github','secretRef':{'name':'gh'}}],"
             "'storage':{'type':'s3','path':'net/prod.tfstate','config':{'bucket':'b',"
             "'region':'eu-west-1','use_lockfile':true,'max_retries':5}},'approval':'automatic',"
             "'timeouts':{'plan':'30m','apply':'2h','grace':'15m','pending':'90s'},"
             "'placement':{'nodeSelector':{'disk':'ssd'}}}}");
    assert_admitted(DF_KIND_EXECUTOR, j, "all");
}

static void every_fault_is_found_with_its_path(void **state)
{
    (void)state;
    DF_JSON cJSON *j =
        json("{'kind':'Run','metadata':{'name':'Net','uid':'x','labels':{'a':1}},'status':{},"
             "'spec':{'sourc':{},'runtime':{'version':1.9},'approval':'never',"
             "'environment':[{'name':'A'}],'timeouts':{'plan':'soon'},'variables':[]}}");
    struct df_err err = {0};
    assert_int_equal(df_model_admit(DF_KIND_EXECUTOR, j, NULL, &err), -1);
    static const char *const faults[] = {
        "kind: \"Run\" is not one of Executor",
        "metadata.uid: is not a field (there are: name, namespace,",
        "metadata.name: \"Net\" is not a valid name",
        "metadata.labels.a: must be a string; put it in quotes",
        "spec.sourc: is not a field",
        "spec.runtime.version: must be a string; put it in quotes",
        "spec.source: is required",
        "spec.variables: must be an object",
        "spec.environment[0].value: is required",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(faults); i++)
        if (!strstr(err.message, faults[i]))
            fail_msg("\"%s\" is not in \"%s\"", faults[i], err.message);
    assert_non_null(strstr(err.message, "invalid Executor: "));
}

static void more_faults_than_fit_are_counted(void **state)
{
    (void)state;
    DF_JSON cJSON *j = executor_with("");
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(j, "spec");
    for (int i = 0; i < 1000; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "field%d", i);
        assert_int_equal(df_json_add_bool(spec, name, true, NULL), 0);
    }
    struct df_err err = {0};
    assert_int_equal(df_model_admit(DF_KIND_EXECUTOR, j, NULL, &err), -1);
    assert_non_null(strstr(err.message, "spec.field0: is not a field"));
    assert_non_null(strstr(err.message, "; and 99"));
    assert_true(strlen(err.message) < sizeof(err.message) - 1);
}

static void hostile_keys_cannot_forge_a_message(void **state)
{
    (void)state;
    DF_JSON cJSON *j = executor_with("");
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(j, "spec");
    assert_int_equal(df_json_add_bool(spec, "a\n\x1b[31mb\xff", true, NULL), 0);
    struct df_err err = {0};
    assert_int_equal(df_model_admit(DF_KIND_EXECUTOR, j, NULL, &err), -1);
    assert_non_null(strstr(err.message, "spec.a??[31mb?: is not a field"));
}

static void what_is_no_object_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"[]", "null", "1", "'x'"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        DF_JSON cJSON *j = json(texts[i]);
        assert_refused(DF_KIND_EXECUTOR, j, texts[i], "must be an object");
    }
    static const char *const parts[] = {"{'spec':[]}", "{'metadata':null,'spec':{}}",
                                        "{'spec':{'source':[]}}", "{'spec':{'source':{'url':1}}}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++) {
        DF_JSON cJSON *j = json(parts[i]);
        assert_refused(DF_KIND_EXECUTOR, j, parts[i], "must be");
    }
}

/* ---- fields one by one ---- */

static const struct {
    const char *member, *fault; /* NULL: accepted */
} members[] = {
    {"'description':''", NULL},
    {"'description':'a\\u0007b'", "spec.description: has a control character"},
    {"'runtime':{}", NULL},
    {"'runtime':{'name':'tofu'}", "spec.runtime.name: \"tofu\" is not one of opentofu, terraform"},
    {"'runtime':{'name':'platform'}", NULL},
    {"'runtime':{'name':'platform'},'variables':{'a':1}",
     "spec.variables: is for modules of OpenTofu and Terraform"},
    {"'runtime':{'name':'platform'},'arguments':['-parallelism=1']",
     "spec.arguments: is for modules of OpenTofu and Terraform"},
    {"'runtime':{'name':'platform'},'storage':{'type':'managed'}",
     "spec.storage.type: must be module: a platform has no state"},
    {"'runtime':{'name':'platform'},'secrets':[{'name':'git','as':'variable'}]",
     "spec.secrets[0].as: must be env or file"},
    {"'runtime':{'name':'platform'},'secrets':[{'name':'git'}]",
     "spec.secrets[0].as: must be env or file"},
    {"'runtime':{'name':null}", "spec.runtime.name: must be a string and is null; leave it out"},
    {"'runtime':{'version':'1.12.6'}", NULL},
    {"'runtime':{'version':'>= 1.8, < 2.0'}", NULL},
    {"'runtime':{'version':'~>1.9'}", NULL},
    {"'runtime':{'version':'1.10.0-rc1'}", NULL},
    {"'runtime':{'version':''}", "spec.runtime.version: is empty"},
    {"'runtime':{'version':'latest'}", "\"latest\" is not a version"},
    {"'runtime':{'version':'v1.2.3'}", "is not a version"},
    {"'runtime':{'version':'1.2.3.4'}", "is not a version"},
    {"'runtime':{'version':'>= 1.8,'}", "is not a version"},
    {"'runtime':{'version':'>> 1.8'}", "is not a version"},
    {"'runtime':{'version':'1..2'}", "is not a version"},
    {"'runtime':{'version':'1.2-'}", "is not a version"},
    {"'runtime':{'version':'../../x'}", "is not a version"},
    {"'variables':{'ok_1':1}", NULL},
    {"'variables':{'1x':1}", "spec.variables: \"1x\" is not the name of a variable"},
    {"'variables':{'':1}", "is not the name of a variable"},
    {"'variables':{'a b':1}", "is not the name of a variable"},
    {"'variables':{'a=b':1}", "is not the name of a variable"},
    {"'environment':[{'name':'A','value':''},{'name':'B','value':'x\\ny'}]", NULL},
    {"'environment':[{'name':'1A','value':''}]", "is not the name of an environment variable"},
    {"'environment':[{'name':'A=B','value':''}]", "is not the name of an environment variable"},
    {"'environment':[{'name':'A','value':1}]", "environment[0].value: must be a string; put it"},
    {"'environment':[{'name':'A','value':''},{'name':'A','value':''}]",
     "spec.environment[1]: \"A\" occurs twice"},
    {"'environment':[{'name':'A','value':'','from':''}]",
     "spec.environment[0].from: is not a field"},
    {"'environment':{'A':'b'}", "spec.environment: must be a list"},
    {"'secrets':[{'name':'db'}]", NULL},
    {"'secrets':[{'name':'db','keys':[]}]", "spec.secrets[0].keys: is empty"},
    {"'secrets':[{'name':'db','keys':['a b']}]",
     "spec.secrets[0].keys[0]: \"a b\" is not an ident"},
    {"'secrets':[{'name':'DB'}]", "spec.secrets[0].name: \"DB\" is not a valid name"},
    {"'secrets':[{'name':'db'},{'name':'db'}]", "spec.secrets[1]: \"db\" occurs twice"},
    {"'secrets':['db']", "spec.secrets[0]: must be an object"},
    {"'secrets':[{'name':'db','as':'env'}]", NULL},
    {"'secrets':[{'name':'db','keys':['PGPASSWORD'],'as':'env'},"
     "{'name':'db','keys':['ca.crt'],'as':'file','env':'PGSSLROOTCERT'}]",
     NULL},
    {"'secrets':[{'name':'db','keys':['key']},{'name':'db','keys':['key'],'as':'env'}]", NULL},
    {"'secrets':[{'name':'db','as':'text'}]",
     "spec.secrets[0].as: \"text\" is not one of variable, e"},
    {"'secrets':[{'name':'db','keys':['LD_PRELOAD'],'as':'env'}]",
     "spec.secrets[0].keys[0]: LD_PRELOAD is refused: it changes which program runs"},
    {"'secrets':[{'name':'db','keys':['x'],'as':'file','env':'PATH'}]",
     "spec.secrets[0].env: PATH is refused: it is set by dayfly"},
    {"'secrets':[{'name':'db','keys':['x'],'as':'env','env':'A-B'}]",
     "spec.secrets[0].env: \"A-B\" is not the name of an environment variable"},
    {"'secrets':[{'name':'db','keys':['db-password'],'as':'env'}]",
     "spec.secrets[0].keys[0]: \"db-password\" is not the name of an environment variable; give "
     "this "
     "key "
     "an entry of its own, with keys: [db-password] and env: NAME"},
    {"'secrets':[{'name':'db','keys':['ca.crt'],'as':'file'}]",
     "spec.secrets[0].keys[0]: \"ca.crt\" is not an identifier"},
    {"'secrets':[{'name':'db','keys':['x'],'env':'X'}]",
     "spec.secrets[0].env: needs as: env or as: file"},
    {"'secrets':[{'name':'db','keys':['x','y'],'as':'env','env':'X'}]",
     "spec.secrets[0].env: names one variable: list exactly one key in keys"},
    {"'secrets':[{'name':'db','as':'file','env':'X'}]",
     "spec.secrets[0].env: names one variable: list exactly one key in keys"},
    {"'secrets':[{'name':'db'},{'name':'db','keys':['x']}]",
     "spec.secrets[1]: \"db\" occurs twice"},
    {"'secrets':[{'name':'db','keys':['x']},{'name':'other','keys':['x']}]",
     "spec.secrets: TF_VAR_x is set by two keys"},
    {"'secrets':[{'name':'db','keys':['x','y'],'as':'env'},"
     "{'name':'other','keys':['z'],'as':'file','env':'y'}]",
     "spec.secrets: y is set by two keys; name one of them otherwise with env"},
    {"'secrets':[{'name':'db','keys':['A','B'],'as':'env'}],"
     "'environment':[{'name':'C','value':''},{'name':'B','value':''}]",
     "spec.environment[1]: B is set by spec.secrets, too; take one of them out"},
    {"'integrations':[{'provider':'aws'}]", "spec.integrations[0].secretRef: is required"},
    {"'integrations':[{'provider':'aws','secretRef':{}}]",
     "spec.integrations[0].secretRef.name: is required"},
    {"'integrations':[{'name':'prod'},{'name':'hub'},{'provider':'gcp','secretRef':{'name':'g'}}]",
     NULL},
    {"'integrations':[{'name':'prod','provider':'aws'}]",
     "spec.integrations[0].provider: is not for an entry with the name"},
    {"'integrations':[{'name':'prod','secretRef':{'name':'x'}}]",
     "spec.integrations[0].secretRef: is not for an entry with the name"},
    {"'integrations':[{'name':'prod'},{'name':'hub'},{'name':'prod'}]",
     "spec.integrations[2]: is the integration prod a second time"},
    {"'integrations':[{'provider':'ibm','secretRef':{'name':'x'}}]",
     "spec.integrations[0].provider: \"ibm\" is not one of aws, azurerm"},
    {"'integrations':[{'provider':'aws','secretRef':{'name':'x'}},{'provider':'gcp','secretRef':"
     "{'name':'x'}},{'provider':'aws','secretRef':{'name':'y'}}]",
     "spec.integrations[2]: aws and aws exclude each other"},
    {"'integrations':[{'provider':'github_ssh','secretRef':{'name':'x'}},{'provider':"
     "'bitbucket_ssh','secretRef':{'name':'y'}}]",
     "github_ssh and bitbucket_ssh exclude each other: both set GIT_SSH_COMMAND"},
    {"'approval':'automatic'", NULL},
    {"'approval':true", "spec.approval: must be a string"},
    {"'timeouts':{'plan':'1h30m','grace':'1s'}", NULL},
    {"'timeouts':{'plan':60}", "spec.timeouts.plan: must be a string; put it in quotes"},
    {"'timeouts':{'plan':'0s'}", "must be from 1s to 168h"},
    {"'timeouts':{'plan':'500ms'}", "must be from 1s to 168h"},
    {"'timeouts':{'plan':'1000h'}", "must be from 1s to 168h"},
    {"'timeouts':{'plan':'1 hour'}", "is not a duration"},
    {"'timeouts':{'plan':'1d'}",
     "spec.timeouts.plan: \"1d\" is not a duration: h is the longest unit, "
     "say 24h"},
    {"'retention':{'logs':'30d'}",
     "spec.retention.logs: \"30d\" is not a duration: h is the longest "
     "unit, say 720h"},
    {"'retention':{'age':'-3h'}", "spec.retention.age: \"-3h\" is negative: a duration must be "
                                  "positive"},
    {"'timeouts':{'all':'1h'}",
     "spec.timeouts.all: is not a field (there are: plan, apply, grace, "},
    {"'placement':{'anything':[1,{'a':null}]}", "spec.placement.anything: is not a field"},
    {"'placement':[]", "spec.placement: must be an object"},
};

static void fields_are_checked_one_by_one(void **state)
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

/* Puts n entries made of the format (its %zu is a number) into spec. */
static cJSON *executor_with_many(const char *head, const char *entry, const char *tail, size_t n)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    const char *hole = strstr(entry, "%zu");
    (void)df_buf_adds(&b, head);
    for (size_t i = 0; i < n; i++)
        (void)df_buf_addf(&b, "%s%.*s%zu%s", i ? "," : "", (int)(hole - entry), entry, i, hole + 3);
    (void)df_buf_adds(&b, tail);
    return executor_with(df_buf_str(&b));
}

static void lists_and_objects_end_at_their_limits(void **state)
{
    (void)state;
    static const struct {
        const char *head, *entry, *tail;
        size_t limit;
        const char *fault;
    } cases[] = {
        {"'arguments':[", "'-target=a%zu'", "]", DF_LIMIT_ARGUMENTS,
         "spec.arguments: has 101 entries; 100 are allowed"},
        {"'variables':{", "'v%zu':1", "}", DF_LIMIT_VARIABLES, "spec.variables: has 1001 entries"},
        {"'environment':[", "{'name':'E%zu','value':''}", "]", DF_LIMIT_ENVIRONMENT,
         "spec.environment: has 501 entries"},
        {"'secrets':[", "{'name':'s%zu'}", "]", DF_LIMIT_REFERENCES,
         "spec.secrets: has 101 entries"},
        {"'secrets':[{'name':'s','keys':[", "'k%zu'", "]}]", DF_LIMIT_VARIABLES,
         "spec.secrets[0].keys: has 1001 entries"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *full =
            executor_with_many(cases[i].head, cases[i].entry, cases[i].tail, cases[i].limit);
        DF_JSON cJSON *more =
            executor_with_many(cases[i].head, cases[i].entry, cases[i].tail, cases[i].limit + 1);
        assert_admitted(DF_KIND_EXECUTOR, full, cases[i].fault);
        assert_refused(DF_KIND_EXECUTOR, more, cases[i].head, cases[i].fault);
    }
}

static cJSON *executor_labelled(const char *holder, size_t count, size_t length)
{
    cJSON *j = executor_with("");
    cJSON *labels = df_json_object_at(df_json_object_at(j, "metadata"), holder);
    DF_FREE char *value = malloc(length + 1);
    assert_non_null(value);
    memset(value, 'x', length);
    value[length] = '\0';
    for (size_t i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "l%zu", i);
        assert_int_equal(df_json_add_str(labels, name, value, NULL), 0);
    }
    return j;
}

static void labels_and_annotations_are_as_kubernetes_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *holder;
        size_t count, length;
        const char *fault;
    } cases[] = {
        {"labels", DF_LIMIT_LABELS, 63, NULL},
        {"labels", DF_LIMIT_LABELS + 1, 1, "metadata.labels: has 101 entries"},
        {"labels", 1, 64, "metadata.labels.l0: is longer than 63 bytes"},
        {"labels", 1, 0, NULL},
        {"annotations", 1, DF_LIMIT_ANNOTATION, NULL},
        {"annotations", 1, DF_LIMIT_ANNOTATION + 1, "metadata.annotations.l0: is longer than"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = executor_labelled(cases[i].holder, cases[i].count, cases[i].length);
        if (cases[i].fault)
            assert_refused(DF_KIND_EXECUTOR, j, cases[i].holder, cases[i].fault);
        else
            assert_admitted(DF_KIND_EXECUTOR, j, cases[i].holder);
    }
    static const struct {
        const char *labels;
        bool good;
    } texts[] = {
        {"{'a':'b'}", true},      {"{'a.b_c-d':'B-c.d_e'}", true},
        {"{'x.io/a':'b'}", true}, {"{'':'b'}", false},
        {"{'-a':'b'}", false},    {"{'a-':'b'}", false},
        {"{'a b':'b'}", false},   {"{'x.io/':'b'}", false},
        {"{'/a':'b'}", false},    {"{'a/b/c':'b'}", false},
        {"{'a':'b c'}", false},   {"{'a':'-b'}", false},
        {"{'a':'b='}", false},    {"{'a':1}", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        DF_JSON cJSON *j = executor_with("");
        assert_int_equal(
            df_json_add(df_json_object_at(j, "metadata"), "labels", json(texts[i].labels), NULL),
            0);
        if (texts[i].good)
            assert_admitted(DF_KIND_EXECUTOR, j, texts[i].labels);
        else
            assert_refused(DF_KIND_EXECUTOR, j, texts[i].labels, "metadata.labels");
    }
}

/* ---- updates ---- */

static void a_directory_may_get_more_of_what_is_around_it(void **state)
{
    (void)state;
    static const struct {
        const char *was, *now;
        bool is_taken;
    } cases[] = {
        {"'url':'file:///r/live/net','kind':'directory'",
         "'url':'file:///r','kind':'directory','folder':'live/net'", true},
        {"'url':'file:///r','kind':'directory','folder':'live/net'",
         "'url':'file:///r/live','kind':'directory','folder':'net'", true},
        {"'url':'file:///r/live/net','kind':'directory'",
         "'url':'file:///r','kind':'directory','folder':'live/dns'", false},
        {"'url':'file:///r/live/net','kind':'directory'",
         "'url':'file:///r','kind':'git','branch':'main','folder':'live/net'", false},
        {"'url':'file:///r/live/net','kind':'directory'",
         "'url':'file:///r/live/dns','kind':'directory'", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        static const char head[] = "{'metadata':{'name':'net'},'spec':{'source':{";
        DF_FREE char *was = df_strf("%s%s}}}", head, cases[i].was);
        DF_FREE char *now = df_strf("%s%s}}}", head, cases[i].now);
        DF_JSON cJSON *old = json(was), *j = json(now), *status = json("{'state':'provisioned'}");
        assert_admitted(DF_KIND_EXECUTOR, old, "old");
        assert_int_equal(df_json_add(old, "status", DF_TAKE(status), NULL), 0);
        struct df_err err = {0};
        bool is_taken = df_model_admit(DF_KIND_EXECUTOR, j, old, &err) == 0 &&
                        df_executor_check_source(old, j, false, &err) == 0;
        if (is_taken != cases[i].is_taken)
            fail_msg("case %zu: %s", i, err.message);
    }
}

static void frozen_fields_stay_as_they_were(void **state)
{
    (void)state;
    static const char old_text[] =
        "{'metadata':{'name':'net'},'spec':{'source':{'url':'file:///r.git','branch':'m',"
        "'folder':'a'},'storage':{'type':'managed'}},'status':{'state':'%s'}}";
    static const struct {
        const char *state, *metadata, *source, *storage, *fault;
    } cases[] = {
        {"provisioned", "{'name':'net'}", "{'url':'file:///r.git','branch':'other','folder':'a'}",
         "{}", NULL},
        {"provisioned", "{'name':'net'}", "{'url':'file:///s.git','tag':'v2','folder':'a'}",
         "{'type':'managed'}", NULL},
        {"provisioned", "{'name':'other'}", "{'url':'file:///r.git','branch':'m','folder':'a'}",
         "{}", "metadata.name: cannot be changed"},
        {"provisioned", "{'name':'net'}", "{'url':'file:///r.git','branch':'m','folder':'b'}", "{}",
         "spec.source.folder: cannot be changed"},
        {"provisioned", "{'name':'net'}", "{'url':'file:///r.git','branch':'m'}", "{}",
         "spec.source.folder: cannot be changed"},
        {"provisioned", "{'name':'net'}", "{'url':'file:///r.git','branch':'m','folder':'a'}",
         "{'path':'x'}", "spec.storage: cannot be changed before the executor is destroyed"},
        {"destroy", "{'name':'net'}", "{'url':'file:///r.git','branch':'m','folder':'a'}",
         "{'path':'x'}", "spec.storage: cannot be changed"},
        {"provision", "{'name':'net'}", "{'url':'file:///r.git','branch':'m','folder':'a'}",
         "{'path':'x'}", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_BUF struct df_buf b = DF_BUF_INIT(1000);
        const char *hole = strstr(old_text, "%s");
        (void)df_buf_addf(&b, "%.*s%s%s", (int)(hole - old_text), old_text, cases[i].state,
                          hole + 2);
        DF_FREE char *text = df_strf("{'metadata':%s,'spec':{'source':%s,'storage':%s}}",
                                     cases[i].metadata, cases[i].source, cases[i].storage);
        DF_JSON cJSON *old = json(df_buf_str(&b)), *j = json(text);
        cJSON *status = cJSON_DetachItemFromObjectCaseSensitive(old, "status");
        assert_admitted(DF_KIND_EXECUTOR, old, "old");
        assert_int_equal(df_json_add(old, "status", status, NULL), 0);
        struct df_err err = {0};
        int result = df_model_admit(DF_KIND_EXECUTOR, j, old, &err);
        if (result != (cases[i].fault ? -1 : 0))
            fail_msg("case %zu: %s", i, err.message);
        if (cases[i].fault && !strstr(err.message, cases[i].fault))
            fail_msg("case %zu: %s", i, err.message);
    }
}

/* ---- runs and steps ---- */

static void runs_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *fault;
    } cases[] = {
        {"{'executorRef':{'name':'net'},'action':'provision'}", NULL},
        {"{'executorRef':{'name':'net'},'action':'dry-run','variables':{'a':1},'arguments':"
         "['-target=a'],'autoApprove':true,'class':'large','priority':-1000,"
         "'requestedBy':'eve','number':7}",
         NULL},
        {"{'executorRef':{'name':'net'},'action':'destroy','decision':{'verdict':'approved','by':"
         "'eve','at':'2026-11-21T12:00:00Z'},'cancel':{'by':'eve','at':'2026-11-21T12:00:00Z',"
         "'reason':'no'}}",
         NULL},
        {"{'action':'provision'}", "spec.executorRef: is required"},
        {"{'executorRef':{'name':'net'}}", "spec.action: is required"},
        {"{'executorRef':{'name':'net'},'action':'apply'}",
         "is not one of provision, dry-run, dest"},
        {"{'executorRef':{'name':'net'},'action':'provision','autoApprove':'yes'}",
         "spec.autoApprove: must be true or false"},
        {"{'executorRef':{'name':'net'},'action':'provision','priority':1001}",
         "spec.priority: must be from -1000 to 1000"},
        {"{'executorRef':{'name':'net'},'action':'provision','class':'Large Ones'}",
         "spec.class: "},
        {"{'executorRef':{'name':'net'},'action':'provision','number':1.5}",
         "spec.number: must be a whole number"},
        {"{'executorRef':{'name':'net'},'action':'provision','number':0}",
         "spec.number: must be from 1 to 2147483647"},
        {"{'executorRef':{'name':'net'},'action':'provision','arguments':['-lock=false']}",
         "-lock is refused"},
        {"{'executorRef':{'name':'net'},'action':'provision','decision':{'verdict':'maybe'}}",
         "spec.decision.verdict: \"maybe\" is not one of approved, discarded"},
        {"{'executorRef':{'name':'net'},'action':'provision','cancel':{'at':'yesterday'}}",
         "spec.cancel.at: \"yesterday\" is no RFC 3339 time"},
        {"{'executorRef':{'name':'net'},'action':'provision','source':{}}",
         "spec.source: is for a dry-run alone"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = executor_of(cases[i].spec);
        if (cases[i].fault)
            assert_refused(DF_KIND_RUN, j, cases[i].spec, cases[i].fault);
        else
            assert_admitted(DF_KIND_RUN, j, cases[i].spec);
    }
}

static void steps_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *more, *fault;
    } cases[] = {
        {"'action':'plan'", NULL},
        {"'action':'plan-destroy','timeoutSeconds':3600,'graceSeconds':900,'pendingSeconds':120",
         NULL},
        {"'action':'apply','planFrom':'net-1-plan','variables':{'a':1},'arguments':['-target=x'],"
         "'environment':[{'name':'A','value':'b'}],'secrets':[{'name':'s'}],'storage':{'type':"
         "'managed'},'runtime':{'name':'opentofu','version':'1.12.6'},'placement':{}",
         NULL},
        {"'action':'apply'", "spec.planFrom: is required for an apply"},
        {"'action':'plan','planFrom':'x'", "spec.planFrom: is for an apply alone"},
        {"'action':'refresh'", "is not one of plan, plan-destroy, apply"},
        {"'action':'plan','timeoutSeconds':0", "spec.timeoutSeconds: must be from 1 to 604800"},
        {"'action':'plan','timeoutSeconds':'1h'", "spec.timeoutSeconds: must be a whole number"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *spec =
            df_strf("{'engine':'local','runRef':{'name':'net-1'},'executorRef':{'name':'net'},"
                    "'targetResource':'executor/net','source':{'url':'file:///src'},%s}",
                    cases[i].more);
        DF_JSON cJSON *j = executor_of(spec);
        if (cases[i].fault)
            assert_refused(DF_KIND_TASK_ACTION, j, spec, cases[i].fault);
        else
            assert_admitted(DF_KIND_TASK_ACTION, j, spec);
    }
}

static void admitting_twice_changes_nothing(void **state)
{
    (void)state;
    DF_JSON cJSON *j = executor_from("{'url':'git@h:x','branch':'main'}");
    assert_admitted(DF_KIND_EXECUTOR, j, "once");
    DF_JSON cJSON *once = cJSON_Duplicate(j, true);
    assert_admitted(DF_KIND_EXECUTOR, j, "twice");
    assert_true(df_json_equal(once, j));
}

/* ---- the documentation ---- */

/* Does the page have the word in backquotes, alone, behind a dot or in a list of fields? */
static bool is_documented(const char *page, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = page; (p = strstr(p, word)); p += n) {
        char before = p == page ? ' ' : p[-1], after = p[n];
        if (strchr("`.{ ", before) && after && strchr("`.,:}[{", after))
            return true;
    }
    return false;
}

static void check_documented(const struct df_field *fields, const char *page)
{
    for (; fields->name; fields++) {
        if (!is_documented(page, fields->name))
            fail_msg("%s is not in docs/objects.md", fields->name);
        if (fields->fields)
            check_documented(fields->fields, page);
        if (fields->item && fields->item->fields)
            check_documented(fields->item->fields, page);
    }
}

static void every_field_and_provider_is_documented(void **state)
{
    (void)state;
    DF_BUF struct df_buf page = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read("docs/objects.md", &page, NULL), 0);
    assert_int_equal(df_fs_read("docs/placement.md", &page, NULL), 0);
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        check_documented(df_kind_row((enum df_kind)kind)->rows, df_buf_str(&page));
    check_documented(df_workflow_document, df_buf_str(&page));
    check_documented(df_terrakube_document, df_buf_str(&page));
    for (size_t i = 0; df_integration_providers[i]; i++)
        assert_true(is_documented(df_buf_str(&page), df_integration_providers[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_and_roles_are_known_by_their_names),
        cmocka_unit_test(names_of_runs_and_steps_stay_dns_labels),
        cmocka_unit_test(names_are_kept_while_they_fit_and_always_cut_alike),
        cmocka_unit_test(a_small_executor_gets_its_defaults),
        cmocka_unit_test(an_executor_may_say_everything),
        cmocka_unit_test(every_fault_is_found_with_its_path),
        cmocka_unit_test(more_faults_than_fit_are_counted),
        cmocka_unit_test(hostile_keys_cannot_forge_a_message),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(fields_are_checked_one_by_one),
        cmocka_unit_test(lists_and_objects_end_at_their_limits),
        cmocka_unit_test(labels_and_annotations_are_as_kubernetes_has_them),
        cmocka_unit_test(frozen_fields_stay_as_they_were),
        cmocka_unit_test(a_directory_may_get_more_of_what_is_around_it),
        cmocka_unit_test(runs_are_checked),
        cmocka_unit_test(steps_are_checked),
        cmocka_unit_test(admitting_twice_changes_nothing),
        cmocka_unit_test(every_field_and_provider_is_documented),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
