#include "spawner/control/runs/moved.h"

#include "spawner/model/move.h"
#include "spawner/model/storage.h"

static int fail_changed(const cJSON *executor, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateMoveFailed",
                          "somebody wrote the state of executor %s while it was copied: it stays "
                          "where it was; move it again",
                          df_json_str(executor, "metadata.name"));
}

/* The serial names the content: the state's rules refuse another content under the same one. */
static int check_version(struct df_spawner *s, const cJSON *executor, const cJSON *step,
                         struct df_err *err)
{
    DF_JSON cJSON *versions = NULL;
    if (df_state_versions(s->states, df_json_str(executor, "metadata.uid"), &versions, err) < 0)
        return -1;
    const cJSON *now = cJSON_GetArrayItem(versions, 0);
    const char *lineage = df_json_str(step, "status.tofuState.lineage");
    if (!df_json_int(now, "size", 0))
        return lineage ? fail_changed(executor, err) : 0;
    bool same = df_streq(df_json_str(now, "lineage"), lineage) &&
                df_json_int(now, "serial", -1) == df_json_int(step, "status.tofuState.serial", -2);
    return same ? 0 : fail_changed(executor, err);
}

static int check_lock(struct df_spawner *s, const cJSON *executor, struct df_err *err)
{
    DF_JSON cJSON *lock = NULL;
    if (df_state_lock_info(s->states, df_json_str(executor, "metadata.uid"), &lock, err) < 0)
        return -1;
    if (!lock)
        return 0;
    const char *who = df_json_str(lock, "Who");
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateLocked",
                          "%.200s locked the state of executor %s while it was copied: it stays "
                          "where it was; move it again when the lock is released",
                          who ? who : "somebody", df_json_str(executor, "metadata.name"));
}

int df_moved_check(struct df_spawner *s, const cJSON *run, const cJSON *executor, const cJSON *step,
                   struct df_err *err)
{
    if (!df_storage_is_managed(executor) || df_move_is_done(run, executor))
        return 0;
    return check_lock(s, executor, err) < 0 ? -1 : check_version(s, executor, step, err);
}
