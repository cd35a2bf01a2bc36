/*
 * The state machine of a run: Pending until it is first in its executor's queue, then one step of
 * its recipe after the other, with an approval before those that ask, and the end. No state lasts
 * forever: it waits for something that must end (a step has deadlines, an earlier run ends), or it
 * has a deadline of its own (an approval expires with its plan).
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/accepted.h"
#include "spawner/model/apply_window.h"
#include "spawner/model/approval.h"
#include "spawner/model/beside.h"
#include "spawner/model/errored_states.h"
#include "spawner/model/labels.h"
#include "spawner/model/move.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/model/state_command.h"
#include "spawner/model/task_parts.h"

/* How soon a run looks again at an executor whose edit is not checked yet. */
#define UNCHECKED_US INT64_C(1000000)

static bool is_action(const cJSON *run, enum df_action action)
{
    return df_streq(df_json_str(run, "spec.action"), df_action_name(action));
}

const char *df_run_first_action(const cJSON *run, const cJSON *executor)
{
    const char *before = df_json_str(executor, "status.before.state");
    bool destroying = df_streq(before ? before : df_json_str(executor, "status.state"), "destroy");
    return is_action(run, DF_ACTION_DRY_RUN) && destroying
               ? df_recipe_for(DF_ACTION_DESTROY)->steps[0].action
               : df_recipe_of(run)->steps[0].action;
}

bool df_run_awaits_state(const cJSON *step)
{
    return df_task_is_final(step) && df_json_bool(step, "status.leavesState", false) &&
           df_label_has(step, DF_LABEL_LIVE);
}

/* ---- verdicts ---- */

static struct df_run_verdict decide(enum df_run_next what)
{
    return (struct df_run_verdict){.next = what};
}

