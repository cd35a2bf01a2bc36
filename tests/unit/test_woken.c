/* Of which versions of documents somebody was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/control/woken.h"

static bool is_news(struct df_woken *t, const char *name, const char *version)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(doc, "metadata");
    assert_int_equal(df_json_add_str(metadata, "name", name, NULL), 0);
    assert_int_equal(df_json_add_str(metadata, "resourceVersion", version, NULL), 0);
    return df_woken_is_new(t, doc);
}

static void each_version_of_each_document_is_news_once(void **state)
{
    static struct df_woken t;
    (void)state;
    assert_true(is_news(&t, "a-plan", "7"));
    assert_false(is_news(&t, "a-plan", "7"));
    assert_true(is_news(&t, "b-plan", "7"));
    assert_true(is_news(&t, "a-plan", "8"));
    assert_false(is_news(&t, "a-plan", "8"));
    assert_false(is_news(&t, "b-plan", "7"));
}

static void documents_that_share_a_place_are_told_too_often_and_never_too_seldom(void **state)
{
    static struct df_woken t;
    char name[16];
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 2 * DF_WOKEN; i++) {
            (void)snprintf(name, sizeof(name), "run-%d", i);
            bool news = is_news(&t, name, turn ? "2" : "1");
            assert_true(news);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version_of_each_document_is_news_once),
        cmocka_unit_test(documents_that_share_a_place_are_told_too_often_and_never_too_seldom),
    };
    return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}
