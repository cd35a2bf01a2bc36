/*
 * runs.c - one pass over one run: copies the results of its steps into its status, asks
 * df_run_next(), does one thing, and writes the executor and then the run. Read one_pass() near the
 * end, then observe() and act().
 *
 * The order makes a crash harmless: a step's document is written before the run that refers to it,
 * the executor before the run, and the plan's blob and the run's secrets are removed before the run
 * is final. The next pass repeats what is missing.
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/control/documents/applied.h"
#include "spawner/control/documents/restored.h"
#include "spawner/control/lock_queue.h"
#include "spawner/control/runs/errored.h"
#include "spawner/control/runs/lineage.h"
#include "spawner/control/runs/lost_step.h"
#include "spawner/control/runs/moved.h"
#include "spawner/control/runs/run_end.h"
#include "spawner/control/runs/run_status.h"
#include "spawner/control/runs/vanished_run.h"
#include "spawner/control/standby/standby_pool.h"
#include "spawner/control/steps/new_step.h"
#include "spawner/control/steps/shared_pod.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/automatic.h"
#include "spawner/model/beside.h"
#include "spawner/model/recipe.h"
#include "spawner/model/state_command.h"
#include "spawner/model/storage.h"
#include "spawner/model/waiting.h"
#include "spawner/requests/new_docs.h"
#include "spawner/requests/requests.h"
#include "spawner/steps/plans.h"
#include "spawner/steps/sealed.h"
#include "spawner/steps/unrecorded.h"

/* The run is changed in memory and written once, at the end of the pass. */
struct pass {
    struct df_control *c;
    cJSON *run;
    struct df_run_view view; /* of this run; executor, steps and beside are references */
    /* The name of this step is another TaskAction's: a workflow, or what somebody wrote. */
    bool is_taken[DF_RECIPE_STEPS];
    bool is_reopened; /* somebody wrote a final phase into its status */
    int64_t now_us;
};

static void free_pass(struct pass *p)
{
    cJSON_Delete(p->run);
    df_shared_drop(p->view.executor);
    for (size_t at = 0; at < DF_RECIPE_STEPS; at++)
        df_shared_drop(p->view.steps[at]);
    df_shared_drop(p->view.beside);
}

/* ---- observe ---- */

static int get_step(struct pass *p, size_t at, struct df_err *err)
{
    char name[64];
    DF_SHARED const cJSON *task = NULL;
    if (df_new_task_name(p->run, df_recipe_of(p->run)->steps[at].name, name, err) < 0 ||
        df_store_look_for(p->c->s->store, DF_KIND_TASK_ACTION, name, &task, err) < 0)
        return -1;
    /* A step without status is not accepted yet: its own pass removes or refuses it (applied.h). */
    if (!df_json_at(task, "status"))
        return 0;
    if (df_run_has_step(p->run, task))
        p->view.steps[at] = DF_TAKE(task);
    else
        p->is_taken[at] = !df_doc_is_deleted(task);
    return 0;
}

/* For a run of an unknown action: finds its step that has not ended, which a newer version created.
 * Two steps of one executor must not run at once, so the run waits for this step. */
static int get_live_step(struct pass *p, struct df_err *err)
{
    char label[128];
    (void)snprintf(label, sizeof(label), DF_LABEL_RUN "=%s", df_json_str(p->run, "metadata.name"));
    const struct df_store_list_options o = {.label = label};
    DF_JSON cJSON *steps = NULL;
    cJSON *step;
    if (df_store_list(p->c->s->store, DF_KIND_TASK_ACTION, &o, &steps, NULL, err) < 0)
        return -1;
    cJSON_ArrayForEach (step, steps) {
        if (df_json_at(step, "status") && !df_task_is_final(step)) {
            p->view.steps[0] = df_shared_new(cJSON_DetachItemViaPointer(steps, step));
            return p->view.steps[0] ? 0 : df_fail_oom(err);
        }
    }
    return 0;
}

