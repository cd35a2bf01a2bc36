/*
 * tasks.c - one pass over one step: ask the engine what is there, ask df_task_next() what is next,
 * do that one thing.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/control/applied.h"
#include "spawner/control/loop.h"
#include "spawner/control/outcome.h"
#include "spawner/control/places.h"
#include "spawner/control/salvage.h"
#include "spawner/control/steps.h"
#include "spawner/control/unrecorded.h"
#include "spawner/model/workflow.h"

struct pass {
    struct df_control *c;
    cJSON *task;
    struct df_engine *engine;
    struct df_engine_step step;
    struct df_engine_observation seen;
    int64_t now_us;
    int64_t again_us; /* what was done is to be tried again then; 0: no need */
};

static void free_pass(struct pass *p)
{
    cJSON_Delete(p->task);
}

static int modify(struct pass *p, df_store_change change, void *arg, struct df_err *err)
{
    return df_store_modify(p->c->s->store, DF_KIND_TASK_ACTION, p->step.name, change, arg, NULL,
                           err);
}

/* ---- ends ---- */

struct ending {
    const struct pass *pass;
    const cJSON *result; /* what the runner left, or NULL */
    const char *reason;
    const char *message;
};

/* Unless the runner's own report was faster. */
static int set_end(cJSON *task, void *arg, struct df_err *err)
{
    const struct ending *e = arg;
    const struct pass *p = e->pass;
    if (df_task_is_final(task))
        return 1;
    if (e->result && df_task_was_interrupted(task, e->result))
        return df_outcome_interrupted(task, e->result, p->now_us, err);
    if (e->result)
        return df_outcome_result(task, e->result, p->now_us, err);
    int64_t code = df_json_int(task, "status.interrupted.exitCode", p->seen.exit_code);
    return df_outcome_fail(task, (int)code, e->reason, e->message, p->now_us, err);
}

static int set_unrecorded(cJSON *task, void *arg, struct df_err *err)
{
    if (df_task_is_final(task) || df_json_at(task, "status.unrecorded"))
        return 1;
    return df_outcome_unrecorded(task, arg, err);
}

/* Written before the end and before the lock is released: a pass that dies in between leaves the
 * lock, or the list. */
static int note_unrecorded(struct pass *p, struct df_err *err)
{
    if (!df_task_has_runner(p->task) || df_json_at(p->task, "status.unrecorded"))
        return 0;
    DF_JSON cJSON *found = df_unrecorded_find(p->c->s, p->task);
    if (!found)
        return 0;
    df_unrecorded_warn(p->step.name, found);
    return modify(p, set_unrecorded, found, err);
}

static int fail(struct pass *p, const char *reason, const char *message, struct df_err *err)
{
    struct ending e = {.pass = p, .reason = reason, .message = message};
    /* What could not be ended may make more, but nobody will look again. */
    if (p->seen.phase != DF_ENGINE_ENDED && note_unrecorded(p, err) < 0)
        return -1;
    df_warn("step %s failed: %s: %s", p->step.name, reason, message);
    return modify(p, set_end, &e, err);
}

/* The runner could not reach us before it had to end, but left its word. */
static int collect(struct pass *p, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    struct df_err why = {0};
    struct ending e = {.pass = p};
    if (p->engine->ops->result(p->engine, &p->step, &result, err) < 0)
        return -1;
    e.result = result;
    if (modify(p, set_end, &e, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_USER)
        return fail(p, "RunnerFailed", why.message, err);
    *err = why;
    return -1;
}

/* ---- create ---- */

/* The claim token's hash must be durable before a runner can come with the token. */
static int set_created(cJSON *task, void *arg, struct df_err *err)
{
    const char *hash = arg;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *auth = status ? df_json_object_at(status, "auth") : NULL;
    int64_t now_us = df_real_us();
    if (!auth)
        return df_fail_oom(err);
    if (df_task_is_final(task) || df_json_at(task, "status.claimedBy") ||
        df_json_at(task, "spec.cancel"))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict", "the step is not to be started");
    if (df_json_set_str(auth, "claim", hash, err) < 0 ||
        df_label_set(task, DF_LABEL_LIVE, "true", err) < 0 ||
        df_task_add_time(task, "created", now_us, err) < 0)
        return -1;
    if (df_streq(df_task_reason(task), "Initializing"))
        return 0; /* another try: what kept the one before is still told */
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing", NULL, now_us, err);
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
    const struct pass *p = arg;
    if (df_task_is_final(task) || df_task_has_runner(task))
        return 1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing", p->seen.cause, p->now_us,
                                  err);
}

