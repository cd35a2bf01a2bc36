/* Which signal is a second one. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "spawner/cli/signals.h"

/* A program that took its first signal, and gets another one at once: it ends by itself, or (later)
 * waits for signals that its parent sends. */
static void be_signaled(bool later)
{
    int fd = -1;
    if (df_signals_open(&fd, NULL) < 0 || kill(getpid(), SIGTERM) < 0 ||
        df_signals_take(fd) != SIGTERM)
        _exit(1);
    df_signals_release_later();
    if (kill(getpid(), SIGTERM) < 0)
        _exit(1);
    while (later)
        (void)pause();
    (void)usleep(20000); /* it would have died by now */
    _exit(0);
}

static pid_t start(bool later)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_signaled(later);
    return pid;
}

static void a_signal_that_comes_twice_is_one(void **state)
{
    (void)state;
    int status = 0;
    pid_t pid = start(false);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_later_signal_ends_the_process(void **state)
{
    (void)state;
    int status = 0;
    pid_t pid = start(true), ended = 0;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
        (void)usleep(20000);
        (void)kill(pid, SIGTERM);
    }
    assert_int_equal(ended, pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_that_comes_twice_is_one),
        cmocka_unit_test(a_later_signal_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
