/* The grants of the configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spawner/model/grant.h"

static cJSON *parsed(const char *text)
{
    DF_FREE char *copy = strdup(text);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    cJSON *json = cJSON_Parse(copy);
    assert_non_null(json);
    return json;
}

static const char grants_text[] =
    "{'readers':{'to':{'groups':['all','ops']},'on':{'all':true},'preset':'read'},"
    "'ops':{'to':{'groups':['ops'],'users':['i#ann']},'on':{'all':true},'preset':'admin'},"
    "'writers':{'to':{'users':['i#ann','i#bob']},'on':{'all':true},'preset':'write'}}";

static void the_highest_role_of_all_grants_that_name_somebody_counts(void **state)
{
    (void)state;
    static const struct {
        const char *user, *groups;
        enum df_role role;
    } cases[] = {
        {"i#ann", "[]", DF_ROLE_ADMIN},       {"i#bob", "[]", DF_ROLE_WRITE},
        {"i#bob", "['all']", DF_ROLE_WRITE},  {"i#bob", "['ops','all']", DF_ROLE_ADMIN},
        {"i#cyd", "['all']", DF_ROLE_READ},   {"i#cyd", "['ALL','al','all ']", DF_ROLE_NONE},
        {"ann", "[]", DF_ROLE_NONE},          {"ops", "[]", DF_ROLE_NONE},
        {"i#cyd", "['i#ann']", DF_ROLE_NONE},
    };
    DF_JSON cJSON *grants = parsed(grants_text);
    assert_int_equal(df_grants_check(grants, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *groups = parsed(cases[i].groups);
        assert_int_equal(df_grants_role(grants, cases[i].user, groups), cases[i].role);
    }
    assert_int_equal(df_grants_role(NULL, "i#ann", NULL), DF_ROLE_NONE);
}

static void every_fault_is_named_with_its_path(void **state)
{
    (void)state;
    DF_JSON cJSON *grants = parsed("{'a':{'to':{},'on':{'all':true},'preset':'read'},"
                                   "'b':{'to':{'users':['']},'on':{'all':1},'preset':'owner'},"
                                   "'c':7}");
    struct df_err err = {0};
    assert_int_equal(df_grants_check(grants, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    static const char *const said[] = {"a.to: must name somebody", "b.to.users[0]", "b.on.all",
                                       "b.preset", "c: must be a mapping"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(said); i++)
        if (!strstr(err.message, said[i]))
            fail_msg("no \"%s\" in: %s", said[i], err.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_role_of_all_grants_that_name_somebody_counts),
        cmocka_unit_test(every_fault_is_named_with_its_path),
    };
    return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}
