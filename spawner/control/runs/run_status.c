/*
 * run_status.c - first the message of a run that has not ended: what it waits for, for people. Then
 * what its steps have found out and done. Read df_run_status_fill() at the end.
 */
#include "spawner/control/runs/run_status.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/automatic.h"
#include "spawner/model/beside.h"
#include "spawner/model/labels.h"
#include "spawner/model/model.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/model/shared_pod.h"
#include "spawner/model/waiting.h"
#include "spawner/steps/standby.h"

/* ---- message ---- */

/* text is freed; NULL: no memory. */
static int set(cJSON *run, char *text, struct df_err *err)
{
    DF_FREE char *owned = text;
    return owned ? df_json_set_str(df_json_object_at(run, "status"), "message", owned, err)
                 : df_fail_oom(err);
}

static int clear(cJSON *run)
{
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(run, "status"), "message");
    return 0;
}

/* While an approval needs more than a write token, the run's message says so. */
static int report_approver(cJSON *run, struct df_err *err)
{
    return set(
        run,
        df_strf("the plan destroys or forgets everything that executor %s holds: an admin must "
                "approve it (dayfly approve %s) or discard it",
                df_json_str(run, "spec.executorRef.name"), df_json_str(run, "metadata.name")),
        err);
}

/* While more people have to approve, the run's message says who has. */
static int report_approvals(cJSON *run, int64_t required, struct df_err *err)
{
    struct df_buf text = DF_BUF_INIT(64 + DF_LIMIT_APPROVALS * (DF_LIMIT_CALLER + 2));
    const cJSON *decision;
    const char *between = "";
    (void)df_buf_addf(&text, "%lld of %lld approvals: approved by ",
                      (long long)df_approval_count(run), (long long)required);
    cJSON_ArrayForEach (decision, df_json_at(run, "status.decisions")) {
        (void)df_buf_addf(&text, "%s%s", between, df_json_str(decision, "by"));
        between = ", ";
    }
    return set(run, df_buf_take(&text), err);
}

/* While an approval overrides a policy, the run's message says which one and why. */
static int report_policy(cJSON *run, const cJSON *failed, struct df_err *err)
{
    const cJSON *messages = df_json_at(failed, "messages");
    const char *why = cJSON_GetStringValue(messages ? messages->child : NULL);
    return set(run,
               df_strf("the soft policy %s has failed (%s): who may override it approves the plan "
                       "and says why (dayfly approve %s --reason TEXT)",
                       df_json_str(failed, "name"), why ? why : "it says nothing",
                       df_json_str(run, "metadata.name")),
               err);
}

/* While a canceled or deleted run waits for its step, its message says how long that may take. */
static int report_ending(cJSON *run, const cJSON *step, struct df_err *err)
{
    return set(run,
               df_strf("is canceled: waits for the end of step %s, whose grace period is %llds",
                       df_json_str(step, "metadata.name"),
                       (long long)df_json_int(step, "spec.graceSeconds", DF_TIMEOUT_GRACE_SECONDS)),
               err);
}

/* While a step cannot start or go on, the run's message says why. */
static int report_obstacle(cJSON *run, const cJSON *step, struct df_err *err)
{
    if (df_json_at(run, "spec.cancel") && df_label_has(step, DF_LABEL_LIVE))
        return report_ending(run, step, err);
    if (df_run_awaits_state(step))
        return set(run, strdup("keeps the state that its step has left"), err);
    if (df_waiting_of(step))
        return set(run, df_waiting_text(df_waiting_of(step), false), err);
    bool waits = !df_task_is_final(step) && !df_streq(df_task_reason(step), "Executing");
    const char *message = waits ? df_task_message(step) : NULL;
    return df_str_empty(message) ? clear(run) : set(run, strdup(message), err);
}

