/*
 * One thread polls the pidfds of all runners (part "the thread"). Other threads change the set of
 * watched steps and wake the thread through an eventfd.
 */
#include "spawner/engine/local/child_watcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "common/base/log.h"

/* Processes that outlive their runner have no descriptor to poll, so they are checked at this
 * interval. */
enum { ORPHAN_POLL_MS = 20 };
/* A process may be a zombie in /proc slightly before its pidfd becomes readable: wait so long. */
enum { EXIT_WAIT_MS = 1000 };

struct watched {
    struct df_step_dir dir;
    char name[64];
    int pidfd; /* of the runner; -1 once it ended */
    bool terminated;
    int64_t kill_at_us; /* 0: not armed */
};

struct df_child_watcher {
    const char *root;
    pthread_mutex_t *lock; /* guards everything below and the step directories */
    df_engine_notify notify;
    void *notify_arg;
    pthread_t thread;
    int wake_fd; /* eventfd: the set of steps, a deadline or stop changed */
    bool stop;
    struct watched **steps; /* each owned */
    size_t len, cap;
};

static struct watched *find_watched(const struct df_child_watcher *w, const char *uid)
{
    for (size_t i = 0; i < w->len; i++)
        if (df_streq(w->steps[i]->dir.uid, uid))
            return w->steps[i];
    return NULL;
}

static void watched_free(struct watched *s)
{
    if (s->pidfd >= 0)
        (void)close(s->pidfd);
    df_step_dir_free(&s->dir);
    free(s);
}

static void wake_thread(struct df_child_watcher *w)
{
    (void)eventfd_write(w->wake_fd, 1);
}

/* ---- the thread ---- */

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

/* If the runner has ended: reaps it, if it is our child, and writes its exit file. Returns true if
 * it ended. */
