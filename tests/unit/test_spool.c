#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/json/json.h"
#include "runner/report/frame.h"
#include "runner/report/spool.h"
#include "tests/unit/scratch.h"

static struct df_spool spool_in(void **state, bool events, uint64_t max)
{
    struct df_spool s = DF_SPOOL_CLOSED;
    assert_int_equal(df_spool_open(&s, *state, "log", events, max, NULL), 0);
    return s;
}

static void append(struct df_spool *s, const char *text)
{
    assert_int_equal(df_spool_append(s, text, strlen(text), NULL), 0);
}

static void assert_holds(const struct df_spool *s, const char *text)
{
    char bytes[4096];
    assert_int_equal(s->end, strlen(text));
    assert_int_equal(df_spool_read(s, 0, bytes, s->end, NULL), 0);
    bytes[s->end] = '\0';
    assert_string_equal(bytes, text);
}

static void what_was_appended_is_read_from_any_offset(void **state)
{
    struct df_spool s = spool_in(state, false, DF_MIB);
    append(&s, "one\n");
    append(&s, "");
    append(&s, "two\n");
    assert_holds(&s, "one\ntwo\n");
    char bytes[3];
    assert_int_equal(df_spool_read(&s, 4, bytes, 3, NULL), 0);
    assert_memory_equal(bytes, "two", 3);
    df_spool_close(&s);
}

