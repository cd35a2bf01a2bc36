/* What a dry-run may say instead of its executor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/overrides.h"
#include "tests/unit/model_words.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static cJSON *dry_run(const char *says)
{
    DF_FREE char *text = df_strf("{'spec':{'action':'dry-run'%s%s}}", *says ? "," : "", says);
    return json(text);
}

static void a_dry_run_is_laid_over_its_executor(void **state)
{
    (void)state;
    static const struct {
        const char *executor, *says, *merged;
    } cases[] = {
        {"{'source':{'url':'file:///m'}}", "", "{'source':{'url':'file:///m'}}"},
        {"{'source':{'url':'u','kind':'git','branch':'main'}}", "'source':{'tag':'v1'}",
         "{'source':{'url':'u','kind':'git','tag':'v1'}}"},
        {"{'source':{'url':'u','kind':'directory','folder':'a'}}", "'source':{'branch':'dev'}",
         "{'source':{'url':'u','kind':'git','branch':'dev','folder':'a'}}"},
        {"{'source':{'url':'u','kind':'git','branch':'main'}}", "'source':{'kind':'directory'}",
         "{'source':{'url':'u','kind':'directory'}}"},
        {"{'source':{'url':'u','kind':'git','branch':'main'}}", "'source':{'folder':'deep'}",
         "{'source':{'url':'u','kind':'git','branch':'main','folder':'deep'}}"},
        {"{'source':{'url':'u','kind':'git','commit':'c'}}", "",
         "{'source':{'url':'u','kind':'git','commit':'c','anyCommit':true}}"},
        {"{'source':{'url':'u','kind':'git','commit':'c'}}", "'source':{'folder':'deep'}",
         "{'source':{'url':'u','kind':'git','commit':'c','folder':'deep','anyCommit':true}}"},
        {"{'source':{'url':'u','kind':'git','commit':'c'}}", "'source':{'commit':'c'}",
         "{'source':{'url':'u','kind':'git','commit':'c','anyCommit':true}}"},
        {"{'source':{'url':'u','kind':'git','commit':'c'}}", "'source':{'commit':'d'}",
         "{'source':{'url':'u','kind':'git','commit':'d'}}"},
        {"{'source':{'url':'u','kind':'git','branch':'main','anyCommit':true}}",
         "'source':{'commit':'d'}",
         "{'source':{'url':'u','kind':'git','commit':'d','anyCommit':true}}"},
        {"{'source':{'url':'u','kind':'archive','sha256':'a'}}", "'source':{'sha256':'b'}",
         "{'source':{'url':'u','kind':'archive','sha256':'b'}}"},
        {"{'runtime':{'name':'opentofu','version':'1.9.0'}}", "'runtime':{'name':'terraform'}",
         "{'runtime':{'name':'terraform'}}"},
        {"{'runtime':{'name':'opentofu','version':'1.9.0'}}", "'runtime':{'version':'1.10.0'}",
         "{'runtime':{'name':'opentofu','version':'1.10.0'}}"},
        {"{'runtime':{'name':'opentofu','version':'1.9.0'}}", "'runtime':{'name':'opentofu'}",
         "{'runtime':{'name':'opentofu','version':'1.9.0'}}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *spec = json(cases[i].executor), *run = dry_run(cases[i].says);
        DF_JSON cJSON *merged = json(cases[i].merged);
        assert_int_equal(df_overrides_merge(spec, run, NULL), 0);
        DF_FREE char *text = df_json_print(spec);
        if (!df_json_equal(spec, merged))
            fail_msg("%s: %s", cases[i].says, text);
    }
}

/* Only who may edit the executor says so. */
static void a_run_does_not_allow_itself_any_commit(void **state)
{
    (void)state;
    DF_JSON cJSON *run = json("{'metadata':{'name':'r'},'spec':{'executorRef':{'name':'net'},"
                              "'action':'dry-run','source':{'anyCommit':true}}}");
    struct df_err err = {0};
    assert_int_equal(df_model_admit(DF_KIND_RUN, run, NULL, &err), -1);
    assert_non_null(strstr(err.message, "spec.source.anyCommit"));
}

static void what_would_be_no_valid_executor_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *says, *fault;
    } cases[] = {
        {"'source':{'tag':'v1','branch':'dev'}", "only one of tag, branch and commit"},
        {"'source':{'folder':'../up'}", "spec.source.folder"},
        {"'source':{'kind':'git'}", "needs a tag, a branch or a commit"},
        {"'source':{'branch':'dev','sha256':'" SHA256 "'}", "of kind git has no sha256"},
    };
    DF_JSON cJSON *executor = executor_from("{'url':'file:///m','kind':'directory'}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *run = dry_run(cases[i].says);
        struct df_err err = {0};
        assert_int_equal(df_overrides_check(run, executor, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, cases[i].fault))
            fail_msg("%s: %s", cases[i].says, err.message);
    }
    DF_JSON cJSON *good = dry_run("'source':{'commit':'" COMMIT "'}");
    assert_int_equal(df_overrides_check(good, executor, NULL), 0);
    DF_JSON cJSON *unchanged = executor_from("{'url':'file:///m','kind':'directory'}");
    assert_true(df_json_equal(executor, unchanged));
}

static void every_other_run_takes_its_executor_as_it_is(void **state)
{
    (void)state;
    static const char *const actions[] = {"provision", "destroy"};
    static const char *const members[] = {"'source':{'branch':'dev'}", "'runtime':{}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(actions); i++) {
        for (size_t k = 0; k < DF_ARRAY_SIZE(members); k++) {
            DF_FREE char *text = df_strf("{'metadata':{'name':'net-1'},'spec':{'executorRef':"
                                         "{'name':'net'},'action':'%s',%s}}",
                                         actions[i], members[k]);
            DF_JSON cJSON *run = json(text);
            assert_refused(DF_KIND_RUN, run, text, "is for a dry-run alone");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dry_run_is_laid_over_its_executor),
        cmocka_unit_test(a_run_does_not_allow_itself_any_commit),
        cmocka_unit_test(what_would_be_no_valid_executor_is_refused),
        cmocka_unit_test(every_other_run_takes_its_executor_as_it_is),
    };
    return cmocka_run_group_tests_name("overrides", tests, NULL, NULL);
}
