/*
 * task_pass.h - one pass over one step, in parts: tasks.c looks and decides, task_start.c makes its
 * runner, task_end.c ends it and clears up behind it. Inside spawner/control only.
 */
#ifndef DF_CONTROL_TASK_PASS_H
#define DF_CONTROL_TASK_PASS_H

#include "spawner/control/loop.h"

struct df_task_pass {
    struct df_control *c;
    cJSON *task;
    struct df_engine *engine;
    struct df_engine_step step;
    struct df_engine_observation seen;
    int64_t now_us;
    int64_t again_us; /* what was done is to be tried again then; 0: no need */
};

/* Changes the step's document. */
int df_task_pass_modify(struct df_task_pass *p, df_store_change change, void *arg,
                        struct df_err *err) DF_MUST_CHECK;

/* Asks the engine for a runner, if there is a place. */
int df_task_pass_create(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* Tells in the document what keeps a step whose runner is not there yet. */
int df_task_pass_tell_waiting(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

/* fault: NONE when reason tells. */
int df_task_pass_fail(struct df_task_pass *p, enum df_fault fault, const char *reason,
                      const char *message, struct df_err *err) DF_MUST_CHECK;
/* Ends it with the result that its runner left. */
int df_task_pass_collect(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* Every process of it is dead: keeps its log and its state, releases its lock. */
int df_task_pass_after_death(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* The engine holds nothing of the step any more: its place is free, its state password dies. */
int df_task_pass_settle(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* Lets the engine clear up, and settles. */
int df_task_pass_clean(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

#endif
