/*
 * policy.h - the operator's policies: programs that judge each plan (runner/policies.h).
 *
 * The configuration has them by name. When the plan of a run is asked for, the names and levels of
 * those that apply to its executor are noted in the step (spec.policies): each of them must have a
 * result in its status, else it has failed. A hard one that failed ends the run; a soft one makes
 * it wait for somebody who may override it, and says why; an advisory one is only told.
 * docs/policies.md describes them. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_POLICY_H
#define DF_MODEL_POLICY_H

#include "spawner/model/field.h"
#include "spawner/model/names.h"

/* An item of spec.policies of a step: {name, level}. */
extern const struct df_field df_policy_note;

/* Checks the mapping of the configuration. Class USER; the message names every fault. */
int df_policies_check(cJSON *policies, struct df_err *err) DF_MUST_CHECK;

/* Notes in spec.policies of the step those that apply to the executor, in the order of the
 * configuration. Nothing for a step that makes no plan, or none as JSON (runtime platform).
 * policies, executor: NULL: none. */
int df_policies_note(const cJSON *policies, const cJSON *executor, cJSON *task,
                     struct df_err *err) DF_MUST_CHECK;

/* Do the labels of both documents lead to the same policies? policies: NULL: none. */
bool df_policies_are_same(const cJSON *policies, const cJSON *old, const cJSON *executor);

/* Adds `policies` to the step document: what its runner is told of those that are noted in the
 * step. One that the configuration does not have any more is told as {name, level}. */
int df_policies_order(const cJSON *policies, const cJSON *task, cJSON *doc,
                      struct df_err *err) DF_MUST_CHECK;

/* Sets status.policies of the step from the report of its runner: {name, level, passed, messages}
 * for each that was asked for and evaluated. With is_stored the report is of a plan with changes,
 * which is stored: each that has no result in a report about this very plan has failed. */
int df_policies_take(cJSON *task, const cJSON *report, bool is_stored,
                     struct df_err *err) DF_MUST_CHECK;

/* The first result of this level that has not passed; or NULL. doc: a step or a run. Borrowed. */
const cJSON *df_policies_failed(const cJSON *doc, const char *level);

/* May the plan of this step be applied, as far as hard policies are concerned? Fails with the
 * reason PolicyFailed also if one of any level that was asked for has no result. */
int df_policies_hold(const cJSON *plan, struct df_err *err) DF_MUST_CHECK;

/* May this caller approve the run in spite of its soft policies that failed? DENIED: not named by
 * overrideBy of the policy, or, where nobody is named, no admin. USER: without a reason. policies:
 * those of the present configuration. */
int df_policies_check_override(const cJSON *policies, const cJSON *run, enum df_role role,
                               const char *caller, const char *reason,
                               struct df_err *err) DF_MUST_CHECK;

#endif