static int get_steps(struct pass *p, struct df_err *err)
{
    const struct df_recipe *recipe = df_recipe_of(p->run);
    if (recipe->count == 0)
        return get_live_step(p, err);
    for (size_t at = 0; at < recipe->count; at++)
        if (get_step(p, at, err) < 0)
            return -1;
    return 0;
}

/* Of a step that was removed by force before the pass that created it wrote the run. */
static int recall_step(struct pass *p, struct df_err *err)
{
    const struct df_recipe *recipe = df_recipe_of(p->run);
    DF_JSON cJSON *entry = NULL;
    if (df_memory_get_step(&p->c->s->memory, p->run, &entry, err) < 0)
        return -1;
    for (size_t at = 0; entry && at < recipe->count; at++)
        if (df_streq(df_json_str(entry, "name"), recipe->steps[at].name) && !p->view.steps[at] &&
            !df_run_step(p->run, at))
            return df_json_append(df_json_array_at(df_json_object_at(p->run, "status"), "steps"),
                                  DF_TAKE(entry), err);
    return 0;
}

static const char *executor_name(const struct pass *p)
{
    return df_json_str(p->run, "spec.executorRef.name");
}

static int observe_lost(struct pass *p, struct df_err *err)
{
    const cJSON *lost = df_run_lost_step(&p->view);
    return lost ? df_lost_step_lives(p->c->s, p->run, lost, &p->view.lost_lives, err) : 0;
}

/* Of a run that takes no turn: the run whose turn it is as it begins. */
static int observe_beside(struct pass *p, struct df_err *err)
{
    const char *noted = df_json_str(p->run, "status.beside");
    char name[64] = "";
    (void)snprintf(name, sizeof(name), "%s", noted ? noted : "");
    bool is_open = df_beside_is_open(p->run);
    if (is_open &&
        df_lock_queue_first(p->c->s->store, DF_KIND_RUN, executor_name(p), name, err) < 0)
        return -1;
    if (name[0] && df_store_look_for(p->c->s->store, DF_KIND_RUN, name, &p->view.beside, err) < 0)
        return -1;
    return is_open && p->view.beside ? df_beside_note(p->run, p->view.beside, err) : 0;
}

/* A run that has a step is the first in the queue of its executor. */
static int observe_turn(struct pass *p, struct df_err *err)
{
    char first[64] = "";
    bool blocked = false;
    struct df_run_view *v = &p->view;
    v->is_first = !df_run_takes_turn(p->run) || v->steps[0] ||
                  cJSON_GetArraySize(df_json_at(p->run, "status.steps")) > 0;
    if (v->is_first)
        return 0;
    if (df_lock_queue_first(p->c->s->store, DF_KIND_RUN, executor_name(p), first, err) < 0 ||
        (v->executor && df_vanished_blocks(p->c, v->executor, &blocked, err) < 0))
        return -1;
    v->is_first = !blocked && df_streq(first, df_json_str(p->run, "metadata.name"));
    return 0;
}

static int observe(struct pass *p, struct df_err *err)
{
    struct df_store *s = p->c->s->store;
    const char *executor = executor_name(p);
    p->now_us = df_real_us();
    p->view.run = p->run;
    p->view.approval = p->c->s->config->approval;
    if (df_store_look_for(s, DF_KIND_EXECUTOR, executor, &p->view.executor, err) < 0 ||
        get_steps(p, err) < 0 || recall_step(p, err) < 0 || observe_turn(p, err) < 0 ||
        observe_beside(p, err) < 0 ||
        df_errored_observe(p->c->s, executor, &p->view.executor, err) < 0)
        return -1;
    return observe_lost(p, err);
}

/* ---- act ---- */

static int set_phase(const struct pass *p, const char *phase, struct df_err *err)
{
    return df_json_set_str(df_json_object_at(p->run, "status"), "phase", phase, err);
}

static int set_expecting(cJSON *executor, void *arg, struct df_err *err)
{
    DF_JSON cJSON *before = cJSON_Duplicate(executor, true);
    if (!before)
        return df_fail_oom(err);
    if (df_executor_expect_resources(executor, arg, err) < 0)
        return -1;
    return df_json_equal(before, executor) ? 1 : 0;
}

