/* A runner without Terrakube (`make TERRAKUBE=0`) says so where somebody would miss it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/work.h"
#include "tests/unit/json_words.h"
#include "tests/unit/without_words.h"

static void the_runner_refuses_a_step_of_terrakube(void **state)
{
    (void)state;
    DF_JSON cJSON *doc = json("{'terrakube':{'payload':'{}'}}");
    DF_JSON cJSON *other = json("{'action':'plan'}");
    const struct df_dirs dirs = {0};
    struct df_report *report = NULL;
    struct df_err err = {0};
    void *data = NULL;
    const struct df_work *work = df_work_of(doc);
    assert_ptr_equal(df_work_of(other), &df_tofu_work);
    assert_refused(work->open(doc, &dirs, &report, &data, &err), &err, "an image of a build");
    assert_string_equal(err.reason, "InvalidStep");
    assert_null(data);
}

static void a_job_of_terrakubes_api_fails_and_says_why(void **state)
{
    (void)state;
    struct df_err err = {0};
    void *data = NULL;
    char flag[] = "EphemeralFlagBatch=true";
    char *of_job[] = {flag, NULL}, **before = environ;
    assert_null(df_work_starter());
    environ = of_job;
    const struct df_work *work = df_work_starter();
    environ = before;
    assert_non_null(work);
    assert_refused(work->start(&data, &err), &err, "an image of a build");
    assert_int_equal(work->exit_code(NULL, 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runner_refuses_a_step_of_terrakube),
        cmocka_unit_test(a_job_of_terrakubes_api_fails_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
