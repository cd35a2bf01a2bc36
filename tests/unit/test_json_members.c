/* What makes documents: adders, members of an object at once; and what wipes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/json/json.h"

static cJSON *parsed(const char *text)
{
    struct df_err err = {0};
    cJSON *j = NULL;
    if (df_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return j;
}

static void assert_prints(const cJSON *j, const char *expected)
{
    DF_FREE char *text = df_json_print(j);
    assert_string_equal(text, expected);
}

static void adders_build_a_document(void **state)
{
    (void)state;
    DF_JSON cJSON *j = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(j, "s", "x", NULL), 0);
    assert_int_equal(df_json_add_str(j, "absent", NULL, NULL), 0);
    assert_int_equal(df_json_add_num(j, "n", 1.5, NULL), 0);
    assert_int_equal(df_json_add_bool(j, "b", true, NULL), 0);
    assert_int_equal(df_json_add_time(j, "t", 1000001, NULL), 0);
    assert_int_equal(df_json_append_str(df_json_array_at(j, "l"), "one", NULL), 0);
    assert_int_equal(df_json_append_str(df_json_array_at(j, "l"), "two", NULL), 0);
    assert_int_equal(df_json_set_str(df_json_object_at(j, "o"), "k", "v", NULL), 0);
    assert_prints(j, "{\"s\":\"x\",\"n\":1.5,\"b\":true,\"t\":\"1970-01-01T00:00:01.000001Z\","
                     "\"l\":[\"one\",\"two\"],\"o\":{\"k\":\"v\"}}");
}

static void setting_a_member_replaces_it_in_its_place(void **state)
{
    (void)state;
    DF_JSON cJSON *j = parsed("{\"a\":1,\"b\":2,\"c\":3}");
    assert_int_equal(df_json_set_str(j, "b", "new", NULL), 0);
    assert_int_equal(df_json_set_str(j, "d", "added", NULL), 0);
    assert_int_equal(df_json_set(j, "a", cJSON_CreateArray(), NULL), 0);
    assert_int_equal(df_json_set(j, "d", cJSON_CreateTrue(), NULL), 0);
    assert_prints(j, "{\"a\":[],\"b\":\"new\",\"c\":3,\"d\":true}");
}

static void a_missing_item_counts_as_no_memory(void **state)
{
    (void)state;
    DF_JSON cJSON *j = parsed("{\"a\":1}");
    struct df_err err = {0};
    assert_int_equal(df_json_add(j, "x", NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(df_json_set(j, "a", NULL, &err), -1);
    assert_int_equal(df_json_append(j, NULL, NULL), -1);
    assert_prints(j, "{\"a\":1}");
}

static void an_object_is_made_of_members_of_every_type(void **state)
{
    (void)state;
    const char *none = NULL;
    DF_JSON cJSON *j =
        df_json_object(DF_STR("s", "x"), DF_STR("absent", none), DF_NUM("n", 1.5),
                       DF_BOOL("b", true), DF_BOOL("not", false), DF_TIME("t", 1000001),
                       DF_ITEM("o", df_json_object(DF_NUM("deep", 1))));
    assert_prints(j, "{\"s\":\"x\",\"n\":1.5,\"b\":true,\"not\":false,"
                     "\"t\":\"1970-01-01T00:00:01.000001Z\",\"o\":{\"deep\":1}}");
    DF_JSON cJSON *empty = df_json_object(DF_STR("absent", none));
    assert_prints(empty, "{}");
}

static void an_allocated_string_that_is_missing_is_out_of_memory(void **state)
{
    (void)state;
    const char *none = NULL;
    struct df_err err = {0};
    DF_JSON cJSON *j = df_json_object(DF_STR_ALLOC("s", "x"));
    assert_prints(j, "{\"s\":\"x\"}");
    assert_null(df_json_object(DF_STR_ALLOC("s", none)));
    assert_int_equal(df_json_put(j, &err, DF_STR_ALLOC("s", none), DF_NUM("n", 1)), -1);
    assert_string_equal(err.message, "out of memory");
    assert_prints(j, "{\"s\":\"x\"}");
}

static void members_are_put_into_an_object_or_replaced_in_their_place(void **state)
{
    (void)state;
    const char *none = NULL;
    DF_JSON cJSON *j = parsed("{\"a\":1,\"b\":2,\"c\":3}");
    assert_int_equal(df_json_put(j, NULL, DF_STR("b", "x"), DF_STR("c", none), DF_NUM("d", 4)), 0);
    assert_prints(j, "{\"a\":1,\"b\":\"x\",\"c\":3,\"d\":4}");
}

/* The leak checker sees an item that nobody freed. */
static void members_after_a_missing_item_are_freed(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *j = cJSON_CreateObject();
    assert_int_equal(
        df_json_put(j, &err, DF_NUM("a", 1), DF_ITEM("b", NULL), DF_ITEM("c", cJSON_CreateArray())),
        -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_prints(j, "{\"a\":1}");
    assert_null(df_json_object(DF_ITEM("b", NULL), DF_ITEM("c", cJSON_CreateArray())));
    assert_int_equal(df_json_put(NULL, NULL, DF_ITEM("c", cJSON_CreateArray())), -1);
    assert_int_equal(df_json_put(j, NULL, DF_ITEM(NULL, cJSON_CreateArray()), DF_STR("d", "x")),
                     -1);
    assert_prints(j, "{\"a\":1}");
}

static void what_is_added_to_an_object_that_is_missing_counts_as_no_memory(void **state)
{
    (void)state;
    assert_int_equal(df_json_add(NULL, "a", cJSON_CreateArray(), NULL), -1);
    assert_int_equal(df_json_set(NULL, "a", cJSON_CreateArray(), NULL), -1);
    assert_int_equal(df_json_append(NULL, cJSON_CreateArray(), NULL), -1);
    assert_int_equal(df_json_add_str(NULL, "a", NULL, NULL), -1);
    assert_int_equal(df_json_set_str(NULL, "a", NULL, NULL), -1);
    assert_int_equal(df_json_append_str(NULL, NULL, NULL), -1);
    assert_null(df_json_object_at(NULL, "a"));
    assert_null(df_json_array_at(NULL, "a"));
    assert_null(df_json_print(NULL));
}

/* cJSON frees through these: what a secret's memory held when it was given back is seen here. */
static bool secret_seen;

static void looking_free(void *p)
{
    if (p && strncmp(p, "s3cr", 4) == 0)
        secret_seen = true;
    free(p);
}

static void wiping_a_tree_overwrites_its_strings(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[\"s3cret-one\",{\"b\":\"s3cret-two\"}]}";
    cJSON_Hooks hooks = {malloc, looking_free};
    cJSON_InitHooks(&hooks);
    secret_seen = false;
    cJSON_Delete(parsed(text));
    bool without = secret_seen;
    secret_seen = false;
    df_json_wipe(parsed(text));
    df_json_wipe(NULL);
    cJSON_InitHooks(NULL);
    assert_true(without);
    assert_false(secret_seen);
}

static void an_item_that_cannot_be_added_is_wiped(void **state)
{
    (void)state;
    cJSON_Hooks hooks = {malloc, looking_free};
    cJSON_InitHooks(&hooks);
    secret_seen = false;
    int failures[] = {df_json_add(NULL, "a", cJSON_CreateString("s3cret"), NULL),
                      df_json_append(NULL, cJSON_CreateString("s3cret"), NULL),
                      df_json_set_str(NULL, "a", "s3cret", NULL),
                      df_json_put(NULL, NULL, DF_ITEM("a", cJSON_CreateString("s3cret")))};
    cJSON_InitHooks(NULL);
    for (size_t i = 0; i < DF_ARRAY_SIZE(failures); i++)
        assert_int_equal(failures[i], -1);
    assert_false(secret_seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adders_build_a_document),
        cmocka_unit_test(setting_a_member_replaces_it_in_its_place),
        cmocka_unit_test(a_missing_item_counts_as_no_memory),
        cmocka_unit_test(an_object_is_made_of_members_of_every_type),
        cmocka_unit_test(an_allocated_string_that_is_missing_is_out_of_memory),
        cmocka_unit_test(members_are_put_into_an_object_or_replaced_in_their_place),
        cmocka_unit_test(members_after_a_missing_item_are_freed),
        cmocka_unit_test(what_is_added_to_an_object_that_is_missing_counts_as_no_memory),
        cmocka_unit_test(wiping_a_tree_overwrites_its_strings),
        cmocka_unit_test(an_item_that_cannot_be_added_is_wiped),
    };
    return cmocka_run_group_tests_name("json members", tests, NULL, NULL);
}