/* A step that may create resources is known to the executor before it exists. */
static int expect_resources(struct pass *p, const char *action, struct df_err *err)
{
    bool is_noted = df_json_bool(p->view.executor, "status.mayHoldResources", false);
    if (!p->view.executor || is_noted || !df_recipe_step_for(action)->writes)
        return 0;
    return df_store_modify(p->c->s->store, DF_KIND_EXECUTOR, executor_name(p), set_expecting,
                           p->run, NULL, err);
}

/* Stores the step. If it exists, an earlier pass created it and was interrupted. */
static int create_step(struct pass *p, size_t at, cJSON *task, struct df_err *err)
{
    cJSON *made = NULL;
    struct df_err why = {0};
    if (df_new_step_create(p->c, task, df_run_latest(&p->view), &made, &why) == 0)
        return (p->view.steps[at] = df_shared_new(made)) ? 0 : df_fail_oom(err);
    return df_streq(why.reason, "AlreadyExists") ? get_step(p, at, err) : df_err_pass(err, &why);
}

/* Creates the document of this step of the recipe. */
static int make_step(struct pass *p, size_t at, struct df_err *err)
{
    const struct df_recipe_step *step = &df_recipe_of(p->run)->steps[at];
    const char *action = at ? step->action : df_run_first_action(p->run, p->view.executor);
    DF_JSON cJSON *task = NULL;
    struct df_spawner *s = p->c->s;
    if (df_new_task(p->run, step->name, action, s->config, p->now_us, &task, err) < 0 ||
        df_policies_note(s->config->policies, p->view.executor, task, err) < 0 ||
        df_automatic_note(p->view.executor, task, err) < 0 ||
        df_shared_pod_keep(s, &p->view, at, task, err) < 0 ||
        expect_resources(p, action, err) < 0 || create_step(p, at, task, err) < 0)
        return -1;
    if (!p->view.steps[at])
        return df_fail_reason(err, DF_ERR_RETRY, "Conflict",
                              "an older document named like step %s is still being deleted",
                              step->name);
    if (df_run_status_fill(&p->view, p->run, err) < 0 ||
        df_memory_put_step(&s->memory, p->run, df_run_step(p->run, at), err) < 0)
        return -1;
    return set_phase(p, "Running", err);
}

static int set_step_cancel(cJSON *task, void *arg, struct df_err *err)
{
    if (df_json_at(task, "spec.cancel") || df_task_is_final(task))
        return 1;
    const cJSON *const *note = arg;
    cJSON *spec = df_json_object_at(task, "spec");
    return df_json_set(spec, "cancel", cJSON_Duplicate(*note, true), err);
}

static int cancel_step(struct pass *p, struct df_err *err)
{
    const cJSON *step = df_run_latest(&p->view);
    const cJSON *note = df_json_at(p->run, "spec.cancel");
    DF_JSON cJSON *gone = NULL;
    if (!note) {
        gone = cJSON_CreateObject();
        if (!gone || df_json_add_str(gone, "reason", "the executor is gone", err) < 0 ||
            df_json_add_time(gone, "at", p->now_us, err) < 0)
            return df_fail_oom(err);
        note = gone;
    }
    return df_store_modify(p->c->s->store, DF_KIND_TASK_ACTION, df_json_str(step, "metadata.name"),
                           set_step_cancel, &note, NULL, err);
}

/* Removes secrets of ended runs that a crash left in the vault, at most once in the grace period.
 * After a failure a later run tries again. */
static void sweep_if_due(struct pass *p)
{
    struct df_err why = {0};
    int64_t last = atomic_load(&p->c->swept_us);
    bool due = df_json_at(p->run, "spec.sealed") &&
               p->now_us > last + DF_RUN_SECRETS_GRACE_SECONDS * INT64_C(1000000);
    if (due && atomic_compare_exchange_strong(&p->c->swept_us, &last, p->now_us) &&
        df_sealed_sweep(p->c->s, p->now_us, &why) < 0)
        df_warn("secrets of runs that are over are not swept yet: %s", why.message);
}

