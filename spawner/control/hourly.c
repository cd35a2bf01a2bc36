#include "spawner/control/hourly.h"

#include "common/base/log.h"
#include "spawner/identity/personal.h"
#include "spawner/model/labels.h"
#include "spawner/requests/owners.h"
#include "spawner/requests/retention.h"
#include "spawner/requests/usage.h"
#include "spawner/steps/errored.h"

#define HOUR_US INT64_C(3600000000)

static void apply_retention(struct df_spawner *s)
{
    struct df_err err = {0};
    DF_JSON cJSON *removed = NULL;
    if (df_retention_apply(s, false, &removed, &err) < 0)
        df_warn("retention: what is left goes in an hour: %s", err.message);
    else if (cJSON_GetArraySize(removed))
        df_info("retention: removed ended runs and workflows, and what is old of others (%d)",
                cJSON_GetArraySize(removed));
    if (df_usage_measure(s, &err) < 0)
        df_warn("what is stored cannot be measured: %s", err.message);
}

/* What was applied and is not accepted yet has no status, and must not get one here. */
static int change_nothing(cJSON *executor, void *arg, struct df_err *err)
{
    (void)arg, (void)err;
    return df_json_at(executor, "status") ? 0 : 1;
}

static int write_identity(const cJSON *executor, void *arg, struct df_err *err)
{
    struct df_spawner *s = arg;
    struct df_err why = {0};
    (void)err;
    if (df_store_modify(s->store, DF_KIND_EXECUTOR, df_json_str(executor, "metadata.name"),
                        change_nothing, NULL, NULL, &why) < 0)
        df_warn("executor %s: its identity is written in an hour: %s",
                df_json_str(executor, "metadata.name"), why.message);
    return 0;
}

/* Resources that are older than status.service.uid (store/documents/codec.h) get it, so that a
 * backup of the cluster finds the states again. A write that changes nothing is none. */
static void write_identities(struct df_spawner *s)
{
    struct df_err err = {0};
    if (s->config->in_cluster &&
        df_store_each(s->store, DF_KIND_EXECUTOR, NULL, write_identity, s, &err) < 0)
        df_warn("executors: %s", err.message);
}

static int note_errored(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    struct df_spawner *s = arg;
    enum df_stored kind;
    char uid[64];
    DF_SHARED const cJSON *executor = NULL;
    struct df_err why = {0};
    if (!df_state_is_errored(info->key) || !df_stored_of(info->key, &kind, uid))
        return 0;
    if (df_store_look_by_uid(s->store, DF_KIND_EXECUTOR, uid, &executor, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    return df_errored_note(s, df_json_str(executor, "metadata.name"), NULL, err);
}

/* Those that a version of dayfly kept which did not name them, and those of a restored backup. */
static bool note_errored_states(struct df_spawner *s)
{
    struct df_err err = {0};
    if (df_blob_each(s->blobs, "state", note_errored, s, &err) == 0)
        return true;
    df_warn("executors do not name all errored states yet: %s", err.message);
    return false;
}

/* Has the step ended, and is its result written? A document that is gone needs no object. */
static bool may_go(void *arg, const char *step_uid)
{
    struct df_spawner *s = arg;
    DF_SHARED const cJSON *task = NULL;
    struct df_err why = {0};
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, step_uid, &task, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND;
    return df_task_is_final(task) && !df_label_has(task, DF_LABEL_UNFINISHED);
}

static void sweep_engines(struct df_spawner *s)
{
    for (size_t i = 0; i < s->engines.count; i++) {
        struct df_engine *e = s->engines.engines[i];
        struct df_err err = {0};
        if (e->ops->sweep && e->ops->sweep(e, may_go, s, &err) < 0)
            df_warn("the engine %s: what has ended goes in an hour: %s", e->kind->name,
                    err.message);
    }
}

static void sweep_tokens(struct df_spawner *s)
{
    struct df_err err = {0};
    if (df_personal_sweep(s->personal, &err) < 0)
        df_warn("personal tokens: what has expired goes in an hour: %s", err.message);
}

static int64_t work(void *arg)
{
    struct df_spawner *s = arg;
    bool all_noted = note_errored_states(s);
    apply_retention(s);
    sweep_engines(s);
    sweep_tokens(s);
    write_identities(s);
    return all_noted ? HOUR_US : HOUR_US / 60;
}

int df_hourly_start(struct df_spawner *s, struct df_periodic **ret, struct df_err *err)
{
    return df_periodic_start(work, s, 0, ret, err) < 0 ? df_err_wrap(err, "the hourly thread") : 0;
}
