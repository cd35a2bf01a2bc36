/*
 * The directory of a local step: how it is created and removed, the lock, the observation of the
 * step, signals to its processes, files that were not delivered, the kill time.
 */
#include "spawner/engine/local/step_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/json/json.h"
#include "common/process/tmpdir.h"

enum { DRAIN_PIECES = 64 }; /* of 64 KiB in one call, which then takes milliseconds at most */

/* ---- names ---- */

int df_step_dir_init(struct df_step_dir *d, const char *root, const char *uid, struct df_err *err)
{
    struct df_step_dir n = {.root = root, .top = df_fs_join(root, uid)};
    const struct {
        char **path;
        const char *name;
    } parts[] = {{&n.work, "work"},
                 {&n.lock, "lock"},
                 {&n.runner_pid, "runner.pid"},
                 {&n.tofu_pid, "tofu.pid"},
                 {&n.interrupted, "tofu.pid.interrupted"},
                 {&n.runner_log, "runner.log"},
                 {&n.result, "result.json"},
                 {&n.exit, "exit"},
                 {&n.kill_at, "kill-at"}};
    (void)snprintf(n.uid, sizeof(n.uid), "%s", uid);
    bool whole = n.top != NULL;
    for (size_t i = 0; whole && i < DF_ARRAY_SIZE(parts); i++)
        whole = (*parts[i].path = df_fs_join(n.top, parts[i].name)) != NULL;
    if (!whole) {
        df_step_dir_free(&n);
        return df_fail_oom(err);
    }
    *d = n;
    return 0;
}

void df_step_dir_free(struct df_step_dir *d)
{
    char *const parts[] = {d->top,         d->work,       d->lock,   d->runner_pid, d->tofu_pid,
                           d->interrupted, d->runner_log, d->result, d->exit,       d->kill_at};
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++)
        free(parts[i]);
    *d = (struct df_step_dir){0};
}

/* ---- create and remove ---- */

int df_step_dir_prepare_root(const char *root, struct df_err *err)
{
    static const char *const parts[] = {"at", "by-name", "failed"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++) {
        DF_FREE char *path = df_fs_join(root, parts[i]);
        if (df_fs_mkdirs(path, 0700, err) < 0)
            return -1;
    }
    return 0;
}

/* The uid of the step that has the name; "": it is free. */
static int name_owner(const char *link, char ret[64], struct df_err *err)
{
    char target[128] = "";
    if (readlink(link, target, sizeof(target) - 1) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "read %s", link);
    const char *slash = strrchr(target, '/');
    (void)snprintf(ret, 64, "%.63s", slash ? slash + 1 : target);
    return 0;
}

static int reserve_name(const struct df_step_dir *d, const char *name, struct df_err *err)
{
    DF_FREE char *link = df_strf("%s/by-name/%s", d->root, name);
    DF_FREE char *target = df_strf("../%s", d->uid);
    char owner[64];
    if (!link || !target)
        return df_fail_oom(err);
    if (symlink(target, link) == 0)
        return 0;
    if (errno != EEXIST)
        return df_fail_errno(err, errno, "create %s", link);
    if (name_owner(link, owner, err) < 0)
        return -1;
    if (!df_streq(owner, d->uid))
        return df_fail(err, DF_ERR_CONFLICT, "the step name %s is taken by step %s", name, owner);
    return 0;
}

int df_step_dir_make(const struct df_step_dir *d, const char *name, struct df_err *err)
{
    if (df_fs_remove_tree(d->top, err) < 0 || df_fs_mkdirs(d->top, 0700, err) < 0)
        return -1;
    return reserve_name(d, name, err);
}

static int release_name(const struct df_step_dir *d, const char *name, struct df_err *err)
{
    DF_FREE char *link = df_strf("%s/by-name/%s", d->root, name);
    char owner[64];
    if (df_check_alloc(link, err) < 0 || name_owner(link, owner, err) < 0)
        return -1;
    if (df_streq(owner, d->uid) && unlink(link) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "remove %s", link);
    return 0;
}

