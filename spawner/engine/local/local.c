/*
 * local.c - the engine that starts a step's runner as a child process of its own session.
 *
 * The runner outlives the spawner; only cancel() ends it. The state that a restarted spawner needs
 * is in the step's directory (step_dir.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/process/process.h"
#include "spawner/engine/local/child_watcher.h"
#include "spawner/engine/local/work_dir.h"

/* The runner enforces the grace period itself. If it has not ended this long after it, it is
 * killed. */
enum { KILL_DELAY_SECONDS = 10 };

struct local {
    struct df_engine engine; /* first: the pointer that callers have */
    pthread_mutex_t lock;    /* guards the step directories and the watcher */
    char *root;
    char *runner_path;
    bool keep_failed;
    struct df_child_watcher *watch;
    struct df_strs env; /* environment of the runners */
    cJSON *isolation;   /* of the handoff; NULL: none */
};

static struct local *local_of(struct df_engine *e)
{
    return (struct local *)(void *)e;
}

/* ---- create ---- */

/* A descriptor from which the runner reads the handoff. It is a file in memory: unlike a pipe it
 * has no size limit, and the content stays if the spawner dies before the runner reads it. */
static int handoff_fd(const struct local *l, const struct df_engine_step *step, int *ret_fd,
                      struct df_err *err)
{
    DF_JSON cJSON *doc = df_json_object(
        DF_STR("server", step->runner.server_url), DF_STR("uid", step->uid),
        DF_STR("token", step->runner.claim_token), DF_STR("caFile", step->runner.ca_file),
        DF_STR("endpointFile", step->runner.endpoint_file));
    if (df_check_alloc(doc, err) < 0 ||
        (l->isolation &&
         df_json_add(doc, "isolation", cJSON_Duplicate(l->isolation, true), err) < 0))
        return -1;
    DF_FREE char *text = df_json_print(doc);
    df_json_wipe(DF_TAKE(doc));
    if (!text)
        return df_fail_oom(err);
    DF_CLOSE int fd = memfd_create("dayfly-handoff", MFD_CLOEXEC);
    int result = fd < 0 ? df_fail_errno(err, errno, "make the handoff")
                        : df_fs_write_all(fd, text, strlen(text), err);
    explicit_bzero(text, strlen(text));
    if (result == 0 && lseek(fd, 0, SEEK_SET) < 0)
        result = df_fail_errno(err, errno, "rewind the handoff");
    if (result == 0)
        *ret_fd = DF_TAKE_FD(fd);
    return result;
}

