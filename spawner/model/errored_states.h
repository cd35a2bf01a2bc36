/*
 * errored_states.h - the errored states that an executor's status names (status.erroredStates: a
 * list of {step, run, at}). While there is one, the stored state lacks what that run made, and a
 * run on it could make the same once more. Thread rule: pure functions.
 */
#ifndef DF_MODEL_ERRORED_STATES_H
#define DF_MODEL_ERRORED_STATES_H

#include "common/json/json.h"

/* Does it keep one? False for NULL, a deleted executor. */
bool df_errored_is_kept(const cJSON *executor);

/* Did this run leave one that is still kept? */
bool df_errored_is_of(const cJSON *executor, const char *run);

/* "run net-2 could not store its state (2026-11-26T03:14:15.000000Z)", of the oldest one that is
 * kept; "" if there is none. */
void df_errored_words(const cJSON *executor, char *ret, size_t size);

/* CONFLICT ErroredStatePending if one is kept; the message names the run, its time and the ways
 * out. */
int df_errored_check(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

/* The same for a run. A dry-run changes nothing, and some commands on the state are what mends it
 * (df_state_command_mends()): they may go on. */
int df_errored_check_run(const cJSON *executor, const cJSON *run, struct df_err *err) DF_MUST_CHECK;

/* Makes the list name exactly the steps of kept, a list like it; an entry that it has stays as it
 * is. */
int df_errored_set(cJSON *executor, const cJSON *kept, struct df_err *err) DF_MUST_CHECK;

#endif
