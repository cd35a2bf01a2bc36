/* A JSON value without its secrets: what stays of the names of its members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/redact/tree.h"
#include "tests/unit/json_words.h"

static struct df_redact_set *new_set(void)
{
    DF_STRS struct df_strs secrets = {0};
    struct df_redact_set *set = NULL;
    assert_int_equal(df_strs_add(&secrets, "hunter22"), 0);
    assert_int_equal(df_strs_add(&secrets, "hunter33"), 0);
    assert_int_equal(df_redact_set_new(&secrets, &set, NULL), 0);
    return set;
}

/* Names differ before and after, so that nobody who reads the JSON loses a member. */
static void masked_names_of_one_object_differ_from_each_other_and_from_all_others(void **state)
{
    (void)state;
    static const struct {
        const char *value, *want;
    } cases[] = {
        {"{'a':1}", "{'a':1}"},
        {"{'hunter22':1,'b':2}", "{'***':1,'b':2}"},
        {"{'hunter22':1,'b':2,'x-hunter33':3}", "{'***':1,'b':2,'x-*** 2':3}"},
        /* others are called like a mask, before it or behind it */
        {"{'***':1,'hunter22':2}", "{'***':1,'*** 2':2}"},
        {"{'hunter22':1,'***':2}", "{'*** 2':1,'***':2}"},
        {"{'*** 2':1,'hunter22':2,'hunter33':3}", "{'*** 2':1,'***':2,'*** 3':3}"},
        {"{'hunter22':1,'hunter33':2,'*** 2':3,'*** 3':4}",
         "{'***':1,'*** 4':2,'*** 2':3,'*** 3':4}"},
        /* a secret with a number behind it */
        {"{'hunter22 2':1,'hunter33':2}", "{'*** 2':1,'*** 3':2}"},
        {"{'hunter33':1,'hunter22 2':2,'hunter22':3}", "{'***':1,'*** 2 2':2,'*** 3':3}"},
        {"{'***':1,'hunter22':2,'hunter33 2':3,'hunter33':4}",
         "{'***':1,'*** 2':2,'*** 2 3':3,'*** 4':4}"},
        /* each object for itself */
        {"[{'hunter22':{'hunter22':1,'hunter33':2}},{'hunter33':'hunter22'}]",
         "[{'***':{'***':1,'*** 2':2}},{'***':'***'}]"},
    };
    struct df_redact_set *set = new_set();
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *value = json(cases[i].value), *want = json(cases[i].want);
        bool changed = false;
        assert_int_equal(df_redact_tree(set, value, &changed, NULL), 0);
        DF_FREE char *got = df_json_print(value), *wanted = df_json_print(want);
        assert_string_equal(got, wanted);
        assert_int_equal(changed, !df_streq(cases[i].value, cases[i].want));
    }
    df_redact_set_free(set);
}

/* A module may name members as it likes, and as many: each name is tried about once. */
static void an_object_of_many_names_takes_no_longer_than_it_is_long(void **state)
{
    (void)state;
    enum { MEMBERS = 100000 };
    DF_JSON cJSON *value = cJSON_CreateObject();
    struct df_redact_set *set = new_set();
    bool changed = false;
    for (size_t i = 0; i < MEMBERS; i++) {
        DF_FREE char *secret = df_strf("hunter22%zu", i), *other = df_strf("***0 %zu", i + 2);
        cJSON *one = cJSON_CreateTrue(), *two = cJSON_CreateFalse();
        assert_non_null(one);
        assert_non_null(two);
        one->string = DF_TAKE(secret);
        two->string = DF_TAKE(other);
        assert_true(cJSON_AddItemToArray(value, one) && cJSON_AddItemToArray(value, two));
    }
    assert_int_equal(df_redact_tree(set, value, &changed, NULL), 0);
    assert_true(changed);
    assert_string_equal(value->child->string, "***0");
    assert_string_equal(value->child->prev->prev->string, "***99999 100000");
    df_redact_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_names_of_one_object_differ_from_each_other_and_from_all_others),
        cmocka_unit_test(an_object_of_many_names_takes_no_longer_than_it_is_long),
    };
    return cmocka_run_group_tests_name("redact_tree", tests, NULL, NULL);
}
