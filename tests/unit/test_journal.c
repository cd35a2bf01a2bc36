/* What was written last, in order, and who is woken by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "spawner/journal/cursors.h"
#include "spawner/journal/journal.h"

/* A store that only hands its watcher out. */
struct silent_store {
    struct df_store base;
    df_store_watcher fn;
    void *arg;
};

static int remember_watcher(struct df_store *store, df_store_watcher fn, void *arg,
                            struct df_err *err)
{
    struct silent_store *s = (struct silent_store *)store;
    (void)err;
    s->fn = fn;
    s->arg = arg;
    return 0;
}

static void forget_watcher(struct df_store *store, df_store_watcher fn, void *arg)
{
    struct silent_store *s = (struct silent_store *)store;
    assert_true(s->fn == fn && s->arg == arg);
    s->fn = NULL;
}

static const struct df_store_ops silent_ops = {.watch = remember_watcher,
                                               .unwatch = forget_watcher};
static struct silent_store store;
static struct df_journal *journal;

static int setup(void **state)
{
    (void)state;
    store = (struct silent_store){.base = {&silent_ops}};
    return df_journal_new(&store.base, &journal, NULL);
}

static int teardown(void **state)
{
    (void)state;
    df_journal_free(journal);
    return store.fn ? -1 : 0;
}

static void write_one(enum df_kind kind, const char *name, const char *version)
{
    const struct df_store_event event = {DF_CHANGE_MODIFIED, kind, name, version};
    store.fn(store.arg, &event);
}

static void write_step(int n)
{
    char name[32], version[32];
    (void)snprintf(name, sizeof(name), "step-%d", n);
    (void)snprintf(version, sizeof(version), "%d", 1000 + n);
    write_one(DF_KIND_TASK_ACTION, name, version);
}

static void entries_come_in_the_order_of_the_writes(void **state)
{
    (void)state;
    struct df_journal_entry entry;
    char version[32];
    uint64_t cursor = 0;
    assert_int_equal(df_journal_last(journal, version), 0);
    assert_string_equal(version, "0");
    assert_int_equal(df_journal_read(journal, &cursor, &entry), 0);
    write_one(DF_KIND_RUN, "net-1", "1001");
    write_step(2);
    assert_int_equal(df_journal_last(journal, version), 2);
    assert_string_equal(version, "1002");
    assert_int_equal(df_journal_read(journal, &cursor, &entry), 1);
    assert_string_equal(entry.name, "net-1");
    assert_int_equal(entry.kind, DF_KIND_RUN);
    assert_int_equal(df_journal_read(journal, &cursor, &entry), 1);
    assert_string_equal(entry.name, "step-2");
    assert_string_equal(entry.version, "1002");
    assert_int_equal(cursor, 2);
    assert_int_equal(df_journal_read(journal, &cursor, &entry), 0);
}

static void a_reader_that_is_too_slow_learns_that_entries_are_lost(void **state)
{
    (void)state;
    struct df_journal_entry entry;
    uint64_t cursor = 0, just_in_time = 1;
    for (int i = 1; i <= DF_JOURNAL_ENTRIES + 1; i++)
        write_step(i);
    assert_int_equal(df_journal_read(journal, &cursor, &entry), -1);
    assert_int_equal(cursor, DF_JOURNAL_ENTRIES + 1); /* from here on it misses nothing */
    assert_int_equal(df_journal_read(journal, &cursor, &entry), 0);
    assert_int_equal(df_journal_read(journal, &just_in_time, &entry), 1);
    assert_string_equal(entry.name, "step-2");
}

static bool was_woken(struct df_subscription *sub, uint64_t *mark)
{
    uint64_t now = df_subscription_mark(journal, sub);
    bool woken = now != *mark;
    *mark = now;
    return woken;
}

static void a_write_wakes_only_those_who_subscribe_to_the_document(void **state)
{
    (void)state;
    struct df_subscription net, web, all;
    uint64_t net_mark = 0, web_mark = 0, all_mark = 0;
    df_subscribe(journal, &net, (const char *const[]){"net-1", "net-1-plan", "net-1-apply"}, 3,
                 false);
    df_subscribe(journal, &web, (const char *const[]){"web-1", "web-1-plan"}, 2, false);
    df_subscribe(journal, &all, NULL, 0, false);
    write_one(DF_KIND_TASK_ACTION, "net-1-plan", "1");
    assert_true(was_woken(&net, &net_mark));
    assert_false(was_woken(&web, &web_mark));
    assert_true(was_woken(&all, &all_mark));
    write_one(DF_KIND_RUN, "web-1", "2");
    assert_false(was_woken(&net, &net_mark));
    assert_true(was_woken(&web, &web_mark));
    assert_true(was_woken(&all, &all_mark));
    df_unsubscribe(journal, &web); /* from the middle of the list */
    write_one(DF_KIND_RUN, "net-1", "3");
    assert_true(was_woken(&net, &net_mark));
    df_unsubscribe(journal, &net);
    df_unsubscribe(journal, &net); /* a second time is fine */
    df_unsubscribe(journal, &all);
}

