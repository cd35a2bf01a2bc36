/* The registry of engines, and the local engine with real processes: runners are shell scripts. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/process/tmpdir.h"
#include "spawner/engine/engine.h"
#include "spawner/engine/step_dir.h"

#define UID_A "0a0a0a0a-0000-4000-8000-000000000001"
#define UID_B "0b0b0b0b-0000-4000-8000-000000000002"
#define TOKEN "c1a1mt0ken"

/* Every script has $DIR, its step's directory, and may use these. A script ends by itself when the
 * test is gone. */
#define PRELUDE                                                                                    \
    "#!/bin/sh\n"                                                                                  \
    "DIR=$5\n"                                                                                     \
    "FD=$3\n"                                                                                      \
    "echo started >> \"$DIR/../starts\"\n"                                                         \
    "result() { echo \"{\\\"exitCode\\\":$1,\\\"reason\\\":\\\"$2\\\"}\" > \"$DIR/result.json\"; " \
    "}\n"                                                                                          \
    "wait_for() { n=0; while [ ! -e \"$DIR/$1\" ] && [ $n -lt 3000 ]; do sleep 0.01; "             \
    "n=$((n+1)); done; }\n"

struct fixture {
    char top[64];
    char *root;   /* <top>/steps */
    char *runner; /* <top>/runner */
    struct df_engine *e;
    atomic_int notified;
};

static void on_notify(void *arg, const char *name)
{
    struct fixture *f = arg;
    assert_int_equal(strncmp(name, "net-1-", 6), 0);
    atomic_fetch_add(&f->notified, 1);
}

static void open_engine_keeping(struct fixture *f, bool keep_failed)
{
    const struct df_local_options o = {.directory = f->root,
                                       .runner_path = f->runner,
                                       .notify = on_notify,
                                       .notify_arg = f,
                                       .keep_failed = keep_failed};
    assert_int_equal(df_engine_local_new(&o, &f->e, NULL), 0);
}

static void close_engine(struct fixture *f)
{
    if (f->e)
        f->e->ops->close(f->e);
    f->e = NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    (void)snprintf(f->top, sizeof(f->top), "/tmp/dayfly-engine-XXXXXX");
    assert_non_null(mkdtemp(f->top));
    f->root = df_fs_join(f->top, "steps");
    f->runner = df_fs_join(f->top, "runner");
    open_engine_keeping(f, false);
    *state = f;
    return 0;
}

static struct df_step_dir step_dir(const struct fixture *f, const char *uid)
{
    struct df_step_dir d;
    assert_int_equal(df_step_dir_init(&d, f->root, uid, NULL), 0);
    return d;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    static const char *const uids[] = {UID_A, UID_B};
    for (size_t i = 0; i < DF_ARRAY_SIZE(uids); i++) {
        DF_STEP_DIR struct df_step_dir d = step_dir(f, uids[i]);
        (void)!df_step_dir_kill(&d, NULL);
    }
    close_engine(f);
    assert_int_equal(df_fs_remove_tree(f->top, NULL), 0);
    free(f->root);
    free(f->runner);
    free(f);
    return 0;
}

static void script(struct fixture *f, const char *body)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&b, PRELUDE);
    (void)df_buf_adds(&b, body);
    assert_int_equal(df_fs_replace(f->runner, b.data, b.len, 0700, NULL), 0);
}

static struct df_engine_step step_of(const char *uid, const char *name)
{
    return (struct df_engine_step){.name = name,
                                   .uid = uid,
                                   .server_url = "http://127.0.0.1:1",
                                   .endpoint_file = "/nowhere/endpoint",
                                   .claim_token = TOKEN,
                                   .grace_seconds = 900};
}

static const struct df_engine_step *step_a(void)
{
    static struct df_engine_step s;
    s = step_of(UID_A, "net-1-plan");
    return &s;
}

static void create(struct fixture *f, const struct df_engine_step *s)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err err = {0};
    if (f->e->ops->create(f->e, s, &ref, &err) < 0)
        fail_msg("create: %s", err.message);
    assert_string_equal(df_json_str(ref, "kind"), "local");
    assert_string_equal(df_json_str(ref, "name"), s->name);
    assert_string_equal(df_json_str(ref, "uid"), s->uid);
}

static struct df_engine_observation look(struct fixture *f, const struct df_engine_step *s)
{
    struct df_engine_observation o;
    struct df_err err = {0};
    if (f->e->ops->status(f->e, s, &o, &err) < 0)
        fail_msg("status: %s", err.message);
    return o;
}

/* main() set an alarm: what never comes ends the program. */
static struct df_engine_observation await_end(struct fixture *f, const struct df_engine_step *s)
{
    struct df_engine_observation o;
    while ((o = look(f, s)).phase == DF_ENGINE_RUNNING)
        (void)usleep(2000);
    return o;
}

