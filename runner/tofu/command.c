/*
 * Runs one command of the tool: spawns it with pipes, then watch_command() passes its output on.
 * When the step must stop, the stage changes from RUNNING to INTERRUPTED (one SIGINT) to KILLED.
 * Read df_command_run() and df_command_wait() at the end first.
 */
#include "runner/tofu/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/fs.h"

enum { PIPE_BYTES = 1024 * 1024, PIECE = 64 * 1024, SCRIPT_GRACE_MS = 5000 };

/* ---- starting ---- */

/* "<pid> <start time> <boot id>\n": the process for the engine to interrupt if the runner dies. */
static void note_pid(const char *path, pid_t pid)
{
    uint64_t start;
    DF_BUF struct df_buf boot = DF_BUF_INIT(64);
    if (!path || df_process_start_time(pid, &start, NULL) < 0 ||
        df_fs_read("/proc/sys/kernel/random/boot_id", &boot, NULL) < 0)
        return;
    char line[128];
    int n = snprintf(line, sizeof line, "%d %llu %s", (int)pid, (unsigned long long)start,
                     df_buf_str(&boot));
    if (df_fs_write(path, line, (size_t)n, 0600, NULL) < 0)
        return;
}

/* Created before the only SIGINT to tofu. If the runner is killed afterwards, the engine sees the
 * file and sends no second SIGINT, at which tofu would abandon its state. */
static void note_interrupt(const char *pid_path)
{
    DF_FREE char *path = pid_path ? df_strf("%s.interrupted", pid_path) : NULL;
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (fd >= 0) /* on failure continue: the SIGINT matters more */
        (void)close(fd);
}

/* What happens to a command when the runner is killed. A death signal cannot be the SIGINT: the
 * kernel may send it more than once, for each thread of the runner that ends. */
enum orphan { LIVES_ON = 0, IS_KILLED = SIGKILL };

/* The default of Go is 100. A value in the step's environment takes precedence. */
#define BRIEF_GC "GOGC=200"

/* The environment as pointers; the caller frees only the array. */
static const char **compose_env(const struct df_commander *c)
{
    const char **env = calloc(c->env->len + 2, sizeof *env);
    if (!env)
        return NULL;
    for (size_t i = 0; i < c->env->len; i++)
        env[i] = c->env->items[i];
    if (c->is_brief && !df_strs_get_env(c->env, "GOGC"))
        env[c->env->len] = BRIEF_GC;
    return env;
}

/* The variables stand behind the words of the command: "state rm -var-file=x ADDRESS". The caller
 * frees only the array. */
static const char **compose_argv(const struct df_commander *c, const struct df_strs *args)
{
    bool takes = c->tool && c->variables && df_tool_takes_variables(c->tool, args);
    size_t more = takes ? c->variables->len : 0, n = 0;
    size_t words = args->len ? 1 + df_streq(args->items[0], "state") : 0;
    const char **argv = calloc(args->len + more + 2, sizeof *argv);
    if (!argv)
        return NULL;
    argv[n++] = c->program;
    for (size_t i = 0; i < args->len; i++) {
        argv[n++] = args->items[i];
        for (size_t k = 0; i + 1 == words && k < more; k++)
            argv[n++] = c->variables->items[k];
    }
    return argv;
}

static int spawn_tool(const struct df_commander *c, const struct df_strs *args, const int fds[2],
                      enum orphan orphan, struct df_process *ret, struct df_err *err)
{
    DF_FREE const char **argv = compose_argv(c, args);
    DF_FREE const char **env = compose_env(c);
    int next_ms;
    if (df_check_alloc(argv, err) < 0 || df_check_alloc(env, err) < 0 ||
        df_output_renew(c->output, &next_ms, err) < 0)
        return -1;
    const struct df_step_wall *wall = c->wall;
    const struct df_process_options o = {.argv = argv,
                                         .env = env,
                                         .cwd = c->directory,
                                         .stdin_fd = -1,
                                         .stdout_fd = fds[0],
                                         .stderr_fd = fds[1],
                                         .death_signal = (int)orphan,
                                         .limits = wall ? wall->limits : NULL,
                                         .wall = wall ? &wall->wall : NULL,
                                         .no_core = true};
    return df_process_spawn(&o, ret, err);
}

/* ---- watching ---- */

/* The output of one command. A descriptor is -1 if it has no such output. */
struct flow {
    int text_fd, events_fd;
    bool text_is_events;
    struct df_buf *tail;
    char *piece;         /* PIECE bytes */
    struct df_err fault; /* first failure of the output; the command continues */
};

/* It is read as a string. */
static void blank_nuls(char *bytes, size_t n)
{
    for (char *end = bytes + n, *nul = bytes; n && (nul = memchr(nul, '\0', (size_t)(end - nul)));)
        *nul = ' ';
}

