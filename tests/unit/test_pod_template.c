#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/engine/placement/pod_template.h"
#include "tests/unit/kube_words.h"

#define BASE                                                                                       \
    "{'metadata':{'labels':{'a':'1'},'finalizers':['e','f']},'spec':{'hostAliases':[{'ip':'1.1.1." \
    "1','hostnames':['a']}],'restartPolicy':'Never','nodeSelector':{'x':'1'},"                     \
    "'tolerations':[{'key':'t'}],'securityContext':{'runAsUser':1,'supplementalGroups':[1,2]},"    \
    "'containers':[{'name':'runner','image':'r','args':['a','b'],"                                 \
    "'env':[{'name':'A','value':'1'},{'name':'B','value':'2'}],"                                   \
    "'volumeMounts':[{'name':'w','mountPath':'/work'}]}],"                                         \
    "'volumes':[{'name':'w','emptyDir':{}}]}}"

/* Each row: a patch, and what stands at a path afterwards. */
static const struct {
    const char *what, *patch, *path, *expected;
} cases[] = {
    {"maps merge by key", "{'metadata':{'labels':{'b':'2'}}}", "metadata.labels",
     "{'a':'1','b':'2'}"},
    {"null removes a member", "{'metadata':{'labels':{'a':null}}}", "metadata.labels", "{}"},
    {"a plain value is replaced", "{'spec':{'restartPolicy':'OnFailure'}}", "spec.restartPolicy",
     "'OnFailure'"},
    {"a container is found by its name", "{'spec':{'containers':[{'name':'runner','image':'x'}]}}",
     "spec.containers",
     "[{'name':'runner','image':'x','args':['a','b'],'env':[{'name':'A','value':'1'},"
     "{'name':'B','value':'2'}],'volumeMounts':[{'name':'w','mountPath':'/work'}]}]"},
    {"another name is another init container",
     "{'spec':{'initContainers':[{'name':'i','image':'x'}]}}", "spec.initContainers",
     "[{'name':'i','image':'x'}]"},
    {"a list of plain values is replaced",
     "{'spec':{'containers':[{'name':'runner','args':['z']}],'securityContext':"
     "{'supplementalGroups':[3]}}}",
     "spec.securityContext", "{'runAsUser':1,'supplementalGroups':[3]}"},
    {"tolerations are replaced as a whole", "{'spec':{'tolerations':[{'key':'u'}]}}",
     "spec.tolerations", "[{'key':'u'}]"},
    {"volumes merge by name, members too",
     "{'spec':{'volumes':[{'name':'w','emptyDir':{'medium':'Memory'}},{'name':'v','emptyDir':{}}]}"
     "}",
     "spec.volumes", "[{'name':'w','emptyDir':{'medium':'Memory'}},{'name':'v','emptyDir':{}}]"},
    {"null lets go of the other source",
     "{'spec':{'volumes':[{'name':'w','emptyDir':null,'persistentVolumeClaim':{'claimName':'c'}}]}"
     "}",
     "spec.volumes", "[{'name':'w','persistentVolumeClaim':{'claimName':'c'}}]"},
    {"a new list has no marker in it",
     "{'spec':{'initContainers':[{'$patch':'replace'},{'name':'i','image':'x'},{'name':'j',"
     "'$patch':'delete'}]}}",
     "spec.initContainers", "[{'name':'i','image':'x'}]"},
    {"$retainKeys lets go of the other source",
     "{'spec':{'volumes':[{'name':'w','$retainKeys':['name','hostPath'],'hostPath':{'path':'/x'}}]}"
     "}",
     "spec.volumes", "[{'name':'w','hostPath':{'path':'/x'}}]"},
    {"$patch delete removes an item", "{'spec':{'volumes':[{'name':'w','$patch':'delete'}]}}",
     "spec.volumes", "[]"},
    {"$patch delete of what is not there is nothing",
     "{'spec':{'volumes':[{'name':'q','$patch':'delete'}]}}", "spec.volumes",
     "[{'name':'w','emptyDir':{}}]"},
    {"$patch replace in a list replaces the list",
     "{'spec':{'volumes':[{'$patch':'replace'},{'name':'n','emptyDir':{}}]}}", "spec.volumes",
     "[{'name':'n','emptyDir':{}}]"},
    {"$patch replace in a map replaces the map",
     "{'spec':{'nodeSelector':{'$patch':'replace','y':'2'}}}", "spec.nodeSelector", "{'y':'2'}"},
    {"$patch delete in a map empties it", "{'spec':{'nodeSelector':{'$patch':'delete'}}}",
     "spec.nodeSelector", "{}"},
    {"$patch merge says what is so anyway", "{'spec':{'nodeSelector':{'$patch':'merge','y':'2'}}}",
     "spec.nodeSelector", "{'x':'1','y':'2'}"},
    {"finalizers are a set", "{'metadata':{'finalizers':['f','g']}}", "metadata.finalizers",
     "['e','f','g']"},
    {"image pull secrets merge by name", "{'spec':{'imagePullSecrets':[{'name':'s'}]}}",
     "spec.imagePullSecrets", "[{'name':'s'}]"},
    {"host aliases merge by ip", "{'spec':{'hostAliases':[{'ip':'1.1.1.1','hostnames':['b']}]}}",
     "spec.hostAliases", "[{'ip':'1.1.1.1','hostnames':['b']}]"},
    {"nulls and directives of what is new are dropped",
     "{'spec':{'affinity':{'nodeAffinity':{'$patch':'merge','x':null,'y':[{'a':null,'b':1}]}}}}",
     "spec.affinity", "{'nodeAffinity':{'y':[{'b':1}]}}"},
    {"values leave a set", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['e','x']}}",
     "metadata.finalizers", "['f']"},
};

