/*
 * Spawning: df_process_spawn() prepares a plan, and the child executes it between vfork() and exec
 * with nothing but system calls, reporting the stage that failed through a pipe. Then waiting and
 * signals.
 */
#include "common/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/process/network.h"

/* The stage at which the child failed; sent to the parent through a pipe. */
#define STATUS_MAX (8 * DF_KIB) /* of /proc/<pid>/status: about 1.5 KiB */
#define HANDLER_MS 2000         /* a Go program has its handlers within milliseconds */
#define HANDLER_PAUSE_MS 2

enum stage {
    STAGE_WALL,
    STAGE_GROUP,
    STAGE_PARENT_GONE,
    STAGE_LIMITS,
    STAGE_FDS,
    STAGE_CWD,
    STAGE_USER,
    STAGE_NETWORK,
    STAGE_EXEC
};
struct report {
    enum stage stage;
    int os_errno;
    size_t entry; /* of the wall */
};

/* Everything the child needs, prepared by the parent: after vfork() it may only make system
 * calls. */
struct plan {
    const struct df_process_options *o;
    const char *program;
    const char *const *env;
    pid_t parent;
    int report_fd; /* write end, closed by the exec */
    struct df_wall_fault wall_fault;
};

static _Noreturn void child_fail(const struct plan *p, enum stage stage)
{
    struct report r = {stage, errno, p->wall_fault.entry};
    (void)!write(p->report_fd, &r, sizeof(r));
    _exit(127);
}

static void child_signals(void)
{
    /* Reset handlers before unblocking signals: no handler of the parent may run in the child. */
    const struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &dfl, NULL);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In a PID namespace of its own a child cannot see who its parent is. */
static bool has_no_reader(int pipe_fd)
{
    struct pollfd p = {.fd = pipe_fd};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

static void child_ends_with_parent(const struct plan *p)
{
    if (!p->o->death_signal)
        return;
    if (prctl(PR_SET_PDEATHSIG, p->o->death_signal) < 0)
        child_fail(p, STAGE_GROUP);
    /* If the parent died before the line above, the signal never comes. */
    if (p->o->wall ? has_no_reader(p->report_fd) : getppid() != p->parent)
        child_fail(p, STAGE_PARENT_GONE);
}

static void child_group(const struct plan *p)
{
    if (!p->o->in_our_group && (p->o->new_session ? setsid() : setpgid(0, 0)) < 0)
        child_fail(p, STAGE_GROUP);
    child_ends_with_parent(p);
}

/* Never raises a limit that the machine has set. */
static int lower_limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return -1;
    limit.rlim_max = limit.rlim_max < value ? limit.rlim_max : value;
    limit.rlim_cur = limit.rlim_cur < value ? limit.rlim_cur : value;
    return setrlimit(resource, &limit);
}

/* When memory runs out, the kernel ends a step before the service. Anybody may raise this number;
 * where it cannot be written the step runs all the same. */
static void child_go_first(void)
{
    static const char number[] = "500";
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, number, sizeof(number) - 1);
        (void)close(fd);
    }
}

static void child_limits(const struct plan *p)
{
    const struct rlimit file = {p->o->max_file_bytes, p->o->max_file_bytes};
    if (p->o->max_file_bytes && setrlimit(RLIMIT_FSIZE, &file) < 0)
        child_fail(p, STAGE_LIMITS);
    const struct rlimit none = {0, 0};
    if (p->o->no_core && setrlimit(RLIMIT_CORE, &none) < 0)
        child_fail(p, STAGE_LIMITS);
    const struct df_process_limits *l = p->o->limits;
    if (l && (lower_limit(RLIMIT_NPROC, l->processes) < 0 ||
              lower_limit(RLIMIT_DATA, l->memory_bytes) < 0 ||
              lower_limit(RLIMIT_NOFILE, l->open_files) < 0))
        child_fail(p, STAGE_LIMITS);
    if (l)
        child_go_first();
}

/* Duplicates fd to 3 or above, where no dup2() onto 0, 1 or 2 can overwrite it. */
static int child_lift(const struct plan *p, int fd)
{
    if (fd < 0)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fd <= STDERR_FILENO)
        fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0)
        child_fail(p, STAGE_FDS);
    return fd;
}

