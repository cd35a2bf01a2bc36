#include "spawner/steps/recovery.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/steps/errored.h"
#include "spawner/steps/streams.h"

/* The path of a file that the dead runner left; *ret is unchanged if there is none. */
static int find_orphan(struct df_engine *e, const struct df_engine_step *step, const char *name,
                       char **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (e->ops->runner->leftover(e, step, name, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

static int recover_stream(struct df_spawner *s, struct df_engine *e,
                          const struct df_engine_step *step, enum df_stream stream,
                          struct df_err *err)
{
    DF_FREE char *path = NULL;
    if (find_orphan(e, step, stream == DF_STREAM_LOG ? "log" : "events", &path, err) < 0)
        return -1;
    return path ? df_stream_complete(s, step, stream, path, err) : 0;
}

static int recover_streams(struct df_spawner *s, struct df_engine *e,
                           const struct df_engine_step *step, struct df_err *err)
{
    return recover_stream(s, e, step, DF_STREAM_LOG, err) < 0
               ? -1
               : recover_stream(s, e, step, DF_STREAM_EVENTS, err);
}

static void warn_of_log(const struct df_engine_step *step, const struct df_err *why)
{
    df_warn("the log of step %s is not complete: %s", step->name, why->message);
}

void df_recover_streams(struct df_spawner *s, struct df_engine *e,
                        const struct df_engine_step *step)
{
    struct df_err why = {0};
    if (recover_streams(s, e, step, &why) < 0)
        warn_of_log(step, &why);
}

int df_recover_rest(struct df_spawner *s, struct df_engine *e, const struct df_engine_step *step,
                    struct df_err *err)
{
    struct df_err why = {0};
    if (recover_streams(s, e, step, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_RETRY)
        return df_err_pass(err, &why);
    warn_of_log(step, &why);
    return 0;
}

/* Stores a copy, because df_state_keep_errored() moves the file that it gets. */
static int keep_copy(struct df_spawner *s, const char *path, const char *executor_uid,
                     const char *step_uid, struct df_err *err)
{
    DF_FREE char *copy = df_strf("%s/errored-XXXXXX", df_blob_tmp_dir(s->blobs));
    if (!copy)
        return df_fail_oom(err);
    DF_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0)
        return df_fail_errno(err, errno, "open %s", path);
    DF_CLOSE int fd = mkostemp(copy, O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", copy);
    if (df_fs_copy(from, fd, NULL, err) == 0 &&
        df_state_keep_errored(s->states, executor_uid, step_uid, copy, err) == 0)
        return 0;
    (void)unlink(copy);
    return -1;
}

static bool is_kept(struct df_spawner *s, const char *executor_uid, const char *step_uid)
{
    DF_CLOSE int fd = -1;
    int64_t size;
    return df_state_open_errored(s->states, executor_uid, step_uid, &fd, &size, NULL) == 0;
}

int df_recover_state(struct df_spawner *s, struct df_engine *e, const struct df_engine_step *step,
                     const char *executor_uid, struct df_err *err)
{
    DF_FREE char *path = NULL;
    if (find_orphan(e, step, "errored.tfstate", &path, err) < 0)
        return -1;
    if (!path)
        return 0;
    if (!is_kept(s, executor_uid, step->uid)) {
        df_warn("step %s left a state that it could not store: kept as an errored state",
                step->name);
        if (keep_copy(s, path, executor_uid, step->uid, err) < 0)
            return -1;
    }
    return df_errored_note(s, step->runner.executor, NULL, err);
}
