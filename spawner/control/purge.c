/*
 * purge.c - an executor goes with everything of it: runs, steps, logs, plans, state.
 *
 * The wish is written first, so that a crash leaves nothing half removed: start-up finds it again.
 */
#include "common/base/clock.h"
#include "spawner/control/applied.h"
#include "spawner/control/loop.h"
#include "spawner/news/reporter.h"
#include "spawner/steps/plans.h"
#include "spawner/steps/streams.h"

static int list_of(struct df_store *s, enum df_kind kind, const char *label_name, const char *value,
                   cJSON **ret, struct df_err *err)
{
    char label[128];
    (void)snprintf(label, sizeof(label), "%s=%s", label_name, value);
    const struct df_store_list_options o = {.label = label};
    return df_store_list(s, kind, &o, ret, NULL, err);
}

/* ---- the wish ---- */

struct wish {
    struct df_spawner *s;
    enum df_role role;
    const char *actor;
};

static int set_deleting(cJSON *executor, void *arg, struct df_err *err)
{
    const struct wish *w = arg;
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *unfinished = NULL;
    cJSON *status = df_json_object_at(executor, "status");
    if (df_json_at(executor, "status.deleting"))
        return 1;
    if (df_executor_check_delete(executor, w->role, err) < 0 ||
        list_of(w->s->store, DF_KIND_RUN, DF_LABEL_QUEUE, name, &unfinished, err) < 0)
        return -1;
    if (cJSON_GetArraySize(unfinished) > 0)
        return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                              "executor %s has unfinished runs: wait for them, or cancel them",
                              name);
    cJSON *deleting = status ? df_json_object_at(status, "deleting") : NULL;
    if (!deleting)
        return df_fail_oom(err);
    if (df_json_add_str(deleting, "by", w->actor, err) < 0 ||
        df_json_add_time(deleting, "at", df_real_us(), err) < 0)
        return -1;
    return df_label_set(executor, DF_LABEL_UNFINISHED, "true", err);
}

/* ---- its fulfilment ---- */

int df_purge_step(struct df_spawner *s, const cJSON *task, struct df_err *err)
{
    const char *uid = df_json_str(task, "metadata.uid");
    if (df_label_has(task, DF_LABEL_LIVE))
        return df_fail_reason(err, DF_ERR_RETRY, "Conflict", "step %s is still being cleaned up",
                              df_json_str(task, "metadata.name"));
    if (df_reporter_let_go(s->config, task, err) < 0 || df_stream_delete(s, uid, err) < 0 ||
        df_plan_delete(s, uid, err) < 0)
        return -1;
    return df_store_remove(s->store, DF_KIND_TASK_ACTION, df_json_str(task, "metadata.name"), uid,
                           err);
}

static int purge_run(struct df_spawner *s, const cJSON *run, struct df_err *err)
{
    return df_store_remove(s->store, DF_KIND_RUN, df_json_str(run, "metadata.name"),
                           df_json_str(run, "metadata.uid"), err);
}

typedef int (*purge_one)(struct df_spawner *s, const cJSON *doc, struct df_err *err);

/* All of a kind with this label. */
static int purge_kind(struct df_spawner *s, enum df_kind kind, purge_one purge,
                      const char *label_name, const char *value, struct df_err *err)
{
    for (;;) {
        DF_JSON cJSON *list = NULL;
        const cJSON *doc;
        if (list_of(s->store, kind, label_name, value, &list, err) < 0)
            return -1;
        if (cJSON_GetArraySize(list) == 0)
            return 0;
        cJSON_ArrayForEach (doc, list) {
            struct df_err why = {0};
            if (purge(s, doc, &why) < 0 && why.cls != DF_ERR_NOT_FOUND) {
                *err = why;
                return -1;
            }
        }
    }
}

int df_purge_run(struct df_spawner *s, const cJSON *run, struct df_err *err)
{
    const char *name = df_json_str(run, "metadata.name");
    if (purge_kind(s, DF_KIND_TASK_ACTION, df_purge_step, DF_LABEL_RUN, name, err) < 0)
        return -1;
    return purge_run(s, run, err);
}

static int purge(struct df_spawner *s, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    const char *uid = df_json_str(executor, "metadata.uid");
    if (purge_kind(s, DF_KIND_TASK_ACTION, df_purge_step, DF_LABEL_EXECUTOR, name, err) < 0 ||
        purge_kind(s, DF_KIND_RUN, purge_run, DF_LABEL_EXECUTOR, name, err) < 0 ||
        df_state_purge(s->states, uid, err) < 0)
        return -1;
    return df_store_remove(s->store, DF_KIND_EXECUTOR, name, uid, err);
}

int df_reconcile_executor(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    struct df_err why = {0};
    if (df_store_get(c->s->store, DF_KIND_EXECUTOR, name, &executor, &why) < 0) {
        if (why.cls == DF_ERR_NOT_FOUND)
            return 0;
        *err = why;
        return -1;
    }
    bool done = false;
    if (df_applied_executor(c, executor, &done, ret_wake_us, err) < 0 || done)
        return done ? 0 : -1;
    return df_json_at(executor, "status.deleting") ? purge(c->s, executor, err) : 0;
}

int df_control_delete_executor(struct df_spawner *s, const char *name, enum df_role role,
                               const char *actor, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    struct df_err later = {0};
    struct wish w = {s, role, actor};
    if (df_store_modify(s->store, DF_KIND_EXECUTOR, name, set_deleting, &w, &executor, err) < 0)
        return -1;
    /* What cannot be done now is done by the loop. */
    if (purge(s, executor, &later) < 0)
        df_control_wake(s->control, DF_KIND_EXECUTOR, name);
    return 0;
}
