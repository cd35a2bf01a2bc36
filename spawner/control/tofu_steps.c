/*
 * tofu_steps.c - the hooks for steps of runs. A runner claims its step with a token, reports, and
 * may die and leave a log, a state and a lock behind. Read the table of hooks at the end of the
 * file first, then recover(): its order protects the state.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/control/task_pass.h"
#include "spawner/steps/integrations.h"
#include "spawner/steps/outcome.h"
#include "spawner/steps/recovery.h"
#include "spawner/steps/steps.h"
#include "spawner/steps/unrecorded.h"

/* ---- ends ---- */

struct ending {
    const struct df_task_pass *pass;
    const cJSON *result;                /* the runner's result; or NULL */
    struct df_outcome_failure *failure; /* how the step failed; used if result is NULL */
};

/* Does nothing if the step has already ended, for example with the result that its runner
 * posted. */
static int set_end(cJSON *task, void *arg, struct df_err *err)
{
    const struct ending *e = arg;
    const struct df_task_pass *p = e->pass;
    if (df_task_is_final(task))
        return 1;
    if (e->result && df_task_was_interrupted(task, e->result, p->engine->is_remote))
        return df_outcome_interrupted(task, e->result, p->now_us, err);
    if (e->result)
        return df_outcome_result(task, e->result, p->now_us, err);
    int64_t code = df_json_int(task, "status.interrupted.exitCode", p->observed.exit_code);
    e->failure->exit_code = (int)code;
    if (df_task_count_lost_attempt(task, &p->observed, p->now_us, err) < 0)
        return -1;
    return df_outcome_fail(task, e->failure, p->now_us, err);
}

static int set_unrecorded(cJSON *task, void *arg, struct df_err *err)
{
    if (df_task_is_final(task) || df_json_at(task, "status.unrecorded"))
        return 1;
    return df_outcome_unrecorded(task, arg, err);
}

/* Stores the list of unrecorded resources before the step's end is written and before its lock is
 * released: after a crash in between, either the lock or the list still exists. */
static int note_unrecorded(struct df_task_pass *p, struct df_err *err)
{
    if (!df_task_has_runner(p->task) || df_json_at(p->task, "status.unrecorded"))
        return 0;
    DF_JSON cJSON *found = df_unrecorded_find(p->c->s, p->task);
    if (!found)
        return 0;
    df_unrecorded_warn(p->step.name, found);
    return df_task_pass_modify(p, set_unrecorded, found, err);
}

static int tofu_end(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    struct df_outcome_failure f = {.fault = v->fault, .reason = v->reason, .message = v->message};
    struct ending e = {.pass = p, .failure = &f};
    /* A process that could not be ended may create more resources, but no later pass would look for
     * them: the list is written now. */
    if (p->observed.phase != DF_ENGINE_ENDED && note_unrecorded(p, err) < 0)
        return -1;
    return df_task_pass_modify(p, set_end, &e, err);
}

