/*
 * Which actions an executor allows for which verbs, and how a run changes its state.
 *
 * Modelled on InfraKitchen's executors, with these differences: destroy is one request, and only an
 * admin may send it; an action that is offered is never refused; a busy executor queues runs and
 * offers to cancel them (there is no retry, because a queued run cannot be lost); an interrupted
 * run does not stay in_progress; a run that ended before its apply step does not change the state.
 */
#include "common/base/clock.h"
#include "spawner/model/accepted.h"
#include "spawner/model/errored_states.h"
#include "spawner/model/model.h"
#include "spawner/model/move.h"
#include "spawner/model/state_command.h"

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

bool df_executor_is_busy(const cJSON *executor)
{
    return has_status(executor, "queued") || has_status(executor, "in_progress") ||
           has_status(executor, "pending");
}

/* Was an apply step started since the executor was created or last destroyed? */
static bool may_hold_resources(const cJSON *executor)
{
    return df_json_bool(executor, "status.mayHoldResources", false);
}

/* True if deleting the executor would leave no resources behind: it was destroyed, never applied,
 * or its module has outputs alone. */
static bool is_empty(const cJSON *executor)
{
    bool is_settled = has_state(executor, "provisioned") && has_status(executor, "done");
    return has_state(executor, "destroyed") ||
           ((has_state(executor, "provision") || is_settled) && !may_hold_resources(executor));
}

/* ---- offered actions ---- */

struct offer {
    const char *state;  /* NULL: any */
    const char *status; /* NULL: any that is not busy */
    df_verbs needed;
    const char *word;
};

static const struct offer offers[] = {
    {NULL, "queued", DF_VERB_CANCEL, "cancel"},
    {NULL, "in_progress", DF_VERB_CANCEL, "cancel"},
    {NULL, "pending", DF_VERB_CANCEL, "cancel"},
    {"provision", NULL, DF_VERB_APPLY, "execute"},
    {"provision", NULL, DF_VERB_PLAN, "dryrun"},
    {"provision", NULL, DF_VERB_EDIT, "edit"},
    {"provision", "error", DF_VERB_DESTROY, "destroy"},
    {"provisioned", NULL, DF_VERB_APPLY, "execute"},
    {"provisioned", NULL, DF_VERB_PLAN, "dryrun"},
    {"provisioned", NULL, DF_VERB_DESTROY, "destroy"},
    {"provisioned", NULL, DF_VERB_EDIT, "edit"},
    {"destroy", NULL, DF_VERB_APPLY, "recreate"},
    {"destroy", NULL, DF_VERB_PLAN, "dryrun"},
    {"destroy", NULL, DF_VERB_DESTROY, "destroy"},
    {"destroy", NULL, DF_VERB_EDIT, "edit"},
    {"destroyed", NULL, DF_VERB_APPLY, "recreate"},
    {"destroyed", NULL, DF_VERB_PLAN, "dryrun"},
    {"destroyed", NULL, DF_VERBS_WRITE | DF_VERB_DESTROY, "delete"},
};
#define MAX_WORDS 8

static bool offer_applies(const struct offer *o, const cJSON *executor)
{
    bool status = o->status ? has_status(executor, o->status) : !df_executor_is_busy(executor);
    return status && (!o->state || has_state(executor, o->state));
}

/* Takes away what is refused until the errored state is stored (errored_states.h). */
static size_t hold_back(const char *words[9], size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool may = df_streq(words[i], "dryrun") || df_streq(words[i], "edit") ||
                   df_streq(words[i], "cancel");
        if (may)
            words[n++] = words[i];
    }
    return n;
}