static int spawn_runner(struct local *l, const struct df_step_dir *d, int handoff, int lock,
                        struct df_process *ret, struct df_err *err)
{
    char fd_text[16];
    (void)snprintf(fd_text, sizeof(fd_text), "%d", handoff);
    DF_CLOSE int log = open(d->runner_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
        return df_fail_errno(err, errno, "create %s", d->runner_log);
    const char *const argv[] = {l->runner_path, "step", "--handoff-fd", fd_text, "--work-dir",
                                d->top,         NULL};
    const int keep[] = {handoff, lock, -1};
    struct df_process_options o =
        DF_PROCESS_OPTIONS(argv, (const char *const *)(void *)l->env.items);
    o.cwd = d->top;
    o.stdout_fd = log;
    o.stderr_fd = log;
    o.keep_fds = keep;
    o.new_session = true;
    o.no_core = true; /* a core would hold the step's secrets */
    o.max_file_bytes = DF_LIMIT_STEP_FILE;
    return df_process_spawn(&o, ret, err);
}

/* Watches the started runner and writes its identity, so that a restarted spawner finds it. */
static int record_runner(struct local *l, const struct df_step_dir *d,
                         const struct df_engine_step *step, struct df_process *p,
                         struct df_err *err)
{
    struct df_identity id;
    int pid = p->pid;
    if (df_child_watcher_add(l->watch, step->uid, step->name, DF_TAKE_FD(p->pidfd), err) < 0)
        return -1;
    /* It may have ended already, and left processes. Nobody reaps it before l->lock is free. */
    if (df_identity_of(pid, &id, err) < 0)
        return -1;
    return df_identity_write(d->runner_pid, &id, err);
}

static int start_runner(struct local *l, const struct df_step_dir *d,
                        const struct df_engine_step *step, struct df_err *err)
{
    DF_CLOSE int lock = -1, handoff = -1;
    DF_PROCESS struct df_process p = DF_PROCESS_INIT;
    if (df_step_dir_make(d, step->name, err) < 0 ||
        df_work_dir_make(d, step->runner.executor, err) < 0 ||
        df_step_dir_lock(d, &lock, err) < 0 || handoff_fd(l, step, &handoff, err) < 0 ||
        spawn_runner(l, d, handoff, lock, &p, err) < 0)
        return -1;
    return record_runner(l, d, step, &p, err);
}

static int observe_step(struct local *l, const struct df_step_dir *d, struct df_step_state *ret,
                        struct df_err *err)
{
    df_child_watcher_reap(l->watch, d->uid, false);
    if (df_step_dir_observe(d, ret, err) < 0)
        return -1;
    if (ret->observed.phase != DF_ENGINE_ENDED || df_fs_exists(d->exit))
        return 0;
    /* The runner ended between the two calls above: reap it, and read how it ended. */
    df_child_watcher_reap(l->watch, d->uid, true);
    return df_step_dir_observe(d, ret, err);
}

/* Watches a runner that was started by an earlier spawner or by a call that failed later. */
static int adopt_runner(struct local *l, const struct df_engine_step *step,
                        const struct df_step_state *state, struct df_err *err)
{
    if (state->observed.phase != DF_ENGINE_RUNNING || df_child_watcher_has(l->watch, step->uid))
        return 0;
    int pidfd = -1; /* stays -1 if the runner ends now: other processes may outlive it */
    if (state->runner_known && df_identity_open(&state->runner, &pidfd, err) < 0)
        return -1;
    return df_child_watcher_add(l->watch, step->uid, step->name, pidfd, err);
}

static cJSON *engine_ref(const struct df_engine_step *step)
{
    cJSON *ref = cJSON_CreateObject();
    if (ref && (df_json_add_str(ref, "kind", "local", NULL) < 0 ||
                df_json_add_str(ref, "name", step->name, NULL) < 0 ||
                df_json_add_str(ref, "uid", step->uid, NULL) < 0)) {
        cJSON_Delete(ref);
        return NULL;
    }
    return ref;
}

static int create_locked(struct local *l, const struct df_step_dir *d,
                         const struct df_engine_step *step, struct df_err *err)
{
    struct df_step_state state;
    if (observe_step(l, d, &state, err) < 0)
        return -1;
    if (state.observed.phase == DF_ENGINE_RUNNING)
        return adopt_runner(l, step, &state, err);
    return start_runner(l, d, step, err);
}

static int local_create(struct df_engine *e, const struct df_engine_step *step, cJSON **ret_ref,
                        struct df_err *err)
{
    struct local *l = local_of(e);
    DF_STEP_DIR struct df_step_dir d = {0};
    DF_JSON cJSON *ref = engine_ref(step);
    if (df_check_alloc(ref, err) < 0 || df_step_dir_init(&d, l->root, step->uid, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    int result = create_locked(l, &d, step, err);
    (void)pthread_mutex_unlock(&l->lock);
    if (result == 0)
        *ret_ref = DF_TAKE(ref);
    return result;
}

/* ---- status, result ---- */

/* Sets the time at which all processes of the step are killed, unless it is set already. Until then
 * an orphaned tofu can store its state; df_step_dir_interrupt() sends it SIGINT. */
static int set_kill_time(struct local *l, const struct df_step_dir *d,
                         const struct df_engine_step *step, struct df_err *err)
{
    int64_t boot_us, after_us = (step->runner.grace_seconds + KILL_DELAY_SECONDS) * 1000000;
    if (df_step_dir_set_kill_at(d, after_us, &boot_us, err) < 0)
        return -1;
    df_child_watcher_kill_at(l->watch, step->uid, boot_us);
    return 0;
}

static int status_locked(struct local *l, const struct df_step_dir *d,
                         const struct df_engine_step *step, struct df_step_state *state,
                         struct df_err *err)
{
    if (observe_step(l, d, state, err) < 0 || adopt_runner(l, step, state, err) < 0)
        return -1;
    bool doomed = state->observed.phase == DF_ENGINE_RUNNING &&
                  (!state->runner_lives || df_fs_exists(d->kill_at));
    return doomed ? set_kill_time(l, d, step, err) : 0;
}

/* The directory of a claimed step is gone: the data directory was restored from a backup, or
 * somebody removed it. Unless a runner with this directory in its arguments lives, the step has
 * ended. */
static void note_lost_directory(const struct df_step_dir *d, const struct df_engine_step *step,
                                struct df_engine_observation *o)
{
    pid_t pid;
    struct df_err why = {0};
    o->is_gone = o->phase == DF_ENGINE_ABSENT;
    if (!o->is_gone || !step->was_claimed || df_session_with_argument(d->top, &pid, &why) == 0 ||
        why.cls != DF_ERR_NOT_FOUND)
        return;
    o->phase = DF_ENGINE_ENDED;
    df_copy(o->cause, sizeof(o->cause), "its directory on this machine is gone");
}

static int local_status(struct df_engine *e, const struct df_engine_step *step,
                        struct df_engine_observation *ret, struct df_err *err)
{
    struct local *l = local_of(e);
    DF_STEP_DIR struct df_step_dir d = {0};
    struct df_step_state state;
    if (df_step_dir_init(&d, l->root, step->uid, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    int result = status_locked(l, &d, step, &state, err);
    (void)pthread_mutex_unlock(&l->lock);
    if (result < 0)
        return -1;
    note_lost_directory(&d, step, &state.observed);
    *ret = state.observed;
    return 0;
}

static int local_result(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                        struct df_err *err)
{
    DF_STEP_DIR struct df_step_dir d = {0};
    if (df_step_dir_init(&d, local_of(e)->root, step->uid, err) < 0)
        return -1;
    return df_json_load(d.result, DF_LIMIT_DOCUMENT, ret, err);
}

static int local_leftover(struct df_engine *e, const struct df_engine_step *step, const char *name,
                          char **ret_path, struct df_err *err)
{
    DF_STEP_DIR struct df_step_dir d = {0};
    if (df_step_dir_init(&d, local_of(e)->root, step->uid, err) < 0)
        return -1;
    return df_step_dir_leftover(&d, name, ret_path, err);
}

/* ---- cancel, cleanup ---- */

static int cancel_locked(struct local *l, const struct df_step_dir *d,
                         const struct df_engine_step *step, struct df_err *err)
{
    struct df_step_state state;
    if (observe_step(l, d, &state, err) < 0)
        return -1;
    if (state.observed.phase != DF_ENGINE_RUNNING)
        return 0;
    if (adopt_runner(l, step, &state, err) < 0 || set_kill_time(l, d, step, err) < 0)
        return -1;
    return df_child_watcher_terminate(l->watch, step->uid, err);
}

static int local_cancel(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    struct local *l = local_of(e);
    DF_STEP_DIR struct df_step_dir d = {0};
    if (df_step_dir_init(&d, l->root, step->uid, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    int result = cancel_locked(l, &d, step, err);
    (void)pthread_mutex_unlock(&l->lock);
    return result;
}

static int local_cleanup(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    struct local *l = local_of(e);
    DF_STEP_DIR struct df_step_dir d = {0};
    struct df_step_state state;
    if (df_step_dir_init(&d, l->root, step->uid, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    int result = observe_step(l, &d, &state, err);
    if (result == 0 && state.observed.phase == DF_ENGINE_ENDED)
        result = df_work_dir_release(&d, err);
    (void)pthread_mutex_unlock(&l->lock);
    if (result < 0)
        return -1;
    if (state.observed.phase == DF_ENGINE_RUNNING)
        return df_fail(err, DF_ERR_CONFLICT, "step %s still has living processes", step->name);
    if (state.observed.phase == DF_ENGINE_ABSENT)
        return 0;
    /* Without the lock: no process can start any more, and removing a large tree is slow. */
    return df_step_dir_remove(&d, step->name, l->keep_failed && state.observed.exit_code != 0, err);
}

/* ---- the engine's life ---- */

static void local_close(struct df_engine *e)
{
    struct local *l = local_of(e);
    df_child_watcher_free(l->watch);
    (void)pthread_mutex_destroy(&l->lock);
    df_strs_free(&l->env);
    cJSON_Delete(l->isolation);
    free(l->root);
    free(l->runner_path);
    free(l);
}

static const struct df_runner_ops runner_ops = {
    .step = {.create = local_create,
             .status = local_status,
             .result = local_result,
             .cancel = local_cancel,
             .cleanup = local_cleanup},
    .leftover = local_leftover,
};

static const struct df_engine_ops local_ops = {.close = local_close, .runner = &runner_ops};

/* Passes on where programs, certificates and proxies are, and nothing that configures tofu. */
static int compose_env(struct df_strs *env, struct df_err *err)
{
    static const char *const names[] = {
        "PATH",          "HOME",         "LANG",       "LC_ALL",      "LC_CTYPE",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy",
        "HTTP_PROXY",    "HTTPS_PROXY",  "NO_PROXY"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);
        if (value)
            (void)df_strs_set_env(env, names[i], value);
    }
    return df_strs_check(env, err);
}

static int compose_isolation(struct local *l, const struct df_local_options *o, struct df_err *err)
{
    l->isolation = cJSON_Duplicate(o->isolation, true);
    return o->isolation && !l->isolation ? df_fail_oom(err) : 0;
}

int df_engine_local_new(const struct df_local_options *o, struct df_engine **ret,
                        struct df_err *err)
{
    struct local *l = calloc(1, sizeof(*l));
    if (!l)
        return df_fail_oom(err);
    l->engine = (struct df_engine){.ops = &local_ops, .kind = &df_engine_kinds[DF_ENGINE_LOCAL]};
    l->keep_failed = o->keep_failed;
    (void)pthread_mutex_init(&l->lock, NULL);
    if (df_str_set(&l->root, o->directory, err) < 0 ||
        df_str_set(&l->runner_path, o->runner_path, err) < 0 || compose_env(&l->env, err) < 0 ||
        compose_isolation(l, o, err) < 0 || df_step_dir_prepare_root(l->root, err) < 0 ||
        df_child_watcher_new(l->root, &l->lock, o->notify, o->notify_arg, &l->watch, err) < 0) {
        local_close(&l->engine);
        return -1;
    }
    *ret = &l->engine;
    return 0;
}
