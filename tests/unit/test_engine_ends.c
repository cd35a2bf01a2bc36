/* The local engine: how a step ends, by itself and when it is canceled. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/local_engine.h"

/* ---- ends ---- */

static void the_cause_of_an_end_says_the_code_or_the_signal(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *body;
        int exit_code;
        const char *cause;
    } cases[] = {
        {"exit 3\n", 3, "exited with code 3"},
        {"kill -9 $$\n", -1, "killed by signal 9, SIGKILL"},
        {"kill -SEGV $$\n", -1, "killed by signal 11, SIGSEGV"},
        {"result 2 ApplyFailed; kill -9 $$\n", 2, "killed by signal 9, SIGKILL"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        script(f, cases[i].body);
        create(f, step_a());
        struct df_engine_observation o = await_end(f, step_a());
        assert_int_equal(o.exit_code, cases[i].exit_code);
        assert_string_equal(o.cause, cases[i].cause);
    }
}

static void each_new_try_of_a_step_is_watched_to_its_end(void **state)
{
    struct fixture *f = *state;
    script(f, "exit 3\n");
    for (int i = 0; i < 30; i++) { /* the watch may not have seen yet that the last one is over */
        create(f, step_a());
        assert_string_equal(await_end(f, step_a()).cause, "exited with code 3");
    }
}

static void a_step_has_not_ended_while_something_of_its_session_lives(void **state)
{
    struct fixture *f = *state;
    script(f, "sh -c 'echo $$ > $1/child; while :; do sleep 1; done' x \"$DIR\" &\n"
              "wait_for child; kill -9 $$\n");
    create(f, step_a());
    await_notify(f, 1); /* the runner's end */
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    create(f, step_a()); /* starts nothing beside it */
    assert_int_equal(starts(f), 1);
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), -1);
    assert_int_equal(kill(pid_in(f, "child"), SIGKILL), 0);
    await_notify(f, 2); /* everything's end */
    struct df_engine_observation o = await_end(f, step_a());
    assert_string_equal(o.cause, "killed by signal 9, SIGKILL");
}

/* tofu.pid as a runner writes it. */
#define WRITE_TOFU_PID                                                                             \
    "echo \"$T $(cut -d' ' -f22 /proc/$T/stat) $(cat /proc/sys/kernel/random/boot_id)\" > "        \
    "$DIR/tofu.tmp; mv $DIR/tofu.tmp $DIR/tofu.pid\n"

static void a_tofu_that_left_the_session_counts_as_well(void **state)
{
    struct fixture *f = *state;
    script(f,
           "setsid sleep 1000 & wait_for go\n"
           "T=$!; while ! grep -q sleep /proc/$T/comm; do :; done\n" WRITE_TOFU_PID "kill -9 $$\n");
    create(f, step_a());
    touch_in_dir(f, "go", "x");
    await_notify(f, 1);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    assert_int_equal(kill(pid_in(f, "tofu.pid"), SIGKILL), 0);
    assert_int_equal(await_end(f, step_a()).phase, DF_ENGINE_ENDED);
}

/* A tofu that counts its interrupts in the file `ints` and ends when `go` is there. Shells start
 * what is in the background with SIGINT ignored, hence env. */
#define COUNTING_TOFU                                                                              \
    "env --default-signal=INT sh -c 'trap \"echo int >> $1/ints\" INT; echo $$ > $1/ready; "       \
    "while [ ! -e $1/go ]; do sleep 0.01; done' x $DIR &\n"                                        \
    "T=$!; wait_for ready; T=$(cat $DIR/ready)\n" WRITE_TOFU_PID

static void a_tofu_that_lost_its_runner_is_interrupted_once(void **state)
{
    struct fixture *f = *state;
    script(f, COUNTING_TOFU "kill -9 $$\n");
    create(f, step_a());
    await_in_dir(f, "ints");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
        assert_int_equal(f->e->ops->runner->step.cancel(f->e, step_a(), NULL), 0);
    }
    close_engine(f); /* nor does the next spawner do it again */
    open_engine_keeping(f, false);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    touch_in_dir(f, "go", "x");
    (void)await_end(f, step_a());
    DF_FREE char *ints = read_in_dir(f, "ints");
    assert_string_equal(ints, "int\n");
}

static void a_tofu_that_its_runner_has_interrupted_gets_no_second_one(void **state)
{
    struct fixture *f = *state;
    script(f,
           COUNTING_TOFU "> $DIR/tofu.pid.interrupted; kill -INT $T; wait_for ints; kill -9 $$\n");
    create(f, step_a());
    await_notify(f, 1);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    touch_in_dir(f, "go", "x");
    (void)await_end(f, step_a());
    DF_FREE char *ints = read_in_dir(f, "ints");
    assert_string_equal(ints, "int\n");
}

