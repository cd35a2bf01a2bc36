#include "spawner/steps/lock_holder.h"

#include "common/base/clock.h"
#include "spawner/model/labels.h"
#include "spawner/model/storage.h"

#define CLOCKS_DIFFER_US ((int64_t)5 * 1000000) /* of the service and of the runner's machine */

struct lock {
    int64_t created_us;
    const char *host;
    const char *met_by;              /* uid of the step that met it */
    char step[64], run[64], how[96]; /* "" until a step is found */
};

static int64_t time_at(const cJSON *doc, const char *path)
{
    int64_t us;
    const char *text = df_json_str(doc, path);
    return text && df_time_parse(text, &us, NULL) == 0 ? us : -1;
}

/* When the step ended; INT64_MAX if it did not. */
static int64_t end_of(const cJSON *task)
{
    const cJSON *history = df_json_at(task, "status.phaseHistory");
    const cJSON *last = cJSON_GetArrayItem(history, cJSON_GetArraySize(history) - 1);
    return df_task_is_final(task) ? time_at(last, "occurredAt") : INT64_MAX;
}

/* A step that succeeded has released its lock. */
static bool took(const cJSON *task, const struct lock *lock)
{
    if (df_task_succeeded(task))
        return false;
    int64_t claimed = time_at(task, "status.claimedBy.at"), end = end_of(task);
    if (claimed < 0 || !df_streq(df_json_str(task, "status.claimedBy.host"), lock->host))
        return false;
    return lock->created_us >= claimed - CLOCKS_DIFFER_US &&
           (end == INT64_MAX || lock->created_us <= end + CLOCKS_DIFFER_US);
}

static void describe(const cJSON *task, struct lock *lock)
{
    const char *step = df_json_str(task, "metadata.name");
    const char *run = df_json_str(task, "spec.runRef.name");
    const char *reason = df_json_str(task, "status.reason");
    (void)snprintf(lock->step, sizeof(lock->step), "%s", step);
    (void)snprintf(lock->run, sizeof(lock->run), "%s", run ? run : "");
    if (reason && df_task_is_final(task))
        (void)snprintf(lock->how, sizeof(lock->how), "left this lock behind (%.63s)", reason);
    else
        (void)snprintf(lock->how, sizeof(lock->how), "holds this lock and has not ended");
}

/* A df_store_visit. */
static int look(const cJSON *task, void *arg, struct df_err *err)
{
    struct lock *lock = arg;
    (void)err;
    if (!df_streq(df_json_str(task, "metadata.uid"), lock->met_by) && took(task, lock))
        describe(task, lock);
    return 0;
}

/* Who holds a lock of dayfly's own is known: a step, or somebody with `state lock`. */
static int find_in_state(struct df_spawner *s, const cJSON *task, struct lock *lock,
                         struct df_err *err)
{
    const char *executor = df_json_str(task, "spec.executorRef.uid");
    DF_JSON cJSON *info = NULL;
    DF_SHARED const cJSON *holder = NULL;
    char uid[64] = "";
    struct df_err why = {0};
    if (df_state_lock_info(s->states, executor, &info, err) < 0)
        return -1;
    const char *id = df_json_str(info, "ID");
    if (!id)
        return 0;
    if (df_state_lock_step(s->states, executor, id, uid, err) < 0)
        return -1;
    if (!*uid || df_streq(uid, lock->met_by))
        return 0;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &holder, &why) == 0)
        describe(holder, lock);
    return why.cls == DF_ERR_NONE || why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

/* Of other storages the lock says no more than a host and a time. */
static int find_holder(struct df_spawner *s, const cJSON *task, struct lock *lock,
                       struct df_err *err)
{
    if (df_storage_is_managed(task))
        return find_in_state(s, task, lock, err);
    DF_FREE char *label =
        df_strf(DF_LABEL_EXECUTOR "=%s", df_json_str(task, "spec.executorRef.name"));
    return label ? df_store_each(s->store, DF_KIND_TASK_ACTION, label, look, lock, err)
                 : df_fail_oom(err);
}

int df_lock_holder_explain(struct df_spawner *s, const cJSON *task, const cJSON *result,
                           cJSON **ret, struct df_err *err)
{
    const char *who = df_json_str(result, "lock.who"), *at = who ? strrchr(who, '@') : NULL;
    const char *message = df_json_str(result, "message");
    struct lock lock = {.created_us = time_at(result, "lock.created"),
                        .host = at ? at + 1 : NULL,
                        .met_by = df_json_str(task, "metadata.uid")};
    *ret = NULL;
    if (!lock.host || lock.created_us < 0)
        return 0;
    if (find_holder(s, task, &lock, err) < 0)
        return -1;
    if (!*lock.step)
        return 0;
    DF_JSON cJSON *copy = cJSON_Duplicate(result, true);
    /* First, because it is what decides whether one waits or unlocks. */
    DF_FREE char *text =
        df_strf("Step %s of run %s %s. %s", lock.step, lock.run, lock.how, message ? message : "");
    if (!copy || !text)
        return df_fail_oom(err);
    if (df_json_set_str(copy, "message", text, err) < 0)
        return -1;
    *ret = DF_TAKE(copy);
    return 0;
}

int df_lock_holder_release(struct df_spawner *s, const char *executor_uid, const char *lock_id,
                           bool *ret_released, struct df_err *err)
{
    char step[64] = "";
    DF_SHARED const cJSON *task = NULL;
    struct df_err why = {0};
    *ret_released = false;
    if (df_state_lock_step(s->states, executor_uid, lock_id, step, err) < 0)
        return -1;
    if (!*step)
        return 0;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, step, &task, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (!df_task_is_final(task) || df_label_has(task, DF_LABEL_LIVE))
        return 0;
    return df_state_release_dead(s->states, executor_uid, step, ret_released, err);
}