static int finish(struct pass *p, const struct df_run_verdict *v, struct df_err *err)
{
    if (df_sealed_drop(p->c->s, p->run, err) < 0)
        return -1;
    sweep_if_due(p);
    if (set_phase(p, v->phase, err) < 0)
        return -1;
    return df_run_end(p->c->s, p->run, v, df_run_latest(&p->view), p->now_us, err);
}

static int end_lost(const struct pass *p, struct df_err *err)
{
    const cJSON *lost = df_run_lost_step(&p->view);
    DF_FREE char *text =
        df_strf("the TaskAction of the %s step was deleted: its processes are being ended",
                df_json_str(lost, "name"));
    if (!text)
        return df_fail_oom(err);
    return df_lost_step_end(p->c->s, p->run, lost, err) < 0
               ? -1
               : df_json_set_str(df_json_object_at(p->run, "status"), "message", text, err);
}

/* As many as the message has room for. */
static void name_unrecorded(struct df_run_verdict *v, const cJSON *unrecorded)
{
    long long count = df_unrecorded_count(unrecorded);
    size_t n = strlen(v->message);
    const cJSON *item;
    if (count)
        (void)snprintf(v->message + n, sizeof(v->message) - n,
                       "; %lld object%s may exist that no state records:", count,
                       count == 1 ? "" : "s");
    cJSON_ArrayForEach (item, df_json_at(unrecorded, "items")) {
        n = strlen(v->message);
        (void)snprintf(v->message + n, sizeof(v->message) - n, " %.200s",
                       df_json_str(item, "address"));
    }
}

/* Before the run ends: what a lost step left behind, and which resources nobody else will name. */
static int settle_lost(const struct pass *p, struct df_run_verdict *v, struct df_err *err)
{
    const cJSON *lost = df_run_lost_step(&p->view);
    DF_JSON cJSON *unrecorded = NULL;
    if (v->next != DF_RUN_FINISH || !lost)
        return 0;
    if (df_lost_step_settle(p->c->s, p->run, lost, &unrecorded, err) < 0)
        return -1;
    name_unrecorded(v, unrecorded);
    df_slots_wake(&p->c->slots);
    return 0;
}

/* A conflict with what the plan or the last step found is the end of the run. */
static int fail_run(struct df_run_verdict *v, const struct df_err *why, struct df_err *err)
{
    if (why->cls != DF_ERR_CONFLICT)
        return df_err_pass(err, why);
    v->next = DF_RUN_FINISH;
    v->phase = "Failed";
    (void)snprintf(v->reason, sizeof(v->reason), "%s", why->reason);
    (void)snprintf(v->message, sizeof(v->message), "%s", why->message);
    return 0;
}

/* The run ends if another TaskAction has the name of its next step: it would wait until somebody
 * deletes that one, and hold up all runs that come after it. */
static int check_name(const struct pass *p, struct df_run_verdict *v, struct df_err *err)
{
    char name[64];
    if (v->next != DF_RUN_STEP || !p->is_taken[v->step])
        return 0;
    if (df_new_task_name(p->run, df_recipe_of(p->run)->steps[v->step].name, name, err) < 0)
        return -1;
    v->next = DF_RUN_FINISH;
    v->phase = "Failed";
    (void)snprintf(v->reason, sizeof(v->reason), "NameTaken");
    (void)snprintf(v->message, sizeof(v->message),
                   "there is a TaskAction %s that is no step of this run: delete it, or run again "
                   "under another name",
                   name);
    return 0;
}

/* A run that moved the state succeeds only if the old place still has what was copied. */
static int check_moved(const struct pass *p, struct df_run_verdict *v, struct df_err *err)
{
    struct df_err why = {0};
    if (v->next != DF_RUN_FINISH || !df_streq(v->phase, "Succeeded") || !df_run_moves(p->run) ||
        !p->view.executor ||
        df_moved_check(p->c->s, p->run, p->view.executor, p->view.steps[0], &why) == 0)
        return 0;
    return fail_run(v, &why, err);
}

