/* What a person sees of a run that goes on: lines of the log, and one of the status below them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "common/base/limits.h"
#include "spawner/cli/follow/view.h"

struct screen {
    int fd;
    struct df_view view;
    char text[8192];
};

static void open_screen(struct screen *s, bool live, bool color)
{
    (void)unsetenv("TERM"); /* a dumb one has no status line */
    s->fd = memfd_create("screen", MFD_CLOEXEC);
    assert_true(s->fd >= 0);
    df_view_init(&s->view, s->fd, live, color);
}

/* What was written since the beginning. */
static const char *seen(struct screen *s)
{
    ssize_t n = pread(s->fd, s->text, sizeof(s->text) - 1, 0);
    assert_true(n >= 0);
    s->text[n] = '\0';
    return s->text;
}

static void close_screen(struct screen *s)
{
    df_view_free(&s->view);
    (void)close(s->fd);
}

static void a_pipe_gets_plain_lines(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, false, false);
    df_view_say(&s.view, DF_TONE_STRONG, "net-1: %s", "provision");
    df_view_status(&s.view, "plan");
    df_view_tick(&s.view);
    df_view_log(&s.view, "one\ntw", 6);
    assert_string_equal(seen(&s), "net-1: provision\none\n");
    df_view_log(&s.view, "o\nthree", 7);
    df_view_say(&s.view, DF_TONE_GOOD, "plan: done");
    assert_string_equal(seen(&s), "net-1: provision\none\ntwo\nthree\nplan: done\n");
    df_view_log(&s.view, "rest", 4);
    df_view_free(&s.view);
    assert_string_equal(seen(&s), "net-1: provision\none\ntwo\nthree\nplan: done\nrest\n");
    close_screen(&s);
}

static void a_pipe_gets_the_bytes_of_the_log_as_they_are(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, false, false);
    df_view_log(&s.view, "\x1b[1mx\x1b[0m\r\n", 11);
    assert_string_equal(seen(&s), "\x1b[1mx\x1b[0m\r\n");
    close_screen(&s);
}

static void take_text(const char **rest, const char *text)
{
    assert_true(df_starts_with(*rest, text));
    *rest += strlen(text);
}

/* A frame of the spinner, the text, and whatever time has passed. */
static void take_status(const char **rest, const char *text)
{
    int len = 0;
    assert_true(**rest && strchr("|/-\\", *(*rest)++));
    take_text(rest, " ");
    take_text(rest, text);
    (void)sscanf(*rest, " %*u.%*u s%n", &len);
    assert_true(len > 0);
    *rest += len;
}

static void a_terminal_has_one_line_at_the_bottom_that_is_taken_away_for_others(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, true, false);
    df_view_status(&s.view, "plan");
    df_view_log(&s.view, "a\x1b[2J\n", 6);
    const char *rest = seen(&s);
    take_status(&rest, "plan");
    take_text(&rest, "\r\x1b[Ka^[[2J\n");
    take_status(&rest, "plan");
    assert_string_equal(rest, "");
    df_view_idle(&s.view);
    assert_true(df_ends_with(seen(&s), "\r\x1b[K"));
    df_view_tick(&s.view);
    assert_true(df_ends_with(seen(&s), "\r\x1b[K"));
    close_screen(&s);
}

static void a_status_never_wraps(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, true, false);
    char text[300];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    df_view_status(&s.view, "%s", text);
    assert_int_equal(strlen(seen(&s)), 79); /* no terminal: 80 columns */
    close_screen(&s);
}

static void an_endless_line_is_shown_in_pieces_and_held_in_bounded_memory(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, false, false);
    static char block[10000];
    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 100; i++)
        df_view_log(&s.view, block, sizeof(block));
    assert_true(s.view.line.len <= 64 * DF_KIB);
    df_view_free(&s.view);
    assert_int_equal(lseek(s.fd, 0, SEEK_END), 100 * sizeof(block) + 1);
    close_screen(&s);
}

static void nobody_looking_is_no_work(void **state)
{
    (void)state;
    struct df_view v;
    df_view_init(&v, -1, false, false);
    df_view_say(&v, DF_TONE_PLAIN, "hello");
    df_view_log(&v, "text", 4);
    df_view_status(&v, "x");
    df_view_tick(&v);
    assert_int_equal(v.line.len, 0);
    df_view_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_plain_lines),
        cmocka_unit_test(a_pipe_gets_the_bytes_of_the_log_as_they_are),
        cmocka_unit_test(a_terminal_has_one_line_at_the_bottom_that_is_taken_away_for_others),
        cmocka_unit_test(a_status_never_wraps),
        cmocka_unit_test(an_endless_line_is_shown_in_pieces_and_held_in_bounded_memory),
        cmocka_unit_test(nobody_looking_is_no_work),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