static int keep_work_dir(const struct df_step_dir *d, const char *name, struct df_err *err)
{
    DF_FREE char *kept = df_strf("%s/failed/%s", d->root, name);
    if (!df_fs_exists(d->work)) /* an earlier, interrupted call has moved it */
        return 0;
    if (df_fs_remove_tree(kept, err) < 0)
        return -1;
    if (rename(d->work, kept) < 0)
        return df_fail_errno(err, errno, "move %s to %s", d->work, kept);
    return 0;
}

/* True for a regular file of this step. The module can make links in its work directory, to what it
 * does not see itself; the step's own links (`work`, `module`) lead there. */
static bool is_own_file(const struct df_step_dir *d, const char *path)
{
    struct stat st;
    DF_FREE char *top = realpath(d->top, NULL);
    DF_FREE char *work = realpath(d->work, NULL);
    DF_FREE char *real = realpath(path, NULL);
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || !real)
        return false;
    return (top && df_starts_with(real, top)) || (work && df_starts_with(real, work));
}

/* A state that tofu could not store and nobody recovered may be the only record of resources. */
static int keep_errored_state(const struct df_step_dir *d, const char *name, struct df_err *err)
{
    static const char *const sources[] = {"errored.tfstate", "module/errored.tfstate"};
    DF_FREE char *kept = df_strf("%s/failed/%s.errored.tfstate", d->root, name);
    for (size_t i = 0; kept && i < DF_ARRAY_SIZE(sources); i++) {
        DF_FREE char *left = df_fs_join(d->top, sources[i]);
        if (!left)
            return df_fail_oom(err);
        if (is_own_file(d, left) && rename(left, kept) < 0 && errno != ENOENT)
            return df_fail_errno(err, errno, "move %s to %s", left, kept);
    }
    return df_check_alloc(kept, err);
}

/* A killed runner leaves its temporary files, which may be outside the step's directory. */
static int remove_tmpdir(const struct df_step_dir *d, struct df_err *err)
{
    DF_FREE char *root = realpath(d->root, NULL); /* as the runner sees it */
    DF_FREE char *work = root ? df_strf("%s/%s/work", root, d->uid) : NULL;
    if (!root)
        return df_fail_errno(err, errno, "%s", d->root);
    return work ? df_tmpdir_remove(work, err) : df_fail_oom(err);
}

int df_step_dir_remove(const struct df_step_dir *d, const char *name, bool keep_work,
                       struct df_err *err)
{
    if (keep_errored_state(d, name, err) < 0 || (keep_work && keep_work_dir(d, name, err) < 0))
        return -1;
    if (release_name(d, name, err) < 0 || remove_tmpdir(d, err) < 0)
        return -1;
    return df_fs_remove_tree(d->top, err);
}

/* ---- the lock ---- */