static void a_tofu_whose_runner_died_beside_its_spawner_is_interrupted_by_the_next(void **state)
{
    struct fixture *f = *state;
    script(f, COUNTING_TOFU "wait_for die; kill -9 $$\n");
    create(f, step_a());
    await_in_dir(f, "tofu.pid");
    pid_t runner = pid_in(f, "runner.pid");
    close_engine(f);
    touch_in_dir(f, "die", "x");
    struct df_identity id;
    assert_int_equal(df_identity_of(runner, &id, NULL), 0);
    while (df_identity_lives(&id))
        (void)usleep(1000);
    open_engine_keeping(f, false);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    await_in_dir(f, "ints");
    touch_in_dir(f, "go", "x");
    (void)await_end(f, step_a());
}

/* Its stdout is a pipe that it can read itself, as the runner makes it: no SIGPIPE, but a full one
 * would hold it up for ever. */
static void a_tofu_that_lost_its_runner_is_not_held_up_by_its_output(void **state)
{
    struct fixture *f = *state;
    script(f, "mkfifo $DIR/pipe\n"
              "sh -c 'trap : INT; echo $$ > $1/ready; while [ ! -e $1/go ]; do sleep 0.01; done; "
              "head -c 3000000 /dev/zero; echo x > $1/written' x $DIR 1<>$DIR/pipe &\n"
              "wait_for ready; T=$(cat $DIR/ready)\n" WRITE_TOFU_PID "kill -9 $$\n");
    create(f, step_a());
    await_notify(f, 1);
    touch_in_dir(f, "go", "x");
    await_in_dir(f, "written");
    assert_int_equal(await_end(f, step_a()).phase, DF_ENGINE_ENDED);
}

/* A spawner that was held up, or died, before it wrote runner.pid looks for the runner by its
 * argument; a process of the module may have the same one. */