void df_executor_actions(const cJSON *executor, df_verbs verbs, const char *ret[9])
{
    size_t n = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(offers) && n < MAX_WORDS; i++)
        if (df_verbs_have(verbs, offers[i].needed) && offer_applies(&offers[i], executor))
            ret[n++] = offers[i].word;
    /* Not in the table: a failed import may still have written resources into the state. */
    bool may_hold = has_state(executor, "provision") && may_hold_resources(executor);
    if (may_hold && !has_status(executor, "error") && !df_executor_is_busy(executor) &&
        df_verbs_have(verbs, DF_VERB_DESTROY) && n < MAX_WORDS)
        ret[n++] = "destroy";
    /* Also not in the table: delete is safe after a failed first plan, which created nothing, and
     * where the state holds nothing. */
    bool holds_nothing =
        !has_state(executor, "destroyed") && is_empty(executor) && !df_executor_is_busy(executor);
    if (holds_nothing && df_verbs_have(verbs, DF_VERBS_WRITE) && n < MAX_WORDS)
        ret[n++] = "delete";
    if (df_errored_is_kept(executor))
        n = hold_back(ret, n);
    ret[n] = NULL;
}

/* ---- checks of a request ---- */

static const char *name_of(const cJSON *executor)
{
    const char *name = df_json_str(executor, "metadata.name");
    return name ? name : "";
}

static int check_verbs(const char *what, const cJSON *executor, df_verbs has, df_verbs needed,
                       struct df_err *err)
{
    return df_verbs_require(has, needed, what, name_of(executor), err);
}

static int wrong_state(const cJSON *executor, const char *way_out, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState", "executor %s is %s/%s: %s",
                          name_of(executor), state_of(executor), status_of(executor), way_out);
}

static int not_there(const cJSON *executor, struct df_err *err)
{
    char words[160];
    (void)snprintf(words, sizeof(words), "it is destroyed; `dayfly recreate %s` makes it again",
                   name_of(executor));
    return wrong_state(executor, words, err);
}

/* A run that destroys it is under way, or waits for its approval. */
static int destroyed_already(const cJSON *executor, struct df_err *err)
{
    const char *run = df_json_str(executor, "status.activeRun");
    char words[160];
    (void)snprintf(words, sizeof(words), "%s%.63s is to destroy it: approve, cancel or await it",
                   run ? "run " : "a run", run ? run : "");
    return wrong_state(executor, words, err);
}

df_verbs df_action_verb(enum df_action action)
{
    static const df_verbs needed[] = {
        [DF_ACTION_PROVISION] = DF_VERB_APPLY, [DF_ACTION_DRY_RUN] = DF_VERB_PLAN,
        [DF_ACTION_DESTROY] = DF_VERB_DESTROY, [DF_ACTION_STATE] = DF_VERB_STATE_WRITE,
        [DF_ACTION_VALIDATE] = DF_VERB_PLAN,
    };
    return needed[action];
}

int df_executor_check_action(const cJSON *executor, enum df_action action, df_verbs verbs,
                             struct df_err *err)
{
    if (check_verbs(df_action_name(action), executor, verbs, df_action_verb(action), err) < 0)
        return -1;
    bool destroying = has_state(executor, "destroy");
    /* The request is queued behind a run that will change the state: do not check it now. */
    if (df_executor_is_busy(executor))
        return destroying && action == DF_ACTION_DESTROY ? destroyed_already(executor, err) : 0;
    if (action != DF_ACTION_DESTROY)
        return 0;
    if (has_state(executor, "destroyed"))
        return not_there(executor, err);
    if (has_state(executor, "provision") && !has_status(executor, "error") &&
        !may_hold_resources(executor))
        return wrong_state(executor, "nothing was provisioned; delete it instead", err);
    return 0;
}

int df_executor_check_edit(const cJSON *executor, df_verbs verbs, struct df_err *err)
{
    if (check_verbs("edit", executor, verbs, DF_VERB_EDIT, err) < 0)
        return -1;
    if (df_executor_is_busy(executor))
        return wrong_state(executor, "wait for its run, or cancel it", err);
    if (has_state(executor, "destroyed"))
        return wrong_state(executor, "it is destroyed; recreate it, or delete it and make another",
                           err);
    return 0;
}

bool df_executor_is_in_use(const cJSON *executor)
{
    return may_hold_resources(executor) || has_state(executor, "provisioned") ||
           has_state(executor, "destroy");
}

