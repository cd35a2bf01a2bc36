/*
 * workflows.c - one pass over one TaskAction with the action workflow: it has no run and no runner,
 * so that what the engine sees is all there is to know.
 *
 * The lock on a target is the name of what the engine makes, which is unique in the cluster. Before
 * that stands a queue, in order of creation, of our own actions on a target: none begins before the
 * one in front of it has its end in the store, so that none removes what another has not read yet.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/control/applied.h"
#include "spawner/control/loop.h"
#include "spawner/engine/workflow_job.h"
#include "spawner/model/instance.h"
#include "spawner/news/transitions.h"
#include "spawner/steps/outcome.h"
#include "spawner/steps/step_document.h"

/* How soon an action that waits in the queue looks whether it has waited for too long. */
#define CLEAN_AGAIN_US 1000000
#define QUEUED_AGAIN_US INT64_C(15000000)
/* How status.lockedBy begins then. */
#define QUEUED_BEHIND "taskaction/"

struct pass {
    struct df_control *c;
    const cJSON *task; /* borrowed */
    struct df_engine *engine;
    struct df_engine_step step;
    struct df_engine_observation seen;
    int64_t now_us;
};

static bool is_alive(const struct pass *p)
{
    return p->seen.phase == DF_ENGINE_PENDING || p->seen.phase == DF_ENGINE_RUNNING;
}

static int modify(struct pass *p, df_store_change change, void *arg, struct df_err *err)
{
    return df_task_modify(p->c->s, p->step.name, change, arg, NULL, err);
}

static bool has_time(const cJSON *task, const char *name)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(task, "status.timeline")) {
        if (df_streq(df_json_str(entry, "name"), name))
            return true;
    }
    return false;
}

/* ---- what there is of it ---- */

/* NULL in *ret when there is nothing. */
static int read_result(struct pass *p, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    *ret = NULL;
    if (p->seen.phase == DF_ENGINE_ABSENT ||
        p->engine->ops->result(p->engine, &p->step, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

/* engineRef and executionStatus. */
static int put_result(cJSON *task, const cJSON *result, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    const cJSON *member;
    if (!status)
        return df_fail_oom(err);
    cJSON_ArrayForEach (member, result) {
        if (df_json_set(status, member->string, cJSON_Duplicate(member, true), err) < 0)
            return -1;
    }
    return 0;
}

struct news {
    const struct pass *pass;
    const cJSON *result; /* or NULL */
};

static int set_news(cJSON *task, void *arg, struct df_err *err)
{
    const struct news *n = arg;
    const struct pass *p = n->pass;
    bool runs = p->seen.phase == DF_ENGINE_RUNNING;
    if (df_task_is_final(task))
        return 1;
    if (put_result(task, n->result, err) < 0 ||
        (runs && df_task_add_time(task, "started", p->now_us, err) < 0))
        return -1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, runs ? "Executing" : "Initializing",
                                  p->seen.cause, p->now_us, err);
}

/* A summary alone may be behind its phase by so much: most pods have come or gone by then, and a
 * write less is for each of them a third of what they cost. */
#define SUMMARY_LATE_US INT64_C(3000000)

/* When news of which only the summary is new is to be told; 0: it is more, or there was no phase.
 */
static int64_t summary_due_us(const struct pass *p, const cJSON *result)
{
    const cJSON *history = df_json_at(p->task, "status.phaseHistory");
    const cJSON *last = cJSON_GetArrayItem(history, cJSON_GetArraySize(history) - 1);
    const char *at = df_json_str(last, "occurredAt"), *message = df_task_message(p->task);
    const char *phase = p->seen.phase == DF_ENGINE_RUNNING ? "Executing" : "Initializing";
    int64_t at_us = 0;
    bool is_same =
        df_streq(df_task_reason(p->task), phase) &&
        df_streq(message ? message : "", p->seen.cause) &&
        df_json_equal(df_json_at(p->task, "status.engineRef"), df_json_at(result, "engineRef"));
    return is_same && at && df_time_parse(at, &at_us, NULL) == 0 ? at_us + SUMMARY_LATE_US : 0;
}

static bool is_told(const struct pass *p, const cJSON *result)
{
    return df_json_equal(df_json_at(p->task, "status.executionStatus"),
                         df_json_at(result, "executionStatus"));
}

/* An update that changes nothing is none: see store.h. */
static int tell(struct pass *p, int64_t *ret_wake_us, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    if (df_task_is_final(p->task))
        return 0;
    if (read_result(p, &result, err) < 0)
        return -1;
    struct news n = {p, result};
    int64_t due_us = summary_due_us(p, result);
    if (due_us > p->now_us && !is_told(p, result)) {
        *ret_wake_us = *ret_wake_us && *ret_wake_us < due_us ? *ret_wake_us : due_us;
        return 0;
    }
    return result ? modify(p, set_news, &n, err) : 0;
}

/* ---- no more to do ---- */

static const char *lock_of(const cJSON *task)
{
    const cJSON *labels = df_json_at(task, "metadata.labels");
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, DF_LABEL_QUEUE));
}

