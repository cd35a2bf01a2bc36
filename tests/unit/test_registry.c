/* The registry of engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/engine/engine.h"
#include "spawner/engine/job/job.h"
#include "tests/unit/kube_words.h"

/* ---- the registry ---- */

static const struct df_engine_kind kind_a = {.name = "a"}, kind_b = {.name = "b"};

static void an_unknown_engine_is_refused_with_the_names_of_the_known(void **state)
{
    (void)state;
    struct df_engine a = {.kind = &kind_a}, b = {.kind = &kind_b}, *got = NULL;
    struct df_engine_registry r = {0};
    struct df_err err = {0};
    assert_int_equal(df_engine_register(&r, &a, NULL), 0);
    assert_int_equal(df_engine_register(&r, &b, NULL), 0);
    assert_int_equal(df_engine_get(&r, "b", &got, NULL), 0);
    assert_ptr_equal(got, &b);
    assert_int_equal(df_engine_get(&r, "x", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.message,
                        "unsupported execution engine: \"x\" (registered: [a b]); dayfly has "
                        "local, job, tekton, ansible");
}

static void an_engine_is_registered_once_and_the_table_has_an_end(void **state)
{
    (void)state;
    struct df_engine a = {.kind = &kind_a};
    struct df_engine_kind kinds[9];
    struct df_engine many[9];
    char names[9][8];
    struct df_engine_registry r = {0}, full = {0};
    struct df_err err = {0};
    assert_int_equal(df_engine_register(&r, &a, NULL), 0);
    assert_int_equal(df_engine_register(&r, &a, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    for (size_t i = 0; i < 9; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "e%zu", i);
        kinds[i] = (struct df_engine_kind){.name = names[i]};
        many[i] = (struct df_engine){.kind = &kinds[i]};
        assert_int_equal(df_engine_register(&full, &many[i], &err), i < 8 ? 0 : -1);
    }
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static const struct df_engine_kind tekton_kind = {.name = "tekton"}, job_kind = {.name = "job"};

/* UT-WE-014-001 to -003, UT-WE-868-020 and -021 */
static void engines_are_found_by_name_and_a_miss_names_those_there_are(void **state)
{
    (void)state;
    struct df_engine tekton = {.kind = &tekton_kind}, job = {.kind = &job_kind}, *found = NULL;
    struct df_engine_registry none = {0}, two = {0}, one = {0};
    struct df_err err = {0};
    assert_int_equal(df_engine_get(&none, "unknown", &found, &err), -1);
    assert_message(&err, "unsupported execution engine: \"unknown\" (registered: [])");
    assert_int_equal(df_engine_register(&two, &job, NULL), 0);
    assert_int_equal(df_engine_register(&two, &tekton, NULL), 0);
    assert_int_equal(df_engine_register(&one, &job, NULL), 0);
    assert_int_equal(df_engine_get(&two, "tekton", &found, NULL), 0);
    assert_string_equal(found->kind->name, "tekton");
    assert_int_equal(df_engine_get(&two, "job", &found, NULL), 0);
    assert_string_equal(found->kind->name, "job");
    assert_int_equal(two.count, 2);
    assert_int_equal(df_engine_get(&one, "tekton", &found, &err), -1);
    assert_message(&err, "unsupported execution engine: \"tekton\" (registered: [job])");
    assert_message(&err, "); write engines: [job, tekton] into the service's configuration");
    assert_int_equal(df_engine_get(&one, "ansible", &found, &err), -1);
    assert_message(&err, "\"ansible\"");
}

#define WHY_NOT(engines)                                                                           \
    "the key engines of the service's configuration does not name it: write engines: [" engines    \
    "] into the service's configuration (docs/configuration.md)"

static void people_see_every_engine_and_why_one_is_not_there(void **state)
{
    (void)state;
    static const struct df_engine_ops ops = {0};
    struct df_engine local = {.ops = &ops, .kind = &df_engine_kinds[DF_ENGINE_LOCAL]};
    struct df_engine_registry r = {0};
    struct df_err err = {0};
    DF_JSON cJSON *none = NULL, *one = NULL;
    assert_int_equal(df_engine_registry_check(&r, &err), -1);
    assert_string_equal(err.message, "no execution engines available");
    assert_int_equal(df_engine_list(&r, &none, NULL), 0);
    assert_string_equal(df_json_str(none->child, "message"), WHY_NOT("local"));
    assert_int_equal(df_engine_register(&r, &local, NULL), 0);
    assert_int_equal(df_engine_registry_check(&r, NULL), 0);
    assert_int_equal(df_engine_list(&r, &one, NULL), 0);
    DF_FREE char *text = df_json_print(one);
    assert_string_equal(
        text,
        "[{\"name\":\"local\",\"takes\":[\"runs\"],\"available\":true},"
        "{\"name\":\"job\",\"takes\":[\"runs\",\"workflows\"],"
        "\"available\":false,\"message\":\"" WHY_NOT(
            "local, job") "\"},"
                          "{\"name\":\"tekton\",\"takes\":[\"workflows\"],"
                          "\"available\":false,\"message\":\"" WHY_NOT(
                              "local, tekton") "\"},"
                                               "{\"name\":\"ansible\",\"takes\":[\"workflows\"],"
                                               "\"available\":false,\"message\":\"" WHY_NOT(
                                                   "local, ansible") "\"}]");
}

static int fail_check(struct df_engine *e, struct df_err *err)
{
    return df_fail(err, DF_ERR_RETRY, "%s is away", e->kind->name);
}

static void an_open_engine_that_can_run_nothing_now_says_why(void **state)
{
    (void)state;
    static const struct df_engine_ops ops = {.check = fail_check};
    struct df_engine job = {.ops = &ops, .kind = &df_engine_kinds[DF_ENGINE_JOB]};
    struct df_engine_registry r = {0};
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_engine_register(&r, &job, NULL), 0);
    assert_int_equal(df_engine_list(&r, &list, NULL), 0);
    const cJSON *shown = cJSON_GetArrayItem(list, DF_ENGINE_JOB);
    assert_false(df_json_bool(shown, "available", true));
    assert_string_equal(df_json_str(shown, "message"), "job is away");
}

static void the_engine_job_takes_what_its_row_says(void **state)
{
    (void)state;
    struct df_engine *e = NULL;
    const struct df_job_options job = {.name_space = "steps"};
    assert_int_equal(df_engine_job_new(&job, &e, NULL), 0);
    assert_int_equal(e->ops->runner != NULL, e->kind->takes_runs);
    assert_int_equal(e->ops->workflow != NULL, e->kind->takes_workflows);
    e->ops->close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_engine_is_refused_with_the_names_of_the_known),
        cmocka_unit_test(an_engine_is_registered_once_and_the_table_has_an_end),
        cmocka_unit_test(engines_are_found_by_name_and_a_miss_names_those_there_are),
        cmocka_unit_test(people_see_every_engine_and_why_one_is_not_there),
        cmocka_unit_test(an_open_engine_that_can_run_nothing_now_says_why),
        cmocka_unit_test(the_engine_job_takes_what_its_row_says),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
