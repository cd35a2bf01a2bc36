#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "spawner/store/documents/commits.h"

/* A database of its own for each test; its rows are entries of the audit trail. */
struct world {
    char dir[32];
    struct df_db *db;
    struct df_watchers watchers;
    struct df_commits commits;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/dayfly-test-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    DF_FREE char *path = df_fs_join(w->dir, "db");
    assert_int_equal(df_db_open(path, DF_DB_CHECK_ALL, &w->db, NULL), 0);
    df_watchers_init(&w->watchers);
    df_commits_init(&w->commits, w->db, &w->watchers);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    df_commits_free(&w->commits);
    df_watchers_free(&w->watchers);
    df_db_close(w->db);
    assert_int_equal(df_fs_remove_tree(w->dir, NULL), 0);
    free(w);
    return 0;
}

/* The rows in the order of their making, "a b c ". */
static char *rows(struct world *w)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(65536);
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = true;
    assert_int_equal(df_db_query(w->db, "SELECT body FROM audit ORDER BY id", NULL, &q, NULL), 0);
    while (df_db_step(w->db, q, &row, NULL) == 0 && row)
        (void)df_buf_addf(&text, "%s ", (const char *)sqlite3_column_text(q, 0));
    return strdup(df_buf_str(&text));
}

static int insert(struct df_db *db, const char *text, struct df_err *err)
{
    return df_db_run(db, "INSERT INTO audit (body) VALUES (?1)", DF_DB_ARGS(DF_DB_T(text)), err);
}

/* One writer: what its body does after its row, and what came of it. */
struct writer {
    struct world *w;
    const char *text;
    enum { SUCCEEDS, FAILS, HAS_NOTHING_TO_DO, LOSES_ALL } how;
    pthread_t thread;
    int result;
    struct df_err err;
    uint64_t ticket;
};

static int body(struct df_db *db, void *arg, struct df_err *err)
{
    const struct writer *writer = arg;
    if (insert(db, writer->text, err) < 0)
        return -1;
    switch (writer->how) {
    case FAILS:
        return df_fail(err, DF_ERR_USER, "%s is refused", writer->text);
    case HAS_NOTHING_TO_DO:
        return 1;
    case LOSES_ALL:
        assert_int_equal(df_db_run(db, "ROLLBACK", NULL, NULL), 0);
        return df_fail(err, DF_ERR_LIMIT, "the disk is full");
    default:
        return 0;
    }
}

static void *write_one(void *arg)
{
    struct writer *writer = arg;
    writer->result =
        df_commits_run(&writer->w->commits, body, writer, &writer->ticket, &writer->err);
    return NULL;
}

static void wait_until_waiting(struct df_commits *c, size_t n)
{
    for (size_t seen = 0; seen < n; (void)sched_yield()) {
        (void)pthread_mutex_lock(&c->lock);
        seen = c->waiting;
        (void)pthread_mutex_unlock(&c->lock);
    }
}

/* Holds the database until all others wait: they are one batch then, in their order. */
struct gate {
    struct world *w;
    struct writer *writers;
    size_t count;
};

static int gate_body(struct df_db *db, void *arg, struct df_err *err)
{
    struct gate *g = arg;
    for (size_t i = 0; i < g->count; i++) {
        g->writers[i].w = g->w;
        assert_int_equal(pthread_create(&g->writers[i].thread, NULL, write_one, &g->writers[i]), 0);
        wait_until_waiting(&g->w->commits, i + 1);
    }
    return insert(db, "gate", err);
}

static void write_as_one_batch(struct world *w, struct writer *writers, size_t count)
{
    struct gate g = {w, writers, count};
    assert_int_equal(df_commits_run(&w->commits, gate_body, &g, NULL, NULL), 0);
    for (size_t i = 0; i < count; i++)
        (void)pthread_join(writers[i].thread, NULL);
}

static void what_several_write_at_once_is_there_in_their_order(void **state)
{
    struct world *w = *state;
    struct writer writers[] = {{.text = "a"}, {.text = "b"}, {.text = "c"}};
    write_as_one_batch(w, writers, 3);
    DF_FREE char *found = rows(w);
    assert_string_equal(found, "gate a b c ");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(writers[i].result, 0);
    assert_true(writers[0].ticket < writers[1].ticket);
    assert_true(writers[1].ticket < writers[2].ticket);
}

static void one_that_fails_takes_back_its_own_and_nothing_else(void **state)
{
    struct world *w = *state;
    struct writer writers[] = {{.text = "a"},
                               {.text = "b", .how = FAILS},
                               {.text = "c", .how = HAS_NOTHING_TO_DO},
                               {.text = "d"}};
    write_as_one_batch(w, writers, 4);
    DF_FREE char *found = rows(w);
    assert_string_equal(found, "gate a d ");
    assert_int_equal(writers[0].result, 0);
    assert_int_equal(writers[1].result, -1);
    assert_string_equal(writers[1].err.message, "b is refused");
    assert_int_equal(writers[2].result, 1);
    assert_int_equal(writers[3].result, 0);
}

