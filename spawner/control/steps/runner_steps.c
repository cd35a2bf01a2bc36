/*
 * runner_steps.c - what steps with a runner have in common, whoever asked for them: a runner is
 * started with a token, claims its step with it, and leaves a result. Steps of runs (tofu_steps.c)
 * and steps of an upstream system (upstream.h) are of this kind.
 */
#include "common/base/clock.h"
#include "common/crypto/crypto.h"
#include "spawner/control/task_pass.h"
#include "spawner/steps/integrations.h"
#include "spawner/steps/outcome.h"
#include "spawner/steps/steps.h"
#include "spawner/steps/unrecorded.h"

/* ---- ends ---- */

struct ending {
    const struct df_task_pass *pass;
    const cJSON *result;                /* the runner's result; or NULL */
    struct df_outcome_failure *failure; /* how the step failed; used if result is NULL */
};

/* Has the runner claimed the step or reported an interruption after the pass had read the document?
 * Then the pass has decided about another step than this one: the next pass, which that write
 * wakes, decides again. */
static bool was_heard_since(const struct df_task_pass *p, const cJSON *task)
{
    bool claimed = df_task_has_runner(task) && !df_task_has_runner(p->task);
    return claimed ||
           (df_json_at(task, "status.interrupted") && !df_json_at(p->task, "status.interrupted"));
}

/* Does nothing if the step has already ended, for example with the result that its runner
 * posted. */
static int set_end(cJSON *task, void *arg, struct df_err *err)
{
    const struct ending *e = arg;
    const struct df_task_pass *p = e->pass;
    if (df_task_is_final(task) || (!e->result && was_heard_since(p, task)))
        return 1;
    if (e->result && df_task_was_interrupted(task, e->result, !p->engine->kind->runs_here))
        return df_outcome_interrupted(task, e->result, p->now_us, err);
    if (e->result)
        return df_outcome_result(task, e->result, p->now_us, err);
    int64_t code = df_json_int(task, "status.interrupted.exitCode", p->observed.exit_code);
    e->failure->exit_code = (int)code;
    if (df_task_count_lost_attempt(task, &p->observed, p->now_us, err) < 0)
        return -1;
    return df_outcome_fail(task, e->failure, p->now_us, err);
}

int df_runner_end(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    struct df_outcome_failure f = {.fault = v->fault, .reason = v->reason, .message = v->message};
    struct ending e = {.pass = p, .failure = &f};
    return df_task_pass_modify(p, set_end, &e, err);
}

/* Collects the result from the engine, because the runner could not deliver it. */
int df_runner_collect(struct df_task_pass *p, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    struct df_err why = {0};
    struct ending e = {.pass = p};
    if (p->ops->result(p->engine, &p->step, &result, err) < 0)
        return -1;
    e.result = result;
    if (df_task_pass_modify(p, set_end, &e, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_USER)
        return df_task_pass_fail(p, DF_FAULT_NONE, "RunnerFailed", why.message, err);
    return df_err_pass(err, &why);
}

static int set_unrecorded(cJSON *task, void *arg, struct df_err *err)
{
    if (df_task_is_final(task) || df_json_at(task, "status.unrecorded"))
        return 1;
    return df_outcome_unrecorded(task, arg, err);
}

int df_runner_note_unrecorded(struct df_task_pass *p, struct df_err *err)
{
    if (!df_task_has_runner(p->task) || df_json_at(p->task, "status.unrecorded"))
        return 0;
    DF_JSON cJSON *found = NULL;
    if (df_unrecorded_find(p->c->s, p->task, &found, err) < 0)
        return -1;
    if (!found)
        return 0;
    df_unrecorded_warn(p->step.name, found);
    return df_task_pass_modify(p, set_unrecorded, found, err);
}

/* ---- begin ---- */

/* The hash of the claim token must be durable before a runner can present the token. */
int df_runner_set_begun(cJSON *task, struct df_task_pass *p, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    cJSON *auth = status ? df_json_object_at(status, "auth") : NULL;
    if (!auth)
        return df_fail_oom(err);
    if (df_json_set_str(auth, "claim", p->claim_hash, err) < 0)
        return -1;
    return df_task_count_lost_attempt(task, &p->observed, df_real_us(), err);
}

/* The document says that the step has begun, and the engine has made nothing yet: the step was
 * stored so, or a start was refused or cut off. A runner elsewhere than in a pod claims with the
 * token of this pass, whose hash must be written. */
static bool has_begun(const struct df_task_pass *p)
{
    return p->engine->kind->runs_pods && df_label_has(p->task, DF_LABEL_LIVE) &&
           df_json_str(p->task, "status.auth.claim") && !df_json_at(p->task, "status.engineRef");
}

static int take_slot(struct df_task_pass *p, bool *ret_has, struct df_err *err)
{
    if (!has_begun(p))
        return df_task_take_slot(p, ret_has, err);
    df_copy(p->claim_hash, sizeof(p->claim_hash), df_json_str(p->task, "status.auth.claim"));
    *ret_has = true;
    return 0;
}

static int begin_with(struct df_task_pass *p, const char *token, struct df_err *err)
{
    bool has_slot = false, made = false;
    if (take_slot(p, &has_slot, err) < 0)
        return -1;
    if (!has_slot)
        return 0;
    DF_JSON cJSON *identities = NULL;
    if (p->engine->kind->runs_pods && df_integration_tokens(p->c->s, p->task, &identities, err) < 0)
        return -1;
    p->step.runner.claim_token = token;
    p->step.runner.identities = identities;
    int result = df_task_create_runner(p, &made, err);
    p->step.runner.claim_token = NULL;
    p->step.runner.identities = NULL;
    return result;
}

int df_runner_begin(struct df_task_pass *p, struct df_err *err)
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
