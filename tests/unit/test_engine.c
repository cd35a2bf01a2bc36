/* The local engine: how a runner is made, found again and cleared up behind. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/process/tmpdir.h"
#include "tests/unit/local_engine.h"

/* ---- what a runner is given ---- */

static void a_runner_gets_the_handoff_and_its_end_and_result_are_seen(void **state)
{
    struct fixture *f = *state;
    script(f, "cat /proc/self/fd/$FD > $DIR/handoff\nresult 0 Planned\nexit 0\n");
    create(f, step_a());
    struct df_engine_observation o = await_end(f, step_a());
    assert_int_equal(o.phase, DF_ENGINE_ENDED);
    assert_int_equal(o.exit_code, 0);
    assert_true(o.has_result);
    assert_true(o.since_us > 0 && o.since_us <= df_real_us());
    await_notify(f, 1);
    DF_JSON cJSON *result = NULL, *handoff = NULL;
    assert_int_equal(f->e->ops->runner->step.result(f->e, step_a(), &result, NULL), 0);
    assert_string_equal(df_json_str(result, "reason"), "Planned");
    DF_FREE char *text = read_in_dir(f, "handoff");
    assert_int_equal(df_json_parse(text, strlen(text), &handoff, NULL), 0);
    assert_string_equal(df_json_str(handoff, "server"), "http://127.0.0.1:1");
    assert_string_equal(df_json_str(handoff, "uid"), UID_A);
    assert_string_equal(df_json_str(handoff, "token"), TOKEN);
    assert_string_equal(df_json_str(handoff, "endpointFile"), "/nowhere/endpoint");
}

static void it_takes_what_its_row_says(void **state)
{
    const struct fixture *f = *state;
    assert_int_equal(f->e->ops->runner != NULL, f->e->kind->takes_runs);
    assert_int_equal(f->e->ops->workflow != NULL, f->e->kind->takes_workflows);
}

static void a_runner_inherits_no_environment_descriptor_or_token_in_argv(void **state)
{
    struct fixture *f = *state;
    script(f, "tr '\\0' '\\n' < /proc/$$/environ > $DIR/env\n"
              "tr '\\0' ' ' < /proc/$$/cmdline > $DIR/argv\n"
              "for d in /proc/$$/fd/*; do readlink $d; done > $DIR/fds\n"
              "ps -o sid= -p $$ > $DIR/sid 2>/dev/null; echo $$ > $DIR/pid\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    DF_FREE char *env = read_in_dir(f, "env");
    DF_FREE char *argv = read_in_dir(f, "argv");
    DF_FREE char *fds = read_in_dir(f, "fds");
    static const char *const allowed[] = {
        "PATH=",          "HOME=",         "LANG=",       "LC_ALL=",      "LC_CTYPE=",
        "SSL_CERT_FILE=", "SSL_CERT_DIR=", "http_proxy=", "https_proxy=", "no_proxy=",
        "HTTP_PROXY=",    "HTTPS_PROXY=",  "NO_PROXY="};
    for (char *save = NULL, *line = strtok_r(env, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        bool known = false;
        for (size_t i = 0; i < DF_ARRAY_SIZE(allowed); i++)
            known |= df_starts_with(line, allowed[i]);
        if (!known)
            fail_msg("the runner inherited %s", line);
    }
    assert_null(strstr(argv, TOKEN));
    /* stdin, stdout, stderr, the handoff, the lock; sh itself has its script open. */
    assert_non_null(strstr(fds, "dayfly-handoff"));
    assert_non_null(strstr(fds, "/lock\n"));
    assert_true(lines_of(fds) <= 7);
}

static void the_runner_leads_a_session_of_its_own(void **state)
{
    struct fixture *f = *state;
    script(f, "cut -d' ' -f1,6 /proc/$$/stat > $DIR/ids\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    DF_FREE char *ids = read_in_dir(f, "ids");
    int pid, session;
    assert_int_equal(sscanf(ids, "%d %d", &pid, &session), 2);
    assert_int_equal(pid, session);
}

static void a_runner_that_cannot_be_started_is_an_error_that_names_it(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *ref = NULL;
    struct df_err err = {0};
    assert_int_equal(f->e->ops->runner->step.create(f->e, step_a(), &ref, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, f->runner));
    struct df_engine_observation o = look(f, step_a());
    assert_int_equal(o.phase, DF_ENGINE_ENDED);
    assert_string_equal(o.cause, "its runner was not started");
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), 0);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_ABSENT);
}