static void child_close_on_exec_above_stdio(void)
{
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    /* For kernels before 5.11 and some sandboxes. */
    struct rlimit files = {1024, 1024};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    for (int fd = STDERR_FILENO + 1; (rlim_t)fd < files.rlim_cur; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void child_fds(struct plan *p)
{
    p->report_fd = child_lift(p, p->report_fd);
    const int from[] = {child_lift(p, p->o->stdin_fd), child_lift(p, p->o->stdout_fd),
                        child_lift(p, p->o->stderr_fd)};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(from[fd], fd) < 0)
            child_fail(p, STAGE_FDS);
    child_close_on_exec_above_stdio();
    for (const int *fd = p->o->keep_fds; fd && *fd >= 0; fd++)
        if (fcntl(*fd, F_SETFD, 0) < 0)
            child_fail(p, STAGE_FDS);
}

/* The calls of the kernel, not of the C library: that has every thread of the process change its
 * user, and before the exec the child may share the parent's memory. The kernel forgets the death
 * signal of a process whose user changes. */
static void child_user(const struct plan *p)
{
    if (!p->o->as_nobody || geteuid() != 0)
        return;
    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, DF_PROCESS_NOBODY, DF_PROCESS_NOBODY, DF_PROCESS_NOBODY) < 0 ||
        syscall(SYS_setresuid, DF_PROCESS_NOBODY, DF_PROCESS_NOBODY, DF_PROCESS_NOBODY) < 0)
        child_fail(p, STAGE_USER);
    child_ends_with_parent(p);
}

static _Noreturn void child_main(struct plan *p)
{
    child_signals();
    if (p->wall_fault.error) {
        errno = p->wall_fault.error;
        child_fail(p, STAGE_WALL);
    }
    child_group(p);
    child_limits(p);
    child_fds(p);
    if (p->o->cwd && chdir(p->o->cwd) < 0)
        child_fail(p, STAGE_CWD);
    child_user(p);
    if (p->o->no_network && df_network_leave() < 0)
        child_fail(p, STAGE_NETWORK);
    /* execve() lacks const for historical reasons; it changes neither. */
    union {
        const char *const *in;
        char *const *out;
    } argv = {p->o->argv}, env = {p->env};
    (void)execve(p->program, argv.out, env.out);
    child_fail(p, STAGE_EXEC);
}

/* The child shares the parent's memory until its exec, so a large parent costs nothing. */
static pid_t start_sharing(struct plan *p)
{
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (pid == 0)
        child_main(p); /* NOLINT(clang-analyzer-unix.Vfork): only system calls, no return */
    return pid;
}

static pid_t start_behind_wall(struct plan *p)
{
    pid_t pid = df_wall_fork(p->o->wall, &p->wall_fault);
    if (pid == 0)
        child_main(p);
    return pid;
}

/* No signal handler of the parent may run in the child, hence the mask. posix_spawn(3) has neither
 * death signal nor limits nor working directory. */
static pid_t fork_and_exec(struct plan *p)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = p->o->wall ? start_behind_wall(p) : start_sharing(p);
    int saved = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

static int explain_spawn(const struct plan *p, const struct report *r, struct df_err *err)
{
    const struct df_wall_fault fault = {.error = r->os_errno, .entry = r->entry};
    switch (r->stage) {
    case STAGE_WALL:
        return df_fail_errno(err, r->os_errno, "start %s isolated: %s", p->program,
                             df_wall_fault_place(p->o->wall, &fault));
    case STAGE_EXEC:
        return df_fail_errno(err, r->os_errno, "start %s", p->program);
    case STAGE_CWD:
        return df_fail_errno(err, r->os_errno, "start %s: enter directory %s", p->program,
                             p->o->cwd);
    case STAGE_USER:
        return df_fail_errno(err, r->os_errno, "start %s: become the user nobody", p->program);
    case STAGE_NETWORK:
        return df_fail_errno(err, r->os_errno, "start %s: take the network away", p->program);
    case STAGE_FDS:
        return df_fail_errno(err, r->os_errno, "start %s: pass descriptors", p->program);
    case STAGE_LIMITS:
        return df_fail_errno(err, r->os_errno, "start %s: set resource limits", p->program);
    case STAGE_PARENT_GONE:
        return df_fail(err, DF_ERR_RETRY, "start %s: the starting process has died", p->program);
    case STAGE_GROUP:
    default:
        return df_fail_errno(err, r->os_errno, "start %s: make its process group", p->program);
    }
}

static void process_reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Reads the child's report. An empty pipe, closed by the exec, means that the program runs. */
static int await_exec(const struct plan *p, int report_fd, pid_t pid, struct df_err *err)
{
    struct report r;
    ssize_t n;
    do
        n = read(report_fd, &r, sizeof(r));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    process_reap(pid);
    if (n != (ssize_t)sizeof(r))
        return df_fail(err, DF_ERR_SYSTEM, "start %s: no report from the child", p->program);
    return explain_spawn(p, &r, err);
}

