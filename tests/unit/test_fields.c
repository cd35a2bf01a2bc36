/* What the rows of the model's tables lead to: requests, snapshots, steps, definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/yaml/yaml.h"
#include "spawner/model/tables.h"
#include "spawner/requests/new_docs.h"
#include "tests/unit/json_words.h"

/* {"a": "of WHO", ...}: the codes below copy values without looking at them. */
static cJSON *each_field(const struct df_field *fields, const char *who)
{
    cJSON *spec = cJSON_CreateObject();
    for (; fields->name; fields++)
        assert_int_equal(df_json_set_str(spec, fields->name, who, NULL), 0);
    return spec;
}

static void assert_members(const cJSON *object, const char *expected)
{
    DF_STRS struct df_strs names = {0};
    const cJSON *m;
    cJSON_ArrayForEach (m, object) {
        (void)df_strs_add(&names, m->string);
    }
    DF_FREE char *seen = df_strs_join(&names, " ");
    assert_string_equal(seen, expected);
}

static cJSON *numbered_run(const cJSON *spec)
{
    const struct df_config config = {0};
    cJSON *run = json("{'metadata':{'name':'net-1'}}");
    DF_JSON cJSON *executor = json("{'metadata':{'name':'net','uid':'e'}}");
    cJSON *of_executor = each_field(df_executor_spec, "executor");
    assert_int_equal(df_json_set(of_executor, "storage", json("{'type':'managed'}"), NULL), 0);
    assert_int_equal(df_json_set(of_executor, "variables", json("{'a':1,'b':1}"), NULL), 0);
    assert_int_equal(df_json_set(of_executor, "arguments", json("['-a']"), NULL), 0);
    assert_int_equal(df_json_set(of_executor, "timeouts", json("{}"), NULL), 0);
    assert_int_equal(df_json_add(executor, "spec", of_executor, NULL), 0);
    assert_int_equal(df_json_add(run, "spec", cJSON_Duplicate(spec, true), NULL), 0);
    assert_int_equal(df_new_run_number(&config, run, executor, 1, NULL), 0);
    return run;
}

static void a_run_keeps_all_that_its_executor_says_but_description_and_approval(void **state)
{
    (void)state;
    DF_JSON cJSON *spec = json("{'executorRef':{'name':'net'}}"), *run = numbered_run(spec);
    assert_members(df_json_at(run, "spec.snapshot"),
                   "runtime source variables variableFiles arguments environment secrets "
                   "integrations storage timeouts placement class");
}

static void a_step_gets_the_snapshot_and_what_the_run_says_above_it(void **state)
{
    (void)state;
    char engine[] = "local";
    const struct df_config config = {.engine = engine};
    DF_JSON cJSON *spec = json("{'executorRef':{'name':'net'},'variables':{'b':2},"
                               "'arguments':['-b'],'command':['rm','a'],'class':'run',"
                               "'priority':7,'autoApprove':true,'decision':{},'cancel':{}}");
    DF_JSON cJSON *run = numbered_run(spec), *task = NULL;
    assert_int_equal(df_new_task(run, "plan", "plan", &config, 0, &task, NULL), 0);
    assert_members(df_json_at(task, "spec"),
                   "runtime source variables variableFiles arguments environment secrets "
                   "integrations storage placement class executorRef command priority action "
                   "engine runRef targetResource timeoutSeconds graceSeconds pendingSeconds");
    assert_at(task, "spec.variables", "{'a':1,'b':2}");
    assert_at(task, "spec.arguments", "['-a','-b']");
    assert_at(task, "spec.class", "'run'");
    assert_at(task, "spec.executorRef", "{'name':'net','uid':'e'}");
}

static void a_request_for_a_run_has_the_fields_of_the_client_and_no_others(void **state)
{
    (void)state;
    static const char refused[] =
        "executorRef requestedBy requestedRole replaces number executorRevision "
        "snapshot sealed decision cancel ";
    for (const struct df_field *f = df_run_spec; f->name; f++) {
        DF_FREE char *text = df_strf("{'%s':null}", f->name);
        DF_FREE char *word = df_strf("%s ", f->name);
        DF_JSON cJSON *body = json(text), *run = NULL;
        struct df_err err = {0};
        bool is_unknown = df_new_run("net", body, NULL, "eve", &run, &err) < 0 &&
                          strstr(err.message, "is not a known field") != NULL;
        if (is_unknown != (strstr(refused, word) != NULL))
            fail_msg("%s: %s", f->name, err.message);
    }
}

/* The properties of a spec in charts/dayfly/files/crds. The caller deletes *ret_crd. */
static const cJSON *definition_of(enum df_kind kind, cJSON **ret_crd)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_FREE char *path = df_strf("charts/dayfly/files/crds/%s.yaml", df_kind_plural(kind));
    assert_int_equal(df_fs_read(path, &text, NULL), 0);
    assert_int_equal(df_yaml_parse(df_buf_str(&text), text.len, ret_crd, NULL, NULL), 0);
    return df_json_at(cJSON_GetArrayItem(df_json_at(*ret_crd, "spec.versions"), 0),
                      "schema.openAPIV3Schema.properties.spec.properties");
}

static void definitions_show_each_field_that_is_not_the_services_own(void **state)
{
    (void)state;
    for (int k = 0; k < DF_KIND_COUNT; k++) {
        DF_JSON cJSON *crd = NULL;
        if (!df_kind_row((enum df_kind)k)->is_custom_resource)
            continue;
        const cJSON *shown = definition_of((enum df_kind)k, &crd);
        assert_non_null(shown);
        for (const struct df_field *f = df_kind_row((enum df_kind)k)->spec; f->name; f++)
            if ((df_json_at(shown, f->name) != NULL) != (f->by != DF_BY_SERVICE))
                fail_msg("%s: %s", df_kind_name((enum df_kind)k), f->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_keeps_all_that_its_executor_says_but_description_and_approval),
        cmocka_unit_test(a_step_gets_the_snapshot_and_what_the_run_says_above_it),
        cmocka_unit_test(a_request_for_a_run_has_the_fields_of_the_client_and_no_others),
        cmocka_unit_test(definitions_show_each_field_that_is_not_the_services_own),
    };
    return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
