#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "spawner/store/documents.h"

static void put(struct df_documents *d, const char *name, int64_t order, const char *labels)
{
    struct df_err err = {0};
    DF_STRS struct df_strs list = {0};
    for (const char *p = labels; *p;) {
        size_t n = strcspn(p, " ");
        assert_int_equal(df_strs_addf(&list, "%.*s", (int)n, p), 0);
        p += n + (p[n] == ' ');
    }
    DF_FREE char *uid = df_strf("uid-%s", name);
    const struct df_packed text = {"{}", 2, 2, NULL};
    const struct df_document_item item = {name, uid, "1", &text, order, &list};
    if (df_documents_put(d, &item, &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_selected(struct df_documents *d, struct df_documents_query q, const char *want)
{
    DF_FREE struct df_document **found = NULL;
    DF_STRS struct df_strs names = {0};
    size_t count = 0;
    assert_int_equal(df_documents_select(d, &q, &found, &count, NULL), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(df_strs_add(&names, found[i]->name), 0);
    DF_FREE char *text = df_strs_join(&names, " ");
    assert_string_equal(text, want);
}

static int set_up(void **state)
{
    struct df_documents *d = malloc(sizeof(*d));
    if (!d || df_documents_init(d, NULL) < 0)
        return -1;
    put(d, "b-1", 20, "x=1 y=2");
    put(d, "a-1", 10, "x=1");
    put(d, "a-2", 30, "");
    put(d, "a-3", 40, "y=2 x=1 z=3");
    *state = d;
    return 0;
}

static int tear_down(void **state)
{
    df_documents_free(*state);
    free(*state);
    return 0;
}

static void documents_are_selected_in_order_of_creation(void **state)
{
    static const struct {
        struct df_documents_query query;
        const char *want;
    } cases[] = {
        {{.prefix = ""}, "a-1 b-1 a-2 a-3"},
        {{.prefix = "a-"}, "a-1 a-2 a-3"},
        {{.prefix = "", .label = "x=1"}, "a-1 b-1 a-3"},
        {{.prefix = "a", .label = "y=2"}, "a-3"},
        {{.prefix = "", .label = "x=2"}, ""},
        {{.prefix = "", .after = 20}, "a-2 a-3"},
        {{.prefix = "", .after = INT64_MAX, .newest_first = true}, "a-3 a-2 b-1 a-1"},
        {{.prefix = "", .after = 30, .newest_first = true, .label = "x=1"}, "b-1 a-1"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_selected(*state, cases[i].query, cases[i].want);
}

static void a_replaced_document_is_found_by_its_new_labels_alone(void **state)
{
    struct df_documents *d = *state;
    put(d, "b-1", 20, "z=3");
    assert_selected(d, (struct df_documents_query){.prefix = "", .label = "x=1"}, "a-1 a-3");
    assert_selected(d, (struct df_documents_query){.prefix = "", .label = "z=3"}, "b-1 a-3");
    assert_int_equal(df_documents_count(d, "y=2"), 1);
    assert_int_equal(d->count, 4);
}

static void what_is_hidden_is_found_by_its_name_alone(void **state)
{
    struct df_documents *d = *state;
    df_documents_hide(d, df_documents_find(d, "a-3"));
    assert_true(df_documents_find(d, "a-3")->gone);
    assert_null(df_documents_find_uid(d, "uid-a-3"));
    assert_int_equal(df_documents_count(d, "z=3"), 0);
    assert_selected(d, (struct df_documents_query){.prefix = ""}, "a-1 b-1 a-2");
    put(d, "a-3", 50, "z=3");
    assert_non_null(df_documents_find_uid(d, "uid-a-3"));
    assert_int_equal(df_documents_count(d, "z=3"), 1);
}

static void what_a_list_did_not_tell_of_is_found(void **state)
{
    struct df_documents *d = *state;
    df_documents_begin(d);
    put(d, "a-1", 10, "");
    df_documents_find(d, "a-2")->mark = d->mark;
    DF_STRS struct df_strs gone = {0};
    for (struct df_document *doc; (doc = df_documents_next_unmarked(d));) {
        assert_int_equal(df_strs_add(&gone, doc->name), 0);
        df_documents_drop(d, doc);
    }
    assert_int_equal(gone.len, 2);
    assert_selected(d, (struct df_documents_query){.prefix = ""}, "a-1 a-2");
    assert_int_equal(df_documents_count(d, "x=1"), 0);
}

static void ten_thousand_come_and_go(void **state)
{
    struct df_documents *d = *state;
    for (int i = 0; i < 10000; i++) {
        DF_FREE char *name = df_strf("n-%d", i);
        DF_FREE char *labels = df_strf("live=true run=r-%d", i / 2);
        put(d, name, 100 + i, labels);
    }
    assert_int_equal(df_documents_count(d, "live=true"), 10000);
    assert_selected(d, (struct df_documents_query){.prefix = "", .label = "run=r-77"},
                    "n-154 n-155");
    for (int i = 0; i < 10000; i += 2) {
        DF_FREE char *name = df_strf("n-%d", i);
        df_documents_drop(d, df_documents_find(d, name));
    }
    assert_int_equal(df_documents_count(d, "live=true"), 5000);
    assert_selected(d, (struct df_documents_query){.prefix = "", .label = "run=r-77"}, "n-155");
}

static void more_than_the_cap_are_refused(void **state)
{
    struct df_documents *d = *state;
    const struct df_strs none = {0};
    const struct df_packed text = {"{}", 2, 2, NULL};
    struct df_err err = {0};
    int made = 4, result = 0;
    for (; result == 0 && made <= DF_LIMIT_KUBE_OBJECTS; made++) {
        DF_FREE char *name = df_strf("n-%d", made);
        const struct df_document_item item = {name, name, "1", &text, made, &none};
        result = df_documents_put(d, &item, &err);
    }
    assert_int_equal(result, -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(d->count, DF_LIMIT_KUBE_OBJECTS);
    put(d, "a-1", 10, "still=there"); /* one that is known may change */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(documents_are_selected_in_order_of_creation),
        TEST(a_replaced_document_is_found_by_its_new_labels_alone),
        TEST(what_is_hidden_is_found_by_its_name_alone),
        TEST(what_a_list_did_not_tell_of_is_found),
        TEST(ten_thousand_come_and_go),
        TEST(more_than_the_cap_are_refused),
    };
    return cmocka_run_group_tests_name("store_documents", tests, NULL, NULL);
}