static void await_notify(struct fixture *f, int count)
{
    while (atomic_load(&f->notified) < count)
        (void)usleep(1000);
}

static void await_file(const char *path)
{
    struct stat st;
    while (stat(path, &st) < 0 || st.st_size == 0)
        (void)usleep(1000);
}

static char *in_dir(const struct fixture *f, const char *name)
{
    return df_strf("%s/%s/%s", f->root, UID_A, name);
}

static void await_in_dir(const struct fixture *f, const char *name)
{
    DF_FREE char *path = in_dir(f, name);
    await_file(path);
}

static void touch_in_dir(const struct fixture *f, const char *name, const char *text)
{
    DF_FREE char *path = in_dir(f, name);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, NULL), 0);
}

static char *read_file(const char *path)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    return df_buf_take(&b);
}

static char *read_in_dir(const struct fixture *f, const char *name)
{
    DF_FREE char *path = in_dir(f, name);
    return read_file(path);
}

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static size_t starts(const struct fixture *f)
{
    DF_FREE char *path = df_fs_join(f->root, "starts");
    if (!df_fs_exists(path))
        return 0;
    DF_FREE char *text = read_file(path);
    return lines_of(text);
}

static pid_t pid_in(const struct fixture *f, const char *name)
{
    DF_FREE char *text = read_in_dir(f, name);
    int pid = 0;
    assert_int_equal(sscanf(text, "%d", &pid), 1);
    return pid;
}

/* ---- the registry ---- */

static const struct df_engine_ops ops_a = {.name = "a"}, ops_b = {.name = "b"};

static void an_unknown_engine_is_refused_with_the_names_of_the_known(void **state)
{
    (void)state;
    struct df_engine a = {&ops_a}, b = {&ops_b}, *got = NULL;
    struct df_engine_registry r = {0};
    struct df_err err = {0};
    assert_int_equal(df_engine_register(&r, &a, NULL), 0);
    assert_int_equal(df_engine_register(&r, &b, NULL), 0);
    assert_int_equal(df_engine_get(&r, "b", &got, NULL), 0);
    assert_ptr_equal(got, &b);
    assert_int_equal(df_engine_get(&r, "x", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.message, "unsupported execution engine: \"x\" (registered: [a b])");
}

static void an_engine_is_registered_once_and_the_table_has_an_end(void **state)
{
    (void)state;
    struct df_engine a = {&ops_a};
    struct df_engine_ops many_ops[9];
    struct df_engine many[9];
    char names[9][8];
    struct df_engine_registry r = {0}, full = {0};
    struct df_err err = {0};
    assert_int_equal(df_engine_register(&r, &a, NULL), 0);
    assert_int_equal(df_engine_register(&r, &a, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    for (size_t i = 0; i < 9; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "e%zu", i);
        many_ops[i] = (struct df_engine_ops){.name = names[i]};
        many[i] = (struct df_engine){&many_ops[i]};
        assert_int_equal(df_engine_register(&full, &many[i], &err), i < 8 ? 0 : -1);
    }
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

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
    assert_int_equal(f->e->ops->result(f->e, step_a(), &result, NULL), 0);
    assert_string_equal(df_json_str(result, "reason"), "Planned");
    DF_FREE char *text = read_in_dir(f, "handoff");
    assert_int_equal(df_json_parse(text, strlen(text), &handoff, NULL), 0);
    assert_string_equal(df_json_str(handoff, "server"), "http://127.0.0.1:1");
    assert_string_equal(df_json_str(handoff, "uid"), UID_A);
    assert_string_equal(df_json_str(handoff, "token"), TOKEN);
    assert_string_equal(df_json_str(handoff, "endpointFile"), "/nowhere/endpoint");
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
    assert_int_equal(f->e->ops->create(f->e, step_a(), &ref, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, f->runner));
    struct df_engine_observation o = look(f, step_a());
    assert_int_equal(o.phase, DF_ENGINE_ENDED);
    assert_string_equal(o.cause, "its runner was not started");
    assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->create(f->e, &other, &ref, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    touch_in_dir(f, "go", "x");
    (void)await_end(f, step_a());
    assert_int_equal(starts(f), 1);
    assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), -1);
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
        assert_int_equal(f->e->ops->cancel(f->e, step_a(), NULL), 0);
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
    while (df_identity_of(runner, &id, NULL) == 0)
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
        assert_int_equal(f->e->ops->cancel(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->cancel(f->e, step_a(), NULL), 0);
    struct df_engine_observation o = await_end(f, step_a());
    assert_string_equal(o.cause, "killed by signal 9, SIGKILL");
    struct df_identity child;
    assert_int_equal(df_identity_of(pid_in(f, "child"), &child, NULL), -1);
}

static void the_deadline_of_a_cancel_outlives_the_spawner(void **state)
{
    struct fixture *f = *state;
    script(f, "trap '' TERM\necho x > $DIR/ready\nwhile :; do sleep 1; done\n");
    create(f, step_a());
    await_in_dir(f, "ready");
    assert_int_equal(f->e->ops->cancel(f->e, step_a(), NULL), 0);
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
              "wait_for child; exit 0\n");
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
    assert_int_equal(df_step_dir_arm(&d, 5000000, &first, NULL), 0);
    assert_int_equal(df_step_dir_arm(&d, 900000000, &second, NULL), 0);
    assert_int_equal(first, second);
    touch_in_dir(f, "kill-at", "99999999999999999\n"); /* of an earlier, longer boot */
    assert_int_equal(df_step_dir_arm(&d, 5000000, &third, NULL), 0);
    assert_true(third >= first && third < first + 3600000000);
}

static void cancelling_what_is_not_there_is_success(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->e->ops->cancel(f->e, step_a(), NULL), 0);
    script(f, "exit 0\n");
    create(f, step_a());
    (void)await_end(f, step_a());
    assert_int_equal(f->e->ops->cancel(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->cancel(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), 0);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_ABSENT);
    assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), 0);
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
        assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->cleanup(f->e, step_a(), &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_int_equal(look(f, step_a()).phase, DF_ENGINE_RUNNING);
}