/* ---- once ---- */

static void a_second_create_of_a_living_step_starts_nothing(void **state)
{
    struct fixture *f = *state;
    script(f, "wait_for go\n");
    create(f, step_a());
    create(f, step_a());
    create(f, step_a());
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    touch_in_dir(f, "go", "x");
    (void)await_end(f, step_a());
    assert_int_equal(starts(f), 1);
}

static void a_name_that_another_step_has_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    struct df_engine_step other = step_of(UID_B, "net-1-plan");
    script(f, "wait_for go\n");
    create(f, step_a());
    DF_JSON cJSON *ref = NULL;
    struct df_err err = {0};
    assert_int_equal(f->e->ops->runner->step.create(f->e, &other, &ref, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    touch_in_dir(f, "go", "x");
    (void)await_end(f, step_a());
    assert_int_equal(starts(f), 1);
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), 0);
    script(f, "exit 0\n");
    create(f, &other);
    (void)await_end(f, &other);
}

static void what_a_dead_try_left_is_cleared_by_the_next(void **state)
{
    struct fixture *f = *state;
    script(f, "touch $DIR/work/old; result 1 InitFailed; exit 1\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    script(f, "ls $DIR/work > $DIR/seen; exit 0\n");
    create(f, step_a());
    struct df_engine_observation o = await_end(f, step_a());
    assert_false(o.has_result);
    assert_int_equal(o.exit_code, 0);
    DF_FREE char *seen = read_in_dir(f, "seen");
    assert_string_equal(seen, "");
}

/* ---- a spawner that comes back ---- */

static void a_runner_is_found_again_by_a_new_engine(void **state)
{
    struct fixture *f = *state;
    script(f, "wait_for go; result 1 PlanFailed; exit 1\n");
    create(f, step_a());
    close_engine(f);
    open_engine_keeping(f, false);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    create(f, step_a());
    touch_in_dir(f, "go", "x");
    await_notify(f, 1);
    struct df_engine_observation o = await_end(f, step_a());
    assert_true(o.has_result);
    assert_int_equal(o.exit_code, 1);
    assert_int_equal(starts(f), 1);
}

/* The spawner died between the start of the runner and the writing of runner.pid. */
static void a_runner_whose_pid_was_never_written_is_found_by_its_lock(void **state)
{
    struct fixture *f = *state;
    script(f, "trap 'result 1 Canceled; exit 1' TERM\necho x > $DIR/ready\nwait_for go\n");
    create(f, step_a());
    await_in_dir(f, "ready");
    close_engine(f);
    DF_STEP_DIR struct df_step_dir d = step_dir(f, UID_A);
    assert_int_equal(unlink(d.runner_pid), 0);
    open_engine_keeping(f, false);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
    create(f, step_a());
    assert_int_equal(starts(f), 1);
    assert_true(df_fs_exists(d.runner_pid));
    assert_int_equal(f->e->ops->runner->step.cancel(f->e, step_a(), NULL), 0);
    assert_true(await_end(f, step_a()).has_result);
}

static void a_half_made_directory_counts_as_ended_and_can_be_started(void **state)
{
    struct fixture *f = *state;
    DF_STEP_DIR struct df_step_dir d = step_dir(f, UID_A);
    assert_int_equal(mkdir(d.top, 0700), 0);
    struct df_engine_observation o = look(f, step_a());
    assert_int_equal(o.phase, DF_ENGINE_ENDED);
    assert_int_equal(o.exit_code, -1);
    script(f, "exit 0\n");
    create(f, step_a());
    assert_int_equal(await_end(f, step_a()).exit_code, 0);
}

/* ---- cleanup ---- */

static void cleanup_removes_an_ended_step_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct df_engine_step b = step_of(UID_B, "net-1-apply");
    script(f, "mkdir -p $DIR/work/cache/deep; touch $DIR/work/cache/deep/x; "
              "chmod -R a-w $DIR/work; result 0 Planned\n");
    create(f, step_a());
    create(f, &b);
    (void)await_end(f, step_a());
    (void)await_end(f, &b);
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), 0);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_ABSENT);
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), 0);
    assert_int_equal(look(f, &b).phase, DF_ENGINE_ENDED);
    DF_FREE char *name_a = df_strf("%s/by-name/net-1-plan", f->root);
    DF_FREE char *name_b = df_strf("%s/by-name/net-1-apply", f->root);
    assert_false(df_fs_exists(name_a));
    assert_true(df_fs_exists(name_b));
}

