/* When an object is as it is wanted: every field, and no further one of ours. Folders of manifests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "runner/platform/application.h"
#include "runner/platform/manifests.h"
#include "runner/platform/object.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

static void assert_has(const char *live_text, const char *wanted_text, bool expected)
{
    DF_JSON cJSON *live = json(live_text), *wanted = json(wanted_text);
    if (df_object_has(live, wanted) != expected)
        fail_msg("%s and %s", live_text, wanted_text);
}

static void an_object_has_what_is_wanted_whatever_else_it_has(void **state)
{
    (void)state;
    assert_has("{'spec':{'a':1,'b':2},'status':{}}", "{'spec':{'a':1}}", true);
    assert_has("{'spec':{'a':1}}", "{'spec':{'a':2}}", false);
    assert_has("{'spec':{}}", "{'spec':{'a':1}}", false);
    assert_has("{'spec':{}}", "{'spec':{'a':null}}", true);
    assert_has("{'spec':{'a':'1'}}", "{'spec':{'a':1}}", false);
}

static void a_list_has_the_same_items_in_the_same_order(void **state)
{
    (void)state;
    assert_has("{'l':[{'n':'a','x':1},{'n':'b'}]}", "{'l':[{'n':'a'},{'n':'b'}]}", true);
    assert_has("{'l':['a','b']}", "{'l':['b','a']}", false);
    assert_has("{'l':['a','b']}", "{'l':['a']}", false);
    assert_has("{'l':['a']}", "{'l':['a','b']}", false);
}

/* Of a chart that became a path: the field of the chart is still ours. */
static void a_field_of_ours_that_is_no_longer_wanted_is_a_difference(void **state)
{
    (void)state;
#define OWNED(manager)                                                                             \
    "{'metadata':{'managedFields':[{'manager':'" manager "','operation':'Apply',"                  \
    "'fieldsV1':{'f:spec':{'f:a':{},'f:b':{}}}}]},'spec':{'a':1,'b':2}}"
    assert_has(OWNED("dayfly"), "{'spec':{'a':1}}", false);
    assert_has(OWNED("dayfly"), "{'spec':{'a':1,'b':2}}", true);
    assert_has(OWNED("kubectl"), "{'spec':{'a':1}}", true);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(folder, name);
    assert_int_equal(df_fs_write(path, text, strlen(text), 0600, NULL), 0);
}

static void definitions_and_namespaces_of_a_folder_come_first(void **state)
{
    const char *folder = *state;
    DF_JSON cJSON *objects = NULL;
    write_file(folder, "b.yaml",
               "apiVersion: v1\nkind: List\nitems:\n"
               "- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n"
               "- {apiVersion: v1, kind: Namespace, metadata: {name: n}}\n");
    write_file(folder, "a.yaml",
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n"
               "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
               "metadata: {name: d}\n---\n# nothing\n");
    write_file(folder, "notes.txt", "kind: Pod\n");
    assert_int_equal(df_manifests_read(folder, &objects, NULL), 0);
    static const char *const kinds[] = {"CustomResourceDefinition", "Namespace", "ConfigMap",
                                        "Secret"};
    assert_int_equal(cJSON_GetArraySize(objects), DF_ARRAY_SIZE(kinds));
    for (int i = 0; i < (int)DF_ARRAY_SIZE(kinds); i++)
        assert_string_equal(df_json_str(cJSON_GetArrayItem(objects, i), "kind"), kinds[i]);
}

