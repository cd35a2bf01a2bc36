/*
 * What may be done with an executor by whom, and what a run does to it.
 *
 * Contract E21-E31 of InfraKitchen's executors, mended: destroy is one request and an admin's; what
 * is offered is never refused; a busy executor takes runs into its queue and offers their cancel
 * (retry is gone: nothing that is queued can be lost); an interrupted run never leaves in_progress;
 * a run that ended before its apply step leaves the state as it was.
 */
#include "spawner/model/model.h"

static const char *state_of(const cJSON *executor)
{
    const char *state = df_json_str(executor, "status.state");
    return state ? state : "provision";
}

static const char *status_of(const cJSON *executor)
{
    const char *status = df_json_str(executor, "status.status");
    return status ? status : "ready";
}

static bool has_state(const cJSON *executor, const char *state)
{
    return df_streq(state_of(executor), state);
}

static bool has_status(const cJSON *executor, const char *status)
{
    return df_streq(status_of(executor), status);
}

static bool is_busy(const cJSON *executor)
{
    return has_status(executor, "queued") || has_status(executor, "in_progress") ||
           has_status(executor, "pending");
}

/* Was an apply step started since it was made or last destroyed? */
static bool may_hold_resources(const cJSON *executor)
{
    return df_json_bool(executor, "status.mayHoldResources", false);
}

/* Would nothing be left behind? */
static bool is_empty(const cJSON *executor)
{
    return has_state(executor, "destroyed") ||
           (has_state(executor, "provision") && !may_hold_resources(executor));
}

/* ---- what is offered ---- */

struct offer {
    const char *state;  /* NULL: any */
    const char *status; /* NULL: any that is not busy */
    enum df_role role;  /* at least */
    const char *words[4];
};

static const struct offer offers[] = {
    {NULL, "queued", DF_ROLE_WRITE, {"cancel"}},
    {NULL, "in_progress", DF_ROLE_WRITE, {"cancel"}},
    {NULL, "pending", DF_ROLE_WRITE, {"cancel"}},
    {"provision", NULL, DF_ROLE_WRITE, {"execute", "dryrun"}},
    {"provision", NULL, DF_ROLE_ADMIN, {"edit"}},
    {"provision", "error", DF_ROLE_ADMIN, {"destroy"}},
    {"provisioned", NULL, DF_ROLE_WRITE, {"execute", "dryrun"}},
    {"provisioned", NULL, DF_ROLE_ADMIN, {"destroy", "edit"}},
    {"destroy", NULL, DF_ROLE_WRITE, {"recreate", "dryrun"}},
    {"destroy", NULL, DF_ROLE_ADMIN, {"destroy", "edit"}},
    {"destroyed", NULL, DF_ROLE_WRITE, {"recreate"}},
    {"destroyed", NULL, DF_ROLE_ADMIN, {"delete"}},
};
#define MAX_WORDS 8

static bool applies(const struct offer *o, const cJSON *executor)
{
    bool status = o->status ? has_status(executor, o->status) : !is_busy(executor);
    return status && (!o->state || has_state(executor, o->state));
}

void df_executor_actions(const cJSON *executor, enum df_role role, const char *ret[9])
{
    size_t n = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(offers); i++) {
        if (role < offers[i].role || !applies(&offers[i], executor))
            continue;
        for (const char *const *word = offers[i].words; *word && n < MAX_WORDS; word++)
            ret[n++] = *word;
    }
    /* Not in the table: a first plan that failed has made nothing, so its executor may go. */
    bool untouched = has_state(executor, "provision") && is_empty(executor) && !is_busy(executor);
    if (untouched && role >= DF_ROLE_WRITE && n < MAX_WORDS)
        ret[n++] = "delete";
    ret[n] = NULL;
}

/* ---- what is accepted ---- */

static const char *name_of(const cJSON *executor)
{
    const char *name = df_json_str(executor, "metadata.name");
    return name ? name : "";
}

static int check_role(const char *what, enum df_role role, enum df_role least, struct df_err *err)
{
    if (role >= least)
        return 0;
    return df_fail(err, DF_ERR_DENIED, "%s needs the role %s; yours is %s", what,
                   df_role_name(least), df_role_name(role));
}

static int wrong_state(const cJSON *executor, const char *way_out, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState", "executor %s is %s/%s: %s",
                          name_of(executor), state_of(executor), status_of(executor), way_out);
}

int df_executor_check_action(const cJSON *executor, enum df_action action, enum df_role role,
                             struct df_err *err)
{
    enum df_role least = action == DF_ACTION_DESTROY ? DF_ROLE_ADMIN : DF_ROLE_WRITE;
    if (check_role(df_action_name(action), role, least, err) < 0)
        return -1;
    bool destroying = has_state(executor, "destroy"), destroyed = has_state(executor, "destroyed");
    /* Behind a run that is queued or under way the state will be another one. */
    if (is_busy(executor))
        return destroying && action == DF_ACTION_DESTROY
                   ? wrong_state(executor, "it is already being destroyed", err)
                   : 0;
    if (action == DF_ACTION_PROVISION)
        return 0;
    if (destroyed)
        return wrong_state(executor, "it is destroyed; provision makes it again", err);
    if (action == DF_ACTION_DESTROY && has_state(executor, "provision") &&
        !has_status(executor, "error"))
        return wrong_state(executor, "nothing was provisioned; delete it instead", err);
    return 0;
}

int df_executor_check_edit(const cJSON *executor, enum df_role role, struct df_err *err)
{
    if (check_role("edit", role, DF_ROLE_ADMIN, err) < 0)
        return -1;
    if (is_busy(executor))
        return wrong_state(executor, "wait for its run, or cancel it", err);
    if (has_state(executor, "destroyed"))
        return wrong_state(executor, "it is destroyed; recreate it, or delete it and make another",
                           err);
    return 0;
}

