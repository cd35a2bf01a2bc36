/*
 * task_pass.h - one pass over one TaskAction. tasks.c observes, decides and acts; task_start.c asks
 * the engine to start it; task_finalize.c releases what it held. Steps of runs, workflows and steps
 * of an upstream share this code and differ in a table of hooks: tofu_steps.c, workflow_steps.c,
 * that of upstream.h. Thread rule: the worker that has the document's key. Only for spawner/control
 * and the upstream.
 */
#ifndef DF_CONTROL_TASK_PASS_H
#define DF_CONTROL_TASK_PASS_H

#include "spawner/control/loop.h"
#include "spawner/journal/transitions.h"

struct df_task_pass {
    struct df_control *c;
    const struct df_task_hooks *hooks;
    const cJSON *task; /* as it was when the pass began; shared */
    struct df_engine *engine;
    const struct df_step_ops *ops; /* of the engine, for this kind of step */
    struct df_engine_step step;
    struct df_engine_observation observed;
    int64_t now_us;
    int64_t wake_us;     /* real time of the next pass; 0: after the next change */
    bool pauses;         /* writes of this pass cause no other pass: DF_PASS_PAUSE */
    char claim_hash[65]; /* of the token for the runner's claim; not of workflows */
    char
        holder[64]; /* df_task_take_slot(): the workflow that holds the target of this one; or "" */
    /* status.engineRef of the waiting runner that the step gets: that of its plan, whose slot it
     * takes over, or a standby runner; owned; NULL: one is made for it. */
    cJSON *runner;
};

/* What differs between the kinds of steps. Each hook may be called again after a crash at any
 * of its lines, so each must be repeatable. */
struct df_task_hooks {
    bool starts_unobserved; /* it may be started also when the engine's state is unknown */
    bool outlives_system;   /* a start that failed with class SYSTEM is repeated */

    /* After the observation, before the decision: stores what a crash must not lose. Or NULL. */
    int (*after_observe)(struct df_task_pass *p, struct df_err *err);
    /* *ret_may: may the step start now? If not, the document says why. NULL: always. */
    int (*may_begin)(struct df_task_pass *p, bool *ret_may, struct df_err *err);
    /* A df_store_change: sets what must be durable before the engine is asked, in addition to the
     * slot and the time. */
    int (*set_begun)(cJSON *task, struct df_task_pass *p, struct df_err *err);
    /* Takes the slot and asks the engine, with df_task_create_runner(). */
    int (*begin)(struct df_task_pass *p, struct df_err *err);
    /* The engine refused to start the step. *ret_handled: this is not a failure, and the hook has
     * written why the step waits. Or NULL. */
    int (*refused)(struct df_task_pass *p, const struct df_err *why, bool *ret_handled,
                   struct df_err *err);
    /* There is nothing to do: writes what the engine reports about the step. */
    int (*report)(struct df_task_pass *p, struct df_err *err);
    /* Ends the step with this verdict (FAIL or SUCCEED). */
    int (*end)(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err);
    /* Ends the step with the result that its runner left in the engine. NULL: there are no such
     * results. */
    int (*collect)(struct df_task_pass *p, struct df_err *err);
    /* The step is final, and nothing of it lives: removes what only a live step needs. The step is
     * not finalized before that succeeds. NULL: there is nothing. */
    int (*release)(struct df_task_pass *p, struct df_err *err);
    /* The step is final: the engine removes its objects. */
    int (*clean)(struct df_task_pass *p, struct df_err *err);
    /* The step is final, deleted and cleaned. *ret_may: may the document be removed? NULL: yes. */
    int (*may_remove)(struct df_task_pass *p, bool *ret_may, struct df_err *err);
};

extern const struct df_task_hooks df_tofu_hooks;
extern const struct df_task_hooks df_workflow_hooks;

/* Changes the document of the pass. */
static inline int df_task_pass_modify(struct df_task_pass *p, df_store_change change, void *arg,
                                      struct df_err *err)
{
    return df_task_modify(p->c->s, p->step.name, change, arg, NULL, err);
}

/* Does a process of the step live, as far as the engine knows? */
static inline bool df_task_pass_is_alive(const struct df_task_pass *p)
{
    return p->observed.phase == DF_ENGINE_PENDING || p->observed.phase == DF_ENGINE_RUNNING;
}

/* Sets the time of the next pass, unless an earlier one is set already. */
static inline void df_task_pass_wake(struct df_task_pass *p, int64_t at_us)
{
    p->wake_us = p->wake_us && p->wake_us < at_us ? p->wake_us : at_us;
}

/* Ends the step as failed. fault: DF_FAULT_NONE: the fault that belongs to the reason. */
static inline int df_task_pass_fail(struct df_task_pass *p, enum df_fault fault, const char *reason,
                                    const char *message, struct df_err *err)
{
    struct df_task_verdict v = {.next = DF_TASK_FAIL, .fault = fault};
    (void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
    (void)snprintf(v.message, sizeof(v.message), "%s", message);
    return p->hooks->end(p, &v, err);
}

/* ---- task_start.c ---- */

/* Starts the step, unless something forbids that now. */
int df_task_pass_start(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* Takes a slot and writes, in the same write, that the engine will be asked. *ret_has false: no
 * slot is free now, and the document says so; or there is a p->holder, and nothing is written. */
int df_task_take_slot(struct df_task_pass *p, bool *ret_has, struct df_err *err) DF_MUST_CHECK;
/* The same in memory, for a step in a pod that is not stored yet, if a slot is free and nobody
 * waits for it: ret_slot->entry is not NULL then, and the caller gives it back after the write. The
 * pass has control, hooks and this task only. */
int df_task_begin_new(struct df_task_pass *p, cJSON *task, struct df_slot *ret_slot,
                      struct df_err *err) DF_MUST_CHECK;
/* Asks the engine for the runner. *ret_made false: not now, and the document says why. */
int df_task_create_runner(struct df_task_pass *p, bool *ret_made, struct df_err *err) DF_MUST_CHECK;
/* Writes into the status why the step's runner has not started yet (observed.cause). */
int df_task_pass_report_waiting(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

/* ---- runner_steps.c: hooks of steps with a runner ---- */

int df_runner_set_begun(cJSON *task, struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
int df_runner_begin(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
int df_runner_end(struct df_task_pass *p, const struct df_task_verdict *v,
                  struct df_err *err) DF_MUST_CHECK;
/* Stores the list of unrecorded resources before the step's end is written and before its lock is
 * released: after a crash in between, either the lock or the list still exists. */
int df_runner_note_unrecorded(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* Collects the result from the engine, because the runner could not deliver it. */
int df_runner_collect(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

/* ---- task_finalize.c ---- */

/* A df_store_change: releases slot, lock and state password. arg is not used. */
int df_task_set_finalized(cJSON *task, void *arg, struct df_err *err) DF_MUST_CHECK;
/* Call it after that write: wakes the steps that wait for the slot, the workflows that wait for the
 * lock, and the step in whose pod this one was. */
void df_task_pass_yield(struct df_task_pass *p);
/* Both, if the step is not finalized yet. Only when no process of the step lives. */
int df_task_pass_finalize(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

#endif