static int tell_waiting(struct pass *p, struct df_err *err)
{
    bool is_waiting = p->seen.cause[0] && !df_task_has_runner(p->task);
    if (!is_waiting || df_streq(df_task_message(p->task), p->seen.cause))
        return 0;
    return modify(p, set_waiting, p, err);
}

/* A failure that may pass is told and left for a later pass. */
static int put_off(struct pass *p, const struct df_err *why, struct df_err *err)
{
    int64_t after_us = p->now_us + (int64_t)why->retry_after_s * 1000000;
    p->again_us = df_task_retry_at(p->task, p->now_us);
    p->again_us = p->again_us > after_us ? p->again_us : after_us;
    (void)snprintf(p->seen.cause, sizeof(p->seen.cause), "%.*s", (int)sizeof(p->seen.cause) - 1,
                   why->message);
    if (!df_streq(df_task_message(p->task), p->seen.cause))
        df_warn("step %s is not started yet: %s", p->step.name, why->message);
    return tell_waiting(p, err);
}

/* Asks the engine for the runner. *ret_made false: not now. */
static int start(struct pass *p, bool *ret_made, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err why = {0};
    *ret_made = p->engine->ops->create(p->engine, &p->step, &ref, &why) == 0;
    if (*ret_made)
        return modify(p, set_engine_ref, ref, err);
    if (!may_pass(&why))
        return fail(p, why.reason[0] ? why.reason : "EngineFailed", why.message, err);
    return put_off(p, &why, err);
}

/* The order of steps.h: the document, the engine's objects, the mark, and only then the start. */
static int start_handed_over(struct pass *p, struct df_err *err)
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

static int create(struct pass *p, struct df_err *err)
{
    char token[65], hash[DF_SHA256_HEX];
    bool taken = false, made = false;
    if (atomic_load(&p->c->draining))
        return 0;
    if (df_random_hex(token, 32, err) < 0 || df_sha256_hex(token, strlen(token), hash, err) < 0)
        return -1;
    int result = df_places_take(p->c, p->task, set_created, hash, &taken, err);
    p->step.claim_token = token;
    if (result == 0 && taken)
        result = p->engine->hands_over ? start_handed_over(p, err) : start(p, &made, err);
    p->step.claim_token = NULL;
    explicit_bzero(token, sizeof(token));
    return result;
}

/* ---- what takes it away ---- */

static int set_disruption(cJSON *task, void *arg, struct df_err *err)
{
    const struct pass *p = arg;
    if (!df_task_is_disruption(task, &p->seen))
        return 1;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *kept = status ? df_json_object_at(status, "disruption") : NULL;
    if (!kept)
        return df_fail_oom(err);
    if (df_json_set_str(kept, "reason", p->seen.reason, err) < 0)
        return -1;
    return df_json_set_str(kept, "message", p->seen.cause, err);
}

static int note_disruption(struct pass *p, struct df_err *err)
{
    if (!df_task_is_disruption(p->task, &p->seen))
        return 0;
    df_warn("step %s is being ended: %s", p->step.name, p->seen.cause);
    return modify(p, set_disruption, p, err);
}

/* ---- after the end ---- */

/* Nothing of a step lives any more: the lock that it may have left is nobody's. */
static int release_lock(struct pass *p, struct df_err *err)
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

static int salvage_state(struct pass *p, struct df_err *err)
{
    return df_salvage_state(p->c->s, p->engine, &p->step,
                            df_json_str(p->task, "spec.executorRef.uid"), err);
}