/* Of a run that has a step. */
static int message_step(const struct df_run_view *view, cJSON *run, struct df_err *err)
{
    bool destroys_all = df_json_bool(run, "status.destroysAll", false); /* never of a destroy */
    const cJSON *latest = df_run_latest(view);
    bool is_planned = !df_run_apply(view) && df_task_succeeded(latest);
    const cJSON *soft = df_policies_failed(run, "soft");
    const char *refused = df_json_str(run, "status.refusedDecision");
    int64_t required = df_approval_required(&view->approval, run, view->executor);
    if (is_planned && !refused && df_approval_count(run) && df_approval_count(run) < required)
        return report_approvals(run, required, err);
    if (is_planned && destroys_all && df_approval_needs_admin(run))
        return report_approver(run, err);
    if (is_planned && refused)
        return set(run, strdup(refused), err);
    if (is_planned && df_recipe_asks(df_recipe_of(run)) && soft)
        return report_policy(run, soft, err);
    return report_obstacle(run, latest, err);
}

/* Of one that takes no turn, behind that: if there is nothing to say, what its plan does not
 * know. */
static int message_beside(cJSON *run, const cJSON *beside, struct df_err *err)
{
    char words[256];
    df_beside_words(run, beside, words, sizeof(words));
    return words[0] && !df_json_str(run, "status.message") ? set(run, strdup(words), err) : 0;
}

/* Of a run without steps. It names none of the earlier runs: of those that wait, only the next one
 * is woken when a run ends. */
static int message_turn(cJSON *run, bool is_first, struct df_err *err)
{
    if (is_first)
        return clear(run);
    return set(run,
               df_strf("waits for its turn: earlier runs of executor %s come first",
                       df_json_str(run, "spec.executorRef.name")),
               err);
}

/* ---- results of the steps ---- */

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
    static const char *const found[] = {"hasChanges",  "destroysAll", "policies", "planSummary",
                                        "planChanges", "source",      "tool"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(found); i++)
        if (copy(status, found[i], df_json_at(first, "status"), found[i], err) < 0)
            return -1;
    /* With what else is found out: a write of its own would cost a request in a cluster. */
    if (df_task_succeeded(first) &&
        copy(status, "planDigest", first, "status.plan.sha256", err) < 0)
        return -1;
    return copy(status, "startedAt", first, "metadata.creationTimestamp", err);
}

/* What was applied without a look says why. */
static int note_automatic(const struct df_run_view *v, cJSON *run, struct df_err *err)
{
    if (!df_run_apply(v) || df_json_at(run, "spec.decision") || df_approval_count(run) ||
        !df_approval_is_covered(&v->approval, v->run, v->executor, v->steps[0]))
        return 0;
    DF_FREE char *reason = df_automatic_reason(v->steps[0]);
    if (df_check_alloc(reason, err) < 0)
        return -1;
    return df_json_append(df_json_array_at(df_json_object_at(run, "status"), "decisions"),
                          df_json_object(DF_STR("verdict", "approved"), DF_TIME("at", df_real_us()),
                                         DF_STR("reason", reason),
                                         DF_STR("plan", df_json_str(run, "status.planDigest"))),
                          err);
}

int df_run_status_fill(const struct df_run_view *v, cJSON *run, struct df_err *err)
{
    cJSON *status = df_json_object_at(run, "status");
    const struct df_recipe *recipe = df_recipe_of(v->run);
    cJSON *steps = NULL;
    if (recipe->count == 0)
        return v->steps[0] ? 0 : message_turn(run, v->is_first, err);
    if (list_steps(v, &steps, err) < 0)
        return -1;
    if (!steps->child) {
        cJSON_Delete(steps);
        return message_turn(run, v->is_first, err);
    }
    if (df_json_set(status, "steps", steps, err) < 0 || copy_first(status, v->steps[0], err) < 0 ||
        copy(status, "applySummary", df_run_apply(v), "status.planSummary", err) < 0 ||
        copy(status, "waiting", df_run_latest(v), "status.waiting", err) < 0 ||
        message_step(v, run, err) < 0 || message_beside(run, v->beside, err) < 0)
        return -1;
    if (note_automatic(v, run, err) < 0)
        return -1;
    if (df_streq(df_json_str(run, "spec.decision.verdict"), "approved"))
        return copy(status, "approvedBy", run, "spec.decision.by", err);
    return 0;
}