static void keep_tail(struct df_buf *tail, const char *bytes, size_t n)
{
    if (!tail)
        return;
    size_t half = tail->max / 2;
    if (n > half) {
        bytes += n - half;
        n = half;
    }
    if (tail->len + n > tail->max)
        df_buf_consume(tail, tail->len - half);
    size_t before = tail->len;
    if (df_buf_add(tail, bytes, n) == 0)
        blank_nuls(tail->data + before, n);
}

static void deliver(const struct df_commander *c, struct flow *f, bool events, size_t n)
{
    struct df_err *fault = f->fault.cls == DF_ERR_NONE ? &f->fault : NULL;
    int failed = events ? df_output_events(c->output, f->piece, n, f->text_is_events, fault)
                        : df_output_text(c->output, f->piece, n, fault);
    (void)failed; /* kept in fault: a failing log must not block tofu */
}

/* Reads available bytes, at most max. False: end of the stream. */
static bool pump(const struct df_commander *c, struct flow *f, int fd, size_t max)
{
    bool events = fd == f->events_fd || f->text_is_events;
    while (max) {
        ssize_t n = read(fd, f->piece, max < PIECE ? max : PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0;
        if (fd == f->text_fd)
            keep_tail(f->tail, f->piece, (size_t)n);
        deliver(c, f, events, (size_t)n);
        max -= (size_t)n;
    }
    return true;
}

enum stage { RUNNING, INTERRUPTED, KILLED };

/* Its group, which is not that of the runner, has what the script started. */
static int signal_script(const struct df_commander *c, const struct df_process *p, int sig,
                         struct df_err *err)
{
    if (sig == SIGTERM)
        (void)df_output_note(c->output, "dayfly: stopping: the script is ended");
    (void)kill(-p->pid, sig); /* fails if it has ended; the next call finds out */
    return df_process_signal(p, sig, err);
}

static int signal_once(const struct df_commander *c, const struct df_process *p, enum stage stage,
                       int64_t *ret_deadline, struct df_err *err)
{
    if (c->is_script && stage != KILLED)
        *ret_deadline = df_mono_ms() + SCRIPT_GRACE_MS;
    if (c->is_script)
        return signal_script(c, p, stage == KILLED ? SIGKILL : SIGTERM, err);
    if (stage == KILLED)
        return df_process_signal(p, SIGKILL, err);
    *ret_deadline = df_mono_ms() + c->grace_ms;
    (void)df_output_note(c->output, "dayfly: stopping: one interrupt to %s, then up to %lld s",
                         strrchr(c->program, '/') ? strrchr(c->program, '/') + 1 : c->program,
                         (long long)(c->grace_ms / 1000));
    note_interrupt(c->pid_path);
    return df_process_signal(p, SIGINT, err);
}

/* How long to wait in ms; -1: forever. most_ms: no longer than this; -1: any. */
static int pause_of(int64_t deadline, int most_ms)
{
    int64_t left = deadline - df_mono_ms();
    if (deadline == INT64_MAX)
        return most_ms;
    if (most_ms < 0)
        most_ms = 60000;
    return left < 0 ? 0 : left > most_ms ? most_ms : (int)left;
}

/* Moves output until the process has ended, and advances *stage on a stop and at the deadline. */
static int watch_command(const struct df_commander *c, const struct df_process *p, struct flow *f,
                         enum stage *stage, struct df_err *err)
{
    int64_t deadline = INT64_MAX;
    int next_ms = 0;
    struct pollfd fds[] = {{.fd = p->pidfd, .events = POLLIN},
                           {.fd = c->stop ? df_stop_fd(c->stop) : -1, .events = POLLIN},
                           {.fd = f->text_fd, .events = POLLIN},
                           {.fd = f->events_fd, .events = POLLIN}};
    for (;;) {
        if (df_output_renew(c->output, &next_ms, f->fault.cls ? NULL : &f->fault) < 0)
            next_ms = -1; /* is lost, as what cannot be masked */
        int wait = pause_of(deadline, next_ms);
        if (poll(fds, DF_ARRAY_SIZE(fds), wait) < 0 && errno != EINTR)
            return df_fail_errno(err, errno, "wait for %s", c->program);
        if ((fds[1].revents || df_mono_ms() >= deadline) && *stage != KILLED) {
            fds[1].fd = -1;
            (*stage)++;
            if (signal_once(c, p, *stage, &deadline, err) < 0)
                return -1;
            deadline = *stage == KILLED ? INT64_MAX : deadline;
        }
        /* Stop polling an ended stream: it stays readable. */
        if (fds[2].revents && !pump(c, f, f->text_fd, PIECE))
            fds[2].fd = -1;
        if (fds[3].revents && !pump(c, f, f->events_fd, PIECE))
            fds[3].fd = -1;
        if (fds[0].revents)
            return 0;
    }
}

static int reap_command(struct df_process *p, int *ret_code, struct df_err *err)
{
    bool exited;
    int status = 0;
    int failed = df_process_wait(p, -1, &exited, &status, err);
    df_process_close(p);
    if (!failed)
        *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return failed;
}

static int follow_command(const struct df_commander *c, struct df_process *p, struct flow *f,
                          struct df_command_end *ret, struct df_err *err)
{
    enum stage stage = RUNNING;
    int code = -1;
    if (watch_command(c, p, f, &stage, err) < 0 || reap_command(p, &code, err) < 0)
        return -1;
    /* Read only what the pipes contain now: a process that tofu left behind may write forever. */
    if (f->text_fd >= 0)
        (void)pump(c, f, f->text_fd, PIPE_BYTES);
    if (f->events_fd >= 0)
        (void)pump(c, f, f->events_fd, PIPE_BYTES);
    *ret = (struct df_command_end){
        .code = code, .stopped = stage != RUNNING, .killed = stage == KILLED};
    return 0;
}

/* ---- with output ---- */

/* A pipe whose writers hold a read end, too, and so never get SIGPIPE. *ret_read does not block. */
static int open_pipe(int *ret_read, int *ret_write, struct df_err *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return df_fail_errno(err, errno, "make a pipe");
    DF_CLOSE int reader = fds[0];
    DF_CLOSE int plain = fds[1];
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", plain);
    int writer = open(path, O_RDWR | O_CLOEXEC);
    if (writer < 0)
        return df_fail_errno(err, errno, "open %s", path);
    (void)fcntl(reader, F_SETPIPE_SZ, PIPE_BYTES); /* on failure the default size works, slower */
    if (fcntl(reader, F_SETFL, O_NONBLOCK) < 0) {
        (void)close(writer);
        return df_fail_errno(err, errno, "make a pipe");
    }
    *ret_read = DF_TAKE_FD(reader);
    *ret_write = writer;
    return 0;
}

/* A named pipe: tofu opens it by name, so that no child of tofu inherits it. */
static int open_fifo(const char *path, int *ret, struct df_err *err)
{
    if ((unlink(path) < 0 && errno != ENOENT) || mkfifo(path, 0600) < 0)
        return df_fail_errno(err, errno, "create %s", path);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
    *ret = fd;
    return 0;
}

int df_command_run(const struct df_commander *c, const struct df_strs *args,
                   enum df_command_events events, struct df_buf *tail, struct df_command_end *ret,
                   struct df_err *err)
{
    DF_CLOSE int text = -1;
    DF_CLOSE int writer = -1;
    DF_CLOSE int fifo = -1;
    DF_FREE char *piece = malloc(PIECE);
    if (df_check_alloc(piece, err) < 0 || open_pipe(&text, &writer, err) < 0 ||
        (events == DF_EVENTS_ASIDE && open_fifo(c->fifo_path, &fifo, err) < 0))
        return -1;
    struct flow f = {.text_fd = text,
                     .events_fd = fifo,
                     .text_is_events = events == DF_EVENTS_ON_STDOUT,
                     .tail = tail,
                     .piece = piece};
    struct df_process p = DF_PROCESS_INIT;
    struct df_command_end end;
    if (spawn_tool(c, args, (int[]){writer, writer}, c->is_script ? IS_KILLED : LIVES_ON, &p, err) <
        0)
        return -1;
    note_pid(c->pid_path, p.pid);
    if (follow_command(c, &p, &f, &end, err) < 0)
        return -1;
    end.lost = df_output_flush(c->output, &f.fault) < 0 || f.fault.cls != DF_ERR_NONE;
    if (end.lost)
        (void)df_output_note(c->output, "dayfly: some output is lost: %s", f.fault.message);
    *ret = end;
    return 0;
}

/* ---- into files ---- */

static int create_file(const char *path, int *ret, struct df_err *err)
{
    return df_fs_open_plain(path, O_WRONLY | O_CREAT | O_TRUNC, 0600, ret, err);
}

int df_command_start(const struct df_commander *c, const struct df_strs *args, const char *out_path,
                     const char *err_path, struct df_process *ret, struct df_err *err)
{
    DF_CLOSE int out = -1;
    DF_CLOSE int errors = -1;
    if (create_file(out_path, &out, err) < 0 || create_file(err_path, &errors, err) < 0)
        return -1;
    return spawn_tool(c, args, (int[]){out, errors}, IS_KILLED, ret, err);
}

int df_command_wait(const struct df_commander *c, struct df_process *p, struct df_command_end *ret,
                    struct df_err *err)
{
    struct flow nothing = {.text_fd = -1, .events_fd = -1};
    return follow_command(c, p, &nothing, ret, err);
}

void df_command_drop(struct df_process *p)
{
    int code;
    if (df_process_signal(p, SIGKILL, NULL) < 0 || reap_command(p, &code, NULL) < 0)
        df_process_close(p);
}
