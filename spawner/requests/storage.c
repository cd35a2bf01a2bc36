/*
 * storage.c - compares the state locations of executors.
 */
#include "spawner/requests/storage.h"

#include <pthread.h>

#include "spawner/model/accepted.h"
#include "spawner/model/labels.h"
#include "spawner/model/move.h"
#include "spawner/model/state_command.h"

/* A lock of this process suffices, because only the leader writes executors. */
static pthread_mutex_t storage_lock = PTHREAD_MUTEX_INITIALIZER;

void df_storage_lock(void)
{
    (void)pthread_mutex_lock(&storage_lock);
}

void df_storage_unlock(void)
{
    (void)pthread_mutex_unlock(&storage_lock);
}

struct place {
    const cJSON *doc; /* the executor that is checked */
    const char *location;
};

/* False for an executor that is not accepted yet or was refused: it has no state. */
static bool has_location(const cJSON *executor)
{
    return df_json_at(executor, "status") && !df_doc_is_refused(executor);
}

/* Is this the location of the other executor's state, or of one of its moves? */
static int holds(const cJSON *other, const cJSON *storage, const char *location, bool *ret,
                 struct df_err *err)
{
    DF_JSON cJSON *view = NULL;
    DF_FREE char *taken = NULL;
    if (!storage)
        return 0;
    if (df_move_view(other, storage, &view, err) < 0 || df_storage_location(view, &taken, err) < 0)
        return -1;
    *ret = *ret || df_streq(location, taken);
    return 0;
}

/* A df_store_visit: fails if this executor has its state where that of arg would be. */
static int check_other(const cJSON *other, void *arg, struct df_err *err)
{
    static const char *const storages[] = {"spec.storage", "status.movingTo",
                                           "status.formerStorage.storage"};
    const struct place *p = arg;
    const char *other_name = df_json_str(other, "metadata.name");
    bool taken = false;
    if (df_streq(df_json_str(p->doc, "metadata.name"), other_name) || !has_location(other))
        return 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(storages); i++)
        if (holds(other, df_json_at(other, storages[i]), p->location, &taken, err) < 0)
            return -1;
    if (!taken)
        return 0;
    DF_FREE char *words = df_storage_words(df_json_at(p->doc, "spec.storage"));
    if (!words)
        return df_fail_oom(err);
    return df_fail_reason(err, DF_ERR_CONFLICT, "StorageInUse",
                          "spec.storage: executor %s has its state in %s already; give this one "
                          "another path",
                          other_name, words);
}

int df_storage_check(struct df_spawner *s, const cJSON *doc, struct df_err *err)
{
    DF_FREE char *location = NULL;
    if (df_storage_location(doc, &location, err) < 0)
        return -1;
    struct place p = {doc, location};
    return location ? df_store_each(s->store, DF_KIND_EXECUTOR, NULL, check_other, &p, err) : 0;
}

/* A df_store_visit over the unfinished runs of an executor: fails at one that moves its state. */
static int refuse_second_move(const cJSON *other, void *arg, struct df_err *err)
{
    const cJSON *run = *(const cJSON *const *)arg;
    const char *name = df_json_str(other, "metadata.name");
    if (!df_run_moves(other) || df_streq(name, df_json_str(run, "metadata.name")))
        return 0;
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "WrongState",
        "the state of executor %s is being moved by run %s, which is %s: wait for "
        "it (dayfly logs -f %s), or cancel it (dayfly cancel %s)",
        df_json_str(run, "spec.executorRef.name"), name, df_run_phase(other), name, name);
}

/* The second of two moves would only find, after its turn has come, that the state is elsewhere. */
static int check_only_move(struct df_spawner *s, const cJSON *run, struct df_err *err)
{
    DF_FREE char *label = df_strf(DF_LABEL_QUEUE "=%s", df_json_str(run, "spec.executorRef.name"));
    if (!label)
        return df_fail_oom(err);
    return df_store_each(s->store, DF_KIND_RUN, label, refuse_second_move, &run, err);
}

int df_storage_check_move(struct df_spawner *s, const cJSON *run, struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    DF_JSON cJSON *moved = NULL;
    const cJSON *target = df_json_at(run, "spec.moveTo");
    if (!target)
        return 0;
    if (check_only_move(s, run, err) < 0 ||
        df_store_look(s->store, DF_KIND_EXECUTOR, df_json_str(run, "spec.executorRef.name"),
                      &executor, err) < 0 ||
        df_move_view(executor, target, &moved, err) < 0)
        return -1;
    df_storage_lock();
    int result = df_storage_check(s, moved, err);
    df_storage_unlock();
    return result;
}
