#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/parse.h"
#include "runner/orphans.h"
#include "runner/stop.h"
#include "runner/tofu/command.h"
#include "runner/tofu/failure.h"
#include "runner/tofu/gate.h"

enum { LONG_MS = 20000 };

/* ---- causes to stop ---- */

static bool becomes_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, LONG_MS) == 1;
}

static void expect_stop(const struct df_stop *s, enum df_stop_cause cause)
{
    assert_true(becomes_readable(df_stop_fd(s)));
    assert_int_equal(df_stop_cause(s), cause);
    assert_true(df_stopped(df_stop_flag(s)));
}

static void a_signal_stops_the_step_instead_of_ending_the_process(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < DF_ARRAY_SIZE(signals); i++) {
        struct df_stop *s;
        assert_int_equal(df_stop_new(-1, &s, NULL), 0);
        assert_int_equal(df_stop_cause(s), DF_STOP_NONE);
        assert_false(df_stopped(df_stop_flag(s)));
        assert_int_equal(kill(getpid(), signals[i]), 0);
        expect_stop(s, DF_STOP_SIGNAL);
        df_stop_free(s);
    }
}

static void the_time_limit_stops_the_step(void **state)
{
    (void)state;
    struct df_stop *s;
    assert_int_equal(df_stop_new(-1, &s, NULL), 0);
    df_stop_after(s, 0);
    expect_stop(s, DF_STOP_TIMEOUT);
    df_stop_free(s);
}

static void the_first_cause_counts(void **state)
{
    (void)state;
    int over = eventfd(0, EFD_CLOEXEC);
    struct df_stop *s;
    assert_int_equal(df_stop_new(over, &s, NULL), 0);
    assert_int_equal(eventfd_write(over, 1), 0);
    expect_stop(s, DF_STOP_OVER);
    df_stop_after(s, 1);
    assert_int_equal(df_stop_cause(s), DF_STOP_OVER);
    df_stop_free(s);
    close(over);
}

/* A second step in this process. */
static void only_a_signal_stops_the_next_step_as_well(void **state)
{
    (void)state;
    DF_CLOSE int over = eventfd(1, EFD_CLOEXEC), next_over = eventfd(0, EFD_CLOEXEC);
    struct df_stop *s;
    assert_int_equal(df_stop_new(over, &s, NULL), 0);
    df_stop_after(s, LONG_MS);
    expect_stop(s, DF_STOP_OVER);
    for (int i = 0; i < 2; i++) { /* also without a cause */
        assert_int_equal(df_stop_renew(s, next_over, NULL), 0);
        assert_int_equal(df_stop_cause(s), DF_STOP_NONE);
        assert_false(df_stopped(df_stop_flag(s)));
        struct pollfd p = {.fd = df_stop_fd(s), .events = POLLIN};
        assert_int_equal(poll(&p, 1, 0), 0);
    }
    assert_int_equal(eventfd_write(next_over, 1), 0);
    expect_stop(s, DF_STOP_OVER);
    assert_int_equal(df_stop_renew(s, -1, NULL), 0);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    expect_stop(s, DF_STOP_SIGNAL);
    assert_int_equal(df_stop_renew(s, -1, NULL), 0);
    expect_stop(s, DF_STOP_SIGNAL);
    df_stop_free(s);
}

static void a_step_that_was_never_stopped_ends_without_a_cause(void **state)
{
    (void)state;
    struct df_stop *s;
    assert_int_equal(df_stop_new(-1, &s, NULL), 0);
    df_stop_after(s, LONG_MS);
    assert_int_equal(df_stop_cause(s), DF_STOP_NONE);
    df_stop_free(s);
    df_stop_free(NULL);
}

/* ---- commands ---- */