static int set_settled(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    if (df_label_set(task, DF_LABEL_UNFINISHED, NULL, err) < 0 ||
        df_label_set(task, DF_LABEL_QUEUE, NULL, err) < 0)
        return -1;
    return df_place_clear(task, err);
}

static void wake_queue(struct df_control *c, const char *lock)
{
    char label[128];
    (void)snprintf(label, sizeof(label), DF_LABEL_QUEUE "=%s", lock);
    DF_STRS struct df_strs names = {0};
    struct df_err err = {0};
    if (df_store_names(c->s->store, DF_KIND_TASK_ACTION, label, &names, &err) < 0) {
        df_warn("who waits for %s is not woken now: %s", lock, err.message);
        return;
    }
    for (size_t i = 0; i < names.len; i++)
        df_control_wake(c, DF_KIND_TASK_ACTION, names.items[i]);
}

static void give_way(struct pass *p)
{
    df_places_wake(p->c);
    wake_queue(p->c, lock_of(p->task));
}

/* ---- ends ---- */

struct ending {
    const struct pass *pass;
    const struct df_task_verdict *verdict;
    const cJSON *result; /* or NULL */
};

static int set_end(cJSON *task, void *arg, struct df_err *err)
{
    const struct ending *e = arg;
    const struct df_task_verdict *v = e->verdict;
    int64_t now_us = e->pass->now_us;
    if (df_task_is_final(task))
        return 1;
    bool ran = e->pass->seen.phase == DF_ENGINE_ENDED;
    if (put_result(task, e->result, err) < 0 ||
        (ran && df_task_add_time(task, "executed", now_us, err) < 0))
        return -1;
    const struct df_outcome_failure f = {.exit_code = e->pass->seen.exit_code,
                                         .fault = v->fault,
                                         .reason = v->reason,
                                         .message = v->message};
    int result = v->next == DF_TASK_SUCCEED
                     ? df_outcome_succeed(task, v->reason, v->message, now_us, err)
                     : df_outcome_fail(task, &f, now_us, err);
    return result < 0 || is_alive(e->pass) ? result : set_settled(task, NULL, err);
}

static int finish(struct pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    if (read_result(p, &result, err) < 0)
        return -1;
    struct ending e = {p, v, result};
    if (modify(p, set_end, &e, err) < 0)
        return -1;
    if (!is_alive(p))
        give_way(p);
    return 0;
}

static int fail(struct pass *p, const struct df_err *why, struct df_err *err)
{
    struct df_task_verdict v = {.next = DF_TASK_FAIL};
    (void)snprintf(v.reason, sizeof(v.reason), "%s", why->reason[0] ? why->reason : "EngineFailed");
    (void)snprintf(v.message, sizeof(v.message), "%s", why->message);
    return finish(p, &v, err);
}

/* ---- the queue of a target ---- */

/* The name of the first, "" when there is none. */
static int first_in_queue(struct df_control *c, const char *lock, char ret[64], struct df_err *err)
{
    char label[128];
    (void)snprintf(label, sizeof(label), DF_LABEL_QUEUE "=%s", lock);
    const struct df_store_list_options o = {.label = label, .limit = 1};
    DF_JSON cJSON *list = NULL;
    if (df_store_list(c->s->store, DF_KIND_TASK_ACTION, &o, &list, NULL, err) < 0)
        return -1;
    const char *name = df_json_str(cJSON_GetArrayItem(list, 0), "metadata.name");
    (void)snprintf(ret, 64, "%s", name ? name : "");
    return 0;
}

