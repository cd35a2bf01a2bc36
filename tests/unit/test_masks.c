/* Identity tokens: files that are renewed while a step runs, and are masked all the same. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

#include <cmocka.h>

#include "runner/tofu/command.h"
#include "runner/tool_run.h"
#include "tests/unit/scratch.h"

#define FIRST "IDENTITY-OF-THE-STEP-0001"
#define SECOND "RENEWED-FOR-THE-STEP-0002"

struct fixture {
    char *dir;
    struct df_masks *masks;
    struct df_report *report;
    struct df_output *output;
};

static void put(const struct fixture *f, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(f->dir, name);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, NULL), 0);
}

/* The output masks "hunter2-secret" and what the file `token` holds. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    DF_STRS struct df_strs values = {0}, files = {0};
    void *dir = NULL;
    assert_int_equal(enter_scratch(&dir), 0);
    f->dir = dir;
    DF_FREE char *token = df_fs_join(f->dir, "token");
    put(f, "token", FIRST "\n");
    (void)df_strs_add(&values, "hunter2-secret");
    (void)df_strs_add(&files, token);
    *state = f;
    assert_int_equal(df_masks_new(&values, &files, &f->masks, NULL), 0);
    assert_int_equal(df_report_to_directory(f->dir, &f->report, NULL), 0);
    return df_output_new(f->masks, f->report, -1, &f->output, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *dir = f->dir;
    df_output_free(f->output);
    df_report_free(f->report);
    df_masks_free(f->masks);
    free(f);
    return leave_scratch(&dir);
}

static void text(struct fixture *f, const char *s)
{
    assert_int_equal(df_output_text(f->output, s, strlen(s), NULL), 0);
}

static void events(struct fixture *f, const char *s, bool render)
{
    assert_int_equal(df_output_events(f->output, s, strlen(s), render, NULL), 0);
}

static void flush(struct fixture *f)
{
    assert_int_equal(df_output_flush(f->output, NULL), 0);
}

static void assert_stream(struct fixture *f, const char *name, const char *expected)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    DF_FREE char *path = df_fs_join(f->dir, name);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), expected);
}

static void a_renewed_token_is_masked_from_then_on_and_the_old_one_as_well(void **state)
{
    struct fixture *f = *state;
    text(f, "first " FIRST " hunter2-secret\n");
    put(f, "token", SECOND "\n");
    text(f, "second " SECOND " " FIRST " hunter2-secret\n");
    events(f, "{\"@message\":\"is " SECOND "\",\"type\":\"x\"}\n", true);
    flush(f);
    assert_stream(f, "log", "first *** ***\nsecond *** *** ***\nis ***\n");
    assert_stream(f, "events", "{\"@message\":\"is ***\",\"type\":\"x\"}\n");
}

static void what_was_held_back_before_a_renewal_is_decided_with_all_values(void **state)
{
    struct fixture *f = *state;
    text(f, "a hunter2-");
    put(f, "token", SECOND);
    text(f, "secret, an IDENTITY-OF");
    put(f, "token", "hunter2-seal\n");
    text(f, "-THE-STEP-0001, a hunter2");
    put(f, "token", "another-token-0003\n");
    text(f, "-seal and " SECOND);
    flush(f);
    assert_stream(f, "log", "a ***, an ***, a *** and ***");
}

static void a_token_that_goes_away_is_masked_all_the_same(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *path = df_fs_join(f->dir, "token");
    assert_int_equal(unlink(path), 0);
    text(f, "is " FIRST "\n");
    put(f, "token", "");
    text(f, "is " FIRST "\n");
    const struct df_strs none = {0};
    assert_int_equal(df_output_hide(f->output, &none, NULL), 0);
    text(f, "is " FIRST " not hunter2-secret\n");
    assert_stream(f, "log", "is ***\nis ***\nis *** not hunter2-secret\n");
}

/* Rather no output than one that is not masked. */
static void what_cannot_be_masked_is_not_shown(void **state)
{
    struct fixture *f = *state;
    static const char long_text[] = "is it there?\n";
    DF_FREE char *huge = malloc(DF_LIMIT_SECRET_VALUE + 2);
    struct df_err err = {0};
    memset(huge, 'x', DF_LIMIT_SECRET_VALUE + 1);
    huge[DF_LIMIT_SECRET_VALUE + 1] = '\0';
    put(f, "token", huge);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(df_output_text(f->output, long_text, strlen(long_text), &err), -1);
        assert_int_equal(df_output_events(f->output, long_text, strlen(long_text), true, &err), -1);
        assert_int_equal(err.cls, DF_ERR_LIMIT);
    }
    put(f, "token", FIRST);
    text(f, "again\n");
    assert_stream(f, "log", "again\n");
}