static void patches_do_what_the_api_server_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *target = json(BASE);
        DF_JSON cJSON *patch = json(cases[i].patch);
        if (df_pod_template_patch(&target, patch, &err) < 0)
            fail_msg("%s: %s", cases[i].what, err.message);
        assert_json(df_json_at(target, cases[i].path), cases[i].expected, cases[i].what);
    }
}

static void lists_inside_of_containers_have_their_own_keys(void **state)
{
    (void)state;
    DF_JSON cJSON *target = json(BASE);
    DF_JSON cJSON *patch =
        json("{'spec':{'containers':[{'name':'runner','env':[{'name':'B','value':'3'},{'name':'C',"
             "'value':'4'}],'volumeMounts':[{'name':'v','mountPath':'/v'},{'mountPath':'/work',"
             "'name':'w','readOnly':true}],'ports':[{'containerPort':53,'protocol':'TCP'},{"
             "'containerPort':53,'protocol':'UDP'}],'volumeDevices':[{'devicePath':'/dev/"
             "x','name':'d'}]}]}}");
    assert_int_equal(df_pod_template_patch(&target, patch, NULL), 0);
    const cJSON *runner = named(target, "spec.containers", "runner");
    assert_at(runner, "env",
              "[{'name':'A','value':'1'},{'name':'B','value':'3'},{'name':'C','value':'4'}]");
    assert_at(runner, "volumeMounts",
              "[{'name':'w','mountPath':'/work','readOnly':true},{'name':'v','mountPath':'/v'}]");
    assert_at(runner, "ports",
              "[{'containerPort':53,'protocol':'TCP'},{'containerPort':53,'protocol':'UDP'}]");
    assert_at(runner, "args", "['a','b']");
}

static void wrong_patches_are_refused_with_their_path_and_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *patch, *message;
    } wrong[] = {
        {"[]", "podTemplate: must be an object"},
        {"{'spec':{'containers':{}}}", "podTemplate.spec.containers: must be a list"},
        {"{'spec':{'containers':[{'image':'x'}]}}",
         "podTemplate.spec.containers: an item has no \"name\""},
        {"{'spec':{'containers':['x']}}", "podTemplate.spec.containers: an item is not an object"},
        {"{'spec':{'$patch':'remove'}}", "podTemplate.spec: $patch is \"remove\"; there are merge"},
        {"{'spec':{'volumes':[{'name':'w','$patch':'replace','emptyDir':{}}]}}",
         "$patch: replace in an item replaces the whole list"},
        {"{'spec':{'initContainers':[{'name':'w','$patch':'replace'}]}}", "must stand alone"},
        {"{'spec':{'$patch':1}}", "$patch is \"no string\""},
        {"{'spec':{'$setElementOrder/containers':[]}}", "the order of elements cannot be set"},
        {"{'spec':{'$nonsense':1}}", "$nonsense is not a directive"},
        {"{'spec':{'affinity':{'$nonsense':1}}}", "$nonsense is not a directive"},
        {"{'spec':{'volumes':[{'name':'w','$retainKeys':['name'],'emptyDir':{}}]}}",
         "$retainKeys does not name \"emptyDir\""},
        {"{'spec':{'$retainKeys':'x'}}", "$retainKeys must be a list"},
        {"{'spec':{'$deleteFromPrimitiveList/x':1}}", "must be a list"},
        {"{'spec':{'restartPolicy':{'a':1}}}", "podTemplate.spec.restartPolicy: is not an object"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(wrong); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *target = json(BASE);
        DF_JSON cJSON *patch = json(wrong[i].patch);
        if (df_pod_template_patch(&target, patch, &err) == 0)
            fail_msg("accepted: %s", wrong[i].patch);
        assert_string_equal(err.reason, "InvalidPlacement");
        assert_message(&err, wrong[i].message);
        assert_json(target, BASE, "after a refusal");
    }
}

static cJSON *nested(int depth)
{
    cJSON *inner = cJSON_CreateObject();
    for (int i = 0; i < depth; i++) {
        cJSON *outer = cJSON_CreateObject();
        assert_int_equal(df_json_add(outer, "a", inner, NULL), 0);
        inner = outer;
    }
    return inner;
}

static void depth_and_size_are_capped(void **state)
{
    (void)state;
    DF_FREE char *large = calloc(1, DF_LIMIT_POD_TEMPLATE + 1);
    memset(large, 'x', DF_LIMIT_POD_TEMPLATE);
    for (int i = 0; i < 3; i++) {
        struct df_err err = {0};
        DF_JSON cJSON *target = json(BASE);
        DF_JSON cJSON *patch = cJSON_CreateObject();
        if (i < 2)
            assert_int_equal(df_json_add(patch, "spec", nested(DF_LIMIT_POD_DEPTH - 1 + i), NULL),
                             0);
        else
            assert_int_equal(df_json_add_str(patch, "x", large, NULL), 0);
        assert_int_equal(df_pod_template_patch(&target, patch, &err), i == 0 ? 0 : -1);
        if (i > 0)
            assert_int_equal(err.cls, DF_ERR_LIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches_do_what_the_api_server_does),
        cmocka_unit_test(lists_inside_of_containers_have_their_own_keys),
        cmocka_unit_test(wrong_patches_are_refused_with_their_path_and_change_nothing),
        cmocka_unit_test(depth_and_size_are_capped),
    };
    return cmocka_run_group_tests_name("pod_template", tests, NULL, NULL);
}