static void forget_time(cJSON *task, const char *name)
{
    cJSON *timeline = df_json_array_at(df_json_object_at(task, "status"), "timeline");
    int i = 0;
    for (const cJSON *entry = timeline ? timeline->child : NULL; entry; entry = entry->next, i++) {
        if (df_streq(df_json_str(entry, "name"), name)) {
            cJSON_DeleteItemFromArray(timeline, i);
            return;
        }
    }
}

/* Whoever holds the target holds no place of ours. Nothing was made: it may be asked for again. */
static int set_locked(cJSON *task, void *arg, struct df_err *err)
{
    const char *holder = arg;
    cJSON *status = df_json_object_at(task, "status");
    char message[400];
    if (df_task_is_final(task))
        return 1;
    (void)snprintf(message, sizeof(message), "waits for its target, which is held by %s", holder);
    forget_time(task, "created");
    if (df_json_set_str(status, "lockedBy", holder, err) < 0 || df_place_clear(task, err) < 0)
        return -1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Queued", message, df_real_us(), err);
}

static int wait_for_target(struct pass *p, const char *holder, struct df_err *err)
{
    char text[300];
    (void)snprintf(text, sizeof(text), "%s", holder);
    if (modify(p, set_locked, text, err) < 0)
        return -1;
    df_places_leave(p->c, p->step.name);
    df_places_wake(p->c);
    return 0;
}

/* ---- create ---- */

/* Durable before the engine is asked, so that what may have been made is not made twice. */
static int set_created(cJSON *task, void *arg, struct df_err *err)
{
    const struct pass *p = arg;
    cJSON *status = df_json_object_at(task, "status");
    if (!status)
        return df_fail_oom(err);
    if (df_task_is_final(task) || df_task_is_canceled(task))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict",
                              "the workflow is not to be started");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "lockedBy");
    if (df_place_set(task, err) < 0 || df_task_count_attempt(task, err) < 0 ||
        df_task_add_time(task, "created", p->now_us, err) < 0)
        return -1;
    /* Why it could not be made the last time stands until it is made. */
    bool is_new = df_streq(df_task_reason(task), "Queued");
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing",
                                  is_new ? NULL : df_task_message(p->task), p->now_us, err);
}

static int set_engine_ref(cJSON *task, void *arg, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    return df_json_set(status, "engineRef", cJSON_Duplicate(arg, true), err);
}

/* Tried again: who looks at it is told why. */
static int set_refused(cJSON *task, void *arg, struct df_err *err)
{
    const struct df_err *why = arg;
    return df_task_is_final(task) ? 1
                                  : df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing",
                                                           why->message, df_real_us(), err);
}

static int start(struct pass *p, int64_t *ret_wake_us, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err why = {0};
    if (p->engine->ops->create(p->engine, &p->step, &ref, &why) == 0)
        return modify(p, set_engine_ref, ref, err);
    if (df_streq(why.reason, "TargetLocked"))
        return wait_for_target(p, why.message, err);
    if (why.cls == DF_ERR_USER || why.cls == DF_ERR_DENIED || why.cls == DF_ERR_NOT_FOUND)
        return fail(p, &why, err);
    int64_t after_us = p->now_us + (int64_t)why.retry_after_s * 1000000;
    *ret_wake_us = df_task_retry_at(p->task, p->now_us);
    *ret_wake_us = *ret_wake_us > after_us ? *ret_wake_us : after_us;
    return modify(p, set_refused, &why, err) < 0 ? -1 : DF_PASS_PAUSE;
}

static int create(struct pass *p, int64_t *ret_wake_us, struct df_err *err)
{
    char first[64] = "", holder[80];
    struct df_err why = {0};
    if (atomic_load(&p->c->draining))
        return 0;
    /* The configuration may have changed since it was asked for. */
    if (df_class_check(p->c->s->config->classes, df_json_str(p->task, "spec.class"), &why) < 0)
        return fail(p, &why, err);
    if (first_in_queue(p->c, lock_of(p->task), first, err) < 0)
        return -1;
    if (*first && !df_streq(first, p->step.name)) {
        (void)snprintf(holder, sizeof(holder), QUEUED_BEHIND "%s", first);
        *ret_wake_us = p->now_us + QUEUED_AGAIN_US;
        return wait_for_target(p, holder, err);
    }
    if (df_places_take(p->c, p->task, set_created, p, ret_wake_us, err) < 0)
        return -1;
    return *ret_wake_us ? DF_PASS_PAUSE : start(p, ret_wake_us, err);
}

/* ---- after the end ---- */

