/* What a cache keeps as trees, and that nobody notices but by the time it takes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/kube/cache.h"
#include "tests/unit/kube_server.h"

/* An empty list as of version 1; all objects come by own writes. */
static void tell_nothing(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)s;
    a->hold = strstr(r->target, "watch=true");
    if (a->hold)
        kube_stream(a);
    else
        kube_say(a, 200, "", "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
}

/* The name is an index word, so that each() can visit one object. */
static int by_name(void *arg, const cJSON *object, struct df_kube_keys *ret, struct df_err *err)
{
    (void)arg;
    (void)df_strs_add(&ret->words, df_kube_name(object));
    ret->order = df_json_int(object, "number", 0);
    return df_strs_check(&ret->words, err);
}

struct world {
    struct kube_server server;
    struct df_kube *kube;
    struct df_kube_cache *cache;
};

static void open_world(struct world *w, struct df_kube_cache_options o)
{
    struct df_err err = {0};
    o.resource = &df_kube_pods;
    o.name_space = "build";
    o.keys = by_name;
    kube_start(&w->server, tell_nothing, NULL);
    w->kube = kube_client(&w->server);
    if (df_kube_cache_start(w->kube, &o, &w->cache, &err) < 0 ||
        df_kube_cache_wait(w->cache, -1, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    open_world(w, (struct df_kube_cache_options){0});
    *state = w;
    return 0;
}

static void close_world(struct world *w)
{
    df_kube_cache_stop(w->cache);
    df_kube_free(w->kube);
    kube_stop(&w->server);
}

static int tear_down(void **state)
{
    close_world(*state);
    free(*state);
    return 0;
}

static cJSON *object(int number, int version, const char *text)
{
    DF_FREE char *json =
        df_strf("{\"metadata\":{\"name\":\"n-%d\",\"uid\":\"u\",\"resourceVersion\":\"%d\"},"
                "\"number\":%d,\"text\":\"%s\"}",
                number, version, number, text);
    cJSON *tree = NULL;
    assert_int_equal(df_json_parse(json, strlen(json), &tree, NULL), 0);
    return tree;
}

static void put(struct world *w, int number, int version, const char *text)
{
    DF_JSON cJSON *tree = object(number, version, text);
    assert_int_equal(df_kube_cache_note(w->cache, tree, true, NULL), 0);
}

static void put_many(struct world *w, int from, int to)
{
    for (int i = from; i <= to; i++)
        put(w, i, 10, "some");
}

/* A reference. */
static const cJSON *find(struct world *w, int number)
{
    DF_FREE char *name = df_strf("n-%d", number);
    const cJSON *tree = NULL;
    assert_int_equal(df_kube_cache_find(w->cache, NULL, name, &tree, NULL), 0);
    return tree;
}

static void assert_there(struct world *w, int number, int version, const char *text)
{
    DF_SHARED const cJSON *seen = find(w, number);
    DF_JSON cJSON *wanted = object(number, version, text);
    if (!df_json_equal(seen, wanted))
        fail_msg("n-%d is not as it was put", number);
}

struct visit {
    struct world *world;
    const cJSON *tree;
    bool is_hot;
};

static int look_again(void *arg, const cJSON *kept, struct df_err *err)
{
    struct visit *v = arg;
    (void)err;
    v->is_hot = kept == v->tree;
    return 0;
}

/* A visitor sees a hot object itself, and of a packed one a tree that is made for each visit: two
 * that visit it at the same time see the same only if it is hot. */
static int look(void *arg, const cJSON *kept, struct df_err *err)
{
    struct visit *v = arg;
    v->tree = kept;
    return df_kube_cache_each(v->world->cache, df_kube_name(kept), look_again, v, err);
}

static bool is_hot(struct world *w, int number)
{
    DF_FREE char *name = df_strf("n-%d", number);
    struct visit v = {.world = w};
    assert_int_equal(df_kube_cache_each(w->cache, name, look, &v, NULL), 0);
    assert_non_null(v.tree);
    return v.is_hot;
}

static void readers_share_a_hot_object_and_keep_it_when_it_is_replaced(void **state)
{
    struct world *w = *state;
    put(w, 1, 10, "first");
    DF_SHARED const cJSON *one = find(w, 1), *two = find(w, 1);
    assert_ptr_equal(one, two);
    put(w, 1, 11, "second");
    assert_string_equal(df_json_str(one, "text"), "first");
    assert_there(w, 1, 11, "second");
}

/* ---- what the owner shows ---- */

static int count_and_mark(void *arg, cJSON *object, struct df_err *err)
{
    (void)__atomic_add_fetch((unsigned *)arg, 1, __ATOMIC_RELAXED);
    return df_json_set_str(object, "text", "shown", err);
}

static const cJSON *show(struct world *w, int number)
{
    DF_FREE char *name = df_strf("n-%d", number);
    const cJSON *shown = NULL;
    assert_int_equal(df_kube_cache_show(w->cache, NULL, name, &shown, NULL), 0);
    return shown;
}

static void assert_shown(struct world *w, int number)
{
    DF_SHARED const cJSON *shown = show(w, number);
    assert_string_equal(df_json_str(shown, "text"), "shown");
    assert_int_equal(df_json_int(shown, "number", 0), number);
}

static void what_is_shown_is_made_once_of_a_hot_object_and_leaves_it_as_it_is(void **state)
{
    (void)state;
    struct world w = {0};
    unsigned made = 0;
    open_world(&w, (struct df_kube_cache_options){.show = count_and_mark, .arg = &made});
    put(&w, 1, 10, "first");
    assert_int_equal(made, 0);
    for (int i = 0; i < 3; i++)
        assert_shown(&w, 1);
    assert_int_equal(made, 1);
    assert_there(&w, 1, 10, "first");
    put(&w, 1, 11, "second");
    assert_shown(&w, 1);
    assert_int_equal(made, 2);
    close_world(&w);
}

static void a_packed_object_is_shown_as_a_hot_one(void **state)
{
    (void)state;
    struct world w = {0};
    unsigned made = 0;
    const cJSON *by_word = NULL;
    open_world(&w, (struct df_kube_cache_options){.show = count_and_mark, .arg = &made});
    put_many(&w, 1, DF_KUBE_MAX_HOT + 1);
    assert_shown(&w, 1);
    assert_shown(&w, 1);
    assert_int_equal(made, 2);
    assert_there(&w, 1, 10, "some");
    assert_int_equal(df_kube_cache_show_by(w.cache, "n-1", &by_word, NULL), 0);
    assert_string_equal(df_json_str(by_word, "text"), "shown");
    df_shared_drop(by_word);
    close_world(&w);
}

static void nothing_is_shown_of_an_object_that_is_not_there(void **state)
{
    (void)state;
    struct world w = {0};
    unsigned made = 0;
    const cJSON *by_word = NULL;
    open_world(&w, (struct df_kube_cache_options){.show = count_and_mark, .arg = &made});
    assert_null(show(&w, 1));
    assert_int_equal(df_kube_cache_show_by(w.cache, "n-1", &by_word, NULL), 0);
    assert_null(by_word);
    assert_int_equal(made, 0);
    close_world(&w);
}

/* ---- what is hot ---- */

static void the_objects_put_last_are_hot_and_all_are_read_as_they_were_put(void **state)
{
    struct world *w = *state;
    put_many(w, 1, DF_KUBE_MAX_HOT + 20);
    for (int i = 1; i <= DF_KUBE_MAX_HOT + 20; i++)
        assert_int_equal(is_hot(w, i), i > 20);
    for (int i = 1; i <= DF_KUBE_MAX_HOT + 20; i++)
        assert_there(w, i, 10, "some");
}

static void what_is_read_stays_hot(void **state)
{
    struct world *w = *state;
    put_many(w, 1, DF_KUBE_MAX_HOT);
    assert_there(w, 1, 10, "some");
    put(w, 100, 10, "more");
    assert_true(is_hot(w, 1));
    assert_false(is_hot(w, 2));
}

static int visit_nothing(void *arg, const cJSON *kept, struct df_err *err)
{
    (void)arg, (void)kept, (void)err;
    return 0;
}

static void a_walk_over_all_changes_nothing_of_what_is_hot(void **state)
{
    struct world *w = *state;
    put_many(w, 1, 3 * DF_KUBE_MAX_HOT);
    DF_JSON cJSON *page = NULL;
    int64_t last;
    assert_int_equal(df_kube_cache_each(w->cache, NULL, visit_nothing, NULL, NULL), 0);
    assert_int_equal(df_kube_cache_list(w->cache, &(struct df_kube_query){.newest_first = true},
                                        SIZE_MAX, SIZE_MAX, &page, &last, NULL),
                     0);
    assert_there(w, 2 * DF_KUBE_MAX_HOT + 1, 10, "some");
    put(w, 500, 10, "more");
    for (int i = 1; i <= 3 * DF_KUBE_MAX_HOT; i++)
        if (is_hot(w, i) != (i == 2 * DF_KUBE_MAX_HOT + 1 || i > 2 * DF_KUBE_MAX_HOT + 2))
            fail_msg("n-%d", i);
}

static void a_large_object_is_never_hot(void **state)
{
    struct world *w = *state;
    DF_FREE char *text = calloc(1, DF_KUBE_MAX_TREE + 1);
    assert_non_null(text);
    memset(text, 'x', DF_KUBE_MAX_TREE);
    put_many(w, 1, DF_KUBE_MAX_HOT);
    put(w, 100, 10, text);
    assert_false(is_hot(w, 100));
    assert_true(is_hot(w, 1));
    assert_there(w, 100, 10, text);
}

static void hot_and_packed_objects_are_replaced_and_deleted_alike(void **state)
{
    struct world *w = *state;
    put_many(w, 1, DF_KUBE_MAX_HOT + 10);
    static const int numbers[] = {1, DF_KUBE_MAX_HOT + 10}; /* packed, and hot */
    for (size_t i = 0; i < DF_ARRAY_SIZE(numbers); i++) {
        int n = numbers[i];
        put(w, n, 11, "another");
        assert_true(is_hot(w, n));
        assert_there(w, n, 11, "another");
        put(w, n, 10, "older");
        assert_there(w, n, 11, "another");
        DF_JSON cJSON *last = object(n, 12, "last");
        df_kube_cache_note_deleted(w->cache, last, true); /* buried */
        DF_SHARED const cJSON *gone = find(w, n);
        assert_null(gone);
        df_kube_cache_note_deleted(w->cache, last, false); /* removed */
    }
    assert_int_equal(df_kube_cache_count(w->cache, NULL), DF_KUBE_MAX_HOT + 8);
    /* Two hot ones went, and one was packed for the first that was put again. */
    put_many(w, 200, 201);
    for (int i = 2; i < DF_KUBE_MAX_HOT + 10; i++)
        assert_int_equal(is_hot(w, i), i > 11);
}

static void a_page_has_hot_and_packed_objects_in_order(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *all = NULL, *three = NULL;
    int64_t last = 0;
    const struct df_kube_query q = {0};
    put_many(w, 1, DF_KUBE_MAX_HOT + 5);
    assert_int_equal(df_kube_cache_list(w->cache, &q, 1000, SIZE_MAX, &all, &last, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(all), DF_KUBE_MAX_HOT + 5);
    assert_int_equal(last, 0);
    int n = 0;
    const cJSON *seen;
    cJSON_ArrayForEach (seen, all) {
        DF_JSON cJSON *wanted = object(++n, 10, "some");
        assert_true(df_json_equal(seen, wanted));
    }
    /* The length of a hot one is a guess, which is right to a quarter here. */
    DF_FREE char *text = df_json_print(all->child);
    const struct df_kube_query behind = {.after = 20};
    assert_int_equal(
        df_kube_cache_list(w->cache, &behind, 1000, strlen(text) * 15 / 4, &three, &last, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(three), 3);
    assert_int_equal(last, 23);
}

/* ---- threads ---- */

enum { WRITERS = 4, ROUNDS = 500, OBJECTS = 2 * DF_KUBE_MAX_HOT };

struct writer {
    struct world *world;
    int number;
};

static int read_it(void *arg, const cJSON *kept, struct df_err *err)
{
    (void)arg, (void)err;
    return df_json_str(kept, "text") ? 0 : df_fail(err, DF_ERR_BUG, "no text");
}

/* Reads the tree that it is told of, and what the cache has. */
static void on_changed(void *arg, const struct df_kube_change *change)
{
    struct world *w = arg;
    struct df_err err = {0};
    if (change->object && read_it(NULL, change->object, &err) < 0)
        abort();
    if (w->cache && df_kube_cache_each(w->cache, change->name, read_it, NULL, &err) < 0)
        abort();
}

static int mark(void *arg, cJSON *object, struct df_err *err)
{
    (void)arg;
    return df_json_set_str(object, "text", "shown", err);
}

/* The writers write the same objects, so that one replaces and cools what others read. */
static void *write_and_read(void *arg)
{
    const struct writer *me = arg;
    for (int i = 0; i < ROUNDS; i++) {
        int number = (i * (me->number + 1)) % OBJECTS;
        DF_JSON cJSON *tree = object(number, 10 + i, "some");
        DF_SHARED const cJSON *seen = NULL, *shown = NULL;
        DF_FREE char *name = df_strf("n-%d", (i * 7) % OBJECTS);
        if (df_kube_cache_note(me->world->cache, tree, true, NULL) < 0 ||
            df_kube_cache_find(me->world->cache, NULL, name, &seen, NULL) < 0 ||
            df_kube_cache_show(me->world->cache, NULL, name, &shown, NULL) < 0 ||
            (seen && !df_json_str(seen, "text")) ||
            (shown && !df_streq(df_json_str(shown, "text"), "shown")))
            abort();
        if (i % 50 == 0)
            df_kube_cache_note_deleted(me->world->cache, tree, false);
    }
    return NULL;
}

static void many_threads_share_what_is_hot(void **state)
{
    (void)state;
    struct world w = {0};
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    open_world(&w, (struct df_kube_cache_options){.changed = on_changed, .show = mark, .arg = &w});
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){&w, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_and_read, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    int hot = 0;
    put_many(&w, 1000, 1000 + OBJECTS);
    for (int i = 1000; i <= 1000 + OBJECTS; i++)
        hot += is_hot(&w, i);
    assert_int_equal(hot, DF_KUBE_MAX_HOT);
    close_world(&w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(readers_share_a_hot_object_and_keep_it_when_it_is_replaced),
        cmocka_unit_test(what_is_shown_is_made_once_of_a_hot_object_and_leaves_it_as_it_is),
        cmocka_unit_test(a_packed_object_is_shown_as_a_hot_one),
        cmocka_unit_test(nothing_is_shown_of_an_object_that_is_not_there),
        TEST(the_objects_put_last_are_hot_and_all_are_read_as_they_were_put),
        TEST(what_is_read_stays_hot),
        TEST(a_walk_over_all_changes_nothing_of_what_is_hot),
        TEST(a_large_object_is_never_hot),
        TEST(hot_and_packed_objects_are_replaced_and_deleted_alike),
        TEST(a_page_has_hot_and_packed_objects_in_order),
        cmocka_unit_test(many_threads_share_what_is_hot),
    };
    return cmocka_run_group_tests_name("kube_hot", tests, NULL, NULL);
}