static bool reap_runner(struct watched *s, int timeout_ms)
{
    if (s->pidfd < 0 || !is_readable(s->pidfd, timeout_ms))
        return false;
    siginfo_t info = {0};
    struct df_err err = {0};
    int status = 0;
    if (waitid(P_PIDFD, (id_t)s->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid) {
        status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : info.si_status;
        if (df_step_dir_note_exit(&s->dir, status, &err) < 0)
            df_warn("cannot record how the runner of %s ended: %s", s->name, err.message);
    }
    (void)close(s->pidfd);
    s->pidfd = -1;
    return true;
}

/* For a step whose runner has ended. True: no process of the step is left. */
static bool check_orphans(struct watched *s)
{
    struct df_step_state state;
    struct df_err err = {0};
    if (df_step_dir_observe(&s->dir, &state, &err) < 0)
        df_error("cannot observe the processes of %s: %s", s->name, err.message);
    else if (state.observed.phase != DF_ENGINE_RUNNING)
        return true;
    else if (!state.runner_lives &&
             (df_step_dir_interrupt(&s->dir, &err) < 0 || df_step_dir_drain(&s->dir, &err) < 0))
        df_error("cannot interrupt the tofu of %s: %s", s->name, err.message);
    return false;
}

/* Checks one step. True: its runner or all its processes have ended, so notify the subscriber.
 * *ret_over: no process is left to watch. */
static bool check_step(struct watched *s, bool *ret_over)
{
    struct df_err err = {0};
    if (s->kill_at_us && df_boot_us() >= s->kill_at_us && df_step_dir_kill(&s->dir, &err) < 0)
        df_error("cannot kill the processes of %s: %s", s->name, err.message);
    bool changed = reap_runner(s, 0);
    *ret_over = s->pidfd < 0 && check_orphans(s);
    return changed || *ret_over;
}

/* Checks the steps from *i on until one has changed, and copies its name: the caller notifies
 * without the lock. False: no further step has changed. */
static bool next_changed(struct df_child_watcher *w, size_t *i, char name[64])
{
    while (*i < w->len) {
        struct watched *s = w->steps[*i];
        bool over = false, changed = check_step(s, &over);
        (void)snprintf(name, 64, "%s", s->name);
        if (over) {
            watched_free(s);
            w->steps[*i] = w->steps[--w->len];
        } else {
            (*i)++;
        }
        if (changed)
            return true;
    }
    return false;
}

static void check_all(struct df_child_watcher *w)
{
    char name[64];
    size_t i = 0;
    (void)pthread_mutex_lock(w->lock);
    while (next_changed(w, &i, name)) {
        (void)pthread_mutex_unlock(w->lock);
        if (w->notify)
            w->notify(w->notify_arg, name);
        (void)pthread_mutex_lock(w->lock);
    }
    (void)pthread_mutex_unlock(w->lock);
}

static int64_t timeout_of(const struct watched *s)
{
    int64_t ms = s->pidfd < 0 ? ORPHAN_POLL_MS : INT32_MAX;
    if (!s->kill_at_us)
        return ms;
    int64_t left = (s->kill_at_us - df_boot_us()) / 1000 + 1;
    left = left < ORPHAN_POLL_MS ? ORPHAN_POLL_MS : left; /* killed, but not gone yet: kill again */
    return left < ms ? left : ms;
}

/* Fills fds (len + 1 elements) and the poll timeout. */
static nfds_t prepare_poll(struct df_child_watcher *w, struct pollfd *fds, int *ret_timeout_ms)
{
    int64_t timeout = INT32_MAX;
    fds[0] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
    for (size_t i = 0; i < w->len; i++) {
        int64_t ms = timeout_of(w->steps[i]);
        fds[i + 1] = (struct pollfd){.fd = w->steps[i]->pidfd, .events = POLLIN};
        timeout = ms < timeout ? ms : timeout;
    }
    *ret_timeout_ms = (int)timeout;
    return (nfds_t)w->len + 1;
}

/* Waits until a step may have changed. False: the thread must end. */
static bool wait_for_change(struct df_child_watcher *w)
{
    int timeout_ms = ORPHAN_POLL_MS;
    nfds_t n = 0;
    (void)pthread_mutex_lock(w->lock);
    bool stop = w->stop;
    DF_FREE struct pollfd *fds = calloc(w->len + 1, sizeof(*fds));
    if (fds)
        n = prepare_poll(w, fds, &timeout_ms);
    (void)pthread_mutex_unlock(w->lock);
    eventfd_t count;
    if (!stop && poll(fds, n, timeout_ms) > 0 && fds && fds[0].revents)
        (void)eventfd_read(w->wake_fd, &count);
    return !stop;
}

static void *watch_thread(void *arg)
{
    struct df_child_watcher *w = arg;
    while (wait_for_change(w))
        check_all(w);
    return NULL;
}

/* ---- calls of other threads ---- */

bool df_child_watcher_has(const struct df_child_watcher *w, const char *uid)
{
    return find_watched(w, uid) != NULL;
}

void df_child_watcher_reap(struct df_child_watcher *w, const char *uid, bool has_ended)
{
    struct watched *s = find_watched(w, uid);
    if (s)
        (void)reap_runner(s, has_ended ? EXIT_WAIT_MS : 0);
}

static int grow_steps(struct df_child_watcher *w)
{
    if (w->len < w->cap)
        return 0;
    size_t cap = w->cap ? w->cap * 2 : 16;
    struct watched **steps = reallocarray(w->steps, cap, sizeof(struct watched *));
    if (!steps)
        return -1;
    w->steps = steps;
    w->cap = cap;
    return 0;
}

static void watch_runner(struct df_child_watcher *w, struct watched *s, int pidfd)
{
    s->pidfd = pidfd;
    s->terminated = false;
    s->kill_at_us = 0;
    wake_thread(w);
}

int df_child_watcher_add(struct df_child_watcher *w, const char *uid, const char *name, int pidfd,
                         struct df_err *err)
{
    DF_CLOSE int fd = pidfd;
    struct watched *known = find_watched(w, uid);
    if (known) {
        if (known->pidfd < 0) /* the runner of an earlier attempt has just ended */
            watch_runner(w, known, DF_TAKE_FD(fd));
        return 0;
    }
    struct watched *s = grow_steps(w) < 0 ? NULL : calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    s->pidfd = -1;
    if (df_step_dir_init(&s->dir, w->root, uid, err) < 0) {
        watched_free(s);
        return -1;
    }
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    w->steps[w->len++] = s;
    watch_runner(w, s, DF_TAKE_FD(fd));
    return 0;
}

int df_child_watcher_terminate(struct df_child_watcher *w, const char *uid, struct df_err *err)
{
    struct watched *s = find_watched(w, uid);
    if (!s || s->pidfd < 0 || s->terminated)
        return 0;
    if (pidfd_send_signal(s->pidfd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
        return df_fail_errno(err, errno, "end the runner of %s", s->name);
    s->terminated = true;
    return 0;
}

void df_child_watcher_kill_at(struct df_child_watcher *w, const char *uid, int64_t boot_us)
{
    struct watched *s = find_watched(w, uid);
    if (!s || s->kill_at_us == boot_us)
        return;
    s->kill_at_us = boot_us;
    wake_thread(w);
}

/* ---- start and stop ---- */

int df_child_watcher_new(const char *root, pthread_mutex_t *lock, df_engine_notify notify,
                         void *notify_arg, struct df_child_watcher **ret, struct df_err *err)
{
    struct df_child_watcher *w = calloc(1, sizeof(*w));
    if (!w)
        return df_fail_oom(err);
    *w = (struct df_child_watcher){
        .root = root, .lock = lock, .notify = notify, .notify_arg = notify_arg};
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed = w->wake_fd < 0 ? errno : pthread_create(&w->thread, NULL, watch_thread, w);
    if (failed) {
        if (w->wake_fd >= 0)
            (void)close(w->wake_fd);
        free(w);
        return df_fail_errno(err, failed, "start the thread that watches runners");
    }
    *ret = w;
    return 0;
}

void df_child_watcher_free(struct df_child_watcher *w)
{
    if (!w)
        return;
    (void)pthread_mutex_lock(w->lock);
    w->stop = true;
    wake_thread(w);
    (void)pthread_mutex_unlock(w->lock);
    (void)pthread_join(w->thread, NULL);
    for (size_t i = 0; i < w->len; i++)
        watched_free(w->steps[i]);
    free(w->steps);
    (void)close(w->wake_fd);
    free(w);
}
