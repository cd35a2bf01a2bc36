#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/process/process.h"

static const char *const the_env[] = {"PATH=/usr/bin:/bin", "GREETING=hello", NULL};

#define SH(script) ((const char *const[]){"sh", "-c", (script), NULL})
/* Runs a shell script and gives back its stdout; the exit code in *code. */
static char *run_sh(const char *script, int *code)
{
    struct df_process_options o = DF_PROCESS_OPTIONS(SH(script), the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(65536);
    struct df_err err = {0};
    if (df_process_run(&o, 20000, &out, NULL, code, &err) < 0)
        fail_msg("%s", err.message);
    return df_buf_take(&out);
}

static void a_child_gets_exactly_the_environment_named(void **state)
{
    (void)state;
    struct df_process_options o =
        DF_PROCESS_OPTIONS(((const char *const[]){"/usr/bin/env", NULL}), the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    int code = -1;
    assert_int_equal(df_process_run(&o, 10000, &out, NULL, &code, NULL), 0);
    assert_int_equal(code, 0);
    assert_string_equal(df_buf_str(&out), "PATH=/usr/bin:/bin\nGREETING=hello\n");
}

static void no_environment_means_an_empty_one(void **state)
{
    (void)state;
    struct df_process_options o =
        DF_PROCESS_OPTIONS(((const char *const[]){"/usr/bin/env", NULL}), NULL);
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    int code = -1;
    assert_int_equal(df_process_run(&o, 10000, &out, NULL, &code, NULL), 0);
    assert_string_equal(df_buf_str(&out), "");
}

static void only_named_descriptors_reach_the_child(void **state)
{
    (void)state;
    int open_one = open("/dev/null", O_RDONLY), kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(open_one > 2 && kept > 2);
    DF_FREE char *script =
        df_strf("test -e /proc/$$/fd/%d; echo $?; test -e /proc/$$/fd/%d; echo $?", kept, open_one);
    const int keep[] = {kept, -1};
    struct df_process_options o = DF_PROCESS_OPTIONS(SH(script), the_env);
    o.keep_fds = keep;
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    int code = -1;
    assert_int_equal(df_process_run(&o, 10000, &out, NULL, &code, NULL), 0);
    assert_string_equal(df_buf_str(&out), "0\n1\n");
    assert_int_equal(fcntl(kept, F_GETFD), FD_CLOEXEC); /* the parent's own is as it was */
    (void)close(open_one);
    (void)close(kept);
}

static void standard_descriptors_may_be_given_crosswise(void **state)
{
    (void)state;
    /* stdin is the parent's 2 and stderr the parent's 0: no dup2 may destroy another's source. */
    char in_name[] = "/tmp/df-process-in-XXXXXX", err_name[] = "/tmp/df-process-err-XXXXXX";
    int in = mkostemp(in_name, O_CLOEXEC), err_fd = mkostemp(err_name, O_CLOEXEC);
    assert_true(in >= 0 && err_fd >= 0);
    assert_int_equal(write(in, "crossed", 7), 7);
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    int saved0 = dup(0), saved2 = dup(2);
    (void)dup2(in, 2);
    (void)dup2(err_fd, 0);
    struct df_process_options o = DF_PROCESS_OPTIONS(SH("cat >&2"), the_env);
    o.stdin_fd = 2;
    o.stderr_fd = 0;
    int code = -1;
    int result = df_process_run(&o, 10000, NULL, NULL, &code, NULL);
    (void)dup2(saved0, 0);
    (void)dup2(saved2, 2);
    (void)close(saved0);
    (void)close(saved2);
    assert_int_equal(result, 0);
    assert_int_equal(code, 0);
    char text[16] = {0};
    assert_int_equal(pread(err_fd, text, 15, 0), 7);
    assert_string_equal(text, "crossed");
    (void)close(in);
    (void)close(err_fd);
    (void)unlink(in_name);
    (void)unlink(err_name);
}

static void standard_descriptors_not_named_are_dev_null(void **state)
{
    (void)state;
    struct df_process_options o =
        DF_PROCESS_OPTIONS(SH("readlink /proc/$$/fd/0 /proc/$$/fd/2"), the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    int code = -1;
    assert_int_equal(df_process_run(&o, 10000, &out, NULL, &code, NULL), 0);
    assert_string_equal(df_buf_str(&out), "/dev/null\n/dev/null\n");
}

static volatile sig_atomic_t handler_ran;
static void handler(int sig)
{
    (void)sig;
    handler_ran = 1;
}

static void signal_handlers_and_masks_are_not_inherited(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGUSR1, handler);
    sigset_t block, before;
    (void)sigemptyset(&block);
    (void)sigaddset(&block, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &block, &before);
    struct df_process_options o =
        DF_PROCESS_OPTIONS(((const char *const[]){"cat", "/proc/self/status", NULL}), the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    int code = -1;
    int result = df_process_run(&o, 10000, &out, NULL, &code, NULL);
    sigset_t now;
    (void)sigprocmask(SIG_SETMASK, &before, &now);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGUSR1, SIG_DFL);
    assert_int_equal(result, 0);
    assert_true(sigismember(&now, SIGTERM)); /* the parent's own mask came back */
    static const char *const sets[] = {"SigBlk:", "SigIgn:", "SigCgt:"};
    /* 32 and 33 belong to libc, which lets nobody change them. */
    const unsigned long long libc_own = 3ULL << 31;
    for (size_t i = 0; i < DF_ARRAY_SIZE(sets); i++) {
        const char *line = strstr(df_buf_str(&out), sets[i]);
        assert_non_null(line);
        assert_int_equal(strtoull(line + strlen(sets[i]), NULL, 16) & ~libc_own, 0);
    }
}

static void a_program_that_cannot_be_started_is_an_error_that_names_it(void **state)
{
    (void)state;
    static const struct {
        const char *program, *cwd;
        enum df_err_class cls;
        const char *message;
    } cases[] = {
        {"no-such-program-here", NULL, DF_ERR_NOT_FOUND,
         "start no-such-program-here: no such program in PATH (/usr/bin:/bin)"},
        {"/nowhere/tofu", NULL, DF_ERR_NOT_FOUND, "start /nowhere/tofu: No such file or directory"},
        {"/etc/passwd", NULL, DF_ERR_DENIED, "start /etc/passwd: Permission denied"},
        {"/usr/bin", NULL, DF_ERR_DENIED, "start /usr/bin: Permission denied"},
        {"/bin/true", "/nowhere/at-all", DF_ERR_NOT_FOUND,
         "start /bin/true: enter directory /nowhere/at-all: No such file or directory"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_process_options o =
            DF_PROCESS_OPTIONS(((const char *const[]){cases[i].program, NULL}), the_env);
        o.cwd = cases[i].cwd;
        struct df_process p = DF_PROCESS_INIT;
        struct df_err err = {0};
        assert_int_equal(df_process_spawn(&o, &p, &err), -1);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(err.cls, cases[i].cls);
        assert_int_equal(p.pid, -1);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing left to reap */
        assert_int_equal(errno, ECHILD);
    }
}

static void waiting_ends_with_the_time_out_or_with_the_process(void **state)
{
    (void)state;
    struct df_process_options o = DF_PROCESS_OPTIONS(SH("read x; exit 7"), the_env);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    o.stdin_fd = fds[0];
    DF_PROCESS struct df_process p = DF_PROCESS_INIT;
    assert_int_equal(df_process_spawn(&o, &p, NULL), 0);
    bool exited = true;
    int status = 0;
    assert_int_equal(df_process_wait(&p, 0, &exited, &status, NULL), 0);
    assert_false(exited);
    assert_int_equal(df_process_wait(&p, 20, &exited, &status, NULL), 0);
    assert_false(exited);
    assert_int_equal(write(fds[1], "\n", 1), 1);
    assert_int_equal(df_process_wait(&p, -1, &exited, &status, NULL), 0);
    assert_true(exited);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(df_process_signal(&p, SIGKILL, NULL), 0); /* gone is success */
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void a_child_leads_its_own_group_or_session(void **state)
{
    (void)state;
    for (int session = 0; session < 2; session++) {
        struct df_process_options o = DF_PROCESS_OPTIONS(SH("read x"), the_env);
        int fds[2];
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        o.stdin_fd = fds[0];
        o.new_session = session;
        DF_PROCESS struct df_process p = DF_PROCESS_INIT;
        assert_int_equal(df_process_spawn(&o, &p, NULL), 0);
        assert_int_equal(getpgid(p.pid), p.pid);
        assert_int_equal(getsid(p.pid) == p.pid, session);
        assert_int_equal(kill(-p.pid, SIGKILL), 0);
        bool exited;
        int status;
        assert_int_equal(df_process_wait(&p, -1, &exited, &status, NULL), 0);
        assert_int_equal(WTERMSIG(status), SIGKILL);
        (void)close(fds[0]);
        (void)close(fds[1]);
    }
}

/* Forks a parent that spawns `sleep` with a death signal, says its pid and waits to be killed. */
static pid_t parent_of_sleeper(int say, bool as_nobody)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    struct df_process_options o =
        DF_PROCESS_OPTIONS(((const char *const[]){"sleep", "60", NULL}), the_env);
    o.death_signal = SIGKILL;
    o.as_nobody = as_nobody;
    struct df_process p = DF_PROCESS_INIT;
    if (df_process_spawn(&o, &p, NULL) < 0)
        _exit(1);
    (void)!write(say, &p.pid, sizeof(p.pid));
    (void)pause();
    _exit(0);
}

static void sleeper_ends_with_parent(bool as_nobody)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t parent = parent_of_sleeper(fds[1], as_nobody), child = -1;
    assert_int_equal(read(fds[0], &child, sizeof(child)), sizeof(child));
    (void)kill(parent, SIGKILL);
    int status = 0;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void a_child_with_a_death_signal_does_not_outlive_its_parent(void **state)
{
    (void)state;
    sleeper_ends_with_parent(false);
}

static void neither_does_one_that_became_another_user(void **state)
{
    (void)state;
    sleeper_ends_with_parent(true);
}

static void limits_reach_the_child(void **state)
{
    (void)state;
    struct df_process_options o =
        DF_PROCESS_OPTIONS(((const char *const[]){"grep", "-E", "^Max (file|core file) size",
                                                  "/proc/self/limits", NULL}),
                           the_env);
    o.max_file_bytes = 12345;
    o.no_core = true;
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    int code = -1;
    assert_int_equal(df_process_run(&o, 10000, &out, NULL, &code, NULL), 0);
    int file = 0, core = -1;
    const char *line = strstr(df_buf_str(&out), "Max file size");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "Max file size %d", &file), 1);
    line = strstr(df_buf_str(&out), "Max core file size");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "Max core file size %d", &core), 1);
    assert_int_equal(file, 12345);
    assert_int_equal(core, 0);
}

