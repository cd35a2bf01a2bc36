/*
 * tasks.c - one pass over one step: ask the engine what is there, ask df_task_next() what is next,
 * do that one thing.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/control/applied.h"
#include "spawner/control/task_pass.h"
#include "spawner/model/workflow.h"
#include "spawner/news/transitions.h"
#include "spawner/steps/step_document.h"

static void free_pass(struct df_task_pass *p)
{
    cJSON_Delete(p->task);
}

int df_task_pass_modify(struct df_task_pass *p, df_store_change change, void *arg,
                        struct df_err *err)
{
    return df_task_modify(p->c->s, p->step.name, change, arg, NULL, err);
}

/* ---- what takes it away ---- */

static int set_disruption(cJSON *task, void *arg, struct df_err *err)
{
    const struct df_task_pass *p = arg;
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

static int note_disruption(struct df_task_pass *p, struct df_err *err)
{
    if (!df_task_is_disruption(p->task, &p->seen))
        return 0;
    df_warn("step %s is being ended: %s", p->step.name, p->seen.cause);
    return df_task_pass_modify(p, set_disruption, p, err);
}

/* ---- the pass ---- */

static int64_t seconds(const struct df_task_pass *p, const char *path)
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

static void describe(struct df_task_pass *p)
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
                                      .placement = df_step_placement(s->config, p->task),
                                      .was_created = df_json_at(p->task, "status.engineRef"),
                                      .is_deleted = df_doc_is_deleted(p->task),
                                      .was_claimed = df_task_has_runner(p->task),
                                      .pod = pod_of(p->task)};
}

#define RUN_AGAIN_US INT64_C(5000000)

static int run_goes_on(const struct df_task_pass *p, bool *ret, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    struct df_err why = {0};
    const char *name = df_json_str(p->task, "spec.runRef.name");
    if (df_store_get(p->c->s->store, DF_KIND_RUN, name, &run, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND) {
        *err = why;
        return -1;
    }
    *ret = run && !df_run_is_final(run);
    return 0;
}

/* Its run has yet to read how it ended, and what it planned. */
static int remove_document(struct df_task_pass *p, struct df_err *err)
{
    bool goes_on = false;
    if (df_label_has(p->task, DF_LABEL_UNFINISHED))
        return df_task_pass_settle(p, err); /* the next pass goes on */
    if (run_goes_on(p, &goes_on, err) < 0)
        return -1;
    if (!goes_on)
        return df_deleted_let_go(p->c, p->task, err);
    p->again_us = p->now_us + RUN_AGAIN_US;
    return 0;
}

static int act(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    if (v->next != DF_TASK_CREATE)
        df_places_leave(p->c, p->step.name);
    switch (v->next) {
    case DF_TASK_CREATE:
        return df_task_pass_create(p, err);
    case DF_TASK_RELEASE:
        return p->engine->ops->release(p->engine, &p->step, err);
    case DF_TASK_COLLECT:
        return df_task_pass_collect(p, err);
    case DF_TASK_CANCEL:
        return p->engine->ops->cancel(p->engine, &p->step, err);
    case DF_TASK_CLEAN:
        return df_task_pass_clean(p, err);
    case DF_TASK_REMOVE:
        return remove_document(p, err);
    case DF_TASK_FAIL:
        return df_task_pass_fail(p, v->fault, v->reason, v->message, err);
    case DF_TASK_SUCCEED: /* of workflows alone: not for a step with a runner */
    case DF_TASK_WAIT:
    default:
        if (df_task_is_final(p->task))
            return p->seen.phase == DF_ENGINE_ABSENT ? df_task_pass_settle(p, err) : 0;
        return df_task_pass_tell_waiting(p, err);
    }
}

#define BLIND_IS_TOLD_AFTER_US INT64_C(5000000)

/* The engine cannot tell now, and for how long nobody knows. What must not wait for it is done all
 * the same, with a step that was made taken for alive: a first start, which is harmless
 * under its name, a cancel, and the ends that are due. All else is left for another pass. */
static int blind_pass(struct df_task_pass *p, const struct df_err *why, struct df_err *err)
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
    /* Nor before we had time to look around ourselves: a restart would write every document. */
    bool is_long = df_task_age_us(p->task, p->now_us) >= BLIND_IS_TOLD_AFTER_US &&
                   p->now_us - p->c->hears_since_us >= BLIND_IS_TOLD_AFTER_US;
    if (!df_task_is_final(p->task) && is_long && df_task_pass_tell_waiting(p, err) < 0)
        return -1;
    *err = *why;
    return -1;
}

static int one_pass(struct df_task_pass *p, int64_t *ret_wake_us, struct df_err *err)
{
    struct df_err why = {0};
    if (p->engine->ops->status(p->engine, &p->step, &p->seen, &why) < 0) {
        if (blind_pass(p, &why, err) < 0)
            return -1;
        *ret_wake_us = p->again_us ? p->again_us : df_task_retry_at(p->task, p->now_us);
        return p->again_us ? DF_PASS_PAUSE : 0;
    }
    p->seen.hears_since_us = p->c->hears_since_us;
    p->seen.max_system_failures = p->c->s->config->max_system_failures;
    if (p->seen.phase == DF_ENGINE_ENDED && df_task_pass_after_death(p, err) < 0)
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
    DF_CLEANUP(free_pass) struct df_task_pass p = {.c = c};
    struct df_err why = {0};
    if (df_store_get(c->s->store, DF_KIND_TASK_ACTION, name, &p.task, &why) < 0) {
        if (why.cls == DF_ERR_NOT_FOUND) {
            df_places_leave(c, name);
            return 0;
        }
        *err = why;
        return -1;
    }
    bool done = false;
    if (df_applied_task(c, p.task, &done, err) < 0)
        return -1;
    if (done)
        return 0;
    if (df_task_is_final(p.task))
        df_places_leave(c, name);
    if (df_task_is_workflow(p.task))
        return df_reconcile_workflow(c, p.task, ret_wake_us, err);
    df_control_wake(c, DF_KIND_RUN, df_json_str(p.task, "spec.runRef.name"));
    if (!df_label_has(p.task, DF_LABEL_UNFINISHED) && !df_doc_is_deleted(p.task))
        return 0;
    describe(&p);
    if (df_engine_get(&c->s->engines, df_json_str(p.task, "spec.engine"), &p.engine, &why) < 0)
        return df_task_is_final(p.task)
                   ? df_task_pass_settle(&p, err)
                   : df_task_pass_fail(&p, DF_FAULT_USER, "InvalidStep", why.message, err);
    return one_pass(&p, ret_wake_us, err);
}
