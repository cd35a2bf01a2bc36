/*
 * killat - kills a program at its N-th system call, or counts them.
 *
 *   killat N [--visible] -- program args...          SIGKILL at the entry of the N-th call (from 1)
 *   killat --count FILE [--visible] -- program args...   writes how many there were when it ended
 *
 * All threads of the program are followed and counted together; the processes that it starts are
 * left alone and outlive it. --visible counts only calls that somebody outside could notice: to be
 * killed at one of the others is the same as to be killed at the next visible one. SIGTERM is
 * passed on. Exit code: the program's, 128 + signal when a signal ended it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/parse.h"

/* Calls that change nothing outside of the process, or nothing that its death would not change as
 * well (what it closes, the record locks it takes). What is not listed counts as visible. */
static const long silent[] = {
    SYS_futex,
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_epoll_create1,
    SYS_eventfd2,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_madvise,
    SYS_mremap,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_getrandom,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_lseek,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getcwd,
    SYS_uname,
    SYS_sysinfo,
    SYS_prlimit64,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_prctl,
    SYS_restart_syscall,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_dup,
    SYS_pidfd_open,
    SYS_sched_setaffinity,
    SYS_getpriority,
    SYS_clone3,
    SYS_fcntl,
    SYS_close,
    SYS_accept4,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_ioctl,
    SYS_socket,
#ifdef __x86_64__
    SYS_poll,
    SYS_select,
    SYS_epoll_wait,
    SYS_time,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_arch_prctl,
#endif
};

static volatile pid_t program_pid;

static void pass_on(int sig)
{
    (void)kill(program_pid, sig);
}

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "killat: %s: %s\n", what, strerrordesc_np(errno));
    exit(125);
}

static bool is_silent(const struct __ptrace_syscall_info *info)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(silent); i++)
        if ((uint64_t)silent[i] == info->entry.nr)
            return true;
    return info->entry.nr == SYS_openat && !(info->entry.args[2] & (O_CREAT | O_TRUNC));
}

struct plan {
    int64_t kill_at; /* 0: never */
    const char *count_file;
    bool visible;
    int64_t count;
};

static void kill_now(void)
{
    if (kill(program_pid, SIGKILL) < 0)
        die("kill");
}

/* A thread stands at the entry or the exit of a system call. */
static void at_call(pid_t tid, struct plan *p)
{
    struct __ptrace_syscall_info info = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return;
    if (p->visible && is_silent(&info))
        return;
    if (++p->count == p->kill_at)
        kill_now();
}

/* The signal to deliver when the thread goes on; 0: none. */
static int stopped(pid_t tid, int status, struct plan *p)
{
    int sig = WSTOPSIG(status);
    if (sig == (SIGTRAP | 0x80)) {
        at_call(tid, p);
        return 0;
    }
    return status >> 16 ? 0 : sig; /* an event of ptrace itself, or a signal of the program */
}

static int follow(struct plan *p)
{
    for (;;) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0)
            die("waitpid");
        if (WIFSTOPPED(status))
            (void)ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)stopped(tid, status, p));
        else if (tid == program_pid)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

/* Forks the program, traced from before its exec on. */
static void start(char **argv)
{
    int gate[2];
    char byte;
    if (pipe2(gate, O_CLOEXEC) < 0)
        die("pipe");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        (void)close(gate[1]);
        (void)!read(gate[0], &byte, 1); /* its end: we are traced */
        (void)execvp(argv[0], argv);
        die(argv[0]);
    }
    program_pid = pid;
    const struct sigaction pass = {.sa_handler = pass_on};
    (void)sigaction(SIGTERM, &pass, NULL);
    (void)sigaction(SIGINT, &pass, NULL);
    intptr_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0 ||
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        die("ptrace");
    (void)close(gate[1]);
    (void)close(gate[0]);
}

static void write_count(const struct plan *p)
{
    FILE *f = p->count_file ? fopen(p->count_file, "we") : NULL;
    if (p->count_file && (!f || fprintf(f, "%lld\n", (long long)p->count) < 0 || fclose(f) != 0))
        die(p->count_file);
}

/* Reads the options; returns the index of the program, 0 when they make no sense. */
static int parse(int argc, char **argv, struct plan *p)
{
    for (int i = 1; i < argc; i++) {
        if (df_streq(argv[i], "--"))
            return i + 1 < argc && (p->kill_at || p->count_file) ? i + 1 : 0;
        if (df_streq(argv[i], "--visible"))
            p->visible = true;
        else if (df_streq(argv[i], "--count") && i + 1 < argc)
            p->count_file = argv[++i];
        else if (df_parse_i64(argv[i], 1, INT64_MAX, &p->kill_at, NULL) < 0)
            return 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct plan p = {0};
    int program = parse(argc, argv, &p);
    if (!program) {
        (void)fputs("usage: killat N|--count FILE [--visible] -- program args...\n", stderr);
        return 125;
    }
    start(argv + program);
    int code = follow(&p);
    write_count(&p);
    return code;
}