static int source_changes(const cJSON *executor, const char *from, const char *to, const char *how,
                          struct df_err *err)
{
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "SourceChange",
        "spec.source.url: executor %s is provisioned from %.300s; from %.300s its "
        "next run could destroy all that it holds. Confirm the change with %s, "
        "or make another executor",
        name_of(executor), from, to, how);
}

int df_executor_check_source(const cJSON *old, const cJSON *doc, bool confirmed, struct df_err *err)
{
    const char *from = df_json_str(old, "spec.source.url");
    const char *to = df_json_str(doc, "spec.source.url");
    if (confirmed || !from || !to || !df_executor_is_in_use(old) || df_source_is_same(from, to) ||
        df_source_is_same_directory(df_json_at(old, "spec.source"), df_json_at(doc, "spec.source")))
        return 0;
    char how[256];
    (void)snprintf(how, sizeof(how),
                   "`dayfly apply -f FILE --confirm-source-change` or `dayfly edit executor %s "
                   "--confirm-source-change`",
                   name_of(old));
    return source_changes(old, from, to, how, err);
}

int df_executor_check_provisioned_from(const cJSON *executor, struct df_err *err)
{
    static const char annotation[] = "dayfly.dev/confirm-source-change";
    const char *from = df_json_str(executor, "status.provisionedFrom");
    const char *to = df_json_str(executor, "spec.source.url");
    const char *confirmed = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(df_json_at(executor, "metadata.annotations"), annotation));
    if (!from || !to || !df_executor_is_in_use(executor) || df_source_is_same(from, to) ||
        (confirmed && df_source_is_same(confirmed, to)))
        return 0;
    return source_changes(executor, from, to,
                          "the annotation dayfly.dev/confirm-source-change: <the new URL>", err);
}

int df_executor_check_provisioned_storage(const cJSON *executor, const cJSON *edited,
                                          struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    const cJSON *then = df_json_at(executor, "status.provisionedStorage");
    const cJSON *moving = df_json_at(executor, "status.movingTo");
    const cJSON *now = df_json_at(edited, "spec.storage");
    if (!then || !now || !df_executor_is_in_use(executor) || df_storage_is_same(name, then, now) ||
        (moving && df_storage_is_same(name, moving, now)))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StorageChange",
                          "spec.storage: executor %s holds resources, and its state is in the "
                          "storage that it had; in another one its next run would create them "
                          "again. Undo the edit; `dayfly state migrate %s` moves the state",
                          name, name);
}

static int not_destroyed(const cJSON *executor, struct df_err *err)
{
    const char *type = df_json_str(executor, "spec.storage.type");
    char words[256];
    if (!type || df_streq(type, "managed"))
        return wrong_state(executor, "destroy it first; its resources would be left behind", err);
    (void)snprintf(words, sizeof(words),
                   "its state is kept in its own storage (%s), which is not read here: destroy it "
                   "first, or leave its resources and that state as they are with `dayfly delete "
                   "%s --forget`",
                   type, name_of(executor));
    return wrong_state(executor, words, err);
}

int df_executor_check_delete(const cJSON *executor, df_verbs verbs, struct df_err *err)
{
    df_verbs needed = DF_VERBS_WRITE | (has_state(executor, "destroyed") ? DF_VERB_DESTROY : 0);
    if (check_verbs("delete", executor, verbs, needed, err) < 0)
        return -1;
    if (df_executor_is_busy(executor))
        return wrong_state(executor, "wait for its run, or cancel it", err);
    return is_empty(executor) ? 0 : not_destroyed(executor, err);
}

int df_executor_check_forget(const cJSON *executor, df_verbs verbs, struct df_err *err)
{
    df_verbs needed = DF_VERBS_WRITE | DF_VERB_DESTROY | DF_VERB_STATE_WRITE;
    if (check_verbs("delete with forget", executor, verbs, needed, err) < 0)
        return -1;
    return df_executor_is_busy(executor)
               ? wrong_state(executor, "wait for its run, or cancel it", err)
               : 0;
}

