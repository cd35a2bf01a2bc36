#include "spawner/control/runs/lineage.h"

#include "spawner/model/state_command.h"
#include "spawner/model/storage.h"
#include "spawner/requests/storage.h"

struct claim {
    const cJSON *executor;
    const char *name;
    const char *lineage;
};

/* ---- checks ---- */

/* A df_store_visit. */
static int check_other(const cJSON *other, void *arg, struct df_err *err)
{
    const struct claim *c = arg;
    const char *name = df_json_str(other, "metadata.name");
    if (df_streq(name, c->name) || !df_streq(df_json_str(other, "status.stateLineage"), c->lineage))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateBelongsToAnother",
                          "the state in the storage of executor %s (lineage \"%s\") is that of "
                          "executor %s: each would destroy the resources of the other. Nothing was "
                          "changed; give %s a storage of its own, or forget %s if it is not needed "
                          "any more (`dayfly delete %s --forget`)",
                          c->name, c->lineage, name, c->name, name, name);
}

/* A managed state has rules of its own for what may follow it (store/tofu_state/state.h). */
static int check_own(const struct claim *c, struct df_err *err)
{
    const char *own = df_json_str(c->executor, "status.stateLineage");
    if (!own || df_streq(own, c->lineage) || df_storage_is_managed(c->executor))
        return 0;
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "StateRefused",
        "the state in the storage of executor %s has the lineage \"%s\", but the "
        "executor's state has \"%s\": somebody put another one there. Nothing was "
        "changed; bring the right one back, or, if the new one is right, forget "
        "the executor (`dayfly delete %s --forget`) and create it anew",
        c->name, c->lineage, own, c->name);
}

/* ---- the executor's own ---- */

/* A df_store_change. */
static int set_own(cJSON *executor, void *arg, struct df_err *err)
{
    const struct claim *c = arg;
    cJSON *status = df_json_object_at(executor, "status");
    if (!status)
        return df_fail_oom(err);
    if (df_streq(df_json_str(status, "stateLineage"), c->lineage))
        return 1;
    return df_json_set_str(status, "stateLineage", c->lineage, err);
}

static bool will_write(const struct df_run_view *v, const struct df_run_verdict *verdict)
{
    return verdict->next == DF_RUN_STEP && df_recipe_of(v->run)->steps[verdict->step].writes;
}

/* May the run change the state from here on, or has it? A dry run of an executor that holds
 * resources reads the state that holds them; one beside another run perhaps that of before. */
static bool makes_own(const struct df_run_view *v, const struct df_run_verdict *verdict)
{
    bool only_reads = !df_run_takes_turn(v->run);
    if (only_reads && df_json_str(v->run, "status.beside"))
        return false;
    return df_executor_is_in_use(v->executor) || will_write(v, verdict) ||
           (verdict->next == DF_RUN_FINISH && !only_reads);
}

/* Under one lock: else two executors could take the same lineage at once. */
static int settle(struct df_spawner *s, struct claim *c, bool own, struct df_err *err)
{
    struct df_err why = {0};
    if (df_store_each(s->store, DF_KIND_EXECUTOR, NULL, check_other, c, err) < 0)
        return -1;
    if (!own || df_store_modify(s->store, DF_KIND_EXECUTOR, c->name, set_own, c, NULL, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_CONFLICT)
        why.cls = DF_ERR_RETRY; /* of writes: the next pass tries again */
    return df_err_pass(err, &why);
}

int df_lineage_settle(struct df_spawner *s, const struct df_run_view *v,
                      const struct df_run_verdict *verdict, struct df_err *err)
{
    const char *before = df_json_str(v->steps[0], "status.tofuState.lineage");
    const cJSON *apply = df_run_apply(v);
    const char *after = df_json_str(apply, "status.tofuState.lineage");
    struct claim c = {v->executor, df_json_str(v->executor, "metadata.name"),
                      after ? after : before};
    bool is_over = verdict->next == DF_RUN_FINISH;
    bool matters = verdict->next == DF_RUN_ASK || verdict->next == DF_RUN_STEP ||
                   (is_over && (apply || df_streq(verdict->phase, "Succeeded")));
    if (!v->executor || !c.lineage || !matters)
        return 0;
    /* The runner compared before a command on the state; what it found after one may be new. */
    bool is_command = df_json_at(v->run, "spec.command") && !df_run_moves(v->run);
    if (!after && !is_command && check_own(&c, err) < 0)
        return -1;
    df_storage_lock();
    int result = settle(s, &c, makes_own(v, verdict), err);
    df_storage_unlock();
    return result;
}
