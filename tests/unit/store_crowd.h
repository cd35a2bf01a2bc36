/*
 * store_crowd.h - what every home of the documents must do while many read, write and watch,
 * written against store.h alone. How to use it: store_words.h.
 */
#ifndef DF_TEST_STORE_CROWD_H
#define DF_TEST_STORE_CROWD_H

#include <pthread.h>

#include "tests/unit/store_words.h"

/* ---- watching ------------------------------------------------------------------------------- */

struct record {
    pthread_mutex_t lock;
    int64_t versions[4096];
    char names[4096][16];
    char last[128];
    int count;
};

static void remember(void *arg, const struct df_store_event *e)
{
    struct record *r = arg;
    (void)pthread_mutex_lock(&r->lock);
    if (r->count < (int)DF_ARRAY_SIZE(r->versions)) {
        (void)snprintf(r->names[r->count], sizeof(r->names[0]), "%s", e->name);
        r->versions[r->count++] = strtoll(e->resource_version, NULL, 10);
    }
    (void)snprintf(r->last, sizeof(r->last), "%d %d %s", (int)e->change, (int)e->kind, e->name);
    (void)pthread_mutex_unlock(&r->lock);
}

static void a_watcher_hears_of_every_change_and_of_nothing_else(void **state)
{
    STORE *s = suite_open(*state);
    struct record r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(df_store_watch(s, remember, &r, NULL), 0);

    DF_JSON cJSON *doc = made(s, DF_KIND_RUN, "net", "{}", "{\"x\":1}");
    assert_int_equal(r.count, 1);
    assert_string_equal(r.last, "0 1 net");
    assert_int_equal(r.versions[0], version_of(doc));

    assert_int_equal(df_store_update(s, DF_KIND_RUN, doc, NULL, NULL), 0); /* nothing new */
    assert_int_equal(df_store_create(s, DF_KIND_RUN, doc, NULL, NULL), -1);
    assert_int_equal(df_store_remove(s, DF_KIND_RUN, "none", NULL, NULL), -1);
    assert_int_equal(r.count, 1);

    set_spec(doc, "{\"x\":2}");
    assert_int_equal(df_store_update(s, DF_KIND_RUN, doc, NULL, NULL), 0);
    assert_int_equal(df_store_update(s, DF_KIND_RUN, doc, NULL, NULL), -1); /* stale */
    assert_int_equal(r.count, 2);
    assert_string_equal(r.last, "1 1 net");

    assert_int_equal(df_store_remove(s, DF_KIND_RUN, "net", NULL, NULL), 0);
    assert_int_equal(r.count, 3);
    assert_string_equal(r.last, "2 1 net");
    assert_true(r.versions[0] < r.versions[1] && r.versions[1] < r.versions[2]);

    df_store_unwatch(s, remember, &r);
    df_store_unwatch(s, remember, &r);
    make(s, DF_KIND_RUN, "later", "{}");
    assert_int_equal(r.count, 3);
}

static void an_update_that_changes_nothing_keeps_the_version(void **state)
{
    STORE *s = suite_open(*state);
    DF_JSON cJSON *doc = made(s, DF_KIND_RUN, "net", "{}", "{\"x\":1,\"y\":2}");
    DF_JSON cJSON *same = cJSON_Duplicate(doc, true);
    set_spec(same, "{\"y\":2,\"x\":1}");
    DF_JSON cJSON *stored = NULL;
    assert_int_equal(df_store_update(s, DF_KIND_RUN, same, &stored, NULL), 0);
    assert_int_equal(version_of(stored), version_of(doc));
    assert_int_equal(df_json_int(stored, "metadata.generation", 0), 1);
}

struct many {
    struct df_store *store;
    int number;
};

#define WRITERS 6
#define WRITES 40

static void *write_many(void *arg)
{
    const struct many *m = arg;
    for (int i = 0; i < WRITES; i++) {
        DF_FREE char *name = df_strf("w%d-%d", m->number, i / 3);
        DF_FREE char *text = df_strf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{}}", name);
        cJSON *doc = NULL;
        if (!text || df_json_parse(text, strlen(text), &doc, NULL) < 0)
            return arg;
        int result = 0;
        if (i % 3 == 0)
            result = df_store_create(m->store, DF_KIND_RUN, doc, NULL, NULL);
        else if (i % 3 == 2)
            result = df_store_remove(m->store, DF_KIND_RUN, name, NULL, NULL);
        cJSON_Delete(doc);
        if (result < 0)
            return arg;
    }
    return NULL;
}