/* Collects the result from the engine, because the runner could not deliver it. */
static int tofu_collect(struct df_task_pass *p, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    struct df_err why = {0};
    struct ending e = {.pass = p};
    if (p->engine->ops->result(p->engine, &p->step, &result, err) < 0)
        return -1;
    e.result = result;
    if (df_task_pass_modify(p, set_end, &e, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_USER)
        return df_task_pass_fail(p, DF_FAULT_NONE, "RunnerFailed", why.message, err);
    return df_err_pass(err, &why);
}

/* ---- after the end ---- */

/* Releases the state lock that a dead step may have left. */
static int release_lock(struct df_task_pass *p, struct df_err *err)
{
    const char *executor = df_json_str(p->task, "spec.executorRef.uid");
    bool released = false;
    if (df_state_release_dead(p->c->s->states, executor, p->step.uid, &released, err) < 0)
        return -1;
    if (released)
        df_info("the state lock of step %s is released: every process of the step is dead",
                p->step.name);
    return 0;
}

static int recover_state(struct df_task_pass *p, struct df_err *err)
{
    return df_recover_state(p->c->s, p->engine, &p->step,
                            df_json_str(p->task, "spec.executorRef.uid"), err);
}

/* Runs before the step is final, so that a client that waits for the end finds the complete log,
 * the saved state and a released lock. */
static int recover(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (!df_task_has_runner(p->task))
        return 0;
    if (df_task_is_final(p->task))
        return release_lock(p, err);
    df_recover_streams(p->c->s, p->engine, &p->step);
    if (recover_state(p, &why) < 0) /* tofu_clean() tries again; nothing is removed before */
        df_warn("the state that step %s left is not kept yet: %s", p->step.name, why.message);
    return note_unrecorded(p, err) < 0 ? -1 : release_lock(p, err);
}

static int tofu_clean(struct df_task_pass *p, struct df_err *err)
{
    if (df_task_has_runner(p->task) && recover_state(p, err) < 0)
        return -1;
    if (p->engine->ops->cleanup(p->engine, &p->step, err) < 0)
        return -1;
    return df_task_pass_finalize(p, err);
}

#define RUN_AGAIN_US INT64_C(5000000)

/* The document stays until its run is final, because the run reads the step's end and its plan from
 * it. */
static int tofu_may_remove(struct df_task_pass *p, bool *ret, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    const char *name = df_json_str(p->task, "spec.runRef.name");
    if (df_store_find(p->c->s->store, DF_KIND_RUN, name, &run, err) < 0)
        return -1;
    *ret = !run || df_run_is_final(run);
    if (!*ret) {
        p->wake_us = p->now_us + RUN_AGAIN_US;
        p->pauses = true;
    }
    return 0;
}

/* ---- observations ---- */

static int set_disruption(cJSON *task, void *arg, struct df_err *err)
{
    const struct df_task_pass *p = arg;
    if (!df_task_is_disruption(task, &p->observed))
        return 1;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *kept = status ? df_json_object_at(status, "disruption") : NULL;
    if (!kept)
        return df_fail_oom(err);
    if (df_json_set_str(kept, "reason", p->observed.reason, err) < 0)
        return -1;
    return df_json_set_str(kept, "message", p->observed.cause, err);
}

static int tofu_after_observe(struct df_task_pass *p, struct df_err *err)
{
    if (p->observed.phase == DF_ENGINE_ENDED && recover(p, err) < 0)
        return -1;
    if (!df_task_is_disruption(p->task, &p->observed))
        return 0;
    df_warn("step %s is being ended: %s", p->step.name, p->observed.cause);
    return df_task_pass_modify(p, set_disruption, p, err);
}

/* ---- begin ---- */

/* The hash of the claim token must be durable before a runner can present the token. */
static int tofu_set_begun(cJSON *task, struct df_task_pass *p, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    cJSON *auth = status ? df_json_object_at(status, "auth") : NULL;
    if (!auth)
        return df_fail_oom(err);
    if (df_json_set_str(auth, "claim", p->claim_hash, err) < 0)
        return -1;
    return df_task_count_lost_attempt(task, &p->observed, df_real_us(), err);
}

/* The order that steps.h requires: the step document, the engine's objects, the mark, then the
 * release. */
static int start_handed_over(struct df_task_pass *p, struct df_err *err)
{
    DF_SECRET_JSON cJSON *document = NULL;
    if (df_step_provision(p->c->s, p->step.uid, &document, err) < 0)
        return -1;
    bool made = false;
    p->step.document = document;
    int result = df_task_create_runner(p, &made, err);
    p->step.document = NULL;
    if (result < 0 || !made)
        return result;
    if (df_step_mark_provisioned(p->c->s, p->step.uid, err) < 0)
        return -1;
    return p->engine->ops->release(p->engine, &p->step, err);
}

static int begin_with(struct df_task_pass *p, const char *token, struct df_err *err)
{
    bool has_slot = false, made = false;
    if (df_task_take_slot(p, &has_slot, err) < 0)
        return -1;
    if (!has_slot)
        return 0;
    DF_JSON cJSON *identities = NULL;
    if (p->engine->runs_pods && df_integration_tokens(p->c->s, p->task, &identities, err) < 0)
        return -1;
    p->step.claim_token = token;
    p->step.identities = identities;
    int result =
        p->engine->hands_over ? start_handed_over(p, err) : df_task_create_runner(p, &made, err);
    p->step.claim_token = NULL;
    p->step.identities = NULL;
    return result;
}

static int tofu_begin(struct df_task_pass *p, struct df_err *err)
{
    char token[65];
    if (df_random_hex(token, 32, err) < 0)
        return -1;
    int result = df_sha256_hex(token, strlen(token), p->claim_hash, err);
    if (result == 0)
        result = begin_with(p, token, err);
    explicit_bzero(token, sizeof(token));
    return result;
}

const struct df_task_hooks df_tofu_hooks = {
    .acts_unobserved = true,
    .after_observe = tofu_after_observe,
    .set_begun = tofu_set_begun,
    .begin = tofu_begin,
    .report = df_task_pass_report_waiting,
    .end = tofu_end,
    .collect = tofu_collect,
    .clean = tofu_clean,
    .may_remove = tofu_may_remove,
};