static void the_work_dir_of_a_failed_step_is_kept_on_demand(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *kept = df_strf("%s/failed/net-1-plan/main.tf", f->root);
    close_engine(f);
    open_engine_keeping(f, true);
    static const char *const bodies[] = {"echo x > $DIR/work/main.tf; exit 0\n",
                                         "echo x > $DIR/work/main.tf; exit 1\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bodies); i++) {
        script(f, bodies[i]);
        create(f, step_a());
        (void)await_end(f, step_a());
        assert_int_equal(f->e->ops->cleanup(f->e, step_a(), NULL), 0);
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
    assert_int_equal(f->e->ops->result(f->e, step_a(), &result, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

/* ---- leftovers ---- */

static char *leftover(struct fixture *f, const char *name)
{
    char *path = NULL;
    struct df_err err = {0};
    if (f->e->ops->leftover(f->e, step_a(), name, &path, &err) < 0)
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
            (void)c->f->e->ops->cancel(c->f->e, &s, NULL);
        struct df_engine_observation o = await_end(c->f, &s);
        assert_int_equal(o.phase, DF_ENGINE_ENDED);
        assert_true(o.cause[0]);
        while (c->f->e->ops->cleanup(c->f->e, &s, NULL) < 0)
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

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    (void)alarm(300);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_engine_is_refused_with_the_names_of_the_known),
        cmocka_unit_test(an_engine_is_registered_once_and_the_table_has_an_end),
        TEST(a_runner_gets_the_handoff_and_its_end_and_result_are_seen),
        TEST(a_runner_inherits_no_environment_descriptor_or_token_in_argv),
        TEST(the_runner_leads_a_session_of_its_own),
        TEST(a_runner_that_cannot_be_started_is_an_error_that_names_it),
        TEST(a_second_create_of_a_living_step_starts_nothing),
        TEST(a_name_that_another_step_has_is_a_conflict),
        TEST(what_a_dead_try_left_is_cleared_by_the_next),
        TEST(the_cause_of_an_end_says_the_code_or_the_signal),
        TEST(each_new_try_of_a_step_is_watched_to_its_end),
        TEST(a_step_has_not_ended_while_something_of_its_session_lives),
        TEST(a_tofu_that_left_the_session_counts_as_well),
        TEST(a_tofu_that_lost_its_runner_is_interrupted_once),
        TEST(a_tofu_that_its_runner_has_interrupted_gets_no_second_one),
        TEST(a_tofu_whose_runner_died_beside_its_spawner_is_interrupted_by_the_next),
        TEST(a_tofu_that_lost_its_runner_is_not_held_up_by_its_output),
        TEST(a_stranger_under_a_recycled_pid_does_not_count),
        TEST(a_pid_of_an_earlier_boot_does_not_count),
        TEST(cancel_sends_one_sigterm_however_often_it_is_asked),
        TEST(what_does_not_end_in_its_grace_period_is_killed_with_its_children),
        TEST(the_deadline_of_a_cancel_outlives_the_spawner),
        TEST(processes_that_outlive_their_runner_are_killed_in_the_end),
        TEST(a_deadline_is_never_moved_back_by_asking_again),
        TEST(cancelling_what_is_not_there_is_success),
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