static void an_object_that_is_not_whole_is_told_with_its_file_and_place(void **state)
{
    const char *folder = *state;
    DF_JSON cJSON *objects = NULL;
    struct df_err err = {0};
    write_file(folder, "a.yaml",
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\nkind: Secret\n");
    assert_int_equal(df_manifests_read(folder, &objects, &err), -1);
    assert_string_equal(err.message, "a.yaml: object 2 has no apiVersion, kind or metadata.name");
}

static void a_manifest_that_cannot_be_read_is_named(void **state)
{
    const char *folder = *state;
    DF_JSON cJSON *objects = NULL;
    struct df_err err = {0};
    write_file(folder, "bad.yaml", "a: [\n");
    assert_int_equal(df_manifests_read(folder, &objects, &err), -1);
    assert_non_null(strstr(err.message, "bad.yaml"));

    assert_int_equal(df_manifests_read("/nowhere/at/all", &objects, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

/* A version comes from a status that others write, and becomes a part of a path. */
static void a_version_that_would_lead_elsewhere_is_asked_for_nowhere(void **state)
{
    (void)state;
    static const char *const versions[] = {"../../api/v1/namespaces/x/services/y/proxy",
                                           "a/../b",
                                           "a/b/c",
                                           "",
                                           "/",
                                           "a/",
                                           "v1?watch=1",
                                           "A/v1"};
    struct df_kinds kinds = {0};
    const struct df_kind *kind;
    for (size_t i = 0; i < DF_ARRAY_SIZE(versions); i++) {
        struct df_err err = {0};
        /* Without a client: a request would crash. */
        assert_int_equal(df_kinds_find(&kinds, NULL, versions[i], "Pod", &kind, &err), -1);
        assert_string_equal(err.reason, "KindUnknown");
    }
    df_kinds_free(&kinds);
}

/* ---- the Application ---- */

static void a_chart_is_the_source_instead_of_a_path(void **state)
{
    (void)state;
    DF_JSON cJSON *chart = json("{'repoURL':'https://charts.example','name':'cm','version':'1.2',"
                                "'values':{'a':{'b':1}}}");
    char name[] = "cm", repository[] = "https://git.example/p.git", main_branch[] = "main",
         argocd[] = "argocd";
    struct df_platform_input in = {.name = name,
                                   .git_repository = repository,
                                   .git_revision = main_branch,
                                   .argocd_namespace = argocd};
    struct df_node node = {.name = name, .chart = chart};
    DF_JSON cJSON *app = NULL;
    assert_int_equal(df_application_make(&in, &node, &app, NULL), 0);
    DF_FREE char *source = df_json_print(df_json_at(app, "spec.source"));
    assert_string_equal(
        source, "{\"repoURL\":\"https://charts.example\",\"chart\":\"cm\","
                "\"targetRevision\":\"1.2\",\"helm\":{\"valuesObject\":{\"a\":{\"b\":1}}}}");
    assert_true(df_application_is_ours(&in, app));
}

static void a_status_about_an_earlier_source_is_not_current(void **state)
{
    (void)state;
    DF_JSON cJSON *app =
        json("{'spec':{'source':{'path':'b'},'destination':{'namespace':'n'}},"
             "'status':{'sync':{'status':'Synced','comparedTo':{'source':{'path':'a'},"
             "'destination':{'namespace':'n'}}},"
             "'operationState':{'phase':'Succeeded','finishedAt':'2026-11-29T10:00:00Z'},"
             "'reconciledAt':'2026-11-29T10:00:00Z'}}");
    struct df_application_view v = df_application_view(app);
    assert_false(v.is_current);
    assert_true(v.is_before_end);
    assert_string_equal(v.health, "");
}

static bool knows_nothing_of(const char *phase, const char *synced, const char *compared_at)
{
    DF_FREE char *text =
        df_strf("{'status':{'sync':{'revision':'c2'},'operationState':{'phase':'%s','syncResult':"
                "{'revision':'%s'},'finishedAt':'2026-11-29T10:00:00Z'},'reconciledAt':'%s'}}",
                phase, synced, compared_at);
    DF_JSON cJSON *app = json(text);
    return df_application_view(app).is_before_end;
}

static void a_comparison_right_behind_an_operation_may_know_nothing_of_it(void **state)
{
    (void)state;
    assert_true(knows_nothing_of("Succeeded", "c2", "2026-11-29T10:00:05Z"));
    assert_false(knows_nothing_of("Succeeded", "c2", "2026-11-29T10:00:06Z"));
    assert_false(knows_nothing_of("Succeeded", "c1", "2026-11-29T10:00:01Z"));
    assert_false(knows_nothing_of("Failed", "c2", "2026-11-29T10:00:01Z"));
    assert_true(knows_nothing_of("Failed", "c2", "2026-11-29T10:00:00Z"));
    assert_true(knows_nothing_of("Failed", "c2", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_has_what_is_wanted_whatever_else_it_has),
        cmocka_unit_test(a_list_has_the_same_items_in_the_same_order),
        cmocka_unit_test(a_field_of_ours_that_is_no_longer_wanted_is_a_difference),
        scratch_test(definitions_and_namespaces_of_a_folder_come_first),
        scratch_test(an_object_that_is_not_whole_is_told_with_its_file_and_place),
        scratch_test(a_manifest_that_cannot_be_read_is_named),
        cmocka_unit_test(a_version_that_would_lead_elsewhere_is_asked_for_nowhere),
        cmocka_unit_test(a_chart_is_the_source_instead_of_a_path),
        cmocka_unit_test(a_status_about_an_earlier_source_is_not_current),
        cmocka_unit_test(a_comparison_right_behind_an_operation_may_know_nothing_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
