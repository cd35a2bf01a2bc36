/*
 * automatic.h - plans that need no look of a person because of what they do (spec.automaticFor of
 * an executor): {changes, exceptTypes}, words of a fixed list instead of a language. The runner
 * reads kinds and types of a plan's changes from the tool's own JSON (runner/plan_changes.h). What
 * is missing, or not known here, needs a look. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_AUTOMATIC_H
#define DF_MODEL_AUTOMATIC_H

#include "common/json/json.h"

/* Asks the runner of a plan step what the plan changes, if the executor has the field. */
int df_automatic_note(const cJSON *executor, cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* Sets status.planChanges of a plan step, {kinds, types}, from the report of its runner; only of a
 * report about the very plan that is stored. */
int df_automatic_take(cJSON *task, const cJSON *report, struct df_err *err) DF_MUST_CHECK;

/* Is every change of this plan step one of spec.automaticFor of the executor, and none of an
 * excepted type? False without either. */
bool df_automatic_covers(const cJSON *executor, const cJSON *plan);

/* Does it cover a plan that it did not cover before? */
bool df_automatic_is_wider(const cJSON *old, const cJSON *executor);

/* For people: "automatic: only create, update". NULL: no memory. The caller frees it. */
char *df_automatic_reason(const cJSON *plan);

#endif
