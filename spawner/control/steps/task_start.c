/*
 * task_start.c - starts a step. The order makes a crash harmless: slot, `created` and the claim
 * token's hash are one durable write; then the engine is asked to create an object with a unique
 * name; then the reference to that object is written, by the claim in most cases (memory.h).
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/control/task_pass.h"
#include "spawner/model/instance.h"
#include "spawner/model/shared_pod.h"

/* ---- before the engine is asked ---- */

/* What a lost attempt had made is gone. The reference of the next one is in memory at first
 * (memory.h): a spawner that finds this one instead would wait for it. */
static void drop_lost_ref(cJSON *task)
{
    cJSON *status = cJSON_GetObjectItemCaseSensitive(task, "status");
    if (df_json_bool(status, "engineRef.lost", false))
        cJSON_DeleteItemFromObjectCaseSensitive(status, "engineRef");
}

static int set_created(cJSON *task, void *arg, struct df_err *err)
{
    struct df_task_pass *p = arg;
    int64_t now_us = df_real_us();
    if (df_task_is_final(task) || df_json_at(task, "status.claimedBy") || df_task_is_canceled(task))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict", "the step is not to be started");
    if (p->hooks->set_begun(task, p, err) < 0 || df_slot_set(task, err) < 0 ||
        df_task_count_attempt(task, err) < 0 || df_task_add_time(task, "created", now_us, err) < 0)
        return -1;
    drop_lost_ref(task);
    /* A retry keeps the message of the last attempt. */
    bool is_new = !df_streq(df_task_reason(task), "Initializing");
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing",
                                  is_new ? NULL : df_task_message(p->task), now_us, err);
}

static int set_queued(cJSON *task, void *arg, struct df_err *err)
{
    const char *message = arg;
    if (df_task_is_final(task) || df_label_has(task, DF_LABEL_LIVE) ||
        df_streq(df_task_message(task), message))
        return 1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Queued", message, df_real_us(), err);
}

/* The slot and `created` are one write, so that no crash leaves one without the other. A step in
 * the pod of another one gets the slot of that one: a pod that waits for a slot would hold one. */
int df_task_take_slot(struct df_task_pass *p, bool *ret_has, struct df_err *err)
{
    struct df_slot slot = {0};
    if (df_shared_pod_is_of_plan(p->runner))
        df_slots_dequeue(&p->c->slots, p->step.name);
    else if (df_slots_acquire(&p->c->slots, p->task, &slot, err) < 0)
        return -1;
    df_copy(p->holder, sizeof(p->holder), slot.holder);
    *ret_has = !slot.wake_us && !slot.holder[0];
    if (slot.holder[0])
        return 0;
    if (*ret_has) {
        int result = df_task_pass_modify(p, set_created, p, err);
        df_slots_unreserve(&p->c->slots, &slot);
        return result;
    }
    p->wake_us = slot.wake_us;
    p->pauses = true;
    return df_task_pass_modify(p, set_queued, slot.message, err);
}

/* Its runner is in a pod, which shows its own token: nobody needs one whose hash this is. */
static int set_begun_new(struct df_task_pass *p, cJSON *task, struct df_err *err)
{
    if (df_random_hex(p->claim_hash, 32, err) < 0)
        return -1;
    return set_created(task, p, err);
}

int df_task_begin_new(struct df_task_pass *p, cJSON *task, struct df_slot *ret_slot,
                      struct df_err *err)
{
    if (df_slots_acquire_free(&p->c->slots, task, ret_slot, err) < 0)
        return -1;
    if (!ret_slot->entry || set_begun_new(p, task, err) == 0)
        return 0;
    df_slots_unreserve(&p->c->slots, ret_slot);
    return -1;
}

