/* The log and the events of steps, as runners write and others read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/step_world.h"

/* ---- streams ---- */

static int append(const struct runner *r, int64_t offset, const char *text, int64_t *ret_end,
                  struct df_err *err)
{
    const struct df_frame frame = {DF_STREAM_LOG, offset, text, strlen(text)};
    return df_step_append(&r->w->s, r->uid, r->step_token, &frame, ret_end, err);
}

static void assert_log(const struct runner *r, const char *expected)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    int64_t end;
    assert_int_equal(df_step_read(&r->w->s, r->uid, DF_STREAM_LOG, 0, &b, &end, NULL), 0);
    assert_string_equal(df_buf_str(&b), expected);
    assert_int_equal(end, strlen(expected));
}

static void frames_join_whatever_is_repeated_and_nothing_is_doubled(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    struct df_err err;
    int64_t end = -1;
    assert_log(&r, "");
    assert_int_equal(append(&r, 0, "hello ", &end, NULL), 0);
    assert_int_equal(end, 6);
    assert_int_equal(append(&r, 0, "hello ", &end, NULL), 0); /* its answer was lost */
    assert_int_equal(append(&r, 3, "lo world", &end, NULL), 0);
    assert_int_equal(end, 11);
    assert_int_equal(append(&r, 2, "llo", &end, NULL), 0);
    assert_int_equal(end, 11);
    assert_fails(append(&r, 12, "x", &end, &err), err, DF_ERR_CONFLICT, "Gap");
    assert_int_equal(append(&r, 11, "", &end, NULL), 0);
    assert_log(&r, "hello world");
    assert_int_equal(df_step_stream_end(&w->s, r.uid, r.step_token, DF_STREAM_LOG, &end, NULL), 0);
    assert_int_equal(end, 11);
}

static void a_stream_is_read_in_pieces_and_not_beyond_its_end(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    struct df_err err;
    int64_t end;
    assert_int_equal(append(&r, 0, "0123456789", &end, NULL), 0);
    DF_BUF struct df_buf b = DF_BUF_INIT(4);
    assert_int_equal(df_step_read(&w->s, r.uid, DF_STREAM_LOG, 3, &b, &end, NULL), 0);
    assert_string_equal(df_buf_str(&b), "3456");
    assert_int_equal(end, 10);
    df_buf_clear(&b);
    assert_int_equal(df_step_read(&w->s, r.uid, DF_STREAM_LOG, 10, &b, &end, NULL), 0);
    assert_int_equal(b.len, 0);
    assert_fails(df_step_read(&w->s, r.uid, DF_STREAM_LOG, 11, &b, &end, &err), err, DF_ERR_USER,
                 "");
    assert_fails(df_step_read(&w->s, r.uid, DF_STREAM_LOG, -1, &b, &end, &err), err, DF_ERR_USER,
                 "");
}

struct writer {
    const struct runner *r;
    atomic_bool done;
};

enum { PIECES = 200 };

static void *write_pieces(void *arg)
{
    struct writer *wr = arg;
    int64_t end = 0;
    for (int i = 0; i < PIECES; i++) {
        char line[32];
        (void)snprintf(line, sizeof(line), "line %d\n", i);
        int64_t at = end;
        assert_int_equal(append(wr->r, at, line, &end, NULL), 0);
        if (i % 5 == 0) /* and once more */
            assert_int_equal(append(wr->r, at, line, &end, NULL), 0);
    }
    atomic_store(&wr->done, true);
    return NULL;
}

static void a_follower_misses_nothing_and_sees_nothing_twice(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    struct writer wr = {&r, false};
    struct df_subscription sub;
    pthread_t thread;
    DF_BUF struct df_buf seen = DF_BUF_INIT(DF_MIB), all = DF_BUF_INIT(DF_MIB);
    for (int i = 0; i < PIECES; i++)
        (void)df_buf_addf(&all, "line %d\n", i);
    df_subscribe(w->s.journal, &sub, (const char *const[]){"net-1-plan"}, 1, true);
    assert_int_equal(pthread_create(&thread, NULL, write_pieces, &wr), 0);
    while (seen.len < all.len) {
        int64_t end;
        uint64_t mark = df_subscription_mark(w->s.journal, &sub);
        size_t before = seen.len;
        assert_int_equal(
            df_step_read(&w->s, r.uid, DF_STREAM_LOG, (int64_t)before, &seen, &end, NULL), 0);
        if (seen.len == before)
            df_subscription_wait(w->s.journal, &sub, mark, 3600000);
    }
    (void)pthread_join(thread, NULL);
    df_unsubscribe(w->s.journal, &sub);
    assert_string_equal(df_buf_str(&seen), df_buf_str(&all));
}

static void streams_are_for_the_steps_own_runner_until_its_end(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan"), stranger = r;
    struct df_err err;
    int64_t end;
    stranger.step_token[0] ^= 1;
    assert_fails(append(&stranger, 0, "x", &end, &err), err, DF_ERR_DENIED, "");
    const struct df_frame small = {DF_STREAM_LOG, 0, "x", 1};
    assert_fails(df_step_append(&w->s, r.uid, NULL, &small, &end, &err), err, DF_ERR_DENIED, "");
    DF_FREE char *bytes = calloc(1, DF_LIMIT_STREAM_FRAME + 1);
    const struct df_frame big = {DF_STREAM_LOG, 0, bytes, DF_LIMIT_STREAM_FRAME + 1};
    assert_fails(df_step_append(&w->s, r.uid, r.step_token, &big, &end, &err), err, DF_ERR_LIMIT,
                 "");
    report(&r, NOTHING_TO_DO);
    assert_fails(append(&r, 0, "x", &end, &err), err, DF_ERR_CONFLICT, "StepOver");
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(frames_join_whatever_is_repeated_and_nothing_is_doubled),
        TEST(a_stream_is_read_in_pieces_and_not_beyond_its_end),
        TEST(a_follower_misses_nothing_and_sees_nothing_twice),
        TEST(streams_are_for_the_steps_own_runner_until_its_end),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