struct place {
    char dir[64];
    char *program, *fifo, *pid_path, *report_dir;
    struct df_strs env;
    struct df_masks *masks;
    struct df_report *report;
    struct df_output *output;
    struct df_stop *stop;
    struct df_commander commander;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/dayfly-cmd-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->program = df_fs_join(p->dir, "tofu");
    p->fifo = df_fs_join(p->dir, "fifo");
    p->pid_path = df_fs_join(p->dir, "tofu.pid");
    p->report_dir = df_fs_join(p->dir, "report");
    (void)df_strs_add(&p->env, "PATH=/usr/bin:/bin");
    struct df_strs none = {0};
    assert_int_equal(df_fs_mkdirs(p->report_dir, 0700, NULL), 0);
    assert_int_equal(df_masks_new(&none, NULL, &p->masks, NULL), 0);
    assert_int_equal(df_report_to_directory(p->report_dir, &p->report, NULL), 0);
    assert_int_equal(df_output_new(p->masks, p->report, -1, &p->output, NULL), 0);
    assert_int_equal(df_stop_new(-1, &p->stop, NULL), 0);
    p->commander = (struct df_commander){.program = p->program,
                                         .directory = p->dir,
                                         .env = &p->env,
                                         .fifo_path = p->fifo,
                                         .pid_path = p->pid_path,
                                         .output = p->output,
                                         .stop = p->stop,
                                         .grace_ms = LONG_MS};
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    (void)df_orphans_end();
    df_output_free(p->output);
    df_report_free(p->report);
    df_masks_free(p->masks);
    df_stop_free(p->stop);
    df_strs_free(&p->env);
    free(p->program);
    free(p->fifo);
    free(p->pid_path);
    free(p->report_dir);
    int failed = df_fs_remove_tree(p->dir, NULL);
    free(p);
    return failed;
}

static struct df_command_end run(const struct place *p, const char *script,
                                 enum df_command_events events, struct df_buf *tail)
{
    DF_FREE char *text = df_strf("#!/bin/sh\n%s\n", script);
    assert_int_equal(df_fs_write(p->program, text, strlen(text), 0755, NULL), 0);
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, p->fifo);
    struct df_command_end end = {.code = -1};
    struct df_err err = {0};
    if (df_command_run(&p->commander, &args, events, tail, &end, &err) < 0)
        fail_msg("%s", err.message);
    return end;
}

static void expect_stream(const struct place *p, const char *stream, const char *expected)
{
    DF_FREE char *path = df_fs_join(p->report_dir, stream);
    DF_BUF struct df_buf b = DF_BUF_INIT(64 * DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), expected);
}

static void text_of_both_descriptors_arrives_in_order(void **state)
{
    const struct place *p = *state;
    struct df_command_end end =
        run(p, "echo one; echo two >&2; printf three", DF_EVENTS_NONE, NULL);
    assert_int_equal(end.code, 0);
    assert_false(end.stopped);
    expect_stream(p, "log", "one\ntwo\nthree");
    expect_stream(p, "events", "");
}

#define EVENT "{\"@message\":\"hello\",\"type\":\"x\"}"

static void events_aside_do_not_show_in_the_text(void **state)
{
    const struct place *p = *state;
    struct df_command_end end =
        run(p, "echo text; echo '" EVENT "' > \"$1\"; exit 2", DF_EVENTS_ASIDE, NULL);
    assert_int_equal(end.code, 2);
    expect_stream(p, "log", "text\n");
    expect_stream(p, "events", EVENT "\n");
}

static void events_on_stdout_are_shown_as_text(void **state)
{
    const struct place *p = *state;
    (void)run(p, "echo '" EVENT "'; echo panic", DF_EVENTS_ON_STDOUT, NULL);
    expect_stream(p, "log", "hello\npanic\n");
    expect_stream(p, "events", EVENT "\n");
}

static void the_tail_is_the_end_of_the_text_within_its_cap(void **state)
{
    const struct place *p = *state;
    DF_BUF struct df_buf tail = DF_BUF_INIT(1000);
    (void)run(p, "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done", DF_EVENTS_NONE,
              &tail);
    assert_true(tail.len <= 1000 && tail.len >= 500);
    assert_true(df_ends_with(df_buf_str(&tail), "line 4998\nline 4999\n"));
}

static void megabytes_flow_through_whole(void **state)
{
    const struct place *p = *state;
    (void)run(p, "head -c 5000000 /dev/zero | tr '\\0' x", DF_EVENTS_NONE, NULL);
    DF_FREE char *path = df_fs_join(p->report_dir, "log");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5000000);
}

static void a_signal_s_end_is_an_exit_code(void **state)
{
    const struct place *p = *state;
    assert_int_equal(run(p, "kill -9 $$", DF_EVENTS_NONE, NULL).code, 128 + SIGKILL);
}

static void what_holds_the_pipe_open_does_not_hold_up_the_end(void **state)
{
    const struct place *p = *state;
    int64_t before = df_mono_ms();
    struct df_command_end end = run(p, "sleep 60 & echo done", DF_EVENTS_NONE, NULL);
    assert_int_equal(end.code, 0);
    assert_true(df_mono_ms() - before < 60000);
    expect_stream(p, "log", "done\n");
}

