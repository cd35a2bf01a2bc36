#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/kube/objects.h"

static struct df_cached *hot(void)
{
    struct df_cached *k = NULL;
    assert_int_equal(df_cached_new(cJSON_CreateObject(), &k, NULL), 0);
    return k;
}

static void put(struct df_kube_objects *d, const char *name, int64_t order, const char *words)
{
    struct df_err err = {0};
    DF_CACHED struct df_cached *kept = hot();
    DF_STRS struct df_strs list = {0};
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        assert_int_equal(df_strs_addf(&list, "%.*s", (int)n, p), 0);
        p += n + (p[n] == ' ');
    }
    DF_FREE char *uid = df_strf("uid-%s", name);
    assert_int_equal(df_strs_add(&list, uid), 0);
    const struct df_kube_item item = {"ns", name, uid, "1", kept, &list, order, 0};
    if (df_kube_objects_put(d, &item, &err) < 0)
        fail_msg("%s", err.message);
}

static struct df_kube_object *find(struct df_kube_objects *d, const char *name)
{
    return df_kube_objects_find(d, "ns", name);
}

static void assert_selected(struct df_kube_objects *d, struct df_kube_query q, const char *want)
{
    DF_FREE struct df_kube_object **found = NULL;
    DF_STRS struct df_strs names = {0};
    size_t count = 0;
    assert_int_equal(df_kube_objects_select(d, &q, &found, &count, NULL), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(df_strs_add(&names, found[i]->name), 0);
    DF_FREE char *text = df_strs_join(&names, " ");
    assert_string_equal(text, want);
}

static int set_up(void **state)
{
    struct df_kube_objects *d = malloc(sizeof(*d));
    if (!d || df_kube_objects_init(d, NULL) < 0)
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
    df_kube_objects_free(*state);
    free(*state);
    return 0;
}

static void objects_are_selected_in_order_of_creation(void **state)
{
    static const struct {
        struct df_kube_query query;
        const char *want;
    } cases[] = {
        {{0}, "a-1 b-1 a-2 a-3"},
        {{.prefix = "a-"}, "a-1 a-2 a-3"},
        {{.word = "x=1"}, "a-1 b-1 a-3"},
        {{.prefix = "a", .word = "y=2"}, "a-3"},
        {{.word = "x=2"}, ""},
        {{.after = 20}, "a-2 a-3"},
        {{.after = INT64_MAX, .newest_first = true}, "a-3 a-2 b-1 a-1"},
        {{.after = 30, .newest_first = true, .word = "x=1"}, "b-1 a-1"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_selected(*state, cases[i].query, cases[i].want);
}

static void a_replaced_object_is_found_by_its_new_words_alone(void **state)
{
    struct df_kube_objects *d = *state;
    put(d, "b-1", 20, "z=3");
    assert_selected(d, (struct df_kube_query){.word = "x=1"}, "a-1 a-3");
    assert_selected(d, (struct df_kube_query){.word = "z=3"}, "b-1 a-3");
    assert_int_equal(df_kube_objects_count(d, "y=2"), 1);
    assert_int_equal(d->count, 4);
}

static void a_tombstone_is_found_by_its_name_alone(void **state)
{
    struct df_kube_objects *d = *state;
    df_kube_objects_bury(d, find(d, "a-3"));
    assert_true(find(d, "a-3")->is_tombstone);
    assert_null(df_kube_objects_first(d, "uid-a-3"));
    assert_int_equal(df_kube_objects_count(d, "z=3"), 0);
    assert_selected(d, (struct df_kube_query){0}, "a-1 b-1 a-2");
    put(d, "a-3", 50, "z=3");
    assert_non_null(df_kube_objects_first(d, "uid-a-3"));
    assert_int_equal(df_kube_objects_count(d, "z=3"), 1);
}

static void what_a_list_did_not_have_is_found(void **state)
{
    struct df_kube_objects *d = *state;
    df_kube_objects_begin(d);
    put(d, "a-1", 10, "");
    find(d, "a-2")->generation = d->generation;
    DF_STRS struct df_strs gone = {0};
    size_t bucket = 0;
    for (struct df_kube_object *doc; (doc = df_kube_objects_unlisted(d, &bucket));) {
        assert_int_equal(df_strs_add(&gone, doc->name), 0);
        df_kube_objects_remove(d, doc);
        df_kube_object_free(doc);
    }
    assert_int_equal(gone.len, 2);
    assert_selected(d, (struct df_kube_query){0}, "a-1 a-2");
    assert_int_equal(df_kube_objects_count(d, "x=1"), 0);
}

static void ten_thousand_come_and_go(void **state)
{
    struct df_kube_objects *d = *state;
    for (int i = 0; i < 10000; i++) {
        DF_FREE char *name = df_strf("n-%d", i);
        DF_FREE char *labels = df_strf("live=true run=r-%d", i / 2);
        put(d, name, 100 + i, labels);
    }
    assert_int_equal(df_kube_objects_count(d, "live=true"), 10000);
    assert_selected(d, (struct df_kube_query){.word = "run=r-77"}, "n-154 n-155");
    for (int i = 0; i < 10000; i += 2) {
        DF_FREE char *name = df_strf("n-%d", i);
        struct df_kube_object *o = find(d, name);
        df_kube_objects_remove(d, o);
        df_kube_object_free(o);
    }
    assert_int_equal(df_kube_objects_count(d, "live=true"), 5000);
    assert_selected(d, (struct df_kube_query){.word = "run=r-77"}, "n-155");
}

static void more_than_the_cap_are_refused(void **state)
{
    struct df_kube_objects *d = *state;
    DF_CACHED struct df_cached *kept = hot();
    struct df_err err = {0};
    int made = 4, result = 0;
    for (; result == 0 && made <= DF_LIMIT_KUBE_OBJECTS; made++) {
        DF_FREE char *name = df_strf("n-%d", made);
        const struct df_kube_item item = {"ns", name, name, "1", kept, NULL, made, 0};
        result = df_kube_objects_put(d, &item, &err);
    }
    assert_int_equal(result, -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(d->count, DF_LIMIT_KUBE_OBJECTS);
    put(d, "a-1", 10, "still=there"); /* one that is known may change */
}

static void an_object_is_found_by_its_whole_name_and_replaced(void **state)
{
    struct df_kube_objects *d = *state;
    put(d, "a-1", 50, "x=1");
    assert_int_equal(d->count, 4);
    assert_int_equal(find(d, "a-1")->order, 50);
    assert_null(df_kube_objects_find(d, "n", "sa-1"));
    assert_null(df_kube_objects_find(d, "", "a-1"));
    assert_string_equal(df_kube_object_space(find(d, "a-1")), "ns");
    assert_string_equal(df_kube_object_uid(find(d, "a-1")), "uid-a-1");
    assert_string_equal(df_kube_object_version(find(d, "a-1")), "1");
}

static void the_names_of_a_word_forget_what_is_gone(void **state)
{
    struct df_kube_objects *d = *state;
    DF_STRS struct df_strs names = {0};
    struct df_kube_object *o = find(d, "a-1");
    df_kube_objects_remove(d, o);
    df_kube_object_free(o);
    df_kube_objects_names(d, "x=1", &names);
    df_kube_objects_names(d, "x=2", &names);
    assert_int_equal(names.len, 2);
    assert_true(df_strs_has(&names, "b-1") && df_strs_has(&names, "a-3"));
    assert_null(df_kube_objects_first(d, "uid-a-1"));
}

static void an_older_version_and_what_becomes_of_a_tombstone_are_no_news(void **state)
{
    static const struct {
        const char *name, *uid, *version;
        bool is_news;
    } cases[] = {
        {"m", "u", "9", false},  /* older */
        {"m", "u", "10", false}, /* the same */
        {"m", "v", "10", true},  /* another of this name */
        {"m", "v", "9", false},  /* older than what is there */
        {"m", "u", "11", true},  {"new", "u", "1", true},
        {"t", "u", "11", false}, /* a tombstone's last changes */
        {"t", "v", "11", true},  /* made anew */
    };
    struct df_kube_objects *d = *state;
    DF_CACHED struct df_cached *kept = hot();
    struct df_kube_item item = {.name_space = "ns", .uid = "u", .version = "10", .kept = kept};
    item.name = "m";
    assert_int_equal(df_kube_objects_put(d, &item, NULL), 0);
    item.name = "t";
    assert_int_equal(df_kube_objects_put(d, &item, NULL), 0);
    df_kube_objects_bury(d, find(d, "t"));
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_int_equal(
            df_kube_objects_is_news(d, "ns", cases[i].name, cases[i].uid, cases[i].version),
            cases[i].is_news);
}

/* Cools what was not used for longest: it must be this object. */
static void assert_cools(struct df_kube_objects *d, const char *name)
{
    struct df_packer *packer = NULL;
    DF_CACHED struct df_cached *hot = df_cached_share(df_kube_objects_coldest(d, 0)), *cold = NULL;
    assert_ptr_equal(find(d, name)->kept, hot);
    assert_int_equal(df_packer_new(&packer, NULL), 0);
    assert_int_equal(df_cached_pack(packer, hot, &cold, NULL), 0);
    df_packer_free(packer);
    df_kube_objects_cool(d, hot, cold);
    assert_null(df_cached_tree(find(d, name)->kept));
}

static void the_hot_object_that_was_not_used_for_longest_is_cooled_first(void **state)
{
    struct df_kube_objects *d = *state;
    df_kube_objects_use(d, find(d, "b-1"));
    put(d, "a-1", 10, "x=1");
    assert_null(df_kube_objects_coldest(d, 4));
    assert_non_null(df_kube_objects_coldest(d, 3));
    assert_cools(d, "a-2");
    df_kube_objects_use(d, find(d, "a-2")); /* which does not make it hot */
    assert_cools(d, "a-3");
    assert_cools(d, "b-1");
    assert_cools(d, "a-1");
    assert_null(df_kube_objects_coldest(d, 0));
}

static void what_is_buried_or_removed_is_not_cooled(void **state)
{
    struct df_kube_objects *d = *state;
    struct df_kube_object *removed = find(d, "a-1");
    df_kube_objects_bury(d, find(d, "b-1"));
    df_kube_objects_remove(d, removed);
    df_kube_object_free(removed);
    assert_null(find(d, "b-1")->kept);
    assert_cools(d, "a-2");
    assert_cools(d, "a-3");
    assert_null(df_kube_objects_coldest(d, 0));
}

static void what_is_replaced_while_its_former_state_is_packed_stays_hot(void **state)
{
    struct df_kube_objects *d = *state;
    DF_CACHED struct df_cached *former = df_cached_share(find(d, "b-1")->kept), *cold = hot();
    put(d, "b-1", 20, "x=1");
    df_kube_objects_cool(d, former, cold);
    assert_ptr_not_equal(find(d, "b-1")->kept, cold);
    assert_ptr_not_equal(find(d, "b-1")->kept, former);
    assert_non_null(df_kube_objects_coldest(d, 3));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(objects_are_selected_in_order_of_creation),
        TEST(a_replaced_object_is_found_by_its_new_words_alone),
        TEST(a_tombstone_is_found_by_its_name_alone),
        TEST(what_a_list_did_not_have_is_found),
        TEST(ten_thousand_come_and_go),
        TEST(more_than_the_cap_are_refused),
        TEST(an_object_is_found_by_its_whole_name_and_replaced),
        TEST(the_names_of_a_word_forget_what_is_gone),
        TEST(an_older_version_and_what_becomes_of_a_tombstone_are_no_news),
        TEST(the_hot_object_that_was_not_used_for_longest_is_cooled_first),
        TEST(what_is_buried_or_removed_is_not_cooled),
        TEST(what_is_replaced_while_its_former_state_is_packed_stays_hot),
    };
    return cmocka_run_group_tests_name("kube_objects", tests, NULL, NULL);
}