int df_step_dir_lock(const struct df_step_dir *d, int *ret_fd, struct df_err *err)
{
    DF_CLOSE int fd = open(d->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", d->lock);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? df_fail(err, DF_ERR_CONFLICT, "%s is locked", d->lock)
                                    : df_fail_errno(err, errno, "lock %s", d->lock);
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

static bool is_locked(const struct df_step_dir *d)
{
    DF_CLOSE int fd = open(d->lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return true;
    (void)flock(fd, LOCK_UN); /* a child forked just now may have a copy of the descriptor */
    return false;
}

/* ---- observation ---- */

/* Finds the runner by runner.pid. If the spawner died before it wrote that file, the lock shows
 * whether the runner lives, and its argument --work-dir which process it is. */
static void find_runner(const struct df_step_dir *d, struct df_step_state *state)
{
    state->runner_known = df_identity_read(d->runner_pid, &state->runner, NULL) == 0;
    state->runner_lives = state->runner_known ? df_identity_lives(&state->runner) : is_locked(d);
    if (state->runner_known || !state->runner_lives)
        return;
    pid_t pid;
    if (df_session_with_argument(d->top, &pid, NULL) < 0 ||
        df_identity_of(pid, &state->runner, NULL) < 0)
        return; /* it has just ended: the next observation finds the lock free */
    state->runner_known = true;
    /* After a failure the next observation tries again. */
    (void)df_identity_write(d->runner_pid, &state->runner, NULL);
}

/* Counts the living processes of the step besides the runner. sig != 0: also sends them this
 * signal. */
static int signal_others(const struct df_step_dir *d, const struct df_step_state *state, int sig,
                         size_t *ret_living, struct df_err *err)
{
    struct df_identity tofu;
    size_t living = 0;
    if (state->runner_known && df_session_signal(&state->runner, sig, &living, err) < 0)
        return -1;
    DF_CLOSE int pidfd = -1; /* tofu is counted here, because it may have left the session */
    if (df_identity_read(d->tofu_pid, &tofu, NULL) == 0 && df_identity_open(&tofu, &pidfd, err) < 0)
        return -1;
    if (pidfd >= 0) {
        living++;
        if (sig)
            (void)pidfd_send_signal(pidfd, sig, NULL, 0);
    }
    *ret_living = living;
    return 0;
}

int df_step_dir_kill(const struct df_step_dir *d, struct df_err *err)
{
    struct df_step_state state = {0};
    size_t living;
    find_runner(d, &state);
    return signal_others(d, &state, SIGKILL, &living, err);
}

int df_step_dir_interrupt(const struct df_step_dir *d, struct df_err *err)
{
    struct df_identity tofu;
    DF_CLOSE int pidfd = -1;
    if (df_identity_read(d->tofu_pid, &tofu, NULL) < 0)
        return 0;
    if (df_identity_open(&tofu, &pidfd, err) < 0)
        return -1;
    if (pidfd < 0)
        return 0;
    DF_CLOSE int mark = open(d->interrupted, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (mark < 0)
        return errno == EEXIST ? 0 : df_fail_errno(err, errno, "create %s", d->interrupted);
    (void)pidfd_send_signal(pidfd, SIGINT, NULL, 0);
    return 0;
}

int df_step_dir_drain(const struct df_step_dir *d, struct df_err *err)
{
    struct df_identity tofu;
    struct stat st;
    if (df_identity_read(d->tofu_pid, &tofu, NULL) < 0 || !df_identity_lives(&tofu))
        return 0;
    DF_FREE char *path = df_strf("/proc/%d/fd/1", (int)tofu.pid);
    if (!path)
        return df_fail_oom(err);
    if (stat(path, &st) < 0 || !S_ISFIFO(st.st_mode))
        return 0;
    DF_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char unread[65536];
    for (int i = 0; fd >= 0 && i < DRAIN_PIECES && read(fd, unread, sizeof(unread)) > 0; i++)
        ;
    return 0;
}

int df_step_dir_note_exit(const struct df_step_dir *d, int status, struct df_err *err)
{
    char text[32];
    int n = WIFSIGNALED(status) ? snprintf(text, sizeof(text), "killed %d\n", WTERMSIG(status))
                                : snprintf(text, sizeof(text), "exited %d\n", WEXITSTATUS(status));
    DF_CLOSE int fd = open(d->exit, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", d->exit);
    return df_fs_write_all(fd, text, (size_t)n, err);
}

static void read_exit(const struct df_step_dir *d, struct df_engine_observation *observed)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(64);
    int64_t n;
    if (df_fs_read(d->exit, &b, NULL) < 0)
        return;
    bool was_killed = df_buf_str(&b)[0] == 'k';
    const char *number = strchr(df_buf_str(&b), ' ');
    if (!number || !df_scan_i64(&number, &n))
        return;
    if (was_killed) {
        const char *name = sigabbrev_np((int)n);
        (void)snprintf(observed->cause, sizeof(observed->cause), "killed by signal %d%s%s", (int)n,
                       name ? ", SIG" : "", name ? name : "");
    } else {
        observed->exit_code = (int)n;
        (void)snprintf(observed->cause, sizeof(observed->cause), "exited with code %d", (int)n);
    }
}

static void observe_end(const struct df_step_dir *d, struct df_step_state *state)
{
    struct df_engine_observation *observed = &state->observed;
    DF_JSON cJSON *result = NULL;
    observed->phase = DF_ENGINE_ENDED;
    observed->has_result = df_json_load(d->result, DF_LIMIT_DOCUMENT, &result, NULL) == 0;
    observed->exit_code = (int)df_json_int(result, "exitCode", -1);
    if (!state->runner_known)
        (void)snprintf(observed->cause, sizeof(observed->cause), "%s",
                       df_fs_exists(d->runner_pid) ? "the machine was restarted"
                                                   : "its runner was not started");
    read_exit(d, observed);
}

static int64_t modified_us(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000;
}

int df_step_dir_observe(const struct df_step_dir *d, struct df_step_state *ret, struct df_err *err)
{
    struct df_step_state state = {.observed = {.phase = DF_ENGINE_ABSENT, .exit_code = -1}};
    struct stat top, lock;
    size_t others = 0;
    if (stat(d->top, &top) < 0) {
        if (errno != ENOENT)
            return df_fail_errno(err, errno, "look at %s", d->top);
        *ret = state;
        return 0;
    }
    /* The lock file is created at the start and never written, so its time is the start time. */
    state.observed.since_us = modified_us(stat(d->lock, &lock) == 0 ? &lock : &top);
    find_runner(d, &state);
    if (!state.runner_lives && signal_others(d, &state, 0, &others, err) < 0)
        return -1;
    state.observed.phase = DF_ENGINE_RUNNING;
    if (!state.runner_lives && !others)
        observe_end(d, &state);
    *ret = state;
    return 0;
}

/* ---- files that were not delivered ---- */

enum { SEARCH_DEPTH = 32 };

/* Searches for a file below the directory in path. If found, path becomes the path of the file.
 * Links are not followed, and directories such as .terraform are skipped. */
static bool find_below(struct df_buf *path, const char *name, int depth)
{
    size_t len = path->len;
    DIR *dir = opendir(df_buf_str(path));
    bool found = false;
    for (const struct dirent *e; dir && !found && (e = readdir(dir));) {
        bool enter = e->d_type == DT_DIR && e->d_name[0] != '.' && depth < SEARCH_DEPTH;
        bool hit = e->d_type == DT_REG && strcmp(e->d_name, name) == 0;
        if ((!enter && !hit) || df_buf_addf(path, "/%s", e->d_name) < 0)
            continue;
        found = hit || find_below(path, name, depth + 1);
        if (!found) {
            path->data[len] = '\0';
            path->len = len;
        }
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

/* The path of errored.tfstate: the runner moves it to the step's directory; if the runner died, it
 * is in the directory where tofu ran. NULL: there is none. The caller frees. */
static char *find_errored_state(const struct df_step_dir *d)
{
    static const char name[] = "errored.tfstate";
    DF_BUF struct df_buf path = DF_BUF_INIT(8 * DF_KIB);
    if (df_buf_addf(&path, "%s/%s", d->top, name) == 0 && df_fs_exists(df_buf_str(&path)))
        return df_buf_take(&path);
    df_buf_clear(&path);
    bool found = !df_fs_exists(d->result) && df_buf_addf(&path, "%s/source", d->work) == 0 &&
                 find_below(&path, name, 0);
    return found ? df_buf_take(&path) : NULL;
}

int df_step_dir_leftover(const struct df_step_dir *d, const char *name, char **ret_path,
                         struct df_err *err)
{
    DF_FREE char *path = df_streq(name, "errored.tfstate") ? find_errored_state(d)
                                                           : df_strf("%s/spool/%s", d->work, name);
    if (!path || !is_own_file(d, path))
        return df_fail(err, DF_ERR_NOT_FOUND, "step %s left no %s", d->uid, name);
    *ret_path = DF_TAKE(path);
    return 0;
}

/* ---- the kill time ---- */

int64_t df_boot_us(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_BOOTTIME, &ts) < 0)
        DF_BUG("clock_gettime: errno %d", errno);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t read_kill_at(const struct df_step_dir *d)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(64);
    int64_t us;
    if (df_fs_read(d->kill_at, &b, NULL) < 0)
        return 0;
    const char *text = df_buf_str(&b);
    return df_scan_i64(&text, &us) ? us : 0;
}

int df_step_dir_set_kill_at(const struct df_step_dir *d, int64_t after_us, int64_t *ret_us,
                            struct df_err *err)
{
    int64_t now_us = df_boot_us(), us = read_kill_at(d);
    /* A time later than requested is from an earlier boot, whose clock had another origin. */
    if (us <= 0 || us > now_us + after_us) {
        char text[32];
        us = now_us + after_us;
        int n = snprintf(text, sizeof(text), "%lld\n", (long long)us);
        if (df_fs_replace(d->kill_at, text, (size_t)n, 0600, err) < 0)
            return -1;
    }
    *ret_us = us;
    return 0;
}
