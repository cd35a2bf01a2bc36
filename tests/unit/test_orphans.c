/* Processes that a step leaves behind. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runner/orphans.h"
#include "tests/unit/scratch.h"

static void whatever_is_left_behind_is_ended(void **state)
{
    (void)state;
    int hold[2];
    assert_int_equal(pipe(hold), 0);
    assert_int_equal(df_orphans_adopt(NULL), 0);
    pid_t child = fork();
    if (child == 0) { /* a daemon below a daemon, both deaf */
        (void)signal(SIGTERM, SIG_IGN);
        (void)setsid();
        if (fork() == 0) {
            (void)setsid();
            for (;;)
                (void)pause();
        }
        _exit(0);
    }
    close(hold[1]); /* the daemon has the only write end: its end is the pipe's */
    (void)df_orphans_end();
    char c;
    assert_int_equal(read(hold[0], &c, 1), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    close(hold[0]);
}

/* Each starts the next one and waits, the last one says that it is there. They are programs of
 * their own, because a fork of a fork of a fork shares more and more memory. */
static void a_long_chain_of_processes_is_ended_at_once(void **state)
{
    static const char script[] = "#!/bin/sh\n"
                                 "if [ $1 = 0 ]; then echo; else \"$0\" $(($1 - 1)) & fi\n"
                                 "exec sleep 1000\n";
    DF_FREE char *program = df_fs_join(*state, "next");
    int out[2];
    char c;
    assert_int_equal(df_fs_write(program, script, strlen(script), 0755, NULL), 0);
    assert_int_equal(pipe(out), 0);
    assert_int_equal(df_orphans_adopt(NULL), 0);
    if (fork() == 0) {
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execl(program, program, "1200", NULL);
        _exit(1);
    }
    close(out[1]);
    assert_int_equal(read(out[0], &c, 1), 1);
    assert_true(df_orphans_end());
    close(out[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_left_behind_is_ended),
        scratch_test(a_long_chain_of_processes_is_ended_at_once),
    };
    return cmocka_run_group_tests_name("orphans", tests, NULL, NULL);
}