static void cleanup_removes_temporary_files_that_lie_elsewhere(void **state)
{
    struct fixture *f = *state;
    DF_STEP_DIR struct df_step_dir d = step_dir(f, UID_A);
    DF_FREE char *dir = NULL;
    script(f, "result 0 Planned\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    assert_int_equal(df_tmpdir_make(d.work, &dir, NULL), 0); /* as a killed runner leaves it */
    assert_int_not_equal(strncmp(dir, f->top, strlen(f->top)), 0);
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), 0);
    assert_false(df_fs_exists(dir));
}

static void a_state_that_nobody_took_survives_the_cleanup(void **state)
{
    struct fixture *f = *state;
    static const char *const bodies[] = {
        "echo handed on > $DIR/errored.tfstate; exit 1\n",
        "mkdir -p $DIR/work/net; echo left by tofu > $DIR/work/net/errored.tfstate; "
        "ln -s work/net $DIR/module; exit 1\n"};
    static const char *const expected[] = {"handed on\n", "left by tofu\n"};
    DF_FREE char *kept = df_strf("%s/failed/net-1-plan.errored.tfstate", f->root);
    for (size_t i = 0; i < DF_ARRAY_SIZE(bodies); i++) {
        script(f, bodies[i]);
        create(f, step_a());
        (void)await_end(f, step_a());
        assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), 0);
        DF_BUF struct df_buf b = DF_BUF_INIT(100);
        assert_int_equal(df_fs_read(kept, &b, NULL), 0);
        assert_string_equal(df_buf_str(&b), expected[i]);
    }
}

static void cleanup_refuses_a_living_step(void **state)
{
    struct fixture *f = *state;
    struct df_err err = {0};
    script(f, "wait_for go\n");
    create(f, step_a());
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
}

static void the_work_dir_of_a_failed_step_is_kept_on_demand(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *kept = df_strf("%s/failed/net-1-plan/main.tf", f->root);
    close_engine(f);
    open_engine_keeping(f, true);
    static const char *const bodies[] = {"cd $DIR; echo x > work/main.tf; exit 0\n",
                                         "cd $DIR; echo x > work/main.tf; exit 1\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bodies); i++) {
        script(f, bodies[i]);
        create(f, step_a());
        (void)await_end(f, step_a());
        assert_int_equal(f->e->ops->runner->step.cleanup(f->e, step_a(), NULL), 0);
        assert_int_equal(df_fs_exists(kept), i == 1);
        assert_int_equal(look(f, step_a()).phase, DF_ENGINE_ABSENT);
    }
}