int df_executor_check_push(const cJSON *executor, struct df_err *err)
{
    return df_executor_is_busy(executor)
               ? wrong_state(executor, "wait for its run, or cancel it", err)
               : 0;
}

/* ---- effects of a run ---- */

static int set_state(cJSON *status, const char *state, const char *word, struct df_err *err)
{
    return df_json_put(status, err, DF_STR("state", state), DF_STR("status", word));
}

static int set_adopted(cJSON *status, struct df_err *err)
{
    const char *state = df_json_str(status, "state");
    bool is_new = !state || df_streq(state, "provision") || df_streq(state, "destroyed");
    return is_new ? set_state(status, "provisioned", "done", err) : 0;
}

int df_executor_adopt(cJSON *executor, struct df_err *err)
{
    cJSON *status = df_json_object_at(executor, "status");
    if (df_json_set(status, "mayHoldResources", cJSON_CreateTrue(), err) < 0)
        return -1;
    if (!df_executor_is_busy(executor))
        return set_adopted(status, err);
    cJSON *before = df_json_object_at(status, "before");
    return df_check_alloc(before, err) < 0 ? -1 : set_adopted(before, err);
}

/* Makes this run the active one and saves the current state in status.before, which is restored if
 * the run changes nothing. What an earlier run may have left is saved, too: no state need know
 * it. */
static int begin_run(cJSON *executor, cJSON *status, const char *name, struct df_err *err)
{
    if (df_streq(df_json_str(status, "activeRun"), name))
        return 0;
    /* If an older run is still noted, its end was missed, and status.before is still correct. */
    if (!df_json_str(status, "activeRun")) {
        cJSON *before = cJSON_CreateObject();
        if (df_json_set(status, "before", before, err) < 0 ||
            set_state(before, state_of(executor), status_of(executor), err) < 0 ||
            df_json_set(before, "mayHoldResources", cJSON_CreateBool(may_hold_resources(executor)),
                        err) < 0)
            return -1;
    }
    return df_json_set_str(status, "activeRun", name, err);
}

/* The executor's state while a run with this action is active. */
static const char *state_under_way(const cJSON *executor, enum df_action action)
{
    if (action == DF_ACTION_DESTROY)
        return "destroy";
    if (has_state(executor, "destroy"))
        return "provisioned";
    return has_state(executor, "destroyed") ? "provision" : state_of(executor);
}