void df_control_engine_news(struct df_control *c, const char *name)
{
    if (!atomic_load(&c->working)) /* then all are looked at */
        return;
    df_control_wake(c, DF_KIND_TASK_ACTION, name);
    if (df_starts_with(name, DF_WORKFLOW_PREFIX))
        wake_queue(c, name);
}

/* The engine's object stays, to be looked at, until its TTL, the next action on the target, or
 * until this document is deleted. */
static int settle(struct pass *p, struct df_err *err)
{
    if (modify(p, set_settled, NULL, err) < 0)
        return -1;
    give_way(p);
    return 0;
}

/* ---- the pass ---- */

void df_workflow_engine_step(const struct df_config *config, const cJSON *task,
                             struct df_engine_step *ret)
{
    const char *holder = df_json_str(task, "status.lockedBy");
    *ret = (struct df_engine_step){
        .name = df_json_str(task, "metadata.name"),
        .uid = df_json_str(task, "metadata.uid"),
        .action = df_json_str(task, "spec.action"),
        .timeout_seconds = df_json_int(task, "spec.timeoutSeconds", 0),
        .pending_seconds = df_json_int(task, "spec.pendingSeconds", 0),
        .placement = df_step_placement(config, task),
        .was_locked = holder && !df_starts_with(holder, QUEUED_BEHIND),
        /* Also what may have been made, by a call that was not answered. */
        .was_created = df_json_at(task, "status.engineRef") || has_time(task, "created"),
        .is_deleted = df_doc_is_deleted(task),
        .was_claimed = has_time(task, "started"),
        .workflow = df_json_at(task, "spec.workflow"),
        .target = df_json_str(task, "spec.targetResource"),
        .task = df_json_str(task, "metadata.name"),
        .name_space = df_json_str(task, "metadata.namespace"),
    };
}

static int act(struct pass *p, const struct df_task_verdict *v, int64_t *ret_wake_us,
               struct df_err *err)
{
    if (v->next != DF_TASK_CREATE)
        df_places_leave(p->c, p->step.name);
    switch (v->next) {
    case DF_TASK_CREATE:
        return create(p, ret_wake_us, err);
    case DF_TASK_CANCEL:
        return p->engine->ops->cancel(p->engine, &p->step, err);
    case DF_TASK_FAIL:
    case DF_TASK_SUCCEED:
        return finish(p, v, err);
    case DF_TASK_CLEAN:
        return p->engine->ops->cleanup(p->engine, &p->step, err);
    case DF_TASK_REMOVE:
        /* Settled first, which is seen in the next pass. */
        return df_label_has(p->task, DF_LABEL_UNFINISHED) ? settle(p, err)
                                                          : df_deleted_let_go(p->c, p->task, err);
    case DF_TASK_RELEASE:
    case DF_TASK_COLLECT:
    case DF_TASK_WAIT:
    default:
        if (df_task_is_final(p->task))
            return is_alive(p) ? 0 : settle(p, err);
        if (p->seen.phase == DF_ENGINE_ABSENT) /* who holds its target may have changed */
            return wait_for_target(p, p->seen.cause, err);
        return tell(p, ret_wake_us, err);
    }
}

int df_reconcile_workflow(struct df_control *c, const cJSON *task, int64_t *ret_wake_us,
                          struct df_err *err)
{
    struct pass p = {.c = c, .task = task, .now_us = df_real_us()};
    struct df_err why = {0};
    if (!df_label_has(task, DF_LABEL_UNFINISHED) && !df_doc_is_deleted(task))
        return 0;
    df_workflow_engine_step(c->s->config, task, &p.step);
    if (df_engine_get(&c->s->engines, df_json_str(task, "spec.engine"), &p.engine, &why) < 0)
        return df_task_is_final(task) ? settle(&p, err) : fail(&p, &why, err);
    if (p.engine->ops->status(p.engine, &p.step, &p.seen, err) < 0)
        return -1;
    struct df_task_verdict v = df_task_next(task, &p.seen, p.now_us);
    *ret_wake_us = v.next == DF_TASK_WAIT || v.next == DF_TASK_CANCEL ? v.wake_us : 0;
    /* News of the lock is for those who are not over: that the Job has gone is looked for. */
    if (v.next == DF_TASK_CLEAN && df_doc_is_deleted(task))
        *ret_wake_us = p.now_us + CLEAN_AGAIN_US;
    return act(&p, &v, ret_wake_us, err);
}