int df_task_pass_start(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    bool may = true;
    if (atomic_load(&p->c->draining))
        return 0;
    /* The configuration may have changed since the step was requested. */
    if (df_class_check(p->c->s->config->classes, df_json_str(p->task, "spec.class"), &why) < 0)
        return df_task_pass_fail(p, DF_FAULT_USER, why.reason, why.message, err);
    if (p->hooks->may_begin && p->hooks->may_begin(p, &may, err) < 0)
        return -1;
    return may ? p->hooks->begin(p, err) : 0;
}

/* ---- the engine ---- */

static int set_engine_ref(cJSON *task, void *arg, struct df_err *err)
{
    if (df_json_equal(df_json_at(task, "status.engineRef"), arg))
        return 1;
    return df_json_set(df_json_object_at(task, "status"), "engineRef", cJSON_Duplicate(arg, true),
                       err);
}

/* The claim brings the reference into the document. A workflow has none. */
static int keep_ref(struct df_task_pass *p, cJSON *ref, struct df_err *err)
{
    if (!p->claim_hash[0])
        return df_task_pass_modify(p, set_engine_ref, ref, err);
    df_task_pass_wake(p, df_real_us() + DF_REF_DUE_US);
    return df_memory_put_ref(&p->c->s->memory, p->task, p->claim_hash, ref, err);
}

/* Writes why a step does not start, or what its engine does not tell about one that was started, so
 * that people see it before the deadline ends the step. */
static int set_waiting(cJSON *task, void *arg, struct df_err *err)
{
    const struct df_task_pass *p = arg;
    bool runs = df_streq(df_task_reason(task), "Executing");
    if (df_task_is_final(task) || df_task_has_runner(task))
        return 1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, runs ? "Executing" : "Initializing",
                                  p->observed.cause, p->now_us, err);
}

/* The engine has found nothing that is in the way: what was in the way is over. */
static bool is_cleared(const struct df_task_pass *p)
{
    return df_task_pass_is_alive(p) && !p->observed.cause[0] &&
           df_streq(df_task_reason(p->task), "Initializing");
}

int df_task_pass_report_waiting(struct df_task_pass *p, struct df_err *err)
{
    const char *message = df_task_message(p->task);
    bool says = p->observed.cause[0] || is_cleared(p);
    if (!says || df_task_has_runner(p->task) || df_streq(message ? message : "", p->observed.cause))
        return 0;
    return df_task_pass_modify(p, set_waiting, p, err);
}

/* Writes a temporary failure into the status, and lets a later pass try again. */
static int postpone(struct df_task_pass *p, const struct df_err *why, struct df_err *err)
{
    p->wake_us =
        df_task_retry_at(p->task, p->now_us, (int64_t)why->retry_after_s * INT64_C(1000000));
    p->pauses = true;
    df_copy(p->observed.cause, sizeof(p->observed.cause), why->message);
    if (!df_streq(df_task_message(p->task), p->observed.cause))
        df_warn("step %s is not started yet: %s", p->step.name, why->message);
    return df_task_pass_report_waiting(p, err);
}

static bool is_temporary(const struct df_task_pass *p, const struct df_err *why)
{
    return why->cls == DF_ERR_RETRY || why->cls == DF_ERR_LIMIT || why->cls == DF_ERR_CONFLICT ||
           (why->cls == DF_ERR_SYSTEM && p->hooks->outlives_system);
}

int df_task_create_runner(struct df_task_pass *p, bool *ret_made, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err why = {0};
    bool handled = false;
    p->step.ref = NULL; /* of an earlier attempt: what is made now may be in another namespace */
    *ret_made = p->ops->create(p->engine, &p->step, &ref, &why) == 0;
    if (*ret_made)
        return keep_ref(p, ref, err);
    if (p->hooks->refused && p->hooks->refused(p, &why, &handled, err) < 0)
        return -1;
    if (handled)
        return 0;
    return is_temporary(p, &why)
               ? postpone(p, &why, err)
               : df_task_pass_fail(p, DF_FAULT_NONE, why.reason[0] ? why.reason : "EngineFailed",
                                   why.message, err);
}