static void a_step_that_was_never_made_is_absent_and_has_no_result(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *result = NULL;
    struct df_err err = {0};
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_ABSENT);
    assert_int_equal(f->e->ops->runner->step.result(f->e, step_a(), &result, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

/* ---- leftovers ---- */

static char *leftover(struct fixture *f, const char *name)
{
    char *path = NULL;
    struct df_err err = {0};
    if (f->e->ops->runner->leftover(f->e, step_a(), name, &path, &err) < 0)
        assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    return path;
}

static void what_a_runner_did_not_hand_over_is_found(void **state)
{
    struct fixture *f = *state;
    script(f, "mkdir -p $DIR/work/spool $DIR/work/source/net/.terraform/x\n"
              "echo the log > $DIR/work/spool/log\n"
              "echo not this > $DIR/work/source/net/.terraform/x/errored.tfstate\n"
              "echo this > $DIR/work/source/net/errored.tfstate\nexit 1\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    DF_FREE char *log = leftover(f, "log"), *events = leftover(f, "events");
    DF_FREE char *errored = leftover(f, "errored.tfstate");
    assert_non_null(log);
    assert_null(events);
    assert_non_null(errored);
    DF_FREE char *text = read_file(errored);
    assert_string_equal(text, "this\n");
}

static void
a_state_that_the_runner_put_aside_is_found_and_one_that_it_handed_over_is_not(void **state)
{
    struct fixture *f = *state;
    script(f, "mkdir -p $DIR/work/source; echo x > $DIR/work/source/errored.tfstate\n"
              "result 2 ApplyFailed; exit 2\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    DF_FREE char *handed_over = leftover(f, "errored.tfstate");
    assert_null(handed_over);
    touch_in_dir(f, "errored.tfstate", "y");
    DF_FREE char *aside = leftover(f, "errored.tfstate");
    assert_non_null(aside);
}

/* ---- many at once: run under TSan ---- */

struct crowd {
    struct fixture *f;
    int n;
};

static void *crowd_thread(void *arg)
{
    struct crowd *c = arg;
    char uid[40], name[40];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(uid, sizeof(uid), "0c0c0c0c-0000-4000-8000-%06d%06d", c->n, i);
        (void)snprintf(name, sizeof(name), "net-1-%d-%d", c->n, i);
        struct df_engine_step s = step_of(uid, name);
        create(c->f, &s);
        if (i == 1)
            (void)c->f->e->ops->runner->step.cancel(c->f->e, &s, NULL);
        struct df_engine_observation o = await_end(c->f, &s);
        assert_int_equal(o.phase, DF_ENGINE_ENDED);
        assert_true(o.cause[0]);
        while (c->f->e->ops->runner->step.cleanup(c->f->e, &s, NULL) < 0)
            (void)usleep(1000);
    }
    return NULL;
}

static void many_steps_come_and_go_at_once(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[6];
    struct crowd crowds[6];
    script(f, "result 0 Planned\n");
    for (int i = 0; i < 6; i++) {
        crowds[i] = (struct crowd){f, i};
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_thread, &crowds[i]), 0);
    }
    for (size_t i = 0; i < 6; i++)
        (void)pthread_join(threads[i], NULL);
    DF_FREE char *names = df_fs_join(f->root, "by-name");
    assert_int_equal(rmdir(names), 0); /* empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_runner_gets_the_handoff_and_its_end_and_result_are_seen),
        TEST(it_takes_what_its_row_says),
        TEST(a_runner_inherits_no_environment_descriptor_or_token_in_argv),
        TEST(the_runner_leads_a_session_of_its_own),
        TEST(a_runner_that_cannot_be_started_is_an_error_that_names_it),
        TEST(a_second_create_of_a_living_step_starts_nothing),
        TEST(a_name_that_another_step_has_is_a_conflict),
        TEST(what_a_dead_try_left_is_cleared_by_the_next),
        TEST(a_runner_is_found_again_by_a_new_engine),
        TEST(a_runner_whose_pid_was_never_written_is_found_by_its_lock),
        TEST(a_half_made_directory_counts_as_ended_and_can_be_started),
        TEST(cleanup_removes_an_ended_step_and_nothing_else),
        TEST(cleanup_removes_temporary_files_that_lie_elsewhere),
        TEST(a_state_that_nobody_took_survives_the_cleanup),
        TEST(cleanup_refuses_a_living_step),
        TEST(the_work_dir_of_a_failed_step_is_kept_on_demand),
        TEST(a_step_that_was_never_made_is_absent_and_has_no_result),
        TEST(what_a_runner_did_not_hand_over_is_found),
        TEST(a_state_that_the_runner_put_aside_is_found_and_one_that_it_handed_over_is_not),
        TEST(many_steps_come_and_go_at_once),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
