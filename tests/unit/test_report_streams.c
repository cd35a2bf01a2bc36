/* What a runner reports: its log and its events, whatever happens on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/memory.h"
#include "tests/unit/report_world.h"

/* --- streams --------------------------------------------------------------------------------- */

static void a_line_reaches_the_spawner_without_being_asked_for(void **state)
{
    struct fixture *f = *state;
    say(f, "Initializing the backend...\n");
    SERVER_WAIT(&f->server, f->server.ends[SERVER_LOG] == 28);
    assert_string_equal(df_buf_str(&f->server.streams[SERVER_LOG]),
                        "Initializing the backend...\n");
}

static void what_was_said_before_the_claim_is_sent_after_it(void **state)
{
    struct fixture *f = *state;
    say(f, "early\n");
    assert_int_equal(claim(f, NULL), 0);
    say(f, "late\n");
    SERVER_WAIT(&f->server, f->server.ends[SERVER_LOG] == 11);
    assert_string_equal(df_buf_str(&f->server.streams[SERVER_LOG]), "early\nlate\n");
}

/* Fills both streams with numbered lines, in writes of many sizes. */
static void write_streams(struct fixture *f, struct df_buf expected[2], int lines)
{
    for (int i = 0; i < lines; i++) {
        char line[4096];
        int width = i * 7919 % 3000;
        int n = snprintf(line, sizeof line, "line %d %*s\n", i, width, "end");
        (void)df_buf_add(&expected[SERVER_LOG], line, (size_t)n);
        assert_int_equal(df_report_log(f->report, line, (size_t)n, NULL), 0);
        n = snprintf(line, sizeof line, "{\"n\":%d,\"type\":\"apply_progress\"}\n", i);
        (void)df_buf_add(&expected[SERVER_EVENTS], line, (size_t)n);
        assert_int_equal(df_report_event(f->report, line, (size_t)n, NULL), 0);
    }
}

static void assert_streams(struct fixture *f, const struct df_buf expected[2])
{
    for (int i = 0; i < 2; i++) {
        const struct df_buf *got = &f->server.streams[i];
        assert_int_equal(got->len, expected[i].len);
        assert_memory_equal(got->data, expected[i].data, got->len);
    }
}

struct fault {
    unsigned lose_every, drop_every, refuse_times;
    bool restarts;
};

static void deliver_through(struct fixture *f, const struct fault *fault)
{
    DF_BUF struct df_buf log = DF_BUF_INIT(64 * DF_MIB), events = DF_BUF_INIT(64 * DF_MIB);
    struct df_buf expected[2] = {log, events};
    server_lock(&f->server);
    f->server.lose_every = fault->lose_every;
    f->server.drop_every = fault->drop_every;
    f->server.refuse = "/streams";
    f->server.refuse_times = fault->refuse_times;
    f->server.refuse_status = 503;
    server_unlock(&f->server);
    for (int i = 0; i < 6; i++) {
        write_streams(f, expected, 100);
        if (fault->restarts) {
            SERVER_WAIT(&f->server, f->server.ends[SERVER_LOG] > 0);
            server_close(&f->server);
            server_open(&f->server);
            write_endpoint(f);
        }
    }
    int failed = finish(f, NULL);
    assert_int_equal(failed, 0);
    assert_streams(f, expected);
    log = expected[0];
    events = expected[1];
}

static void no_byte_is_lost_or_doubled_when_all_is_well(void **state)
{
    deliver_through(*state, &(struct fault){0});
}

static void no_byte_is_lost_or_doubled_when_answers_are_lost(void **state)
{
    deliver_through(*state, &(struct fault){.lose_every = 2});
}

static void no_byte_is_lost_or_doubled_when_requests_are_dropped(void **state)
{
    deliver_through(*state, &(struct fault){.drop_every = 2});
}

static void no_byte_is_lost_or_doubled_when_the_spawner_is_overloaded(void **state)
{
    deliver_through(*state, &(struct fault){.refuse_times = 5});
}

static void no_byte_is_lost_or_doubled_when_the_spawner_restarts_elsewhere(void **state)
{
    deliver_through(*state, &(struct fault){.restarts = true});
}

static void no_byte_is_lost_or_doubled_when_everything_goes_wrong(void **state)
{
    deliver_through(*state, &(struct fault){3, 4, 2, true});
}

static void a_gap_is_filled_from_the_spool(void **state)
{
    struct fixture *f = *state;
    say(f, "first line\nsecond line\n");
    SERVER_WAIT(&f->server, f->server.ends[SERVER_LOG] == 23);
    server_lock(&f->server); /* a spawner that came back from an older copy */
    f->server.ends[SERVER_LOG] = f->server.streams[SERVER_LOG].len = 11;
    server_unlock(&f->server);
    say(f, "third line\n");
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.streams[SERVER_LOG].len, 34);
    assert_memory_equal(f->server.streams[SERVER_LOG].data, "first line\nsecond line\nthird line\n",
                        34);
}

static void a_gap_that_cannot_be_filled_ends_the_stream_but_not_the_step(void **state)
{
    struct fixture *f = *state;
    char *block = calloc(1, 3 * DF_MIB);
    assert_int_equal(df_report_log(f->report, block, 3 * DF_MIB, NULL), 0);
    free(block);
    SERVER_WAIT(&f->server, f->server.ends[SERVER_LOG] == 3 * DF_MIB);
    server_lock(&f->server);
    f->server.ends[SERVER_LOG] = 5;
    server_unlock(&f->server);
    say(f, "behind it\n");
    assert_int_equal(df_report_event(f->report, "{}\n", 3, NULL), 0);
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 5);
    assert_int_equal(f->server.ends[SERVER_EVENTS], 3);
}