int df_executor_check_delete(const cJSON *executor, enum df_role role, struct df_err *err)
{
    enum df_role least = has_state(executor, "destroyed") ? DF_ROLE_ADMIN : DF_ROLE_WRITE;
    if (check_role("delete", role, least, err) < 0)
        return -1;
    if (is_busy(executor))
        return wrong_state(executor, "wait for its run, or cancel it", err);
    if (!is_empty(executor))
        return wrong_state(executor, "destroy it first; its resources would be left behind", err);
    return 0;
}

/* ---- what a run does to it ---- */

static int set_state(cJSON *status, const char *state, const char *word, struct df_err *err)
{
    return df_json_set_str(status, "state", state, err) < 0
               ? -1
               : df_json_set_str(status, "status", word, err);
}

/* Makes run the active one: what the executor was before is kept, for a run that changes nothing.
 */
static int begin(cJSON *executor, cJSON *status, const char *name, struct df_err *err)
{
    if (df_streq(df_json_str(status, "activeRun"), name))
        return 0;
    /* An older run that is still noted here ended without a word: what was kept stays true. */
    if (!df_json_str(status, "activeRun")) {
        cJSON *before = cJSON_CreateObject();
        if (df_json_set(status, "before", before, err) < 0 ||
            set_state(before, state_of(executor), status_of(executor), err) < 0)
            return -1;
    }
    return df_json_set_str(status, "activeRun", name, err);
}

/* The state while a run with this action is under way. */
static const char *state_under_way(const cJSON *executor, enum df_action action)
{
    if (action == DF_ACTION_DESTROY)
        return "destroy";
    if (has_state(executor, "destroy"))
        return "provisioned";
    return has_state(executor, "destroyed") ? "provision" : state_of(executor);
}

static bool apply_was_started(const cJSON *run)
{
    const cJSON *step;
    cJSON_ArrayForEach (step, df_json_at(run, "status.steps")) {
        if (df_streq(df_json_str(step, "name"), "apply"))
            return true;
    }
    return false;
}

static int settle(cJSON *executor, cJSON *status, const cJSON *run, enum df_action action,
                  struct df_err *err)
{
    const char *phase = df_run_phase(run), *state = state_of(executor), *word = "error";
    bool applied = apply_was_started(run);
    if (df_streq(phase, "Succeeded")) {
        state = action == DF_ACTION_DESTROY ? "destroyed" : "provisioned";
        word = "done";
    } else if (!applied) {
        const char *old_state = df_json_str(status, "before.state");
        const char *old_word = df_json_str(status, "before.status");
        state = old_state ? old_state : state;
        word = df_streq(phase, "Failed") || !old_word ? "error" : old_word;
    }
    if (set_state(status, state, word, err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(status, "before");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "activeRun");
    return 0;
}

static int follow_change(cJSON *executor, cJSON *status, const cJSON *run, enum df_action action,
                         struct df_err *err)
{
    const char *name = df_json_str(run, "metadata.name"), *phase = df_run_phase(run);
    if (begin(executor, status, name, err) < 0)
        return -1;
    bool empty = action == DF_ACTION_DESTROY && df_streq(phase, "Succeeded");
    bool holds = !empty && (may_hold_resources(executor) || apply_was_started(run));
    if (df_json_set(status, "mayHoldResources", cJSON_CreateBool(holds), err) < 0)
        return -1;
    if (df_run_is_final(run))
        return settle(executor, status, run, action, err);
    if (df_streq(phase, "Pending"))
        return set_state(status, state_of(executor), "queued", err);
    bool waits = df_streq(phase, "WaitingApproval");
    return set_state(status, state_under_way(executor, action), waits ? "pending" : "in_progress",
                     err);
}

static int note_last_run(cJSON *status, const cJSON *run, struct df_err *err)
{
    const char *at = df_json_str(run, "status.finishedAt");
    if (!at)
        at = df_json_str(run, "status.startedAt");
    cJSON *last = df_json_object_at(status, "lastRun");
    if (!last)
        return df_fail_oom(err);
    if (df_json_set_str(last, "name", df_json_str(run, "metadata.name"), err) < 0 ||
        df_json_set_str(last, "phase", df_run_phase(run), err) < 0)
        return -1;
    return df_json_set_str(last, "at", at, err);
}

/* Has the run's turn come and its last change not been seen yet? */
static bool concerns(const cJSON *status, const cJSON *run)
{
    const char *name = df_json_str(run, "metadata.name"), *phase = df_run_phase(run);
    if (df_streq(df_json_str(status, "lastRun.name"), name) &&
        df_streq(df_json_str(status, "lastRun.phase"), phase))
        return false;
    bool is_active = df_streq(df_json_str(status, "activeRun"), name);
    bool had_its_turn = cJSON_GetArraySize(df_json_at(run, "status.steps")) > 0;
    return is_active || had_its_turn || !df_run_is_final(run);
}

int df_executor_follow_run(cJSON *executor, const cJSON *run, struct df_err *err)
{
    enum df_action action;
    cJSON *status = df_json_object_at(executor, "status");
    if (!status)
        return df_fail_oom(err);
    if (!df_json_str(run, "metadata.name"))
        return df_fail(err, DF_ERR_SYSTEM, "a run without a name");
    if (df_action_parse(df_json_str(run, "spec.action"), &action, err) < 0)
        return -1;
    if (!concerns(status, run))
        return 0;
    if (action != DF_ACTION_DRY_RUN && follow_change(executor, status, run, action, err) < 0)
        return -1;
    return note_last_run(status, run, err);
}
