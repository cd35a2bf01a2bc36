/* Trees that several owners share. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/json/shared.h"

static cJSON *tree_of(const char *text)
{
    cJSON *tree = NULL;
    assert_int_equal(df_json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

static void assert_text(const cJSON *tree, const char *text)
{
    DF_FREE char *printed = df_json_print(tree);
    assert_string_equal(printed, text);
}

static const char *const texts[] = {"{\"a\":[1,{\"b\":\"c\"}],\"d\":null}", "[1,[2],{}]", "{}",
                                    "[]"};

static void a_shared_tree_reads_like_the_one_it_was_made_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        DF_SHARED const cJSON *shared = df_shared_new(tree_of(texts[i]));
        assert_text(shared, texts[i]);
    }
}

static void a_tree_lives_until_its_last_reference_is_dropped(void **state)
{
    (void)state;
    const cJSON *one = df_shared_new(tree_of(texts[0]));
    const cJSON *two = df_shared_add(one);
    assert_ptr_equal(one, two);
    df_shared_drop(one);
    assert_text(two, texts[0]);
    df_shared_drop(two);
    df_shared_drop(NULL);
}

static void a_member_that_was_taken_out_is_shared_without_its_name(void **state)
{
    (void)state;
    DF_JSON cJSON *whole = tree_of("{\"object\":{\"a\":1}}");
    DF_SHARED const cJSON *shared =
        df_shared_new(cJSON_DetachItemFromObjectCaseSensitive(whole, "object"));
    assert_null(shared->string);
    assert_text(shared, "{\"a\":1}");
}

static void nothing_is_made_of_nothing(void **state)
{
    (void)state;
    assert_null(df_shared_new(NULL));
    assert_null(df_shared_own(NULL));
}

static void who_wants_a_tree_of_its_own_gets_a_copy_while_others_share_it(void **state)
{
    (void)state;
    DF_SHARED const cJSON *shared = df_shared_new(tree_of(texts[0]));
    DF_JSON cJSON *own = df_shared_own(df_shared_add(shared));
    assert_int_equal(df_json_set_str(own, "d", "changed", NULL), 0);
    assert_text(shared, texts[0]);
    assert_text(own, "{\"a\":[1,{\"b\":\"c\"}],\"d\":\"changed\"}");
}

static void the_last_owner_gets_the_tree_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        const cJSON *shared = df_shared_new(tree_of(texts[i]));
        const cJSON *first = shared->child;
        DF_JSON cJSON *own = df_shared_own(shared);
        assert_ptr_equal(own->child, first);
        assert_text(own, texts[i]);
    }
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 2000 };

static void *add_and_drop(void *arg)
{
    const cJSON *shared = arg;
    for (int i = 0; i < ROUNDS; i++) {
        DF_SHARED const cJSON *mine = df_shared_add(shared);
        DF_JSON cJSON *own = i % 100 ? NULL : df_shared_own(df_shared_add(mine));
        if (!df_json_at(mine, "a") || (own && df_json_set_str(own, "a", "mine", NULL) < 0))
            abort();
    }
    df_shared_drop(shared);
    return NULL;
}

static void many_threads_share_one_tree_and_the_last_one_frees_it(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    const cJSON *shared = df_shared_new(tree_of(texts[0]));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_and_drop,
                                        (void *)(uintptr_t)df_shared_add(shared)),
                         0);
    df_shared_drop(shared);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_tree_reads_like_the_one_it_was_made_of),
        cmocka_unit_test(a_tree_lives_until_its_last_reference_is_dropped),
        cmocka_unit_test(a_member_that_was_taken_out_is_shared_without_its_name),
        cmocka_unit_test(nothing_is_made_of_nothing),
        cmocka_unit_test(who_wants_a_tree_of_its_own_gets_a_copy_while_others_share_it),
        cmocka_unit_test(the_last_owner_gets_the_tree_itself),
        cmocka_unit_test(many_threads_share_one_tree_and_the_last_one_frees_it),
    };
    return cmocka_run_group_tests_name("json_shared", tests, NULL, NULL);
}