static int end_run(cJSON *executor, cJSON *status, const cJSON *run, struct df_err *err)
{
    const char *phase = df_run_phase(run), *state = state_of(executor), *word = "error";
    bool may_have_written = df_run_may_have_written(run);
    if (df_streq(phase, "Succeeded")) {
        const char *leads_to = df_recipe_of(run)->leads_to;
        state = leads_to ? leads_to : state;
        word = "done";
    } else if (!may_have_written) {
        const char *old_state = df_json_str(status, "before.state");
        const char *old_word = df_json_str(status, "before.status");
        state = old_state ? old_state : state;
        word = df_streq(phase, "Failed") || !old_word ? "error" : old_word;
    }
    if (set_state(status, state, word, err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(status, "before");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "activeRun");
    /* An edit was refused or mended while the word said what the run did. */
    return df_executor_set_refused(executor, df_doc_is_refused(executor), err);
}

/* Saves the tool of the last apply: the other tool must not use this state without being asked. */
static int note_tool(cJSON *status, const cJSON *run, bool empty, struct df_err *err)
{
    const cJSON *tool = df_json_at(run, "status.tool");
    if (empty)
        cJSON_DeleteItemFromObjectCaseSensitive(status, "tool");
    else if (tool && df_run_may_have_written(run))
        return df_json_set(status, "tool", cJSON_Duplicate(tool, true), err);
    return 0;
}

/* What an edit must not change unnoticed. A move notes its storage itself (df_move_switch). */
static int note_origin(cJSON *status, const cJSON *run, struct df_err *err)
{
    const cJSON *storage = df_json_at(run, "spec.snapshot.storage");
    if (storage && !df_json_at(run, "spec.moveTo") &&
        df_json_set(status, "provisionedStorage", cJSON_Duplicate(storage, true), err) < 0)
        return -1;
    return df_json_set_str(status, "provisionedFrom", df_json_str(run, "spec.snapshot.source.url"),
                           err);
}

/* False if an earlier run may have left resources that the state does not have, and for a run that
 * an older version began. */
static bool was_empty(const cJSON *status)
{
    return !df_json_bool(status, "before.mayHoldResources", true);
}

static int follow_change(cJSON *executor, cJSON *status, const cJSON *run, enum df_action action,
                         bool state_is_empty, struct df_err *err)
{
    const char *name = df_json_str(run, "metadata.name"), *phase = df_run_phase(run);
    if (begin_run(executor, status, name, err) < 0)
        return -1;
    if (df_run_may_have_written(run) && note_origin(status, run, err) < 0)
        return -1;
    bool succeeded = df_streq(phase, "Succeeded");
    bool empty = action == DF_ACTION_DESTROY && succeeded;
    bool stays_empty = succeeded && state_is_empty && was_empty(status);
    bool holds =
        !empty && !stays_empty && (may_hold_resources(executor) || df_run_may_have_written(run));
    if (df_json_set(status, "mayHoldResources", cJSON_CreateBool(holds), err) < 0 ||
        note_tool(status, run, empty, err) < 0)
        return -1;
    if (empty)
        cJSON_DeleteItemFromObjectCaseSensitive(status, "stateLineage");
    if (df_run_is_final(run))
        return end_run(executor, status, run, err);
    if (df_streq(phase, "Pending"))
        return set_state(status, state_of(executor), "queued", err);
    bool waits = df_streq(phase, "WaitingApproval");
    return set_state(status, state_under_way(executor, action), waits ? "pending" : "in_progress",
                     err);
}

static bool may_create(const cJSON *run)
{
    bool is_command = df_streq(df_json_str(run, "spec.action"), df_action_name(DF_ACTION_STATE));
    return !is_command || df_run_imports(run) || df_run_rolls_back(run);
}

int df_executor_expect_resources(cJSON *executor, const cJSON *run, struct df_err *err)
{
    cJSON *status = df_json_object_at(executor, "status");
    if (!may_create(run) || may_hold_resources(executor))
        return 0;
    return df_json_set(status, "mayHoldResources", cJSON_CreateTrue(), err) < 0
               ? -1
               : note_origin(status, run, err);
}

/* After an import the executor holds resources, even if it was never applied. */
static int follow_import(cJSON *executor, cJSON *status, const cJSON *run, struct df_err *err)
{
    if (df_streq(df_run_phase(run), "Succeeded"))
        return df_executor_adopt(executor, err);
    bool was_started = cJSON_GetArraySize(df_json_at(run, "status.steps")) > 0;
    return was_started ? df_json_set(status, "mayHoldResources", cJSON_CreateTrue(), err) : 0;
}

/* A move leaves state and status as they were. While it runs, the executor is busy: nobody edits or
 * deletes it, and status.movingTo reserves the new place. */
static int follow_move(cJSON *executor, cJSON *status, const cJSON *run, struct df_err *err)
{
    if (begin_run(executor, status, df_json_str(run, "metadata.name"), err) < 0)
        return -1;
    if (!df_run_is_final(run)) {
        bool waits = df_streq(df_run_phase(run), "Pending");
        return set_state(status, state_of(executor), waits ? "queued" : "in_progress", err) < 0
                   ? -1
                   : df_json_set(status, "movingTo",
                                 cJSON_Duplicate(df_json_at(run, "spec.moveTo"), true), err);
    }
    if (df_streq(df_run_phase(run), "Succeeded") && df_move_switch(executor, run, err) < 0)
        return -1;
    const char *state = df_json_str(status, "before.state");
    const char *word = df_json_str(status, "before.status");
    if (set_state(status, state ? state : state_of(executor), word ? word : "done", err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(status, "movingTo");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "before");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "activeRun");
    return 0;
}

/* This version does not know the action. A newer version may have started the run, and this one
 * cannot know what its steps did: the status says that until the end of the next run that may
 * change something. */
static int follow_unknown(cJSON *executor, cJSON *status, const cJSON *run, struct df_err *err)
{
    bool was_started = cJSON_GetArraySize(df_json_at(run, "status.steps")) > 0;
    bool is_active = df_streq(df_json_str(status, "activeRun"), df_json_str(run, "metadata.name"));
    if (was_started && df_json_set(status, "mayHoldResources", cJSON_CreateTrue(), err) < 0)
        return -1;
    if (!is_active || !df_run_is_final(run))
        return 0;
    if (end_run(executor, status, run, err) < 0)
        return -1;
    return was_started ? df_json_set_str(status, "status", "unknown", err) : 0;
}

/* Updates the executor as the action of the run requires. */
static int follow_action(cJSON *executor, cJSON *status, const cJSON *run, bool state_is_empty,
                         struct df_err *err)
{
    enum df_action action;
    struct df_err unknown = {0};
    if (df_run_action(run, &action, &unknown) < 0)
        return follow_unknown(executor, status, run, err);
    if (!df_run_takes_turn(run)) /* it only reads */
        return 0;
    if (action == DF_ACTION_STATE && df_run_moves(run))
        return follow_move(executor, status, run, err);
    if (action == DF_ACTION_STATE)
        return df_run_imports(run) || df_run_rolls_back(run)
                   ? follow_import(executor, status, run, err)
                   : 0;
    return follow_change(executor, status, run, action, state_is_empty, err);
}

static int note_last_run(cJSON *status, const cJSON *run, struct df_err *err)
{
    const char *at = df_json_str(run, "status.finishedAt");
    if (!at)
        at = df_json_str(run, "status.startedAt");
    cJSON *last = df_json_object_at(status, "lastRun");
    return df_json_put(last, err, DF_STR("name", df_json_str(run, "metadata.name")),
                       DF_STR("phase", df_run_phase(run)), DF_STR("at", at));
}

/* True if the run is active or was started, and its current phase is not recorded in lastRun. A run
 * beside the active one is not recorded: it would hide that one. */
static bool is_new_change(const cJSON *status, const cJSON *run)
{
    const char *name = df_json_str(run, "metadata.name"), *phase = df_run_phase(run);
    if (!df_run_takes_turn(run) && df_json_str(status, "activeRun"))
        return false;
    if (df_streq(df_json_str(status, "lastRun.name"), name) &&
        df_streq(df_json_str(status, "lastRun.phase"), phase))
        return false;
    bool is_active = df_streq(df_json_str(status, "activeRun"), name);
    bool had_its_turn = cJSON_GetArraySize(df_json_at(run, "status.steps")) > 0;
    return is_active || had_its_turn || !df_run_is_final(run);
}

int df_executor_follow_run(cJSON *executor, const cJSON *run, bool state_is_empty,
                           struct df_err *err)
{
    cJSON *status = df_json_object_at(executor, "status");
    if (!status)
        return df_fail_oom(err);
    if (!df_json_str(run, "metadata.name"))
        return df_fail(err, DF_ERR_SYSTEM, "a run without a name");
    if (!is_new_change(status, run))
        return 0;
    if (follow_action(executor, status, run, state_is_empty, err) < 0)
        return -1;
    return note_last_run(status, run, err);
}

int df_executor_lose_run(cJSON *executor, int64_t now_us, struct df_err *err)
{
    cJSON *status = df_json_object_at(executor, "status");
    cJSON *last = df_json_object_at(status, "lastRun");
    const char *before = df_json_str(status, "before.state");
    char at[DF_TIME_LEN];
    const char *state = may_hold_resources(executor) || !before ? state_of(executor) : before;
    if (df_json_put(last, err, DF_STR("name", df_json_str(status, "activeRun")),
                    DF_STR("phase", "Failed"), DF_STR("at", df_time_format(now_us, at))) < 0 ||
        set_state(status, state, "error", err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(status, "before");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "movingTo");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "activeRun");
    return 0;
}