static void a_spool_is_private(void **state)
{
    struct df_spool s = spool_in(state, false, DF_MIB);
    struct stat st;
    assert_int_equal(fstat(s.fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    df_spool_close(&s);
}

static void a_link_in_the_spool_s_place_is_not_followed(void **state)
{
    DF_FREE char *victim = df_fs_join(*state, "victim"), *log = df_fs_join(*state, "log");
    assert_int_equal(df_fs_create(victim, "keep", 4, 0600, NULL), 0);
    assert_int_equal(symlink(victim, log), 0);
    struct df_spool s = DF_SPOOL_CLOSED;
    assert_int_equal(df_spool_open(&s, *state, "log", false, DF_MIB, NULL), -1);
    struct stat st;
    assert_int_equal(stat(victim, &st), 0);
    assert_int_equal(st.st_size, 4);
}

static void everything_behind_the_cap_is_dropped_counted_and_said(void **state)
{
    struct df_spool s = spool_in(state, false, 600);
    append(&s, "kept\n");
    char wide[200];
    memset(wide, 'x', sizeof wide);
    wide[99] = wide[199] = '\n';
    assert_int_equal(df_spool_append(&s, wide, sizeof wide, NULL), 0);
    append(&s, "would fit again\n");
    df_spool_finish(&s);
    assert_holds(&s, "kept\ndayfly: 216 bytes (3 lines) of log were dropped past the cap of 600 "
                     "bytes\n");
    df_spool_finish(&s);
    assert_true(s.end <= 600);
    df_spool_close(&s);
}

static void the_last_line_begins_on_a_line_of_its_own(void **state)
{
    struct df_spool s = spool_in(state, false, 520);
    append(&s, "half");
    append(&s, "too much for it\n");
    df_spool_finish(&s);
    assert_holds(&s, "half\ndayfly: 16 bytes (1 lines) of log were dropped past the cap of 520 "
                     "bytes\n");
    df_spool_close(&s);
}

static void the_last_line_of_events_is_an_event(void **state)
{
    struct df_spool s = spool_in(state, true, 512);
    append(&s, "{}\n");
    df_spool_finish(&s);
    char line[512];
    assert_int_equal(df_spool_read(&s, 0, line, s.end, NULL), 0);
    DF_JSON cJSON *event = NULL;
    assert_int_equal(df_json_parse(line, s.end, &event, NULL), 0);
    assert_string_equal(
        df_json_str(event, "@message"),
        "dayfly: 3 bytes (1 lines) of events were dropped past the cap of 512 bytes");
    df_spool_close(&s);
}

static void a_gibibyte_is_called_so(void **state)
{
    struct df_spool s = spool_in(state, false, DF_LIMIT_STREAM);
    static const char last[] = "the last that fits\n";
    uint64_t at = DF_LIMIT_STREAM - 512;
    s.end = at - strlen(last);
    append(&s, last);
    for (int i = 0; i < 100; i++)
        append(&s, "more\n");
    df_spool_finish(&s);
    char line[200] = "";
    assert_int_equal(df_spool_read(&s, at, line, s.end - at, NULL), 0);
    assert_string_equal(
        line, "dayfly: 500 bytes (100 lines) of log were dropped past the cap of 1 GiB\n");
    assert_true(s.end <= DF_LIMIT_STREAM);
    df_spool_close(&s);
}

/* A limit on the size of files is a disk that is full. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_is_an_error_and_the_stream_goes_on_behind_it(void **state)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    struct df_spool s = spool_in(state, false, DF_MIB);
    append(&s, "first\n");
    limit_files(10);
    struct df_err err = {0};
    assert_int_equal(df_spool_append(&s, "too long for it\n", 16, &err), -1);
    assert_non_null(strstr(err.message, "write spool"));
    limit_files(RLIM_INFINITY);
    append(&s, "second\n");
    df_spool_finish(&s);
    assert_holds(&s, "first\nsecond\ndayfly: 16 bytes (1 lines) of log were dropped because the "
                     "spool could not be written\n");
    df_spool_close(&s);
}

static void delivered_megabytes_are_given_back_to_the_disk(void **state)
{
    struct df_spool s = spool_in(state, false, DF_GIB);
    char *block = malloc(DF_MIB);
    memset(block, 'x', DF_MIB);
    for (int i = 0; i < 8; i++)
        assert_int_equal(df_spool_append(&s, block, DF_MIB, NULL), 0);
    struct stat before, after;
    assert_int_equal(fsync(s.fd), 0);
    assert_int_equal(fstat(s.fd, &before), 0);
    df_spool_reclaim(&s, 5 * DF_MIB + 17);
    assert_int_equal(s.reclaimed, 5 * DF_MIB);
    assert_int_equal(fstat(s.fd, &after), 0);
    assert_int_equal(after.st_size, 8 * DF_MIB);
    if (fallocate(s.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1) == 0)
        assert_true(after.st_blocks <= before.st_blocks - (blkcnt_t)(4 * DF_MIB / 512));
    assert_int_equal(df_spool_read(&s, 5 * DF_MIB, block, DF_MIB, NULL), 0);
    assert_int_equal(block[0], 'x');
    free(block);
    df_spool_close(&s);
}

static void an_answer_to_a_frame_moves_the_stream_only_within_what_is_at_hand(void **state)
{
    (void)state;
    /* The frame began at 100; bytes from 50 are at hand; the stream has 200. */
    static const struct {
        int status;
        const char *body;
        enum df_frame_next next;
        uint64_t offset;
    } rows[] = {
        {200, "{\"offset\":150}", DF_FRAME_GO_ON, 150},
        {200, "{\"offset\": 200, \"more\": 1}", DF_FRAME_GO_ON, 200},
        {409, "{\"type\":\"Gap\",\"offset\":60}", DF_FRAME_GO_ON, 60},
        {409, "{\"offset\":170}", DF_FRAME_GO_ON, 170},
        {409, "{\"offset\":50}", DF_FRAME_GO_ON, 50},
        {200, "{\"offset\":100}", DF_FRAME_AGAIN, 0},
        {409, "{\"offset\":49}", DF_FRAME_REFUSED, 0},
        {200, "{\"offset\":201}", DF_FRAME_REFUSED, 0},
        {200, "{\"offset\":-1}", DF_FRAME_AGAIN, 0},
        {200, "{\"offset\":150.5}", DF_FRAME_AGAIN, 0},
        {200, "{\"offset\":1e300}", DF_FRAME_AGAIN, 0},
        {200, "{\"offset\":\"150\"}", DF_FRAME_AGAIN, 0},
        {200, "[150]", DF_FRAME_AGAIN, 0},
        {200, "", DF_FRAME_AGAIN, 0},
        {200, "<html>", DF_FRAME_AGAIN, 0},
        {204, "", DF_FRAME_AGAIN, 0},
        {302, "", DF_FRAME_AGAIN, 0},
        {400, "{}", DF_FRAME_AGAIN, 0},
        {401, "{}", DF_FRAME_AGAIN, 0},
        {404, "{}", DF_FRAME_AGAIN, 0},
        {500, "{\"offset\":150}", DF_FRAME_AGAIN, 0},
        {503, "", DF_FRAME_AGAIN, 0},
        {507, "{}", DF_FRAME_AGAIN, 0},
        {410, "{\"offset\":150}", DF_FRAME_OVER, 0},
        {413, "", DF_FRAME_REFUSED, 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        uint64_t offset = 0;
        enum df_frame_next next = df_frame_answer(rows[i].status, rows[i].body,
                                                  strlen(rows[i].body), 100, 50, 200, &offset);
        if (next != rows[i].next || offset != rows[i].offset)
            fail_msg("%d %s: %d %llu", rows[i].status, rows[i].body, next,
                     (unsigned long long)offset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(what_was_appended_is_read_from_any_offset),
        scratch_test(a_spool_is_private),
        scratch_test(a_link_in_the_spool_s_place_is_not_followed),
        scratch_test(everything_behind_the_cap_is_dropped_counted_and_said),
        scratch_test(the_last_line_begins_on_a_line_of_its_own),
        scratch_test(the_last_line_of_events_is_an_event),
        scratch_test(a_gibibyte_is_called_so),
        scratch_test(a_full_disk_is_an_error_and_the_stream_goes_on_behind_it),
        scratch_test(delivered_megabytes_are_given_back_to_the_disk),
        cmocka_unit_test(an_answer_to_a_frame_moves_the_stream_only_within_what_is_at_hand),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
