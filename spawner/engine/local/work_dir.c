/*
 * Passes the shared path of an executor from one step to the next. df_work_dir_make() releases it
 * from the last step and then assigns it to the new one.
 */
#include "spawner/engine/local/work_dir.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

/* The shared paths of one executor. All owned. */
struct shared {
    char *dir, *work, *step;
};

static void shared_free(struct shared *s)
{
    free(s->dir);
    free(s->work);
    free(s->step);
}

static int shared_init(const char *root, const char *executor, struct shared *s, struct df_err *err)
{
    s->dir = df_strf("%s/at/%s", root, executor);
    s->work = s->dir ? df_fs_join(s->dir, "work") : NULL;
    s->step = s->dir ? df_fs_join(s->dir, "step") : NULL;
    return s->work && s->step ? 0 : df_fail_oom(err);
}

/* The last part of the link's target; "": there is no link. */
static int read_name(const char *link, char ret[64], struct df_err *err)
{
    char target[256] = "";
    if (readlink(link, target, sizeof(target) - 1) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "read %s", link);
    const char *slash = strrchr(target, '/');
    (void)snprintf(ret, 64, "%.63s", slash ? slash + 1 : target);
    return 0;
}

static int remove_link(const char *path, struct df_err *err)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "remove %s", path);
    return 0;
}

static int make_link(const char *path, const char *target, struct df_err *err)
{
    if (!target)
        return df_fail_oom(err);
    return symlink(target, path) < 0 ? df_fail_errno(err, errno, "create %s", path) : 0;
}

/* ---- release from a step ---- */

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* If a crash interrupts this function at any point, the next call completes it. */
static int move_to_step(const struct df_step_dir *d, const struct shared *s, struct df_err *err)
{
    if (is_link(d->work) && remove_link(d->work, err) < 0)
        return -1;
    if (rename(s->work, d->work) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "move %s to %s", s->work, d->work);
    if (remove_link(s->step, err) < 0)
        return -1;
    (void)rmdir(s->dir); /* the executor may never run again */
    return 0;
}

int df_work_dir_release(const struct df_step_dir *d, struct df_err *err)
{
    DF_CLEANUP(shared_free) struct shared s = {0};
    DF_FREE char *at = df_fs_join(d->top, "at");
    char executor[64], owner[64];
    if (df_check_alloc(at, err) < 0 || read_name(at, executor, err) < 0)
        return -1;
    if (!*executor)
        return 0;
    if (shared_init(d->root, executor, &s, err) < 0 || read_name(s.step, owner, err) < 0)
        return -1;
    if (df_streq(owner, d->uid) && move_to_step(d, &s, err) < 0)
        return -1;
    return remove_link(at, err);
}

/* ---- assign to the next step ---- */

/* An apply starts when the plan's result is known, which is before the plan's runner has exited.
 * Waits for that exit and observes the old step again. */
static int await_exit(const struct df_step_dir *old, struct df_step_state *state,
                      struct df_err *err)
{
    DF_CLOSE int pidfd = -1;
    if (!df_fs_exists(old->result) || !state->runner_known)
        return 0; /* still running */
    if (df_identity_open(&state->runner, &pidfd, err) < 0)
        return -1;
    struct pollfd exited = {.fd = pidfd, .events = POLLIN};
    if (pidfd >= 0 && poll(&exited, 1, DF_TIMEOUT_RUNNER_EXIT_MS) < 0 && errno != EINTR)
        return df_fail_errno(err, errno, "wait for process %d", (int)state->runner.pid);
    return df_step_dir_observe(old, state, err);
}

/* Releases the path from its last step if that has ended. *ret_free: this step may use the path. */
static int release_from_last(const struct df_step_dir *d, const struct shared *s, bool *ret_free,
                             struct df_err *err)
{
    DF_STEP_DIR struct df_step_dir old = {0};
    struct df_step_state state;
    char owner[64];
    if (read_name(s->step, owner, err) < 0)
        return -1;
    *ret_free = true;
    if (!*owner || df_streq(owner, d->uid))
        return 0;
    if (df_step_dir_init(&old, d->root, owner, err) < 0 ||
        df_step_dir_observe(&old, &state, err) < 0)
        return -1;
    if (state.observed.phase == DF_ENGINE_RUNNING && await_exit(&old, &state, err) < 0)
        return -1;
    *ret_free = state.observed.phase != DF_ENGINE_RUNNING;
    return *ret_free ? df_work_dir_release(&old, err) : 0;
}

/* Assigns the path to this step. Remaining files without an owner are removed. */
static int assign_path(const struct df_step_dir *d, const struct shared *s, const char *executor,
                       struct df_err *err)
{
    DF_FREE char *at = df_fs_join(d->top, "at"), *to_shared = df_strf("../at/%s", executor);
    DF_FREE char *to_step = df_strf("../../%s", d->uid);
    DF_FREE char *to_work = df_strf("../at/%s/work", executor);
    if (df_check_alloc(at, err) < 0 || df_fs_remove_tree(s->work, err) < 0 ||
        remove_link(s->step, err) < 0 || df_fs_mkdirs(s->dir, 0700, err) < 0 ||
        make_link(at, to_shared, err) < 0 || make_link(s->step, to_step, err) < 0 ||
        df_fs_mkdirs(s->work, 0700, err) < 0)
        return -1;
    return make_link(d->work, to_work, err);
}

int df_work_dir_make(const struct df_step_dir *d, const char *executor, struct df_err *err)
{
    DF_CLEANUP(shared_free) struct shared s = {0};
    bool is_free = false;
    if (!executor || !df_is_dns_label(executor))
        return df_fs_mkdirs(d->work, 0700, err);
    if (shared_init(d->root, executor, &s, err) < 0 || release_from_last(d, &s, &is_free, err) < 0)
        return -1;
    return is_free ? assign_path(d, &s, executor, err) : df_fs_mkdirs(d->work, 0700, err);
}