static void the_process_has_what_it_was_given_and_no_more(void **state)
{
    const struct place *p = *state;
    (void)run(p, "pwd; env | grep -v -e ^PWD -e ^_ -e ^SHLVL -e ^OLDPWD; ls /proc/self/fd | wc -l",
              DF_EVENTS_NONE, NULL);
    /* 0, 1, 2 and the directory that ls reads */
    DF_FREE char *expected = df_strf("%s\nPATH=/usr/bin:/bin\n4\n", p->dir);
    expect_stream(p, "log", expected);
}

static void the_pid_file_names_the_process(void **state)
{
    const struct place *p = *state;
    (void)run(p, "while [ ! -s tofu.pid ]; do :; done; echo $$", DF_EVENTS_NONE, NULL);
    DF_FREE char *text = df_fs_join(p->report_dir, "log");
    DF_BUF struct df_buf log = DF_BUF_INIT(100);
    DF_BUF struct df_buf pid = DF_BUF_INIT(200);
    assert_int_equal(df_fs_read(text, &log, NULL), 0);
    assert_int_equal(df_fs_read(p->pid_path, &pid, NULL), 0);
    assert_int_equal(strtol(df_buf_str(&log), NULL, 10), strtol(df_buf_str(&pid), NULL, 10));
    char boot[64];
    unsigned long long start;
    int number;
    assert_int_equal(sscanf(df_buf_str(&pid), "%d %llu %63s", &number, &start, boot), 3);
}

/* Stops the step once the script has made the file "ready". */
static pid_t stop_when_ready(const struct place *p)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        DF_FREE char *ready = df_fs_join(p->dir, "ready");
        while (!df_fs_exists(ready))
            (void)usleep(1000);
        (void)kill(parent, SIGTERM);
        _exit(0);
    }
    return child;
}

static void stopping_is_one_interrupt_to_the_process_alone(void **state)
{
    const struct place *p = *state;
    pid_t stopper = stop_when_ready(p);
    struct df_command_end end =
        run(p,
            "trap 'echo interrupted >> count' INT\n"
            "sh -c 'trap \"echo child >> count\" INT; : > ready; sleep 0.3 & wait; wait' &\n"
            "wait; wait\n"
            "echo state written; exit 1",
            DF_EVENTS_NONE, NULL);
    assert_int_equal(waitpid(stopper, NULL, 0), stopper);
    assert_int_equal(end.code, 1);
    assert_true(end.stopped);
    assert_false(end.killed);
    DF_FREE char *path = df_fs_join(p->dir, "count");
    DF_BUF struct df_buf count = DF_BUF_INIT(100);
    assert_int_equal(df_fs_read(path, &count, NULL), 0);
    assert_string_equal(df_buf_str(&count), "interrupted\n");
}

static void who_does_not_listen_is_killed_when_the_grace_is_over(void **state)
{
    struct place *p = *state;
    p->commander.grace_ms = 100;
    pid_t stopper = stop_when_ready(p);
    struct df_command_end end =
        run(p, "trap '' INT TERM; : > ready; while :; do sleep 0.05; done", DF_EVENTS_NONE, NULL);
    assert_int_equal(waitpid(stopper, NULL, 0), stopper);
    assert_int_equal(end.code, 128 + SIGKILL);
    assert_true(end.killed);
}

static void a_program_that_is_not_there_is_a_failure(void **state)
{
    const struct place *p = *state;
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, "x");
    struct df_command_end end;
    struct df_err err = {0};
    assert_int_equal(df_command_run(&p->commander, &args, DF_EVENTS_NONE, NULL, &end, &err), -1);
    assert_non_null(strstr(err.message, p->program));
}

static void a_command_in_the_background_writes_its_files(void **state)
{
    const struct place *p = *state;
    static const char script[] = "#!/bin/sh\necho out; echo err >&2; exit 3\n";
    assert_int_equal(df_fs_write(p->program, script, strlen(script), 0755, NULL), 0);
    DF_FREE char *out = df_fs_join(p->dir, "out");
    DF_FREE char *errors = df_fs_join(p->dir, "err");
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, "x");
    struct df_process process;
    struct df_command_end end;
    assert_int_equal(df_command_start(&p->commander, &args, out, errors, &process, NULL), 0);
    assert_int_equal(df_command_wait(&p->commander, &process, &end, NULL), 0);
    assert_int_equal(end.code, 3);
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    assert_int_equal(df_fs_read(out, &b, NULL), 0);
    assert_int_equal(df_fs_read(errors, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), "out\nerr\n");
}