/* A run goes on only if the state that it found is its executor's. One that failed keeps its
 * reason. */
static int check_lineage(const struct pass *p, struct df_run_verdict *v, struct df_err *err)
{
    struct df_err why = {0};
    if (df_lineage_settle(p->c->s, &p->view, v, &why) == 0)
        return 0;
    bool has_failed = v->next == DF_RUN_FINISH && !df_streq(v->phase, "Succeeded");
    return has_failed && why.cls == DF_ERR_CONFLICT ? 0 : fail_run(v, &why, err);
}

/* Once: where the state moves each time nobody is told to look at plan after plan. */
static bool may_plan_again(const struct pass *p, const struct df_run_verdict *v)
{
    return v->next == DF_RUN_FINISH && df_streq(v->phase, "Failed") &&
           (df_streq(v->reason, "PlanStale") || df_streq(v->reason, "PlanExpired")) &&
           df_json_bool(p->view.executor, "spec.replan", false) &&
           !df_json_at(p->run, "spec.replaces") && !df_json_at(p->run, "spec.cancel");
}

/* As if its person had asked for it once more. */
static void note_again(const struct pass *p, const char *name)
{
    const char *by = df_json_str(p->run, "spec.requestedBy");
    DF_FREE char *detail = df_strf("replaces %s", df_json_str(p->run, "metadata.name"));
    DF_JSON cJSON *entry =
        df_json_object(DF_TIME("at", p->now_us), DF_STR("actor", by ? by : "dayfly"),
                       DF_STR("role", df_json_str(p->run, "spec.requestedRole")),
                       DF_STR("action", "create"), DF_STR("kind", "Run"), DF_STR("name", name),
                       DF_STR("outcome", "done"), DF_STR("detail", detail));
    struct df_err err = {0};
    if (df_check_alloc(entry, &err) < 0 || df_store_audit(p->c->s->store, entry, &err) < 0)
        df_error("audit trail: run %s: %s", name, err.message);
}

/* Before the run ends: its secrets are still there. */
static int plan_again(const struct pass *p, struct df_run_verdict *v, struct df_err *err)
{
    struct df_err why = {0};
    char name[64];
    size_t n = strlen(v->message), room = sizeof(v->message) - n;
    if (!may_plan_again(p, v))
        return 0;
    if (df_request_run_again(p->c->s, p->run, name, &why) == 0) {
        (void)snprintf(v->message + n, room, "; run %s plans again", name);
        note_again(p, name);
        return df_json_set_str(df_json_object_at(p->run, "status"), "replacedBy", name, err);
    }
    if (why.cls == DF_ERR_RETRY || why.cls == DF_ERR_SYSTEM)
        return df_err_pass(err, &why);
    (void)snprintf(v->message + n, room, "; no run plans again: %.500s", why.message);
    return 0;
}

static int act(struct pass *p, const struct df_run_verdict *v, struct df_err *err)
{
    const cJSON *latest = df_run_latest(&p->view);
    const char *phase = df_run_phase(p->run);
    switch (v->next) {
    case DF_RUN_STEP:
        return make_step(p, v->step, err);
    case DF_RUN_ASK:
        return set_phase(p, "WaitingApproval", err);
    case DF_RUN_REMIND:
        return df_json_add_time(df_json_object_at(p->run, "status"), "remindedAt", p->now_us, err);
    case DF_RUN_CANCEL_STEP:
        return cancel_step(p, err);
    case DF_RUN_END_LOST:
        return end_lost(p, err);
    case DF_RUN_FINISH:
        return finish(p, v, err);
    case DF_RUN_WAIT:
    default:
        break;
    }
    if (v->message[0] &&
        df_json_set_str(df_json_object_at(p->run, "status"), "message", v->message, err) < 0)
        return -1;
    /* A pass that was interrupted after it created a step has not written the phase. */
    bool lags = df_run_latest_row(&p->view)->asks ? !df_streq(phase, "Running")
                                                  : latest && df_streq(phase, "Pending");
    return lags ? set_phase(p, "Running", err) : 0;
}