static void a_transaction_that_is_lost_is_lost_for_all_who_were_in_it(void **state)
{
    struct world *w = *state;
    struct writer writers[] = {{.text = "a"},
                               {.text = "b", .how = HAS_NOTHING_TO_DO},
                               {.text = "c", .how = LOSES_ALL},
                               {.text = "d"}};
    write_as_one_batch(w, writers, 4);
    DF_FREE char *found = rows(w);
    assert_string_equal(found, "gate ");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(writers[i].result, -1);
        assert_int_equal(writers[i].err.cls, DF_ERR_LIMIT);
        assert_string_equal(writers[i].err.message, "the disk is full");
    }
    struct writer next = {.w = w, .text = "next"};
    (void)write_one(&next);
    assert_int_equal(next.result, 0);
}

/* ---- a write that joins the next one ---- */

#define FOR_EVER (INT64_C(86400) * 1000000)

static void *join_one(void *arg)
{
    struct writer *writer = arg;
    writer->result = df_commits_join(&writer->w->commits, body, writer, &writer->err);
    return NULL;
}

static void a_write_that_joins_is_of_the_same_transaction_as_the_next(void **state)
{
    struct world *w = *state;
    struct writer a = {.w = w, .text = "a"}, b = {.w = w, .text = "b"}, c = a, lost = b;
    lost.how = LOSES_ALL;
    w->commits.join_us = FOR_EVER;
    assert_int_equal(pthread_create(&a.thread, NULL, join_one, &a), 0);
    wait_until_waiting(&w->commits, 1);
    (void)write_one(&b);
    (void)pthread_join(a.thread, NULL);
    DF_FREE char *found = rows(w);
    assert_string_equal(found, "a b ");
    assert_true(a.result == 0 && b.result == 0);
    assert_int_equal(pthread_create(&c.thread, NULL, join_one, &c), 0);
    wait_until_waiting(&w->commits, 1);
    (void)write_one(&lost);
    (void)pthread_join(c.thread, NULL);
    assert_int_equal(c.result, -1);
    assert_string_equal(c.err.message, "the disk is full");
}

static int gate_of_one(struct df_db *db, void *arg, struct df_err *err)
{
    struct writer *joins = arg;
    assert_int_equal(pthread_create(&joins->thread, NULL, join_one, joins), 0);
    wait_until_waiting(&joins->w->commits, 1);
    return insert(db, "gate", err);
}

static void one_that_has_waited_for_a_batch_waits_for_no_other(void **state)
{
    struct world *w = *state;
    struct writer a = {.w = w, .text = "a"};
    w->commits.join_us = FOR_EVER;
    assert_int_equal(df_commits_run(&w->commits, gate_of_one, &a, NULL, NULL), 0);
    (void)pthread_join(a.thread, NULL);
    DF_FREE char *found = rows(w);
    assert_string_equal(found, "gate a ");
}

static void one_that_nobody_follows_is_written_by_itself(void **state)
{
    struct writer a = {.w = *state, .text = "a"};
    (void)join_one(&a);
    assert_int_equal(a.result, 0);
    DF_FREE char *found = rows(a.w);
    assert_string_equal(found, "a ");
}

static void *write_many(void *arg)
{
    struct writer *writer = arg;
    for (int i = 0; i < 50 && writer->result == 0; i++)
        (void)write_one(writer);
    return NULL;
}

static void many_writers_lose_nothing(void **state)
{
    struct world *w = *state;
    struct writer writers[16] = {0};
    for (size_t i = 0; i < 16; i++) {
        writers[i] = (struct writer){.w = w, .text = "x"};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_many, &writers[i]), 0);
    }
    for (size_t i = 0; i < 16; i++) {
        (void)pthread_join(writers[i].thread, NULL);
        assert_int_equal(writers[i].result, 0);
    }
    DF_FREE char *found = rows(w);
    assert_int_equal(strlen(found), 16 * 50 * strlen("x "));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_several_write_at_once_is_there_in_their_order),
        TEST(one_that_fails_takes_back_its_own_and_nothing_else),
        TEST(a_transaction_that_is_lost_is_lost_for_all_who_were_in_it),
        TEST(a_write_that_joins_is_of_the_same_transaction_as_the_next),
        TEST(one_that_has_waited_for_a_batch_waits_for_no_other),
        TEST(one_that_nobody_follows_is_written_by_itself),
        TEST(many_writers_lose_nothing),
    };
    return cmocka_run_group_tests_name("store_commits", tests, NULL, NULL);
}