/* ---- the gate ---- */

/* A process that writes what it reads from the file, once it may open it. It inherits the gate, as
 * a process that was forked and has not executed its program yet. */
static pid_t read_through(const char *path, int to)
{
    pid_t child = fork();
    if (child == 0) {
        char text[64] = "";
        int fd = open(path, O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
        if (n >= 0)
            (void)!write(to, text, (size_t)n);
        _exit(n < 0);
    }
    return child;
}

static void who_opens_a_gate_waits_for_its_content(void **state)
{
    const struct place *p = *state;
    struct df_gate gate = DF_GATE_INIT;
    (void)signal(SIGIO, SIG_IGN);
    DF_FREE char *path = df_fs_join(p->dir, "gate");
    DF_FREE char *content = df_fs_join(p->dir, "content");
    assert_int_equal(df_fs_write(content, "the plan", 8, 0600, NULL), 0);
    if (df_gate_make(path, &gate, NULL) < 0)
        skip(); /* no leases on this file system */
    int out[2];
    assert_int_equal(pipe(out), 0);
    pid_t reader = read_through(path, out[1]);
    /* The kernel shows the lease as one that is to be given up as soon as somebody waits. */
    while (fcntl(gate.fd, F_GETLEASE) == F_WRLCK)
        (void)usleep(1000);
    struct pollfd early = {.fd = out[0], .events = POLLIN};
    assert_int_equal(poll(&early, 1, 0), 0);
    assert_int_equal(df_gate_open(&gate, content, NULL), 0);
    char text[64] = "";
    assert_int_equal(read(out[0], text, sizeof text), 8);
    assert_string_equal(text, "the plan");
    int status;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    close(out[0]);
    close(out[1]);
}

static void a_gate_needs_a_new_file_and_a_content(void **state)
{
    const struct place *p = *state;
    struct df_gate gate = DF_GATE_INIT;
    DF_FREE char *path = df_fs_join(p->dir, "gate");
    assert_int_equal(df_fs_write(path, "x", 1, 0600, NULL), 0);
    assert_int_equal(df_gate_make(path, &gate, NULL), -1);
    assert_int_equal(gate.fd, -1);
    assert_int_equal(unlink(path), 0);
    if (df_gate_make(path, &gate, NULL) < 0)
        skip();
    struct df_err err = {0};
    assert_int_equal(df_gate_open(&gate, p->program, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    df_gate_drop(&gate);
    df_gate_drop(&gate);
}

/* ---- why tofu failed ---- */

static void the_first_error_is_read_from_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *summary, *place, *detail;
    } table[] = {
        {"", "", "", ""},
        {"all is well\n", "", "", ""},
        {"Initializing...\n\nError: Failed to resolve provider packages\n\nCould not resolve "
         "provider x:\nrefused\n\n",
         "Failed to resolve provider packages", "", "Could not resolve provider x: refused"},
        {"Error: Unclosed configuration block\n\n  on main.tf line 1, in resource \"x\":\n"
         "   1: resource \"x\" {\n\nThere is no closing brace.\n\nError: Other\n\nno\n",
         "Unclosed configuration block", "main.tf:1", "There is no closing brace."},
        {"Error: Terraform encountered problems during initialisation, including problems\nwith "
         "the configuration, described below.\n\n\nError: Missing name\n\n  on a.tf line 12:\n",
         "Missing name", "a.tf:12", ""},
        {"Error: OpenTofu encountered problems\n", "OpenTofu encountered problems", "", ""},
        {"\xe2\x95\xb7\n\xe2\x94\x82 Error: Framed\n", "Framed", "", ""},
        {"Not an Error: here\n", "", "", ""},
        {"Error: no newline", "no newline", "", ""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_failure f;
        df_failure_from_text(table[i].text, &f);
        assert_string_equal(f.summary, table[i].summary);
        assert_string_equal(f.place, table[i].place);
        assert_string_equal(f.detail, table[i].detail);
    }
}

static void endless_text_fits(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&b, "Error: ");
    for (int i = 0; i < 5000; i++)
        (void)df_buf_adds(&b, "word ");
    for (int i = 0; i < 5000; i++)
        (void)df_buf_adds(&b, "\n\nmore and more");
    struct df_failure f;
    df_failure_from_text(df_buf_str(&b), &f);
    assert_int_equal(strlen(f.summary), sizeof f.summary - 1);
    assert_int_equal(strlen(f.detail), sizeof f.detail - 1);
}

static void failures_get_the_reason_they_mean(void **state)
{
    (void)state;
    static const struct {
        const char *summary, *detail, *reason, *word;
    } table[] = {
        {"Invalid reference", "x", "PlanFailed", "tofu plan: Invalid reference: x"},
        {"", "", "PlanFailed", "its log says why"},
        {"Error acquiring the state lock",
         "Error message: HTTP remote state already locked: ID=12 Lock Info: ID: 12 Path: "
         "Operation: OperationTypePlan Who: me@host Version: 1 Created: 2026-01-01 10:00 Info:",
         "StateLocked", "locked by me@host (OperationTypePlan since 2026-01-01 10:00, lock 12)"},
        {"Error acquiring the state lock",
         "Error message: HTTP remote state already locked: ID=99 Lock Info: ID: 12 Path: "
         "Operation: "
         "OperationTypePlan Who: me@host Version: 1 Created: 2026-01-01 10:00 Info:",
         "StateLocked", "the state is locked (lock 99)"},
        {"Error acquiring the state lock",
         "Error message: HTTP remote state already locked, failed to unmarshal body Lock Info: ID: "
         "12 Path: Operation: OperationTypePlan Who: me@host Version: 1 Created: 2026-01-01 10:00 "
         "Info:",
         "StateLocked", "the lock names no holder"},
        {"Error acquiring the state lock",
         "Error message: state blob is already locked blob metadata \"terraformlockid\" was empty",
         "StateLocked", "break the lease of the blob"},
        {"Error acquiring the state lock", "Error message: connection refused", "StateUnavailable",
         "connection refused"},
        {"Failed to save state", "Error saving state: HTTP error: 409", "StateRefused", "409"},
        {"Failed to save state", "Error saving state: HTTP error: 412", "StorageTakenOver", "412"},
        {"Error acquiring the state lock", "Error message: Unexpected HTTP response code 412",
         "StorageTakenOver", "412"},
        {"Failed to save state", "Error saving state: HTTP error: 503", "StateUnavailable", "503"},
        {"Error loading state", "HTTP remote state endpoint invalid auth", "StateRefused", "auth"},
        {"Failed to load state", "dial tcp", "StateUnavailable", "dial"},
        {"Error refreshing state", "Failed to read remote state: unexpected EOF",
         "StateUnavailable", "unexpected EOF"},
        {"Failed to write file", "write /x/y: no space left on device", "DiskFull", "/x/y"},
        {"write /x: no space left on device", "", "DiskFull", "/x"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_failure f = {.summary = ""};
        struct df_err err = {0};
        (void)snprintf(f.summary, sizeof f.summary, "%s", table[i].summary);
        (void)snprintf(f.detail, sizeof f.detail, "%s", table[i].detail);
        assert_int_equal(df_failure_explain(&f, "tofu plan", "PlanFailed", NULL, &err), -1);
        assert_string_equal(err.reason, table[i].reason);
        if (!strstr(err.message, table[i].word))
            fail_msg("\"%s\" is not in: %s", table[i].word, err.message);
    }
}

static void a_state_that_broke_off_is_told_from_what_failed_behind_it(void **state)
{
    (void)state;
    static const char cause[] = "Failed to read remote state: unexpected EOF";
    static const struct {
        const char *summary, *detail;
        bool is_broken_read;
    } table[] = {
        {"error loading state: Failed to read remote state: unexpected EOF", "", true},
        {"Error loading state: Failed to read remote state: read tcp: reset", "", true},
        {"Error refreshing state", cause, true},
        {"Failed to refresh state", cause, true},
        {"Failed to refresh source state", cause, true},
        {"error loading state: HTTP remote state endpoint invalid auth", "", false},
        {"Failed to save state",
         "Error saving state: failed checking for existing remote state: "
         "Failed to read remote state: unexpected EOF",
         false},
        {"Error loading state error",
         "error loading the remote state: Failed to read remote "
         "state: unexpected EOF",
         false},
        {"Failed to read remote state: unexpected EOF", "", false},
        {"", "", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_failure f = {.summary = ""};
        (void)snprintf(f.summary, sizeof f.summary, "%s", table[i].summary);
        (void)snprintf(f.detail, sizeof f.detail, "%s", table[i].detail);
        if (df_failure_is_broken_read(&f) != table[i].is_broken_read)
            fail_msg("%s: %s", table[i].summary, table[i].detail);
    }
}

static void a_provider_without_credentials_is_told_from_its_words(void **state)
{
    (void)state;
    static const struct {
        const char *summary, *detail, *of;
    } table[] = {
        {"No valid credential sources found",
         "Please see https://registry.terraform.io/providers/hashicorp/aws for more information "
         "about providing credentials. Error: failed to refresh cached credentials, no EC2 IMDS "
         "role found, operation error ec2imds: GetMetadata, access disabled to EC2 IMDS via client "
         "option, or \"AWS_EC2_METADATA_DISABLED\" environment variable",
         "AWS"},
        {"validating provider credentials",
         "retrieving caller identity from STS: operation error STS: GetCallerIdentity, https "
         "response error StatusCode: 403, api error ExpiredToken: The security token included in "
         "the request is expired",
         "AWS"},
        {"Attempted to load application default credentials since neither `credentials` nor "
         "`access_token` was set in the provider block.  No credentials loaded. To use your gcloud "
         "credentials, run 'gcloud auth application-default login'",
         "google: could not find default credentials. See "
         "https://cloud.google.com/docs/authentication/external/set-up-adc for more information",
         "Google Cloud"},
        {"unable to build authorizer for Resource Manager API: could not configure AzureCli "
         "Authorizer: could not parse Azure CLI version: launching Azure CLI: exec: \"az\": "
         "executable file not found in $PATH",
         "", "Azure"},
        {"building account: could not acquire access token to parse claims: running Azure CLI: "
         "exit status 1: ERROR: Please run 'az login' to setup account.",
         "", "Azure"},
        {"GET https://api.github.com/user: 401 Bad credentials []", "", "GitHub"},
        {"no vault token set on Client", "", "Vault"},
        {"api_key and app_key must be set unless validate = false", "", "Datadog"},
        {"Unsupported argument", "An argument named \"credentials\" is not expected here.", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_failure f = {.summary = ""};
        struct df_err err = {0};
        (void)snprintf(f.summary, sizeof f.summary, "%s", table[i].summary);
        (void)snprintf(f.detail, sizeof f.detail, "%s", table[i].detail);
        assert_int_equal(df_failure_explain(&f, "tofu plan", "PlanFailed", NULL, &err), -1);
        assert_string_equal(err.reason, table[i].of ? "CredentialsMissing" : "PlanFailed");
        if (table[i].of && (!strstr(err.message, table[i].of) || !strstr(err.message, "--env ")))
            fail_msg("%s", err.message);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_that_broke_off_is_told_from_what_failed_behind_it),
        cmocka_unit_test(a_provider_without_credentials_is_told_from_its_words),
        cmocka_unit_test(a_signal_stops_the_step_instead_of_ending_the_process),
        cmocka_unit_test(the_time_limit_stops_the_step),
        cmocka_unit_test(the_first_cause_counts),
        cmocka_unit_test(only_a_signal_stops_the_next_step_as_well),
        cmocka_unit_test(a_step_that_was_never_stopped_ends_without_a_cause),
        T(text_of_both_descriptors_arrives_in_order),
        T(events_aside_do_not_show_in_the_text),
        T(events_on_stdout_are_shown_as_text),
        T(the_tail_is_the_end_of_the_text_within_its_cap),
        T(megabytes_flow_through_whole),
        T(a_signal_s_end_is_an_exit_code),
        T(what_holds_the_pipe_open_does_not_hold_up_the_end),
        T(the_process_has_what_it_was_given_and_no_more),
        T(the_pid_file_names_the_process),
        T(stopping_is_one_interrupt_to_the_process_alone),
        T(who_does_not_listen_is_killed_when_the_grace_is_over),
        T(a_program_that_is_not_there_is_a_failure),
        T(a_command_in_the_background_writes_its_files),
        T(who_opens_a_gate_waits_for_its_content),
        T(a_gate_needs_a_new_file_and_a_content),
        cmocka_unit_test(the_first_error_is_read_from_text),
        cmocka_unit_test(endless_text_fits),
        cmocka_unit_test(failures_get_the_reason_they_mean),
    };
    return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
