/* A file that gets its name when it is complete, and what is left of one whose process ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "spawner/cli/signals.h"
#include "spawner/cli/unfinished.h"
#include "tests/unit/scratch.h"

/* How many files the directory has. */
static int count(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static void a_file_has_its_name_when_it_is_complete(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "a.tar");
    struct df_unfinished *u = NULL;
    struct stat st;
    assert_int_equal(df_unfinished_new(path, &u, NULL), 0);
    assert_int_equal(df_fs_write_all(df_unfinished_fd(u), "whole", 5, NULL), 0);
    assert_false(df_fs_exists(path));
    assert_int_equal(df_unfinished_publish(u, NULL), 0);
    df_unfinished_free(u);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(count(*state), 1);
}

static void a_file_that_is_there_is_not_replaced(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "a.tar");
    DF_UNFINISHED struct df_unfinished *first = NULL;
    DF_UNFINISHED struct df_unfinished *second = NULL;
    DF_UNFINISHED struct df_unfinished *third = NULL;
    struct df_err err = {0};
    assert_int_equal(df_unfinished_new(path, &first, NULL), 0);
    assert_int_equal(df_unfinished_new(path, &second, NULL), 0);
    assert_int_equal(df_unfinished_publish(first, NULL), 0);
    assert_int_equal(df_unfinished_publish(second, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_int_equal(df_unfinished_new(path, &third, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
}

/* Begins a file and waits for a signal. */
static pid_t begin_in_child(const char *path)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct df_unfinished *u = NULL;
        if (df_unfinished_new(path, &u, NULL) < 0 || write(ends[1], "+", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    (void)close(ends[0]);
    return pid;
}

static void end_child(pid_t pid, int number)
{
    int status = 0;
    assert_int_equal(kill(pid, number), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), number);
}

static void a_signal_removes_the_unfinished_file_and_ends_the_process(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    DF_FREE char *path = df_fs_join(*state, "a.tar");
    (void)signal(SIGHUP, SIG_DFL);
    for (size_t i = 0; i < DF_ARRAY_SIZE(numbers); i++) {
        end_child(begin_in_child(path), numbers[i]);
        assert_int_equal(count(*state), 0);
    }
}

static void under_nohup_a_hangup_is_no_signal_to_end(void **state)
{
    DF_CLOSE int fd = -1;
    (void)state;
    (void)signal(SIGHUP, SIG_IGN);
    assert_int_equal(df_signals_open(&fd, NULL), 0);
    assert_int_equal(raise(SIGHUP), 0);
    assert_int_equal(df_signals_take(fd), 0);
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(df_signals_take(fd), SIGTERM);
    df_signals_release();
    (void)signal(SIGHUP, SIG_DFL);
}

static void what_a_killed_process_left_goes_and_what_a_living_one_writes_stays(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "a.tar");
    DF_FREE char *other = df_fs_join(*state, "a.tar.part-of-mine");
    assert_int_equal(df_fs_write(other, "x", 1, 0600, NULL), 0);
    pid_t living = begin_in_child(path);
    end_child(begin_in_child(path), SIGKILL);
    assert_int_equal(count(*state), 3);
    struct df_unfinished *u = NULL;
    assert_int_equal(df_unfinished_new(path, &u, NULL), 0);
    assert_int_equal(count(*state),
                     3); /* that of the living one, the new one, and the other file */
    df_unfinished_free(u);
    end_child(living, SIGTERM);
    assert_int_equal(count(*state), 1);
    assert_true(df_fs_exists(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_has_its_name_when_it_is_complete, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(a_file_that_is_there_is_not_replaced, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(a_signal_removes_the_unfinished_file_and_ends_the_process,
                                        enter_scratch, leave_scratch),
        cmocka_unit_test(under_nohup_a_hangup_is_no_signal_to_end),
        cmocka_unit_test_setup_teardown(
            what_a_killed_process_left_goes_and_what_a_living_one_writes_stays, enter_scratch,
            leave_scratch),
    };
    return cmocka_run_group_tests_name("unfinished", tests, NULL, NULL);
}
