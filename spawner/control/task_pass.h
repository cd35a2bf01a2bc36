/*
 * task_pass.h - one pass over one TaskAction. tasks.c observes, decides and acts; task_start.c
 * asks the engine to start it; task_finalize.c frees what it held. Steps of runs and workflows go
 * the same way, and differ in a table of hooks: tofu_steps.c, workflow_steps.c. Inside
 * spawner/control only.
 */
#ifndef DF_CONTROL_TASK_PASS_H
#define DF_CONTROL_TASK_PASS_H

#include "spawner/control/loop.h"
#include "spawner/journal/transitions.h"

struct df_task_pass {
    struct df_control *c;
    const struct df_task_hooks *hooks;
    cJSON *task; /* as it was when the pass began */
    struct df_engine *engine;
    struct df_engine_step step;
    struct df_engine_observation seen;
    int64_t now_us;
    int64_t wake_us;     /* look again then; 0: only on a change */
    bool pauses;         /* what this pass wrote is no reason to look sooner */
    char claim_hash[65]; /* of the token that a runner will come with; tofu alone */
};

/* What differs between the two kinds of work. Each may be called again after a crash at any line of
 * it. */
struct df_task_hooks {
    bool starts_blind;    /* what is due is done also when the engine cannot say what there is */
    bool outlives_system; /* a start that failed with class SYSTEM is tried again */

    /* The engine was observed: keeps what must not be lost, before anything is decided. Or NULL. */
    int (*observed)(struct df_task_pass *p, struct df_err *err);
    /* May it begin now? *ret_may false: no, and the document says why. Or NULL: yes. */
    int (*may_begin)(struct df_task_pass *p, bool *ret_may, struct df_err *err);
    /* A df_store_change: what is durable before the engine is asked, beside slot and time. */
    int (*set_begun)(cJSON *task, struct df_task_pass *p, struct df_err *err);
    /* Asks the engine, with df_task_create_runner(). */
    int (*begin)(struct df_task_pass *p, struct df_err *err);
    /* The engine would not start it: is that no failure, and has been written? Or NULL. */
    int (*refused)(struct df_task_pass *p, const struct df_err *why, bool *ret_handled,
                   struct df_err *err);
    /* Nothing is to be done: writes what the engine says of it meanwhile. */
    int (*tell)(struct df_task_pass *p, struct df_err *err);
    /* Ends it with this verdict (FAIL or SUCCEED). */
    int (*end)(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err);
    /* Ends it with the result that its runner left; NULL: nothing leaves one. */
    int (*collect)(struct df_task_pass *p, struct df_err *err);
    /* It is final: lets the engine clear up. */
    int (*clean)(struct df_task_pass *p, struct df_err *err);
    /* Final and deleted, nothing is left: may the document go? Or NULL: yes. */
    int (*may_go)(struct df_task_pass *p, bool *ret_may, struct df_err *err);
};

extern const struct df_task_hooks df_tofu_hooks;
extern const struct df_task_hooks df_workflow_hooks;

/* Changes the document of the pass. */
static inline int df_task_pass_modify(struct df_task_pass *p, df_store_change change, void *arg,
                                      struct df_err *err)
{
    return df_task_modify(p->c->s, p->step.name, change, arg, NULL, err);
}

/* Looks again at this time, or sooner. */
static inline void df_task_pass_wake(struct df_task_pass *p, int64_t at_us)
{
    p->wake_us = p->wake_us && p->wake_us < at_us ? p->wake_us : at_us;
}

/* fault: NONE when reason tells. */
static inline int df_task_pass_fail(struct df_task_pass *p, enum df_fault fault, const char *reason,
                                    const char *message, struct df_err *err)
{
    struct df_task_verdict v = {.next = DF_TASK_FAIL, .fault = fault};
    (void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
    (void)snprintf(v.message, sizeof(v.message), "%s", message);
    return p->hooks->end(p, &v, err);
}

/* ---- task_start.c ---- */

/* Takes a slot and begins, unless something forbids it now. */
int df_task_pass_start(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* Takes a slot and writes, with it, that the engine is about to be asked. *ret_has false: there is
 * none now, which the document says. */
int df_task_take_slot(struct df_task_pass *p, bool *ret_has, struct df_err *err) DF_MUST_CHECK;
/* Asks the engine for the runner. *ret_made false: not now, which the document says. */
int df_task_create_runner(struct df_task_pass *p, bool *ret_made, struct df_err *err) DF_MUST_CHECK;
/* Writes what keeps a step whose runner is not there yet (seen.cause). */
int df_task_pass_tell_waiting(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

/* ---- task_finalize.c ---- */

/* A df_store_change: slot, lock and state password are given back. arg is not used. */
int df_task_set_finalized(cJSON *task, void *arg, struct df_err *err) DF_MUST_CHECK;
/* It was written: who waits for slot or lock looks again. */
void df_task_pass_yield(struct df_task_pass *p);
/* Both. The engine holds nothing of the step any more. */
int df_task_pass_finalize(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

#endif