/* Before the step is final: who waits for its end finds its log whole, its state kept and its lock
 * free. */
static int after_death(struct pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (!df_task_has_runner(p->task))
        return 0;
    if (df_task_is_final(p->task))
        return release_lock(p, err);
    df_salvage_streams(p->c->s, p->engine, &p->step);
    if (salvage_state(p, &why) < 0) /* tried again until it is done, before anything is removed */
        df_warn("the state that step %s left is not kept yet: %s", p->step.name, why.message);
    return note_unrecorded(p, err) < 0 ? -1 : release_lock(p, err);
}

static int set_settled(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *auth = status ? df_json_object_at(status, "auth") : NULL;
    if (!auth)
        return df_fail_oom(err);
    cJSON_DeleteItemFromObjectCaseSensitive(auth, "state");
    if (df_label_set(task, DF_LABEL_UNFINISHED, NULL, err) < 0)
        return -1;
    return df_label_set(task, DF_LABEL_LIVE, NULL, err);
}

/* The engine holds nothing of the step any more: its place is free, its state password dies. */
static int settle(struct pass *p, struct df_err *err)
{
    if (!df_label_has(p->task, DF_LABEL_UNFINISHED))
        return 0;
    if (modify(p, set_settled, NULL, err) < 0)
        return -1;
    df_places_wake(p->c);
    return 0;
}

static int clean(struct pass *p, struct df_err *err)
{
    if (df_task_has_runner(p->task) && salvage_state(p, err) < 0)
        return -1;
    if (p->engine->ops->cleanup(p->engine, &p->step, err) < 0)
        return -1;
    return settle(p, err);
}

/* ---- the pass ---- */

static int64_t seconds(const struct pass *p, const char *path)
{
    return df_json_int(p->task, path, 0);
}

/* The pod that the cluster vouched for; a runner that has its document from a Secret only names
 * its host, which is the pod unless it lives in the node's network. */
static const char *pod_of(const cJSON *task)
{
    const char *uid = df_json_str(task, "status.claimedBy.podUid");
    return uid ? uid : df_json_str(task, "status.claimedBy.host");
}

static void describe(struct pass *p)
{
    const struct df_spawner *s = p->c->s;
    p->now_us = df_real_us();
    p->step = (struct df_engine_step){.name = df_json_str(p->task, "metadata.name"),
                                      .uid = df_json_str(p->task, "metadata.uid"),
                                      .server_url = s->server_url,
                                      .ca_file = s->ca_file,
                                      .endpoint_file = s->endpoint_file,
                                      .run = df_json_str(p->task, "spec.runRef.name"),
                                      .executor = df_json_str(p->task, "spec.executorRef.name"),
                                      .action = df_json_str(p->task, "spec.action"),
                                      .timeout_seconds = seconds(p, "spec.timeoutSeconds"),
                                      .grace_seconds = seconds(p, "spec.graceSeconds"),
                                      .pending_seconds = seconds(p, "spec.pendingSeconds"),
                                      .environment = df_json_at(p->task, "spec.environment"),
                                      .placement = df_json_at(p->task, "spec.placement"),
                                      .was_created = df_json_at(p->task, "status.engineRef"),
                                      .was_claimed = df_task_has_runner(p->task),
                                      .pod = pod_of(p->task)};
}

static int act(struct pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    switch (v->next) {
    case DF_TASK_CREATE:
        return create(p, err);
    case DF_TASK_RELEASE:
        return p->engine->ops->release(p->engine, &p->step, err);
    case DF_TASK_COLLECT:
        return collect(p, err);
    case DF_TASK_CANCEL:
        return p->engine->ops->cancel(p->engine, &p->step, err);
    case DF_TASK_CLEAN:
        return clean(p, err);
    case DF_TASK_FAIL:
        return fail(p, v->reason, v->message, err);
    case DF_TASK_SUCCEED: /* of workflows alone: not for a step with a runner */
    case DF_TASK_WAIT:
    default:
        if (df_task_is_final(p->task))
            return p->seen.phase == DF_ENGINE_ABSENT ? settle(p, err) : 0;
        return tell_waiting(p, err);
    }
}