static void run_gives_the_exit_code_or_128_plus_the_signal(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int code;
    } cases[] = {{"exit 0", 0}, {"exit 3", 3}, {"kill -9 $$", 128 + 9}, {"kill -15 $$", 128 + 15}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        int code = -1;
        DF_FREE char *out = run_sh(cases[i].script, &code);
        assert_int_equal(code, cases[i].code);
    }
}

static void run_collects_more_than_a_pipe_holds_from_both_streams(void **state)
{
    (void)state;
    struct df_process_options o = DF_PROCESS_OPTIONS(
        SH("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; printf END >&2"), the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(4 * 1024 * 1024);
    DF_BUF struct df_buf tail = DF_BUF_INIT(10);
    int code = -1;
    assert_int_equal(df_process_run(&o, 20000, &out, &tail, &code, NULL), 0);
    assert_int_equal(out.len, 3000000);
    assert_int_equal(tail.len, 10);
    assert_memory_equal(tail.data, "\0\0\0\0\0\0\0END", 10);
}

static void run_refuses_output_beyond_the_cap(void **state)
{
    (void)state;
    struct df_process_options o = DF_PROCESS_OPTIONS(SH("cat /dev/zero"), the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(100000);
    struct df_err err = {0};
    int code = -1;
    assert_int_equal(df_process_run(&o, -1, &out, NULL, &code, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(code, -1);
}

static void run_kills_the_whole_group_after_the_time_out(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    /* A flood on stderr must not keep the deadline from being seen. */
    struct df_process_options o = DF_PROCESS_OPTIONS(SH("sleep 1000 & yes >&2"), the_env);
    o.stdout_fd = fds[1];
    DF_BUF struct df_buf tail = DF_BUF_INIT(100);
    struct df_err err = {0};
    int code = -1;
    assert_int_equal(df_process_run(&o, 50, NULL, &tail, &code, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_string_equal(err.message, "sh: timed out");
    (void)close(fds[1]);
    char c;
    assert_int_equal(read(fds[0], &c, 1), 0); /* the sleeper held the other end; it is gone */
    (void)close(fds[0]);
}

static void run_does_not_wait_for_what_the_process_left_behind(void **state)
{
    (void)state;
    int code = -1;
    DF_FREE char *out = run_sh("sleep 1000 & echo done", &code);
    assert_string_equal(out, "done\n");
    assert_int_equal(code, 0);
}

struct stopper {
    volatile bool stop;
    int started; /* read end: a byte comes when the child runs */
};

static void *stop_when_started(void *arg)
{
    struct stopper *s = arg;
    char c;
    (void)!read(s->started, &c, 1);
    __atomic_store_n(&s->stop, true, __ATOMIC_SEQ_CST);
    return NULL;
}

static void run_ends_when_the_stop_flag_turns_true(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct stopper s = {.started = fds[0]};
    struct df_process_options o = DF_PROCESS_OPTIONS(SH("echo; sleep 1000"), the_env);
    o.stdout_fd = fds[1];
    o.stop = &s.stop;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_when_started, &s), 0);
    struct df_err err = {0};
    int code = -1;
    assert_int_equal(df_process_run(&o, -1, NULL, NULL, &code, &err), -1);
    assert_string_equal(err.message, "sh: stopped");
    (void)pthread_join(thread, NULL);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void running_leaves_no_descriptor_open(void **state)
{
    (void)state;
    int before = open("/dev/null", O_RDONLY);
    (void)close(before);
    for (int i = 0; i < 20; i++) {
        int code;
        DF_FREE char *out = run_sh(i % 2 ? "echo" : "exit 1", &code);
        struct df_process_options o =
            DF_PROCESS_OPTIONS(((const char *const[]){"/nowhere", NULL}), the_env);
        assert_int_equal(df_process_run(&o, 1000, NULL, NULL, &code, NULL), -1);
    }
    int after = open("/dev/null", O_RDONLY);
    (void)close(after);
    assert_int_equal(before, after);
}

static void *spawn_many(void *arg)
{
    for (int i = 0; i < 30; i++) {
        int code = -1;
        DF_FREE char *out = run_sh("echo $GREETING", &code);
        if (code != 0 || !out || strcmp(out, "hello\n") != 0)
            return arg;
    }
    return NULL;
}

static void several_threads_may_spawn_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spawn_many, threads), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
}

static void start_time_tells_a_process_from_a_later_one_with_its_pid(void **state)
{
    (void)state;
    uint64_t a = 0, b = 0;
    assert_int_equal(df_process_start_time(getpid(), &a, NULL), 0);
    assert_int_equal(df_process_start_time(getpid(), &b, NULL), 0);
    assert_true(a > 0 && a == b);
    struct df_err err = {0};
    assert_int_equal(df_process_start_time(0x7ffffff0, &a, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

static void start_time_is_had_until_a_process_is_reaped_and_copes_with_odd_names(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_NAME, ") Z 1 (");
        (void)!write(fds[1], "x", 1);
        (void)pause();
        _exit(0);
    }
    char c;
    assert_int_equal(read(fds[0], &c, 1), 1);
    uint64_t t = 0;
    assert_int_equal(df_process_start_time(pid, &t, NULL), 0);
    assert_true(t > 0);
    (void)kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    uint64_t ended = 0;
    assert_int_equal(df_process_start_time(pid, &ended, NULL), 0);
    assert_true(ended == t);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct df_err err = {0};
    assert_int_equal(df_process_start_time(pid, &t, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void which_takes_the_first_executable_in_an_absolute_directory(void **state)
{
    (void)state;
    char dir[] = "/tmp/df-which-XXXXXX";
    assert_non_null(mkdtemp(dir));
    DF_FREE char *plain = df_strf("%s/tool", dir);
    assert_int_equal(df_fs_create(plain, "", 0, 0644, NULL), 0);
    DF_FREE char *path = df_strf("%s:/usr/bin:/bin", dir);
    assert_null(df_process_which("tool", path)); /* not executable */
    assert_int_equal(chmod(plain, 0755), 0);
    DF_FREE char *found = df_process_which("tool", path);
    assert_string_equal(found, plain);
    DF_FREE char *sh = df_process_which("sh", path);
    assert_string_equal(sh, "/usr/bin/sh");

    int cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(dir), 0);
    assert_null(df_process_which("tool", ":.:"));
    assert_null(df_process_which("tool", ""));
    assert_null(df_process_which("./tool", "/bin"));
    assert_int_equal(fchdir(cwd), 0);
    (void)close(cwd);
    assert_int_equal(df_fs_remove_tree(dir, NULL), 0);
}

/* Of any family, and neither does what it starts. */
static void a_child_without_network_makes_no_socket(void **state)
{
    (void)state;
    static const char script[] =
        "import socket, subprocess, sys\n"
        "def no(*kind):\n"
        "    try:\n"
        "        socket.socket(*kind)\n"
        "    except PermissionError:\n"
        "        return 'no'\n"
        "kinds = ((socket.AF_INET,), (socket.AF_INET6,), (socket.AF_UNIX,), (socket.AF_NETLINK, "
        "3))\n"
        "print([no(*k) for k in kinds])\n"
        "if len(sys.argv) == 2:\n"
        "    subprocess.run([sys.executable, '-c', sys.argv[1], '', ''])\n";
    const char *const argv[] = {"/usr/bin/python3", "-c", script, script, NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    struct df_err err = {0};
    int code = -1;
    o.no_network = true;
    if (df_process_run(&o, 60000, &out, NULL, &code, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(df_buf_str(&out), "['no', 'no', 'no', 'no']\n['no', 'no', 'no', 'no']\n");
}

static void root_gives_a_child_to_nobody_and_others_keep_their_user(void **state)
{
    (void)state;
    struct df_process_options o = DF_PROCESS_OPTIONS(SH("id -u; id -g; id -G"), the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(4096);
    struct df_err err = {0};
    int code = -1;
    o.as_nobody = true;
    if (df_process_run(&o, 20000, &out, NULL, &code, &err) < 0)
        fail_msg("%s", err.message);
    if (geteuid() == 0)
        assert_string_equal(df_buf_str(&out), "65534\n65534\n65534\n");
    else
        assert_int_equal(strtol(df_buf_str(&out), NULL, 10), geteuid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_without_network_makes_no_socket),
        cmocka_unit_test(root_gives_a_child_to_nobody_and_others_keep_their_user),
        cmocka_unit_test(a_child_gets_exactly_the_environment_named),
        cmocka_unit_test(no_environment_means_an_empty_one),
        cmocka_unit_test(only_named_descriptors_reach_the_child),
        cmocka_unit_test(standard_descriptors_may_be_given_crosswise),
        cmocka_unit_test(standard_descriptors_not_named_are_dev_null),
        cmocka_unit_test(signal_handlers_and_masks_are_not_inherited),
        cmocka_unit_test(a_program_that_cannot_be_started_is_an_error_that_names_it),
        cmocka_unit_test(waiting_ends_with_the_time_out_or_with_the_process),
        cmocka_unit_test(a_child_leads_its_own_group_or_session),
        cmocka_unit_test(a_child_with_a_death_signal_does_not_outlive_its_parent),
        cmocka_unit_test(neither_does_one_that_became_another_user),
        cmocka_unit_test(limits_reach_the_child),
        cmocka_unit_test(run_gives_the_exit_code_or_128_plus_the_signal),
        cmocka_unit_test(run_collects_more_than_a_pipe_holds_from_both_streams),
        cmocka_unit_test(run_refuses_output_beyond_the_cap),
        cmocka_unit_test(run_kills_the_whole_group_after_the_time_out),
        cmocka_unit_test(run_does_not_wait_for_what_the_process_left_behind),
        cmocka_unit_test(run_ends_when_the_stop_flag_turns_true),
        cmocka_unit_test(running_leaves_no_descriptor_open),
        cmocka_unit_test(several_threads_may_spawn_at_once),
        cmocka_unit_test(start_time_tells_a_process_from_a_later_one_with_its_pid),
        cmocka_unit_test(start_time_is_had_until_a_process_is_reaped_and_copes_with_odd_names),
        cmocka_unit_test(which_takes_the_first_executable_in_an_absolute_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