static int spawn_prepared(const struct plan *prepared, struct df_process *ret, struct df_err *err)
{
    struct plan p = *prepared;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return df_fail_errno(err, errno, "start %s: make a pipe", p.program);
    DF_CLOSE int report_fd = fds[0];
    p.report_fd = fds[1];
    pid_t pid = fork_and_exec(&p);
    int fork_errno = errno;
    (void)close(fds[1]);
    if (pid < 0)
        return df_fail_errno(err, fork_errno, "start %s", p.program);
    if (await_exec(&p, report_fd, pid, err) < 0)
        return -1;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        int saved = errno;
        (void)kill(-pid, SIGKILL);
        process_reap(pid);
        return df_fail_errno(err, saved, "start %s: open its pidfd", p.program);
    }
    *ret = (struct df_process){.pid = pid, .pidfd = pidfd, .is_init = p.o->wall != NULL};
    return 0;
}

static const char *path_of(const char *const *env)
{
    for (; env && *env; env++)
        if (df_starts_with(*env, "PATH="))
            return *env + strlen("PATH=");
    return "";
}

int df_process_spawn(const struct df_process_options *o, struct df_process *ret, struct df_err *err)
{
    static const char *const empty[] = {NULL};
    DF_FREE char *found = NULL;
    const char *name = o->argv[0];
    if (!strchr(name, '/')) {
        found = df_process_which(name, path_of(o->env));
        if (!found)
            return df_fail(err, DF_ERR_NOT_FOUND, "start %s: no such program in PATH (%s)", name,
                           path_of(o->env));
    }
    const struct plan p = {.o = o,
                           .program = found ? found : name,
                           .env = o->env ? o->env : empty,
                           .parent = getpid(),
                           .report_fd = -1};
    return spawn_prepared(&p, ret, err);
}

int df_process_wait(struct df_process *p, int64_t timeout_ms, bool *ret_exited, int *ret_status,
                    struct df_err *err)
{
    int64_t deadline = timeout_ms < 0 ? -1 : df_mono_ms() + timeout_ms;
    struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};
    int n;
    for (;;) {
        int64_t left = deadline < 0 ? -1 : deadline - df_mono_ms();
        if (deadline >= 0 && left < 0)
            left = 0;
        n = poll(&ended, 1, left > INT32_MAX ? INT32_MAX : (int)left);
        if (n >= 0 || errno != EINTR)
            break;
    }
    if (n < 0)
        return df_fail_errno(err, errno, "wait for process %d", (int)p->pid);
    if (n == 0) {
        *ret_exited = false;
        return 0;
    }
    int status;
    while (waitpid(p->pid, &status, 0) < 0)
        if (errno != EINTR)
            return df_fail_errno(err, errno, "wait for process %d", (int)p->pid);
    *ret_exited = true;
    *ret_status = status;
    return 0;
}

/* proc(5): SigCgt is the set of signals with a handler, as hexadecimal digits. */
static bool has_handler(pid_t pid, int sig)
{
    char path[32];
    DF_BUF struct df_buf status = DF_BUF_INIT(STATUS_MAX);
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (df_fs_read(path, &status, NULL) < 0)
        return true; /* it has ended */
    const char *set = strstr(df_buf_str(&status), "\nSigCgt:");
    return set && strtoull(set + strlen("\nSigCgt:"), NULL, 16) & (UINT64_C(1) << (sig - 1));
}

/* The kernel drops a signal that the first process of a PID namespace does not handle: a tool that
 * is interrupted while it starts would go on to its end. */
static void await_handler(const struct df_process *p, int sig)
{
    struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};
    int64_t end = df_mono_ms() + HANDLER_MS;
    while (!has_handler(p->pid, sig) && df_mono_ms() < end)
        if (poll(&ended, 1, HANDLER_PAUSE_MS) > 0)
            return;
}

int df_process_signal(const struct df_process *p, int sig, struct df_err *err)
{
    if (p->is_init && sig != SIGKILL)
        await_handler(p, sig);
    if (pidfd_send_signal(p->pidfd, sig, NULL, 0) < 0 && errno != ESRCH)
        return df_fail_errno(err, errno, "send signal %d to process %d", sig, (int)p->pid);
    return 0;
}

void df_process_protect(void)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        DF_BUG("PR_SET_DUMPABLE: errno %d", errno);
}

void df_process_close(struct df_process *p)
{
    if (p->pidfd >= 0)
        (void)close(p->pidfd);
    *p = DF_PROCESS_INIT;
}
