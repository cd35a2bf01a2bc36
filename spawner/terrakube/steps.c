/*
 * steps.c - the hooks for steps of Terrakube. Their runner reports to Terrakube's API by itself;
 * what no runner can tell, these hooks tell: why a pod did not start, and how one was lost. Read
 * the table of hooks at the end of the file first.
 */
#include "common/base/log.h"
#include "spawner/control/task_pass.h"
#include "spawner/model/allow.h"
#include "spawner/requests/new_docs.h"
#include "spawner/steps/recovery.h"
#include "spawner/terrakube/terrakube.h"

/* How long an end waits for an API that does not answer. */
#define TELL_US INT64_C(1800000000)
#define TELL_AGAIN_US INT64_C(5000000)

#define CANCEL_BY "terrakube"
#define CANCEL_WHY "Terrakube's job was cancelled, rejected or has ended"

/* ---- while it waits ---- */

static int set_cancel(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    if (df_task_is_final(task) || df_task_is_canceled(task))
        return 1;
    return df_json_set(df_json_object_at(task, "spec"), "cancel",
                       df_new_cancel(CANCEL_BY, CANCEL_WHY), err);
}

/* Until a runner has claimed the step, nobody else keeps its heartbeat or hears of a cancel. A
 * Redis or an API that is away holds up nothing. */
static int beat(struct df_task_pass *p, struct df_err *err)
{
    bool is_over = false;
    int64_t next_us = 0;
    struct df_err why = {0};
    if (!p->c->s->upstream_data || df_task_has_runner(p->task) || df_task_is_canceled(p->task))
        return 0;
    if (df_terrakube_beat(p->c->s, p->task, p->now_us, &next_us, &is_over, &why) < 0)
        df_warn("step %s: no heartbeat for Terrakube: %s", p->step.name, why.message);
    df_task_pass_wake(p, next_us);
    return is_over ? df_task_pass_modify(p, set_cancel, NULL, err) : 0;
}

/* The policy may have changed since the step was sent. Without pods the keys mean nothing. Nobody
 * asks for such a step with a role of this service: its keys are variables of a workspace, which
 * many may edit. */
static int check_allowed(const struct df_task_pass *p, struct df_err *err)
{
    const struct df_allow allow = df_config_allow(p->c->s->config, &p->c->s->never);
    const struct df_allow_ask ask = {DF_ROLE_WRITE, DF_ALLOW_TERRAKUBE,
                                     df_json_str(p->task, "spec.class"), "placement"};
    DF_JSON cJSON *placement = NULL;
    if (!p->engine->kind->runs_pods)
        return 0;
    if (df_terrakube_placement(p->task, &placement, err) < 0)
        return -1;
    return df_allow_check(&allow, &ask, placement, NULL, err) < 0
               ? df_err_wrap(err, "the workspace's EPHEMERAL_ keys")
               : 0;
}

/* Also while it waits for a slot. */
static int terrakube_begin(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (check_allowed(p, &why) < 0)
        return why.cls == DF_ERR_USER
                   ? df_task_pass_fail(p, DF_FAULT_USER, why.reason, why.message, err)
                   : df_err_pass(err, &why);
    if (beat(p, err) < 0)
        return -1;
    int64_t next_us = p->wake_us; /* who waits for a slot is given another time */
    if (df_runner_begin(p, err) < 0)
        return -1;
    if (next_us)
        df_task_pass_wake(p, next_us);
    return 0;
}

static int terrakube_report(struct df_task_pass *p, struct df_err *err)
{
    return df_task_pass_report_waiting(p, err) < 0 ? -1 : beat(p, err);
}

static int terrakube_after_observe(struct df_task_pass *p, struct df_err *err)
{
    (void)err;
    if (p->observed.phase == DF_ENGINE_ENDED && df_task_has_runner(p->task) &&
        !df_task_is_final(p->task))
        df_recover_streams(p->c->s, p->engine, &p->step);
    return 0;
}

/* ---- ends ---- */

static int tell_failure(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL; /* with what the step may have created */
    struct df_err why = {0};
    if (!p->c->s->upstream_data) {
        df_warn("step %s: Terrakube is not told of the end, because terrakube.listen is not set",
                p->step.name);
        return 0;
    }
    if (df_store_look_for(p->c->s->store, DF_KIND_TASK_ACTION, p->step.name, &task, err) < 0)
        return -1;
    if (!task || df_terrakube_tell_failure(p->c->s, task, v->reason, v->message, &why) == 0)
        return 0;
    if (df_task_age_us(p->task, p->now_us) < TELL_US)
        return df_err_pass(err, &why);
    df_error("step %s: Terrakube was not told that it failed (%s): %s", p->step.name, v->reason,
             why.message);
    return 0;
}

/* Terrakube is told first: after a crash in between it is told again, which changes nothing. */
static int terrakube_end(struct df_task_pass *p, const struct df_task_verdict *v,
                         struct df_err *err)
{
    struct df_err why = {0};
    if (df_runner_note_unrecorded(p, err) < 0)
        return -1;
    if (tell_failure(p, v, &why) == 0)
        return df_runner_end(p, v, err);
    df_warn("step %s: Terrakube is not told of its end yet: %s", p->step.name, why.message);
    df_task_pass_wake(p, p->now_us + TELL_AGAIN_US);
    p->pauses = true;
    return 0;
}

static int terrakube_clean(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (p->ops->cleanup(p->engine, &p->step, err) < 0 ||
        df_payload_delete(p->c->s, p->step.name, err) < 0 || df_task_pass_finalize(p, err) < 0)
        return -1;
    if (p->c->s->upstream_data && df_terrakube_ring(p->c->s, &why) < 0)
        df_warn("Terrakube's queue is not woken and looks again by itself: %s", why.message);
    return 0;
}

const struct df_task_hooks df_terrakube_hooks = {
    .starts_unobserved = true,
    .after_observe = terrakube_after_observe,
    .set_begun = df_runner_set_begun,
    .begin = terrakube_begin,
    .report = terrakube_report,
    .end = terrakube_end,
    .collect = df_runner_collect,
    .clean = terrakube_clean,
};
