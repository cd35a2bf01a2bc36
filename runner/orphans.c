/*
 * orphans.c - finds all descendants in /proc, kills and reaps them. Read df_orphans_end() first.
 */
#include "runner/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/parse.h"

enum { RETRY_MS = 5000, PAUSE_MS = 5 };

int df_orphans_adopt(struct df_err *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return df_fail_errno(err, errno, "become the parent of orphans");
    return 0;
}

/* Field 4 of /proc/<pid>/stat, after the name, which may have any bytes. -1: there is no such
 * process. */
static int64_t parent_of(const char *pid)
{
    DF_FREE char *path = df_strf("/proc/%s/stat", pid);
    DF_BUF struct df_buf b = DF_BUF_INIT(4096);
    if (!path || df_fs_read(path, &b, NULL) < 0)
        return -1;
    const char *name_end = strrchr(df_buf_str(&b), ')');
    if (!name_end || strlen(name_end) < 5)
        return -1;
    const char *field = name_end + 4; /* ") S 123 " */
    DF_FREE char *number = strndup(field, strcspn(field, " "));
    int64_t ppid;
    return number && df_parse_i64(number, 0, INT32_MAX, &ppid, NULL) == 0 ? ppid : -1;
}

struct process {
    pid_t pid;
    int64_t parent;
    bool is_killed;
};

/* All of this machine or pod, ordered by pid. */
struct processes {
    struct process *items; /* owned; their number has the kernel's cap */
    size_t len, cap;
};

static void processes_free(struct processes *p)
{
    free(p->items);
}

/* False: no memory. */
static bool add_process(struct processes *p, pid_t pid, int64_t parent)
{
    if (p->len == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 256;
        void *grown = reallocarray(p->items, cap, sizeof(*p->items));
        if (!grown)
            return false;
        p->items = grown;
        p->cap = cap;
    }
    p->items[p->len++] = (struct process){.pid = pid, .parent = parent};
    return true;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
    return (x > y) - (x < y);
}

/* Without memory it has some of them, and the next pass tries again. */
static void list_processes(struct processes *p)
{
    DIR *proc = opendir("/proc");
    int64_t pid;
    for (const struct dirent *e; proc && (e = readdir(proc));)
        if (df_parse_i64(e->d_name, 1, INT32_MAX, &pid, NULL) == 0 &&
            !add_process(p, (pid_t)pid, parent_of(e->d_name)))
            break;
    if (proc)
        (void)closedir(proc);
    if (p->len)
        qsort(p->items, p->len, sizeof(*p->items), by_pid);
}

static bool was_killed(const struct processes *p, int64_t pid)
{
    const struct process key = {.pid = (pid_t)pid};
    const struct process *found =
        p->len ? bsearch(&key, p->items, p->len, sizeof(key), by_pid) : NULL;
    return found && found->is_killed;
}

/* Kills the children of this process and of those that were just killed. True: there were some. */
static bool kill_next(struct processes *p)
{
    bool any = false;
    for (size_t i = 0; i < p->len; i++) {
        struct process *one = &p->items[i];
        if (one->is_killed || (one->parent != getpid() && !was_killed(p, one->parent)))
            continue;
        (void)kill(one->pid, SIGKILL);
        one->is_killed = any = true;
    }
    return any;
}

/* Parents before their children: who is killed can neither fork nor give the pid of its child away,
 * so the signal hits no other process. A child mostly has a greater pid than its parent, so that
 * one turn finds nearly all. What was forked behind the list is of the next pass. */
static void kill_descendants(void)
{
    DF_CLEANUP(processes_free) struct processes all = {0};
    list_processes(&all);
    while (kill_next(&all))
        ;
}

/* False: there is no child left. */
static bool reap_children(void)
{
    pid_t pid;
    do {
        pid = waitpid(-1, NULL, WNOHANG);
    } while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

bool df_orphans_end(void)
{
    int64_t deadline = df_mono_ms() + RETRY_MS;
    bool is_left;
    while ((is_left = reap_children()) && df_mono_ms() < deadline) {
        kill_descendants();
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return !is_left;
}

int df_orphans_must_end(const char *reason, struct df_err *err)
{
    return df_orphans_end()
               ? 0
               : df_fail_reason(err, DF_ERR_USER, reason,
                                "a process that a script or a provider left running cannot be "
                                "ended, and could change the plan");
}