static void only_the_leader_of_a_session_is_taken_for_a_runner(void **state)
{
    struct fixture *f = *state;
    script(f, "sh -c 'echo $$ > $1/child; while :; do sleep 1; done' x $DIR &\n"
              "wait_for child; echo x > $DIR/ready; wait_for go\n");
    create(f, step_a());
    await_in_dir(f, "ready");
    DF_STEP_DIR struct df_step_dir d = step_dir(f, UID_A);
    pid_t runner = pid_in(f, "runner.pid"), found = 0;
    assert_int_equal(df_session_with_argument(d.top, &found, NULL), 0);
    assert_int_equal(found, runner);
    assert_int_equal(kill(runner, SIGKILL), 0);
    await_notify(f, 1);
    struct df_err err = {0};
    assert_int_equal(df_session_with_argument(d.top, &found, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_int_equal(kill(pid_in(f, "child"), SIGKILL), 0);
    (void)await_end(f, step_a());
}

static void a_stranger_under_a_recycled_pid_does_not_count(void **state)
{
    struct fixture *f = *state;
    script(f, "exit 0\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    struct df_identity me;
    DF_STEP_DIR struct df_step_dir d = step_dir(f, UID_A);
    assert_int_equal(df_identity_of(getpid(), &me, NULL), 0);
    assert_true(df_identity_lives(&me));
    me.start++;
    assert_false(df_identity_lives(&me));
    assert_int_equal(df_identity_write(d.runner_pid, &me, NULL), 0);
    assert_int_equal(df_identity_write(d.tofu_pid, &me, NULL), 0);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_ENDED);
}

static void a_pid_of_an_earlier_boot_does_not_count(void **state)
{
    struct fixture *f = *state;
    script(f, "exit 0\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    struct df_identity me;
    char text[128];
    assert_int_equal(df_identity_of(getpid(), &me, NULL), 0);
    (void)snprintf(text, sizeof(text), "%d %llu 00000000-0000-0000-0000-000000000000\n", me.pid,
                   (unsigned long long)me.start);
    DF_FREE char *exit_file = in_dir(f, "exit");
    assert_int_equal(unlink(exit_file), 0);
    touch_in_dir(f, "runner.pid", text);
    touch_in_dir(f, "tofu.pid", text);
    struct df_engine_observation o = look(f, step_a());
    assert_int_equal(o.phase, DF_ENGINE_ENDED);
    assert_string_equal(o.cause, "the machine was restarted");
}

/* ---- cancel ---- */

static void cancel_sends_one_sigterm_however_often_it_is_asked(void **state)
{
    struct fixture *f = *state;
    script(f, "trap 'echo term >> $DIR/terms' TERM\necho x > $DIR/ready\nwait_for go\n");
    create(f, step_a());
    await_in_dir(f, "ready");
    for (int i = 0; i < 3; i++)
        assert_int_equal(f->e->ops->runner->step.cancel(f->e, step_a(), NULL), 0);
    await_in_dir(f, "terms");
    touch_in_dir(f, "go", "x");
    (void)await_end(f, step_a());
    DF_FREE char *terms = read_in_dir(f, "terms");
    assert_int_equal(lines_of(terms), 1);
}

static void what_does_not_end_in_its_grace_period_is_killed_with_its_children(void **state)
{
    struct fixture *f = *state;
    script(f, "trap '' TERM INT\nsh -c 'echo $$ > $1/child; while :; do sleep 1; done' x $DIR &\n"
              "while :; do sleep 1; done\n");
    create(f, step_a());
    await_in_dir(f, "child");
    touch_in_dir(f, "kill-at", "1\n"); /* the time is over since the machine started */
    assert_int_equal(f->e->ops->runner->step.cancel(f->e, step_a(), NULL), 0);
    struct df_engine_observation o = await_end(f, step_a());
    assert_string_equal(o.cause, "killed by signal 9, SIGKILL");
    struct df_identity child;
    assert_true(df_identity_of(pid_in(f, "child"), &child, NULL) < 0 || !df_identity_lives(&child));
}

static void the_deadline_of_a_cancel_outlives_the_spawner(void **state)
{
    struct fixture *f = *state;
    script(f, "trap '' TERM\necho x > $DIR/ready\nwhile :; do sleep 1; done\n");
    create(f, step_a());
    await_in_dir(f, "ready");
    assert_int_equal(f->e->ops->runner->step.cancel(f->e, step_a(), NULL), 0);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    close_engine(f);
    touch_in_dir(f, "kill-at", "1\n");
    open_engine_keeping(f, false);
    assert_int_equal(await_end(f, step_a()).phase, DF_ENGINE_ENDED);
}

static void processes_that_outlive_their_runner_are_killed_in_the_end(void **state)
{
    struct fixture *f = *state;
    script(f, "sh -c 'trap \"\" TERM; echo $$ > $1/child; while :; do sleep 1; done' x $DIR &\n"
              "wait_for kill-at; exit 0\n");
    create(f, step_a());
    await_in_dir(f, "child");
    touch_in_dir(f, "kill-at", "1\n");
    await_notify(f, 1);
    assert_int_equal(await_end(f, step_a()).phase, DF_ENGINE_ENDED);
}

static void a_deadline_is_never_moved_back_by_asking_again(void **state)
{
    struct fixture *f = *state;
    DF_STEP_DIR struct df_step_dir d = step_dir(f, UID_A);
    int64_t first, second, third;
    assert_int_equal(df_step_dir_make(&d, "net-1-plan", NULL), 0);
    assert_int_equal(df_step_dir_set_kill_at(&d, 5000000, &first, NULL), 0);
    assert_int_equal(df_step_dir_set_kill_at(&d, 900000000, &second, NULL), 0);
    assert_int_equal(first, second);
    touch_in_dir(f, "kill-at", "99999999999999999\n"); /* of an earlier, longer boot */
    assert_int_equal(df_step_dir_set_kill_at(&d, 5000000, &third, NULL), 0);
    assert_true(third >= first && third < first + 3600000000);
}

static void canceling_what_is_not_there_is_success(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->e->ops->runner->step.cancel(f->e, step_a(), NULL), 0);
    script(f, "exit 0\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    assert_int_equal(f->e->ops->runner->step.cancel(f->e, step_a(), NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_cause_of_an_end_says_the_code_or_the_signal),
        TEST(each_new_try_of_a_step_is_watched_to_its_end),
        TEST(a_step_has_not_ended_while_something_of_its_session_lives),
        TEST(a_tofu_that_left_the_session_counts_as_well),
        TEST(a_tofu_that_lost_its_runner_is_interrupted_once),
        TEST(a_tofu_that_its_runner_has_interrupted_gets_no_second_one),
        TEST(a_tofu_whose_runner_died_beside_its_spawner_is_interrupted_by_the_next),
        TEST(a_tofu_that_lost_its_runner_is_not_held_up_by_its_output),
        TEST(only_the_leader_of_a_session_is_taken_for_a_runner),
        TEST(a_stranger_under_a_recycled_pid_does_not_count),
        TEST(a_pid_of_an_earlier_boot_does_not_count),
        TEST(cancel_sends_one_sigterm_however_often_it_is_asked),
        TEST(what_does_not_end_in_its_grace_period_is_killed_with_its_children),
        TEST(the_deadline_of_a_cancel_outlives_the_spawner),
        TEST(processes_that_outlive_their_runner_are_killed_in_the_end),
        TEST(a_deadline_is_never_moved_back_by_asking_again),
        TEST(canceling_what_is_not_there_is_success),
    };
    return cmocka_run_group_tests_name("engine_ends", tests, NULL, NULL);
}
