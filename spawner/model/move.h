/*
 * move.h - a run with the command `migrate` moves the state of its executor to the storage in
 * spec.moveTo. Its step copies and verifies the state; the executor names the new storage when the
 * run has succeeded, and the storage before it as status.formerStorage until somebody confirms.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_MOVE_H
#define DF_MODEL_MOVE_H

#include "common/json/json.h"

/* Fills in defaults of spec.moveTo of a Run, as df_storage_fill() does for an executor. Does
 * nothing without it. */
int df_move_fill(cJSON *run, struct df_err *err) DF_MUST_CHECK;

/* Returns an executor of the same name that has this storage, for df_storage_location(); the caller
 * deletes *ret. */
int df_move_view(const cJSON *executor, const cJSON *storage, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* May the executor's state be moved by this run? Class CONFLICT: AlreadyThere if it has exactly
 * this storage; WrongState if an earlier move to another place is not confirmed. Success for
 * other runs. */
int df_move_check(const cJSON *run, const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

/* True if the executor's storage changed after the run was requested: the run would work with a
 * state that is not the executor's any more. */
bool df_move_overtook(const cJSON *run, const cJSON *executor);

/* True if the executor has the new storage of this run: a run is not accepted with the one that it
 * has already. */
bool df_move_is_done(const cJSON *run, const cJSON *executor);

/* Makes run.spec.moveTo the executor's storage and its old storage status.formerStorage. The same
 * result when it is repeated. */
int df_move_switch(cJSON *executor, const cJSON *run, struct df_err *err) DF_MUST_CHECK;

/* Forgets status.formerStorage. CONFLICT WrongState if there is none, and while a move runs. */
int df_move_confirm(cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#endif
