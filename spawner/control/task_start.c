#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/control/task_pass.h"
#include "spawner/model/instance.h"
#include "spawner/steps/steps.h"

struct start {
    const struct df_task_pass *pass;
    const char *hash; /* of the claim token */
};

/* The claim token's hash must be durable before a runner can come with the token. */
static int set_created(cJSON *task, void *arg, struct df_err *err)
{
    const struct start *s = arg;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *auth = status ? df_json_object_at(status, "auth") : NULL;
    int64_t now_us = df_real_us();
    if (!auth)
        return df_fail_oom(err);
    if (df_task_is_final(task) || df_json_at(task, "status.claimedBy") || df_task_is_canceled(task))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict", "the step is not to be started");
    if (df_json_set_str(auth, "claim", s->hash, err) < 0 || df_place_set(task, err) < 0 ||
        df_task_count_lost_try(task, &s->pass->seen, now_us, err) < 0 ||
        df_task_count_attempt(task, err) < 0 || df_task_add_time(task, "created", now_us, err) < 0)
        return -1;
    /* In another try it is still told what kept the one before. */
    bool is_new = !df_streq(df_task_reason(task), "Initializing");
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing",
                                  is_new ? NULL : df_task_message(s->pass->task), now_us, err);
}

static int set_engine_ref(cJSON *task, void *arg, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    if (df_json_equal(df_json_at(task, "status.engineRef"), arg))
        return 1;
    return df_json_set(status, "engineRef", cJSON_Duplicate(arg, true), err);
}

static bool may_pass(const struct df_err *why)
{
    return why->cls == DF_ERR_RETRY || why->cls == DF_ERR_LIMIT || why->cls == DF_ERR_CONFLICT;
}

/* Who looks at a step that does not start is told why, before its deadline makes it an end. */
static int set_waiting(cJSON *task, void *arg, struct df_err *err)
{
    const struct df_task_pass *p = arg;
    if (df_task_is_final(task) || df_task_has_runner(task))
        return 1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing", p->seen.cause, p->now_us,
                                  err);
}

int df_task_pass_tell_waiting(struct df_task_pass *p, struct df_err *err)
{
    bool is_waiting = p->seen.cause[0] && !df_task_has_runner(p->task);
    if (!is_waiting || df_streq(df_task_message(p->task), p->seen.cause))
        return 0;
    return df_task_pass_modify(p, set_waiting, p, err);
}

/* A failure that may pass is told and left for a later pass. */
static int put_off(struct df_task_pass *p, const struct df_err *why, struct df_err *err)
{
    int64_t after_us = p->now_us + (int64_t)why->retry_after_s * 1000000;
    p->again_us = df_task_retry_at(p->task, p->now_us);
    p->again_us = p->again_us > after_us ? p->again_us : after_us;
    (void)snprintf(p->seen.cause, sizeof(p->seen.cause), "%.*s", (int)sizeof(p->seen.cause) - 1,
                   why->message);
    if (!df_streq(df_task_message(p->task), p->seen.cause))
        df_warn("step %s is not started yet: %s", p->step.name, why->message);
    return df_task_pass_tell_waiting(p, err);
}

/* Asks the engine for the runner. *ret_made false: not now. */
static int start(struct df_task_pass *p, bool *ret_made, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err why = {0};
    *ret_made = p->engine->ops->create(p->engine, &p->step, &ref, &why) == 0;
    if (*ret_made)
        return df_task_pass_modify(p, set_engine_ref, ref, err);
    if (!may_pass(&why))
        return df_task_pass_fail(p, DF_FAULT_NONE, why.reason[0] ? why.reason : "EngineFailed",
                                 why.message, err);
    return put_off(p, &why, err);
}

/* The order of steps.h: the document, the engine's objects, the mark, and only then the start. */
static int start_handed_over(struct df_task_pass *p, struct df_err *err)
{
    DF_SECRET_JSON cJSON *document = NULL;
    if (df_step_hand_over(p->c->s, p->step.uid, &document, err) < 0)
        return -1;
    bool made = false;
    p->step.document = document;
    int result = start(p, &made, err);
    p->step.document = NULL;
    if (result < 0 || !made)
        return result;
    if (df_step_mark_handed_over(p->c->s, p->step.uid, err) < 0)
        return -1;
    return p->engine->ops->release(p->engine, &p->step, err);
}

int df_task_pass_create(struct df_task_pass *p, struct df_err *err)
{
    char token[65], hash[DF_SHA256_HEX];
    bool made = false;
    struct df_err why = {0};
    if (atomic_load(&p->c->draining))
        return 0;
    /* The configuration may have changed since it was asked for. */
    if (df_class_check(p->c->s->config->classes, df_json_str(p->task, "spec.class"), &why) < 0)
        return df_task_pass_fail(p, DF_FAULT_USER, why.reason, why.message, err);
    if (df_random_hex(token, 32, err) < 0 || df_sha256_hex(token, strlen(token), hash, err) < 0)
        return -1;
    struct start s = {p, hash};
    int result = df_places_take(p->c, p->task, set_created, &s, &p->again_us, err);
    p->step.claim_token = token;
    if (result == 0 && !p->again_us)
        result = p->engine->hands_over ? start_handed_over(p, err) : start(p, &made, err);
    p->step.claim_token = NULL;
    explicit_bzero(token, sizeof(token));
    return result;
}
