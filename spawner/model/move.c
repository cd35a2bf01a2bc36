#include "spawner/model/move.h"

#include "spawner/model/model.h"
#include "spawner/model/revision.h"
#include "spawner/model/storage.h"

/* ---- the target ---- */

static const char *executor_of(const cJSON *run)
{
    return df_json_str(run, "spec.executorRef.name");
}

/* df_storage_fill() takes a spec: the target is its storage for that time. */
int df_move_fill(cJSON *run, struct df_err *err)
{
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(run, "spec");
    DF_JSON cJSON *target = cJSON_CreateObject();
    cJSON *storage = cJSON_DetachItemFromObjectCaseSensitive(spec, "moveTo");
    if (!storage)
        return 0;
    if (df_json_add(target, "storage", storage, err) < 0)
        return df_fail_oom(err);
    int failed = df_storage_fill(target, executor_of(run), err);
    storage = cJSON_DetachItemFromObjectCaseSensitive(target, "storage");
    return df_json_add(spec, "moveTo", storage, err) < 0 ? -1 : failed;
}

int df_move_view(const cJSON *executor, const cJSON *storage, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *view = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(view, "metadata");
    cJSON *spec = df_json_object_at(view, "spec");
    if (df_json_set_str(metadata, "name", df_json_str(executor, "metadata.name"), err) < 0 ||
        df_json_set(spec, "storage", cJSON_Duplicate(storage, true), err) < 0)
        return -1;
    *ret = DF_TAKE(view);
    return 0;
}

/* ---- checks ---- */

int df_move_check(const cJSON *run, const cJSON *executor, struct df_err *err)
{
    const cJSON *target = df_json_at(run, "spec.moveTo");
    const cJSON *former = df_json_at(executor, "status.formerStorage");
    const char *name = df_json_str(executor, "metadata.name");
    const char *type = df_json_str(former, "storage.type");
    if (!target)
        return 0;
    if (df_json_equal(target, df_json_at(executor, "spec.storage")))
        return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyThere",
                              "the state of executor %s is in this storage already", name);
    if (!former || df_json_equal(target, df_json_at(former, "storage")))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                          "executor %s was moved by %s, and the state in its storage before (%s) "
                          "is still kept: forget that with `dayfly state migrate %s --confirm`, or "
                          "return to it with --back",
                          name, df_json_str(former, "run"), type ? type : "managed", name);
}

bool df_move_overtook(const cJSON *run, const cJSON *executor)
{
    const cJSON *then = df_json_at(run, "spec.snapshot.storage");
    const cJSON *now = df_json_at(executor, "spec.storage");
    return then && now && !df_storage_is_same(df_json_str(executor, "metadata.name"), then, now);
}

bool df_move_is_done(const cJSON *run, const cJSON *executor)
{
    return df_json_equal(df_json_at(run, "spec.moveTo"), df_json_at(executor, "spec.storage"));
}

/* ---- the switch ---- */

/* A new spec has the next revision. In a cluster spec and status are written one after the other:
 * if the first write was made already, the status still lacks the revision that belongs to it. */
static int raise_revision(const cJSON *executor, const cJSON *run, cJSON *status, bool changes,
                          struct df_err *err)
{
    int64_t now = df_json_int(executor, "status.revision", 0);
    int64_t generation = df_json_int(executor, "metadata.generation", now);
    int64_t next = changes ? now + 1 : generation > now ? generation : now;
    if (next == now)
        return 0;
    return df_revision_set(status, next, df_json_str(run, "spec.requestedBy"),
                           df_json_str(run, "status.finishedAt"), err);
}

static int note_former(cJSON *status, const cJSON *run, struct df_err *err)
{
    return df_json_set(
        status, "formerStorage",
        df_json_object(
            DF_ITEM("storage", cJSON_Duplicate(df_json_at(run, "spec.snapshot.storage"), true)),
            DF_STR("run", df_json_str(run, "metadata.name")),
            DF_STR("leftAt", df_json_str(run, "status.finishedAt"))),
        err);
}

int df_move_switch(cJSON *executor, const cJSON *run, struct df_err *err)
{
    const cJSON *target = df_json_at(run, "spec.moveTo");
    cJSON *spec = df_json_object_at(executor, "spec");
    cJSON *status = df_json_object_at(executor, "status");
    bool changes = !df_json_equal(target, df_json_at(spec, "storage"));
    if (df_json_set(spec, "storage", cJSON_Duplicate(target, true), err) < 0 ||
        df_json_set(status, "provisionedStorage", cJSON_Duplicate(target, true), err) < 0 ||
        raise_revision(executor, run, status, changes, err) < 0)
        return -1;
    return note_former(status, run, err);
}

int df_move_confirm(cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    cJSON *status = df_json_object_at(executor, "status");
    if (!status)
        return df_fail_oom(err);
    if (df_json_at(status, "movingTo"))
        return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                              "the state of executor %s is being moved by run %s: wait for it",
                              name, df_json_str(status, "activeRun"));
    if (!df_json_at(status, "formerStorage"))
        return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                              "executor %s keeps no state at an earlier place: there is nothing to "
                              "confirm",
                              name);
    cJSON_DeleteItemFromObjectCaseSensitive(status, "formerStorage");
    return 0;
}