static struct df_run_verdict finish_run(const char *phase, const char *reason, const char *message)
{
    struct df_run_verdict v = {.next = DF_RUN_FINISH, .phase = phase};
    (void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
    (void)snprintf(v.message, sizeof(v.message), "%s", message ? message : "");
    return v;
}

static struct df_run_verdict finish_canceled(const cJSON *run)
{
    struct df_run_verdict v = finish_run("Canceled", "Canceled", NULL);
    const char *by = df_json_str(run, "spec.cancel.by");
    const char *why = df_json_str(run, "spec.cancel.reason");
    (void)snprintf(v.message, sizeof(v.message), "canceled%s%s%s%s", by ? " by " : "", by ? by : "",
                   why ? ": " : "", why ? why : "");
    return v;
}

static struct df_run_verdict finish_gone(void)
{
    return finish_run("Failed", "ExecutorGone",
                      "the executor was deleted while the run was under way");
}

/* ---- steps ---- */

static bool wants_cancel(const cJSON *doc)
{
    return cJSON_IsObject(df_json_at(doc, "spec.cancel"));
}

static struct df_run_verdict wait_for_step(const struct df_run_view *v, const cJSON *step)
{
    bool must_end = wants_cancel(v->run) || !v->executor;
    return decide(must_end && !wants_cancel(step) ? DF_RUN_CANCEL_STEP : DF_RUN_WAIT);
}

/* The index of the latest step that was created. */
static size_t latest_at(const struct df_run_view *v)
{
    size_t at = DF_RECIPE_STEPS - 1;
    while (at > 0 && !v->steps[at])
        at--;
    return at;
}

bool df_run_has_step(const cJSON *run, const cJSON *task)
{
    static const struct {
        const char *of_task, *of_run;
    } same[] = {{"spec.runRef.name", "metadata.name"},
                {"spec.executorRef.name", "spec.executorRef.name"},
                {"spec.executorRef.uid", "spec.executorRef.uid"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(same); i++) {
        const char *a = df_json_str(task, same[i].of_task), *b = df_json_str(run, same[i].of_run);
        if (!df_streq(a ? a : "", b ? b : ""))
            return false;
    }
    return df_json_str(task, "spec.runRef.name") != NULL;
}

const cJSON *df_run_latest(const struct df_run_view *v)
{
    return v->steps[latest_at(v)];
}

const struct df_recipe_step *df_run_latest_row(const struct df_run_view *v)
{
    static const struct df_recipe_step none = {0};
    return df_run_latest(v) ? &df_recipe_of(v->run)->steps[latest_at(v)] : &none;
}

const cJSON *df_run_apply(const struct df_run_view *v)
{
    const struct df_recipe *recipe = df_recipe_of(v->run);
    size_t at = df_recipe_apply(recipe);
    return at < recipe->count ? v->steps[at] : NULL;
}

/* This version does not know which steps the action has. */
static struct df_run_verdict end_unknown(const struct df_run_view *v)
{
    enum df_action action;
    struct df_err why = {0};
    if (v->steps[0] && !df_task_is_final(v->steps[0]))
        return wait_for_step(v, v->steps[0]);
    (void)!df_run_action(v->run, &action, &why);
    return finish_run("Failed", why.reason, why.message);
}

static struct df_run_verdict after_failed_step(const struct df_run_view *v, const cJSON *step)
{
    const char *reason = df_task_reason(step), *message = df_json_str(step, "status.message");
    if (wants_cancel(v->run))
        return finish_canceled(v->run);
    if (!v->executor)
        return finish_gone();
    if (df_task_phase(step) == DF_TASK_PHASE_ABORTED)
        return finish_run("Canceled", reason, message);
    return finish_run("Failed", reason, message);
}

/* Until when a canceled run waits for its step's pod, real time; 0: it need not wait. It ends when
 * the engine holds nothing of the step any more, because the pod may still be working after its
 * runner has reported. A pod on a lost node is never reported as gone, so the wait is limited. */
static int64_t pod_wait_end_us(const struct df_run_view *v, const cJSON *step)
{
    const char *at = df_json_str(v->run, "spec.cancel.at");
    int64_t us = 0, grace = DF_TIMEOUT_MARGIN_SECONDS;
    if (!df_label_has(step, DF_LABEL_LIVE) || !at || df_time_parse(at, &us, NULL) < 0)
        return 0;
    if (df_task_has_runner(step))
        grace += df_json_int(step, "spec.graceSeconds", DF_TIMEOUT_GRACE_SECONDS);
    return us + (grace + 2 * DF_TIMEOUT_MARGIN_SECONDS) * 1000000;
}

/* The run goes on with this step, unless a run before it has left an errored state. */
static struct df_run_verdict begin_step(const struct df_run_view *v, size_t at)
{
    struct df_err why = {0};
    return df_errored_check_run(v->executor, v->run, &why) < 0
               ? finish_run("Failed", why.reason, why.message)
               : (struct df_run_verdict){.next = DF_RUN_STEP, .step = at};
}

/* ---- the approval ---- */

/* May the run be approved without another person? Only an admin may let a plan take away
 * everything; the request for a destroy came from an admin already. */
static bool may_approve_itself(const struct df_run_view *v)
{
    return is_action(v->run, DF_ACTION_DESTROY) ||
           !df_json_bool(v->steps[0], "status.destroysAll", false) ||
           df_streq(df_json_str(v->run, "spec.requestedRole"), df_role_name(DF_ROLE_ADMIN));
}

static bool is_approved(const struct df_run_view *v)
{
    const char *verdict = df_json_str(v->run, "spec.decision.verdict");
    if (verdict)
        return df_streq(verdict, "approved");
    if (!may_approve_itself(v) || df_policies_failed(v->steps[0], "soft"))
        return false;
    /* A run that already waits for a person is not approved by a later change of the executor. */
    return !df_streq(df_run_phase(v->run), "WaitingApproval") &&
           (df_approval_is_automatic(&v->approval, v->run, v->executor) ||
            df_approval_is_covered(&v->approval, v->run, v->executor, v->steps[0]));
}

/* When the plan expires; 0: it does not expire. */
static int64_t plan_expiry(const struct df_run_view *v)
{
    const char *at = df_json_str(v->steps[0], "status.plan.expiresAt");
    int64_t us = 0;
    return at && df_time_parse(at, &us, NULL) == 0 ? us : 0;
}

/* When the run says that it still waits; 0: it does not, or has said so. */
static int64_t reminder_at(const struct df_run_view *v)
{
    int64_t planned_us = df_task_ended_at(v->steps[0], 0);
    return v->approval.reminder_s && planned_us && !df_json_at(v->run, "status.remindedAt")
               ? planned_us + v->approval.reminder_s * 1000000
               : 0;
}

static struct df_run_verdict ask_approval(const struct df_run_view *v, size_t at, int64_t now_us)
{
    int64_t remind_us = reminder_at(v), expiry_us = plan_expiry(v);
    if (!df_streq(df_run_phase(v->run), "WaitingApproval"))
        return (struct df_run_verdict){.next = DF_RUN_ASK, .step = at};
    if (remind_us && now_us >= remind_us)
        return (struct df_run_verdict){.next = DF_RUN_REMIND, .wake_us = expiry_us};
    bool is_soon = remind_us && (!expiry_us || remind_us < expiry_us);
    return (struct df_run_verdict){.next = DF_RUN_WAIT, .wake_us = is_soon ? remind_us : expiry_us};
}

/* An edit of the window with kubectl counts after this time. */
#define WINDOW_LOOK_US INT64_C(60000000)

/* A plan that is approved waits for its window, unless it expires before. */
static struct df_run_verdict begin_apply(const struct df_run_view *v, size_t at, int64_t now_us)
{
    int64_t opens_us = df_apply_window_opens(df_json_at(v->executor, "spec.applyWindow"), now_us);
    int64_t expiry_us = plan_expiry(v);
    struct df_run_verdict wait = {.next = DF_RUN_WAIT};
    char opens[DF_TIME_LEN], expires[DF_TIME_LEN];
    if (opens_us <= now_us)
        return begin_step(v, at);
    bool is_late = expiry_us && expiry_us <= opens_us;
    (void)snprintf(wait.message, sizeof(wait.message),
                   "waits for applyWindow of executor %s: it opens at %s%s%s%s",
                   df_json_str(v->executor, "metadata.name"), df_time_format(opens_us, opens),
                   is_late ? ", and the plan expires at " : "",
                   is_late ? df_time_format(expiry_us, expires) : "", is_late ? " before it" : "");
    wait.wake_us = is_late ? expiry_us : opens_us;
    if (wait.wake_us > now_us + WINDOW_LOOK_US)
        wait.wake_us = now_us + WINDOW_LOOK_US;
    return wait;
}

/* ---- after a step ---- */

/* A plan that does not say has some. */
static bool has_changes(const struct df_run_view *v)
{
    return df_json_bool(v->steps[0], "status.hasChanges", true);
}

/* A plan of an old state would make once more what an errored state has. */
static struct df_run_verdict finish_planned(const struct df_run_view *v,
                                            const struct df_recipe *recipe)
{
    bool is_idle = recipe->idle_reason && !has_changes(v);
    struct df_run_verdict end =
        finish_run("Succeeded", is_idle ? recipe->idle_reason : recipe->reason, NULL);
    char words[256];
    df_errored_words(v->executor, words, sizeof(words));
    if (words[0])
        (void)snprintf(end.message, sizeof(end.message),
                       "the plan is of an old state: %s, and that state is kept as an errored one "
                       "(`dayfly state errored %s`)",
                       words, df_json_str(v->executor, "metadata.name"));
    else
        df_beside_words(v->run, v->beside, end.message, sizeof(end.message));
    return end;
}

static struct df_run_verdict next_step(const struct df_run_view *v, size_t at, int64_t now_us)
{
    const struct df_recipe *recipe = df_recipe_of(v->run);
    int64_t expiry_us = df_run_apply(v) ? 0 : plan_expiry(v);
    if (!has_changes(v))
        return finish_run("Succeeded", recipe->idle_reason, recipe->idle_message);
    if (!v->executor)
        return finish_gone();
    if (expiry_us && now_us >= expiry_us)
        return finish_run("Failed", "PlanExpired",
                          "the plan expired before it was applied; start a new run");
    struct df_err why = {0};
    if (recipe->steps[at].plan_of && df_policies_hold(v->steps[0], &why) < 0)
        return finish_run("Failed", why.reason, why.message);
    if (!recipe->steps[at].asks)
        return begin_step(v, at);
    /* What an edit says about the approval counts when it was checked. */
    if (!df_executor_is_accepted(v->executor))
        return (struct df_run_verdict){.next = DF_RUN_WAIT, .wake_us = now_us + UNCHECKED_US};
    return is_approved(v) ? begin_apply(v, at, now_us) : ask_approval(v, at, now_us);
}

/* The last step is done, even if a cancel came too late. */
static struct df_run_verdict finish_done(const struct df_recipe *recipe, const cJSON *step)
{
    return finish_run("Succeeded", recipe->reason ? recipe->reason : df_task_reason(step),
                      df_json_str(step, "status.message"));
}

static struct df_run_verdict after_step(const struct df_run_view *v, size_t at, int64_t now_us)
{
    const struct df_recipe *recipe = df_recipe_of(v->run);
    bool is_last = at + 1 >= recipe->count;
    if (is_last && (recipe->steps[at].writes || !recipe->reason))
        return finish_done(recipe, v->steps[at]);
    if (wants_cancel(v->run))
        return finish_canceled(v->run);
    if (df_streq(df_json_str(v->run, "spec.decision.verdict"), "discarded"))
        return finish_run("Discarded", "Discarded", NULL);
    return is_last ? finish_planned(v, recipe) : next_step(v, at + 1, now_us);
}

/* ---- before the first step ---- */

static struct df_run_verdict first_step(const struct df_run_view *v)
{
    if (wants_cancel(v->run))
        return finish_canceled(v->run);
    if (!v->executor)
        return finish_gone();
    if (v->is_first && df_move_overtook(v->run, v->executor))
        return finish_run("Failed", "StorageChanged",
                          "the executor got another storage after this run was requested: request "
                          "it again");
    struct df_err why = {0};
    if (v->is_first && df_run_rolls_back(v->run) && df_state_rollback_check(v->executor, &why) < 0)
        return finish_run("Failed", why.reason, why.message);
    return v->is_first ? begin_step(v, 0) : decide(DF_RUN_WAIT);
}

/* ---- a TaskAction that was taken away ---- */

/* Interval of the looks at what a step has left: its processes, its state. */
#define LOOK_AGAIN_US INT64_C(5000000)

const cJSON *df_run_lost_step(const struct df_run_view *v)
{
    for (size_t at = DF_RECIPE_STEPS; at-- > 0;) {
        const cJSON *noted = df_run_step(v->run, at);
        if (v->steps[at])
            return NULL;
        if (df_json_str(noted, "taskAction"))
            return noted;
    }
    return NULL;
}

/* Creating the TaskAction again might run the step twice. */
static struct df_run_verdict end_lost(const struct df_run_view *v, const cJSON *step,
                                      int64_t now_us)
{
    if (v->lost_lives)
        return (struct df_run_verdict){.next = DF_RUN_END_LOST, .wake_us = now_us + LOOK_AGAIN_US};
    struct df_run_verdict end = finish_run("Failed", "StepDeleted", NULL);
    (void)snprintf(
        end.message, sizeof(end.message),
        "the TaskAction of the %s step was deleted while the run needed it, and the step "
        "was ended",
        df_json_str(step, "name"));
    return end;
}

int df_run_reopen(cJSON *run, struct df_err *err)
{
    static const char *const of_the_end[] = {"reason", "message", "finishedAt"};
    cJSON *status = df_json_object_at(run, "status");
    bool began = cJSON_GetArraySize(df_json_at(status, "steps")) > 0;
    if (!status)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_the_end); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(status, of_the_end[i]);
    return df_json_set_str(status, "phase", began ? "Running" : "Pending", err);
}

#define TOOL_AFTER_US INT64_C(1000000)

static int set_as_in(cJSON *status, const char *key, const cJSON *other, struct df_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(df_json_at(other, "status"), key);
    return item ? df_json_set(status, key, cJSON_Duplicate(item, true), err) : 0;
}

int df_run_due_us(const cJSON *before, const cJSON *run, const cJSON *first, int64_t now_us,
                  int64_t *ret, struct df_err *err)
{
    int64_t due_us = df_task_timeline(first, "initialized", 0) + TOOL_AFTER_US;
    *ret = 0;
    bool is_news = df_json_at(run, "status.tool") && !df_json_at(before, "status.tool");
    if (!is_news || now_us >= due_us || now_us < due_us - TOOL_AFTER_US) /* or another clock */
        return 0;
    DF_JSON cJSON *same = cJSON_Duplicate(before, true);
    cJSON *status = df_json_object_at(same, "status");
    if (df_check_alloc(status, err) < 0 || set_as_in(status, "source", run, err) < 0 ||
        set_as_in(status, "tool", run, err) < 0)
        return -1;
    *ret = df_json_equal(same, run) ? due_us : 0;
    return 0;
}

struct df_run_verdict df_run_next(const struct df_run_view *v, int64_t now_us)
{
    if (df_run_is_final(v->run))
        return decide(DF_RUN_WAIT);
    const struct df_recipe *recipe = df_recipe_of(v->run);
    if (recipe->count == 0)
        return end_unknown(v);
    const cJSON *lost = df_run_lost_step(v);
    if (lost)
        return end_lost(v, lost, now_us);
    const cJSON *step = df_run_latest(v);
    if (!step)
        return first_step(v);
    if (!df_task_is_final(step))
        return wait_for_step(v, step);
    if (df_run_awaits_state(step)) /* no later run may start before it is kept */
        return (struct df_run_verdict){.next = DF_RUN_WAIT, .wake_us = now_us + LOOK_AGAIN_US};
    int64_t wait_end_us = pod_wait_end_us(v, step);
    if (now_us < wait_end_us)
        return (struct df_run_verdict){.next = DF_RUN_WAIT, .wake_us = wait_end_us};
    return df_task_succeeded(step) ? after_step(v, latest_at(v), now_us)
                                   : after_failed_step(v, step);
}