/* ---- write ---- */

/* What an executor is told of a run. */
struct told {
    const cJSON *run;
    bool state_is_empty;
};

static int set_executor(cJSON *executor, void *arg, struct df_err *err)
{
    const struct told *told = arg;
    DF_JSON cJSON *before = cJSON_Duplicate(executor, true);
    if (!before)
        return df_fail_oom(err);
    if (df_executor_follow_run(executor, told->run, told->state_is_empty, err) < 0)
        return -1;
    return df_json_equal(before, executor) ? 1 : 0;
}

/* False, too, if the state is kept elsewhere or cannot be read: it may hold anything. What a
 * successful apply added is in it. */
static bool has_empty_state(const struct pass *p)
{
    struct df_state_holdings h = {0};
    struct df_err why = {0};
    const cJSON *apply = df_run_apply(&p->view);
    if (!df_streq(df_run_phase(p->run), "Succeeded") || !apply || !df_storage_is_managed(apply) ||
        df_json_int(p->run, "status.applySummary.add", 0) > 0)
        return false;
    return df_state_holdings(p->c->s->states, df_json_str(p->view.executor, "metadata.uid"), &h,
                             &why) == 0 &&
           h.count == 0;
}

static int write_executor(struct pass *p, struct df_err *err)
{
    if (!p->view.executor || (!p->view.is_first && !df_run_is_final(p->run)))
        return 0;
    struct told told = {p->run, has_empty_state(p)};
    return df_store_modify(p->c->s->store, DF_KIND_EXECUTOR, executor_name(p), set_executor, &told,
                           NULL, err);
}

static int write_run(struct pass *p, const cJSON *before, int64_t *wake_us, struct df_err *err)
{
    int64_t due_us = 0;
    const char *phase = df_run_phase(p->run);
    if (!df_run_is_final(p->run) &&
        df_set_conditions(p->run, DF_OUTCOME_NONE, phase, df_json_str(p->run, "status.message"),
                          p->now_us, err) < 0)
        return -1;
    if (!p->is_reopened && df_json_equal(before, p->run))
        return 0;
    if (!p->is_reopened &&
        df_run_due_us(before, p->run, p->view.steps[0], p->now_us, &due_us, err) < 0)
        return -1;
    if (due_us) {
        *wake_us = *wake_us && *wake_us < due_us ? *wake_us : due_us;
        return 0;
    }
    if (write_executor(p, err) < 0 ||
        df_store_update(p->c->s->store, DF_KIND_RUN, p->run, NULL, err) < 0)
        return -1;
    return df_memory_put_step(&p->c->s->memory, p->run, NULL, err);
}

/* The run has ended, and this pass follows its last write: wake the next run of the executor. */
static int wake_next(struct pass *p, struct df_err *err)
{
    char next[64];
    if (df_lock_queue_first(p->c->s->store, DF_KIND_RUN, executor_name(p), next, err) < 0)
        return -1;
    if (next[0])
        df_queue_wake(p->c->queue, DF_KIND_RUN, next);
    return 0;
}

/* The run is final: its steps that were deleted may go. */
static void wake_deleted_steps(const struct pass *p)
{
    const cJSON *const *steps = p->view.steps;
    for (size_t at = 0; at < DF_RECIPE_STEPS; at++)
        if (df_doc_is_deleted(steps[at]))
            df_queue_wake(p->c->queue, DF_KIND_TASK_ACTION,
                          df_json_str(steps[at], "metadata.name"));
}

/* Nobody needs it any more. What is left by a crash goes with the next sweep
 * (requests/retention.h). */