static void a_spawner_whose_disk_was_full_gets_the_log_afterwards(void **state)
{
    struct fixture *f = *state;
    server_lock(&f->server);
    f->server.refuse = "/streams/log";
    f->server.refuse_times = 3;
    f->server.refuse_status = 507;
    server_unlock(&f->server);
    say(f, "too much\n");
    assert_int_equal(df_report_event(f->report, "{}\n", 3, NULL), 0);
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 9);
    assert_int_equal(f->server.ends[SERVER_EVENTS], 3);
}

static void a_stream_that_is_refused_does_not_hold_up_the_rest(void **state)
{
    struct fixture *f = *state;
    f->server.refuse = "/streams/log";
    f->server.refuse_times = 1;
    f->server.refuse_status = 413;
    say(f, "too much\n");
    assert_int_equal(df_report_event(f->report, "{}\n", 3, NULL), 0);
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 0);
    assert_int_equal(f->server.ends[SERVER_EVENTS], 3);
}

static void a_spawner_that_lost_its_bucket_is_not_asked_again(void **state)
{
    struct fixture *f = *state;
    f->server.refuse = "/streams/log";
    f->server.refuse_times = 1;
    f->server.refuse_status = 412;
    say(f, "to nobody\n");
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 0);
}

/* This test ends because appending does not wait: the server answers only afterwards. */
static void a_spawner_that_stalls_holds_nobody_up(void **state)
{
    struct fixture *f = *state;
    server_lock(&f->server);
    f->server.stalled = true;
    server_unlock(&f->server);
    for (int i = 0; i < 20000; i++)
        say(f, "0123456789012345678901234567890123456789012345678901234567890123456789\n");
    server_lock(&f->server);
    assert_int_equal(f->server.ends[SERVER_LOG], 0);
    f->server.stalled = false;
    server_unlock(&f->server);
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 20000 * 71);
}

static void a_flood_needs_no_memory(void **state)
{
    struct fixture *f = *state;
    enum { PIECE = 64 * 1024, PIECES = SANITIZED ? 320 : 3200 }; /* 200 MiB */
    server_lock(&f->server);
    f->server.expected = byte_at;
    server_unlock(&f->server);
    char *piece = malloc(PIECE);
    long before = peak_kib();
    for (uint64_t i = 0; i < PIECES; i++) {
        for (uint64_t k = 0; k < PIECE; k++)
            piece[k] = byte_at(i * PIECE + k);
        assert_int_equal(df_report_log(f->report, piece, PIECE, NULL), 0);
    }
    assert_int_equal(finish(f, NULL), 0);
    free(piece);
    assert_int_equal(f->server.ends[SERVER_LOG], (uint64_t)PIECE * PIECES);
    assert_int_equal(f->server.wrong, 0);
    assert_peak_below(before + 12 * 1024); /* the server's share included */
}

/* Otherwise a pod whose TaskAction was deleted by force would live for its whole grace period. */
static void the_log_of_a_step_that_nobody_knows_any_more_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    df_report_free(f->report);
    free(f->endpoint);
    f->endpoint = NULL; /* a pod: the spawner never moves */
    open_report(f, 3600 * 1000);
    assert_int_equal(claim(f, NULL), 0);
    server_lock(&f->server);
    f->server.refuse = "/streams";
    f->server.refuse_times = 1000000;
    f->server.refuse_status = 404;
    server_unlock(&f->server);
    say(f, "never taken\n");
    (void)!finish(f, NULL);
}

/* The engine of a runner that was killed can deliver the rest. */
static void what_was_not_delivered_lies_in_the_spool(void **state)
{
    struct fixture *f = *state;
    say(f, "delivered\n");
    SERVER_WAIT(&f->server, f->server.ends[SERVER_LOG] == 10);
    server_close(&f->server);
    say(f, "left behind\n");
    df_report_free(f->report);
    f->report = NULL;
    DF_FREE char *path = df_fs_join(f->dir, "log");
    DF_BUF struct df_buf spool = DF_BUF_INIT(1000);
    assert_int_equal(df_fs_read(path, &spool, NULL), 0);
    assert_string_equal(df_buf_str(&spool), "delivered\nleft behind\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_step(a_line_reaches_the_spawner_without_being_asked_for),
        with_server(what_was_said_before_the_claim_is_sent_after_it),
        with_step(no_byte_is_lost_or_doubled_when_all_is_well),
        with_step(no_byte_is_lost_or_doubled_when_answers_are_lost),
        with_step(no_byte_is_lost_or_doubled_when_requests_are_dropped),
        with_step(no_byte_is_lost_or_doubled_when_the_spawner_is_overloaded),
        with_step(no_byte_is_lost_or_doubled_when_the_spawner_restarts_elsewhere),
        with_step(no_byte_is_lost_or_doubled_when_everything_goes_wrong),
        with_step(a_gap_is_filled_from_the_spool),
        with_step(a_gap_that_cannot_be_filled_ends_the_stream_but_not_the_step),
        with_step(a_spawner_whose_disk_was_full_gets_the_log_afterwards),
        with_step(a_stream_that_is_refused_does_not_hold_up_the_rest),
        with_step(a_spawner_that_lost_its_bucket_is_not_asked_again),
        with_step(a_spawner_that_stalls_holds_nobody_up),
        with_step(a_flood_needs_no_memory),
        with_server(the_log_of_a_step_that_nobody_knows_any_more_is_not_waited_for),
        with_step(what_was_not_delivered_lies_in_the_spool),
    };
    struct df_err err = {0};
    if (df_http_global_init(&err) < 0)
        return 1;
    return cmocka_run_group_tests_name("report_streams", tests, NULL, NULL);
}