static void without_a_token_there_is_no_output(void **state)
{
    struct fixture *f = *state;
    struct df_masks *masks = NULL;
    struct df_err err = {0};
    DF_STRS struct df_strs files = {0};
    DF_FREE char *path = df_fs_join(f->dir, "absent");
    assert_int_equal(df_strs_add(&files, path), 0);
    assert_int_equal(df_masks_new(&files, &files, &masks, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, path));
}

/* ---- messages ---- */

/* The cut would leave a part of the secret, which is no longer known as one. */
static void the_first_error_of_a_text_is_masked_before_it_is_cut(void **state)
{
    struct fixture *f = *state;
    struct df_failure failure;
    const struct df_context c = {.masks = f->masks};
    char filler[sizeof failure.summary - 7];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    DF_FREE char *printed = df_strf("Error: %shunter2-secret\n\n  it is hunter2-secret", filler);
    df_tool_read_failure(&c, printed, &failure);
    DF_FREE char *summary = df_strf("%s***", filler);
    assert_string_equal(failure.summary, summary);
    assert_string_equal(failure.detail, "it is ***");
}

/* ---- while nothing is printed ---- */

/* Waits until the file was opened and closed again by a reader. */
static void await_reader(int watch)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    for (bool opened = false, closed = false; !closed;) {
        struct pollfd p = {.fd = watch, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 20000), 1);
        ssize_t n = read(watch, bytes, sizeof bytes);
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const void *)(bytes + at);
            opened |= (e->mask & IN_OPEN) != 0;
            closed |= opened && (e->mask & IN_CLOSE_NOWRITE);
            at += (ssize_t)(sizeof *e + e->len);
        }
    }
}

/* Once the script is ready, replaces the token twice, the second time when the first was read. */
static void *renew_twice(void *arg)
{
    const struct fixture *f = arg;
    DF_FREE char *ready = df_fs_join(f->dir, "ready"), *token = df_fs_join(f->dir, "token");
    while (!df_fs_exists(ready))
        (void)usleep(1000);
    put(f, "token", SECOND);
    DF_CLOSE int watch = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, token, IN_OPEN | IN_CLOSE_NOWRITE) >= 0);
    await_reader(watch);
    put(f, "token", "TOKEN-OF-THE-END-3333");
    put(f, "go", "");
    return NULL;
}

static void a_token_that_came_and_went_while_nothing_was_printed_is_masked(void **state)
{
    struct fixture *f = *state;
    DF_STRS struct df_strs env = {0}, args = {0};
    struct df_stop *stop = NULL;
    struct df_command_end end = {.code = -1};
    pthread_t thread;
    (void)df_strs_add(&env, "PATH=/usr/bin:/bin");
    (void)df_strs_add(&args, "-c");
    (void)df_strs_add(&args, ":>ready; until [ -e go ]; do sleep 0.01; done; "
                             "echo " FIRST " " SECOND " TOKEN-OF-THE-END-3333 shown");
    assert_int_equal(df_stop_new(-1, &stop, NULL), 0);
    const struct df_commander c = {.program = "/bin/sh",
                                   .directory = f->dir,
                                   .env = &env,
                                   .output = f->output,
                                   .stop = stop,
                                   .grace_ms = 1000};
    assert_int_equal(pthread_create(&thread, NULL, renew_twice, f), 0);
    assert_int_equal(df_command_run(&c, &args, DF_EVENTS_NONE, NULL, &end, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    df_stop_free(stop);
    assert_int_equal(end.code, 0);
    assert_false(end.lost);
    assert_stream(f, "log", "*** *** *** shown\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_renewed_token_is_masked_from_then_on_and_the_old_one_as_well),
        TEST(what_was_held_back_before_a_renewal_is_decided_with_all_values),
        TEST(a_token_that_goes_away_is_masked_all_the_same),
        TEST(what_cannot_be_masked_is_not_shown),
        TEST(without_a_token_there_is_no_output),
        TEST(the_first_error_of_a_text_is_masked_before_it_is_cut),
        TEST(a_token_that_came_and_went_while_nothing_was_printed_is_masked),
    };
    return cmocka_run_group_tests_name("masks", tests, NULL, NULL);
}