static void discard_plan(struct pass *p)
{
    struct df_err why = {0};
    const char *uid = df_json_str(p->view.steps[0], "metadata.uid");
    if (uid && df_plan_discard(p->c->s, uid, &why) < 0)
        df_warn("the plan of run %s stays for now: %s", df_json_str(p->run, "metadata.name"),
                why.message);
}

static int one_pass(struct pass *p, int64_t *ret_wake_us, struct df_err *err)
{
    DF_JSON cJSON *before = cJSON_Duplicate(p->run, true);
    if (!before)
        return df_fail_oom(err);
    if (observe(p, err) < 0)
        return -1;
    (void)df_waiting_clear(p->run); /* else this pass would have failed, or says it again */
    if (df_run_status_fill(&p->view, p->run, err) < 0)
        return -1;
    struct df_run_verdict v = df_run_next(&p->view, p->now_us);
    if (check_name(p, &v, err) < 0 || settle_lost(p, &v, err) < 0 ||
        check_lineage(p, &v, err) < 0 || check_moved(p, &v, err) < 0 ||
        df_errored_settle(p->c->s, p->run, &p->view.executor, &v, err) < 0 ||
        plan_again(p, &v, err) < 0 || act(p, &v, err) < 0 ||
        write_run(p, before, &v.wake_us, err) < 0)
        return -1;
    if (v.next == DF_RUN_FINISH) {
        discard_plan(p);
        wake_deleted_steps(p);
    }
    if (v.next == DF_RUN_REMIND)
        df_warn("run %s of executor %s still waits for approval",
                df_json_str(p->run, "metadata.name"), executor_name(p));
    df_standby_want(p->c, &p->view);
    *ret_wake_us = v.wake_us;
    return 0;
}

/* The write that ends a run also takes it out of the queue of its executor. A final phase of a run
 * that is in the queue was written by somebody else. */
static bool is_edited(const cJSON *run)
{
    return df_run_is_final(run) && df_label_has(run, DF_LABEL_UNFINISHED) &&
           df_label_has(run, DF_LABEL_QUEUE);
}

static int reopen_edited(struct pass *p, struct df_err *err)
{
    p->is_reopened = is_edited(p->run);
    if (!p->is_reopened)
        return 0;
    df_warn("run %s: somebody wrote the phase %s into its status; the run goes on",
            df_json_str(p->run, "metadata.name"), df_run_phase(p->run));
    return df_run_reopen(p->run, err);
}

/* How soon a pod is looked at again whose TaskAction was deleted after its run had ended. */
#define LOST_AGAIN_US INT64_C(5000000)

static int remove_lost(const struct pass *p, int64_t *ret_wake_us, struct df_err *err)
{
    bool waits = false;
    if (df_lost_steps_remove(p->c->s, p->run, &waits, err) < 0)
        return -1;
    if (waits)
        *ret_wake_us = df_real_us() + LOST_AGAIN_US;
    return 0;
}

int df_reconcile_run(struct df_control *c, const char *name, int64_t *ret_wake_us,
                     struct df_err *err)
{
    DF_CLEANUP(free_pass) struct pass p = {.c = c};
    if (df_store_find(c->s->store, DF_KIND_RUN, name, &p.run, err) < 0)
        return -1;
    if (!p.run || (df_run_is_final(p.run) && !is_edited(p.run))) {
        df_standby_forget(c, name);
        df_memory_forget(&c->s->memory, DF_KIND_RUN, name);
    }
    if (!p.run)
        return df_vanished_run(c, name, ret_wake_us, err);
    bool done = false;
    if (df_restored_pass(c, DF_KIND_RUN, p.run, &done, err) < 0)
        return -1;
    if (done)
        return 0;
    if (reopen_edited(&p, err) < 0)
        return -1;
    bool is_final = df_run_is_final(p.run);
    if (is_final && wake_next(&p, err) < 0)
        return -1;
    if (df_applied_run(c, p.run, &done, ret_wake_us, err) < 0)
        return -1;
    if (done)
        return 0;
    return is_final ? remove_lost(&p, ret_wake_us, err) : one_pass(&p, ret_wake_us, err);
}
