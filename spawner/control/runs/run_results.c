/* run_results.c - what a run's status says of its steps, from their TaskActions. */
#include "spawner/control/runs/run_results.h"

#include "spawner/control/runs/run_message.h"
#include "spawner/model/recipe.h"
#include "spawner/model/shared_pod.h"
#include "spawner/steps/standby.h"

static const char *step_phase(const cJSON *task)
{
    if (df_task_succeeded(task))
        return "Succeeded";
    if (df_task_is_final(task))
        return df_task_phase(task) == DF_TASK_PHASE_ABORTED ? "Canceled" : "Failed";
    return df_task_has_runner(task) ? "Running" : "Pending";
}

/* Searches a list of the status for the entry whose `key` is `name`, and returns its `value`; or
 * NULL. */
static const char *in_list(const cJSON *task, const char *list, const char *key, const char *name,
                           const char *value)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(task, list)) {
        if (df_streq(df_json_str(entry, key), name))
            return df_json_str(entry, value);
    }
    return NULL;
}

static const char *finished_at(const cJSON *task)
{
    return df_task_is_final(task)
               ? in_list(task, "status.conditions", "type", "Progressing", "lastTransitionTime")
               : NULL;
}

/* The standby runner that has the step, so that its pod is found without the TaskAction; or
 * NULL. */
static const char *standby_of(const cJSON *task)
{
    const char *host = df_shared_pod_host(task);
    return df_task_has_runner(task) && df_standby_is(host) ? host : NULL;
}

/* A step that waits for its runner has no startedAt: the write that says that it runs brings it. */
static int add_step(cJSON *steps, const char *name, const cJSON *task, struct df_err *err)
{
    const char *phase = step_phase(task);
    const char *began = in_list(task, "status.timeline", "name", "created", "at");
    return df_json_append(
        steps,
        df_json_object(
            DF_STR("name", name), DF_STR("taskAction", df_json_str(task, "metadata.name")),
            DF_STR("uid", df_json_str(task, "metadata.uid")), DF_STR("phase", phase),
            DF_STR("startedAt", df_streq(phase, "Pending") ? NULL : began),
            DF_STR("standbyRunner", standby_of(task)), DF_STR("finishedAt", finished_at(task))),
        err);
}

/* The entry of a step whose TaskAction was deleted stays: it is all that is known of the step. */
static int keep_step(const struct df_run_view *v, cJSON *steps, const cJSON *old,
                     struct df_err *err)
{
    cJSON *step = cJSON_Duplicate(old, true);
    if (df_json_append(steps, step, err) < 0)
        return -1;
    return v->lost_lives ? 0 : df_json_set_str(step, "phase", "Failed", err);
}

static int list_steps(const struct df_run_view *v, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *steps = cJSON_CreateArray();
    const struct df_recipe *recipe = df_recipe_of(v->run);
    if (!steps)
        return df_fail_oom(err);
    for (size_t at = 0; at < recipe->count; at++) {
        const cJSON *task = v->steps[at], *old = df_run_step(v->run, at);
        if (task && add_step(steps, recipe->steps[at].name, task, err) < 0)
            return -1;
        if (!task && df_json_str(old, "taskAction") && keep_step(v, steps, old, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(steps);
    return 0;
}

static int copy(cJSON *to, const char *as, const cJSON *task, const char *path, struct df_err *err)
{
    const cJSON *item = df_json_at(task, path);
    return item ? df_json_set(to, as, cJSON_Duplicate(item, true), err) : 0;
}

/* What the first step has found out. */
static int copy_first(cJSON *status, const cJSON *first, struct df_err *err)
{
    static const char *const found[] = {"hasChanges",  "destroysAll", "policies",
                                        "planSummary", "source",      "tool"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(found); i++)
        if (copy(status, found[i], df_json_at(first, "status"), found[i], err) < 0)
            return -1;
    /* With what else is found out: a write of its own would cost a request in a cluster. */
    if (df_task_succeeded(first) &&
        copy(status, "planDigest", first, "status.plan.sha256", err) < 0)
        return -1;
    return copy(status, "startedAt", first, "metadata.creationTimestamp", err);
}

int df_run_results_copy(const struct df_run_view *v, cJSON *run, struct df_err *err)
{
    cJSON *status = df_json_object_at(run, "status");
    const struct df_recipe *recipe = df_recipe_of(v->run);
    cJSON *steps = NULL;
    if (recipe->count == 0)
        return v->steps[0] ? 0 : df_run_message_turn(run, v->is_first, err);
    if (list_steps(v, &steps, err) < 0)
        return -1;
    if (!steps->child) {
        cJSON_Delete(steps);
        return df_run_message_turn(run, v->is_first, err);
    }
    if (df_json_set(status, "steps", steps, err) < 0 || copy_first(status, v->steps[0], err) < 0 ||
        copy(status, "applySummary", df_run_apply(v), "status.planSummary", err) < 0 ||
        copy(status, "waiting", df_run_latest(v), "status.waiting", err) < 0 ||
        df_run_message_step(v, run, err) < 0 || df_run_message_beside(run, v->beside, err) < 0)
        return -1;
    if (df_streq(df_json_str(run, "spec.decision.verdict"), "approved"))
        return copy(status, "approvedBy", run, "spec.decision.by", err);
    return 0;
}