static void run_writers(struct df_store *s, void *(*work)(void *))
{
    pthread_t threads[WRITERS];
    struct many many[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        many[i] = (struct many){s, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &many[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* Of each document for itself. */
static void assert_in_commit_order(const struct record *r)
{
    for (int i = 0; i < r->count; i++)
        for (int j = i + 1; j < r->count; j++)
            if (strcmp(r->names[i], r->names[j]) == 0)
                assert_true(r->versions[i] < r->versions[j]);
}

static void watchers_hear_of_many_writers_in_commit_order(void **state)
{
    STORE *s = suite_open(*state);
    struct record one = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct record two = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(df_store_watch(s, remember, &one, NULL), 0);
    assert_int_equal(df_store_watch(s, remember, &two, NULL), 0);
    run_writers(s, write_many);
    int events = 0;
    for (int i = 0; i < WRITES; i++)
        events += i % 3 != 1;
    assert_int_equal(one.count, WRITERS * events);
    assert_in_commit_order(&one);
    assert_int_equal(two.count, one.count);
    assert_memory_equal(one.versions, two.versions, sizeof(one.versions));
    assert_memory_equal(one.names, two.names, sizeof(one.names));
}

/* A watcher that reads what it is told of: it must be there already. */
static void read_at_once(void *arg, const struct df_store_event *e)
{
    const struct many *m = arg;
    cJSON *doc = NULL;
    int found = df_store_get(m->store, e->kind, e->name, &doc, NULL);
    cJSON_Delete(doc);
    if ((found == 0) != (e->change != DF_CHANGE_DELETED))
        DF_BUG("told of %s too early", e->name);
}

static void what_a_watcher_hears_of_is_already_committed(void **state)
{
    STORE *s = suite_open(*state);
    struct many m = {s, 0};
    assert_int_equal(df_store_watch(s, read_at_once, &m, NULL), 0);
    assert_null(write_many(&m));
    df_store_unwatch(s, read_at_once, &m);
}

static void count_into(void *arg, const struct df_store_event *e)
{
    (void)e;
    (void)__atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static void *come_and_go(void *arg)
{
    const struct many *m = arg;
    for (int i = 0; i < WRITES; i++) {
        /* Freed right after unwatch: a late call would be seen by the sanitizers. */
        int *heard = calloc(1, sizeof(*heard));
        if (!heard || df_store_watch(m->store, count_into, heard, NULL) < 0)
            return arg;
        if (m->number == 0)
            (void)write_many(&(struct many){m->store, 100 + i});
        df_store_unwatch(m->store, count_into, heard);
        free(heard);
    }
    return NULL;
}

static void watchers_may_come_and_go_while_others_write(void **state)
{
    STORE *s = suite_open(*state);
    run_writers(s, come_and_go);
}

/* ---- modify --------------------------------------------------------------------------------- */

static int add_one(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    cJSON *spec = df_json_object_at(doc, "spec");
    return df_json_set(spec, "n", cJSON_CreateNumber(df_json_num(spec, "n", 0) + 1), err);
}

static int leave_it(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    (void)err;
    (void)df_json_set(doc, "spec", cJSON_CreateObject(), NULL);
    return 1;
}

static int refuse_it(cJSON *doc, void *arg, struct df_err *err)
{
    (void)doc;
    (void)arg;
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState", "no");
}

static void modify_writes_leaves_or_fails_as_it_is_told(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    cJSON_Delete(made(s, DF_KIND_RUN, "net", "{}", "{\"n\":1}"));
    DF_JSON cJSON *changed = NULL, *left = NULL;
    assert_int_equal(df_store_modify(s, DF_KIND_RUN, "net", add_one, NULL, &changed, &err), 0);
    assert_int_equal(df_json_int(changed, "spec.n", 0), 2);
    assert_int_equal(df_store_modify(s, DF_KIND_RUN, "net", leave_it, NULL, &left, &err), 0);
    assert_int_equal(version_of(left), version_of(changed));
    assert_int_equal(df_store_modify(s, DF_KIND_RUN, "net", leave_it, NULL, NULL, &err), 0);
    assert_refused(df_store_modify(s, DF_KIND_RUN, "net", refuse_it, NULL, NULL, &err), &err,
                   DF_ERR_CONFLICT, "WrongState");
    assert_refused(df_store_modify(s, DF_KIND_RUN, "none", add_one, NULL, NULL, &err), &err,
                   DF_ERR_NOT_FOUND, "");
    DF_JSON cJSON *read = got(s, DF_KIND_RUN, "net");
    assert_true(df_json_equal(read, changed));
}

struct interference {
    struct df_store *store;
    int times;
};

/* Somebody else is always a little faster. */
static int too_slow(cJSON *doc, void *arg, struct df_err *err)
{
    struct interference *i = arg;
    if (i->times-- > 0 && df_store_modify(i->store, DF_KIND_RUN, "net", add_one, NULL, NULL, err))
        return -1;
    return df_json_set(df_json_object_at(doc, "spec"), "mine", cJSON_CreateTrue(), err);
}

static void modify_tries_again_until_nobody_is_faster_but_not_for_ever(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    make(s, DF_KIND_RUN, "net", "{}");
    struct interference some = {s, 15}, always = {s, 1000};
    DF_JSON cJSON *stored = NULL;
    assert_int_equal(df_store_modify(s, DF_KIND_RUN, "net", too_slow, &some, &stored, &err), 0);
    assert_int_equal(df_json_int(stored, "spec.n", 0), 15);
    assert_true(df_json_bool(stored, "spec.mine", false));
    assert_int_equal(err.cls, DF_ERR_NONE); /* success leaves err alone, whatever came before it */
    assert_refused(df_store_modify(s, DF_KIND_RUN, "net", too_slow, &always, NULL, &err), &err,
                   DF_ERR_CONFLICT, "Conflict");
    assert_int_equal(always.times, 1000 - 16);
}

static void *count_up(void *arg)
{
    const struct many *m = arg;
    for (int i = 0; i < WRITES;) {
        struct df_err err = {0};
        cJSON *doc = NULL;
        if (df_store_modify(m->store, DF_KIND_RUN, "counter", add_one, NULL, &doc, &err) == 0)
            i++;
        else if (!df_streq(err.reason, "Conflict"))
            return arg;
        cJSON_Delete(doc);
    }
    return NULL;
}

static void no_update_is_lost_among_many_writers(void **state)
{
    STORE *s = suite_open(*state);
    make(s, DF_KIND_RUN, "counter", "{}");
    run_writers(s, count_up);
    DF_JSON cJSON *doc = got(s, DF_KIND_RUN, "counter");
    assert_int_equal(df_json_int(doc, "spec.n", 0), WRITERS * WRITES);
    assert_int_equal(df_json_int(doc, "metadata.generation", 0), 1 + WRITERS * WRITES);
}

static void *read_all(void *arg)
{
    const struct many *m = arg;
    if (m->number == 0)
        return write_many(arg);
    for (int i = 0; i < WRITES; i++) {
        cJSON *page = NULL;
        if (df_store_list(m->store, DF_KIND_RUN, NULL, &page, NULL, NULL) < 0)
            return arg;
        cJSON_Delete(page);
    }
    return NULL;
}

static void many_may_read_while_one_writes(void **state)
{
    STORE *s = suite_open(*state);
    run_writers(s, read_all);
}

#define STORE_CROWD_SUITE                                                                          \
    scratch_test(a_watcher_hears_of_every_change_and_of_nothing_else),                             \
        scratch_test(an_update_that_changes_nothing_keeps_the_version),                            \
        scratch_test(watchers_hear_of_many_writers_in_commit_order),                               \
        scratch_test(what_a_watcher_hears_of_is_already_committed),                                \
        scratch_test(watchers_may_come_and_go_while_others_write),                                 \
        scratch_test(modify_writes_leaves_or_fails_as_it_is_told),                                 \
        scratch_test(modify_tries_again_until_nobody_is_faster_but_not_for_ever),                  \
        scratch_test(no_update_is_lost_among_many_writers),                                        \
        scratch_test(many_may_read_while_one_writes)

#endif