static void a_log_that_grows_wakes_those_who_follow_it_and_is_no_entry(void **state)
{
    (void)state;
    static const char *const names[] = {"net-1", "net-1-plan"};
    struct df_subscription log, documents, all;
    uint64_t log_mark = 0, documents_mark = 0, all_mark = 0;
    char version[32];
    df_subscribe(journal, &log, names, 2, true);
    df_subscribe(journal, &documents, names, 2, false);
    df_subscribe(journal, &all, NULL, 0, false);
    df_journal_touch(journal, "net-1-plan");
    assert_true(was_woken(&log, &log_mark));
    assert_false(was_woken(&documents, &documents_mark));
    assert_false(was_woken(&all, &all_mark));
    df_journal_touch(journal, "web-1-plan");
    assert_false(was_woken(&log, &log_mark));
    assert_int_equal(df_journal_last(journal, version), 0);
    df_unsubscribe(journal, &log);
    df_unsubscribe(journal, &documents);
    df_unsubscribe(journal, &all);
}

static void *come_and_go(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++) {
        struct df_subscription sub;
        df_subscribe(journal, &sub, NULL, 0, false);
        df_unsubscribe(journal, &sub);
        df_unsubscribe(journal, &sub); /* a second time is fine */
    }
    return NULL;
}

static void subscriptions_come_and_go_on_several_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct df_subscription all;
    uint64_t mark = 0;
    df_subscribe(journal, &all, NULL, 0, false);
    write_step(1);
    assert_true(was_woken(&all, &mark));
    df_unsubscribe(journal, &all);
}

static void *write_later(void *arg)
{
    (void)arg;
    write_step(1);
    return NULL;
}

static void a_change_after_the_mark_ends_the_wait(void **state)
{
    (void)state;
    struct df_subscription all;
    pthread_t thread;
    df_subscribe(journal, &all, NULL, 0, false);
    uint64_t mark = df_subscription_mark(journal, &all);
    assert_int_equal(pthread_create(&thread, NULL, write_later, NULL), 0);
    df_subscription_wait(journal, &all, mark, 3600000);
    (void)pthread_join(thread, NULL);
    assert_true(was_woken(&all, &mark));
    df_subscription_wait(journal, &all, mark, 1); /* nothing comes: the time ends it */
    assert_false(was_woken(&all, &mark));
    df_subscription_wake(journal, &all);
    df_subscription_wait(journal, &all, mark, 3600000);
    df_unsubscribe(journal, &all);
}

static void a_cursor_is_of_one_document_not_of_its_name(void **state)
{
    (void)state;
    struct df_cursors cursors = {0};
    assert_int_equal(df_cursors_get(&cursors, "a", "uid-1", 7), 7);
    assert_int_equal(df_cursors_set(&cursors, "a", "uid-1", 1, NULL), 0);
    assert_int_equal(df_cursors_set(&cursors, "b", "uid-2", 2, NULL), 0);
    assert_int_equal(df_cursors_set(&cursors, "a", "uid-1", 3, NULL), 0);
    assert_int_equal(df_cursors_get(&cursors, "a", "uid-1", 0), 3);
    assert_int_equal(df_cursors_get(&cursors, "a", "uid-9", 0), 0); /* made anew */
    assert_int_equal(df_cursors_set(&cursors, "a", "uid-9", 4, NULL), 0);
    assert_int_equal(df_cursors_get(&cursors, "a", "uid-9", 0), 4);
    df_cursors_drop(&cursors, "a");
    df_cursors_drop(&cursors, "never there");
    assert_int_equal(df_cursors_get(&cursors, "a", "uid-9", 0), 0);
    assert_int_equal(df_cursors_get(&cursors, "b", "uid-2", 0), 2);
    df_cursors_free(&cursors);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(entries_come_in_the_order_of_the_writes),
        WITH(a_reader_that_is_too_slow_learns_that_entries_are_lost),
        WITH(a_write_wakes_only_those_who_subscribe_to_the_document),
        WITH(a_log_that_grows_wakes_those_who_follow_it_and_is_no_entry),
        WITH(subscriptions_come_and_go_on_several_threads),
        WITH(a_change_after_the_mark_ends_the_wait),
        cmocka_unit_test(a_cursor_is_of_one_document_not_of_its_name),
    };
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
