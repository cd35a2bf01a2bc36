#include "spawner/control/runs/run_message.h"

#include "common/base/limits.h"
#include "spawner/model/beside.h"
#include "spawner/model/labels.h"
#include "spawner/model/model.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/model/waiting.h"

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

int df_run_message_step(const struct df_run_view *view, cJSON *run, struct df_err *err)
{
    bool destroys_all = df_json_bool(run, "status.destroysAll", false); /* never of a destroy */
    const cJSON *latest = df_run_latest(view);
    bool is_planned = !df_run_apply(view) && df_task_succeeded(latest);
    const cJSON *soft = df_policies_failed(run, "soft");
    const char *refused = df_json_str(run, "status.refusedDecision");
    int64_t required = df_approval_required(&view->approval, view->executor);
    if (is_planned && !refused && df_approval_count(run) && df_approval_count(run) < required)
        return report_approvals(run, required, err);
    if (is_planned && destroys_all && df_run_needs_admin(run))
        return report_approver(run, err);
    if (is_planned && refused)
        return set(run, strdup(refused), err);
    if (is_planned && df_recipe_asks(df_recipe_of(run)) && soft)
        return report_policy(run, soft, err);
    return report_obstacle(run, latest, err);
}

int df_run_message_beside(cJSON *run, const cJSON *beside, struct df_err *err)
{
    char words[256];
    df_beside_words(run, beside, words, sizeof(words));
    return words[0] && !df_json_str(run, "status.message") ? set(run, strdup(words), err) : 0;
}

/* It names none of the earlier runs: of the runs that wait, only the next one is woken when a run
 * ends. */
int df_run_message_turn(cJSON *run, bool is_first, struct df_err *err)
{
    if (is_first)
        return clear(run);
    return set(run,
               df_strf("waits for its turn: earlier runs of executor %s come first",
                       df_json_str(run, "spec.executorRef.name")),
               err);
}