#define BLIND_IS_TOLD_AFTER_US INT64_C(5000000)

/* The engine cannot tell now, and for how long nobody knows. What must not wait for it is done all
 * the same, with a step that was made taken for alive: a first start, which is harmless
 * under its name, a cancel, and the ends that are due. All else is left for another pass. */
static int blind_pass(struct pass *p, const struct df_err *why, struct df_err *err)
{
    bool lives = p->step.was_created || p->step.was_claimed;
    p->seen = (struct df_engine_observation){.phase = lives ? DF_ENGINE_RUNNING : DF_ENGINE_ABSENT,
                                             .exit_code = -1,
                                             .hears_since_us = p->c->hears_since_us};
    (void)snprintf(p->seen.cause, sizeof(p->seen.cause), "%.*s", (int)sizeof(p->seen.cause) - 1,
                   why->message);
    struct df_task_verdict v = df_task_next(p->task, &p->seen, p->now_us);
    bool is_due = v.next == DF_TASK_CREATE || v.next == DF_TASK_CANCEL || v.next == DF_TASK_FAIL;
    if (!df_task_is_final(p->task) && is_due)
        return act(p, &v, err);
    bool is_long = df_task_age_us(p->task, p->now_us) >= BLIND_IS_TOLD_AFTER_US;
    if (!df_task_is_final(p->task) && is_long && tell_waiting(p, err) < 0)
        return -1;
    *err = *why;
    return -1;
}

static int one_pass(struct pass *p, int64_t *ret_wake_us, struct df_err *err)
{
    struct df_err why = {0};
    if (p->engine->ops->status(p->engine, &p->step, &p->seen, &why) < 0) {
        if (blind_pass(p, &why, err) < 0)
            return -1;
        *ret_wake_us = df_task_retry_at(p->task, p->now_us);
        return p->again_us ? DF_PASS_PAUSE : 0;
    }
    p->seen.hears_since_us = p->c->hears_since_us;
    if (p->seen.phase == DF_ENGINE_ENDED && after_death(p, err) < 0)
        return -1;
    if (note_disruption(p, err) < 0)
        return -1;
    struct df_task_verdict v = df_task_next(p->task, &p->seen, p->now_us);
    if (act(p, &v, err) < 0)
        return -1;
    bool waits = v.next == DF_TASK_WAIT || v.next == DF_TASK_CANCEL;
    *ret_wake_us = waits ? v.wake_us : p->again_us;
    return p->again_us ? DF_PASS_PAUSE : 0;
}

int df_reconcile_task(struct df_control *c, const char *name, int64_t *ret_wake_us,
                      struct df_err *err)
{
    DF_CLEANUP(free_pass) struct pass p = {.c = c};
    struct df_err why = {0};
    if (df_store_get(c->s->store, DF_KIND_TASK_ACTION, name, &p.task, &why) < 0) {
        if (why.cls == DF_ERR_NOT_FOUND)
            return 0;
        *err = why;
        return -1;
    }
    bool done = false;
    if (df_applied_task(c, p.task, &done, ret_wake_us, err) < 0)
        return -1;
    if (done)
        return 0;
    if (df_task_is_workflow(p.task))
        return df_reconcile_workflow(c, p.task, ret_wake_us, err);
    df_control_wake(c, DF_KIND_RUN, df_json_str(p.task, "spec.runRef.name"));
    if (!df_label_has(p.task, DF_LABEL_UNFINISHED))
        return 0;
    describe(&p);
    if (df_engine_get(&c->s->engines, df_json_str(p.task, "spec.engine"), &p.engine, &why) < 0)
        return df_task_is_final(p.task) ? settle(&p, err)
                                        : fail(&p, "InvalidStep", why.message, err);
    return one_pass(&p, ret_wake_us, err);
}
