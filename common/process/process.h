/*
 * process.h - child processes with a composed environment and only the given descriptors.
 *
 * The child gets its own process group, default signal handlers and an empty signal mask; all other
 * descriptors are closed. Thread rule: any thread may spawn; one df_process, one
 * thread.
 */
#ifndef DF_PROCESS_H
#define DF_PROCESS_H

#include <sys/resource.h>
#include <sys/types.h>

#include "common/base/buf.h"
#include "common/base/strs.h"
#include "common/process/wall.h"

/* Of each process; a child inherits them. The number of processes is counted per user, and within a
 * wall of its own if the user is not root, who has no such limit. */
struct df_process_limits {
    rlim_t processes, memory_bytes, open_files;
};

/* nobody: of no file, and on no list. */
#define DF_PROCESS_NOBODY 65534

struct df_process_options {
    const char *const *argv; /* argv[0] is the program: a path, or a name looked up in env's PATH */
    const char *const *env;  /* the whole environment, never inherited; NULL: empty */
    const char *cwd;         /* or NULL */
    int stdin_fd;            /* -1: /dev/null */
    int stdout_fd;           /* -1: /dev/null */
    int stderr_fd;           /* -1: /dev/null; may equal stdout_fd */
    const int *keep_fds;     /* further descriptors (3 and above) that stay open under their own
                                numbers, ended by -1; or NULL */
    int death_signal;        /* sent to the child when the thread that spawned it ends; 0: none */
    bool new_session;        /* setsid() instead of only a process group */
    bool in_our_group;       /* no group of its own, to use our terminal; never signal its group */
    rlim_t max_file_bytes;   /* RLIMIT_FSIZE; 0: unchanged */
    bool no_core;            /* RLIMIT_CORE 0 */
    const struct df_process_limits *limits; /* or NULL */
    const struct df_wall *wall;             /* what it sees; NULL: what its parent sees */
    bool no_network;                        /* it makes no socket(2) (network.h) */
    bool as_nobody;            /* if we are root: the user and group DF_PROCESS_NOBODY, no others */
    const volatile bool *stop; /* only df_process_run(): once true the group is killed within
                                  100 ms, class RETRY; or NULL */
};

/* Everything off or NULL, the three standard descriptors /dev/null. */
#define DF_PROCESS_OPTIONS(argv_, env_)                                                            \
    ((struct df_process_options){                                                                  \
        .argv = (argv_), .env = (env_), .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1})

struct df_process {
    pid_t pid;    /* also its process group */
    int pidfd;    /* owned */
    bool is_init; /* has a wall: it is the first of a PID namespace */
};

#define DF_PROCESS_INIT ((struct df_process){.pid = -1, .pidfd = -1})

/* Spawns. Fails if the program cannot be executed (NOT_FOUND names it), instead of an exit code of
 * the child. After a failure nothing runs, and there is nothing to reap. */
int df_process_spawn(const struct df_process_options *o, struct df_process *ret,
                     struct df_err *err) DF_MUST_CHECK;

/* Waits up to timeout_ms (-1: for ever). If *ret_exited, *ret_status is that of waitpid(2), and the
 * pid may be reused: do not wait again or signal the group. */
int df_process_wait(struct df_process *p, int64_t timeout_ms, bool *ret_exited, int *ret_status,
                    struct df_err *err) DF_MUST_CHECK;

/* Signals only the process; success if it has ended. One with a wall gets any signal but SIGKILL
 * when it has a handler for it, at the latest after 2 s. */
int df_process_signal(const struct df_process *p, int sig, struct df_err *err) DF_MUST_CHECK;

/* Closes the pidfd; does not wait or kill. */
void df_process_close(struct df_process *p);
#define DF_PROCESS DF_CLEANUP(df_process_close)

/* Runs the process to its end. Collects stdout in out (past its cap the group is killed, class
 * LIMIT) and the last err_tail->max bytes of stderr in err_tail; NULL: the descriptor of the
 * options. Kills the group after timeout_ms (-1: never), class RETRY, and what is left of it when
 * the process ends. *ret_code: exit code, or 128 + signal. */
int df_process_run(const struct df_process_options *o, int64_t timeout_ms, struct df_buf *out,
                   struct df_buf *err_tail, int *ret_code, struct df_err *err) DF_MUST_CHECK;

/* Forbids other processes of this user to read this one's memory and environment (ptrace(2),
 * /proc/<pid>/mem). The files of its /proc directory belong to root from now on; an exec ends
 * it. */
void df_process_protect(void);

/* Together with the pid identifies a process: field 22 of /proc/<pid>/stat. A process that has
 * ended has it until its parent reaps it. NOT_FOUND: there is no such process. */
int df_process_start_time(pid_t pid, uint64_t *ret, struct df_err *err) DF_MUST_CHECK;

/* *ret: the path of this program; the caller frees. */
int df_process_own_path(char **ret, struct df_err *err) DF_MUST_CHECK;

/* Looks name up in a list like PATH. Ignores relative directories, so that the current directory
 * never supplies a program. The caller frees; NULL: not found or no memory. */
char *df_process_which(const char *name, const char *path_env);

#endif
