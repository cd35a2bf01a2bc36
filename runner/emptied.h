/*
 * emptied.h - detects two probable mistakes: a folder without configuration, and a plan that leaves
 * nothing of what the state holds. Thread rule: any thread.
 */
#ifndef DF_RUNNER_EMPTIED_H
#define DF_RUNNER_EMPTIED_H

#include "runner/context.h"

/* A stage of a plan: class USER, reason NoConfiguration, if the module's directory has no file of
 * configuration. The tool would refuse such a directory, but it takes dayfly's override file for
 * configuration; therefore this stage runs before that file is written. A plan-destroy needs no
 * configuration. */
int df_configuration_check(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* True if the plan just made may leave the state empty; its JSON has the answer. */
bool df_plan_may_empty(const struct df_context *c);

/* True if the plan leaves nothing of what the state holds: every resource of it, and there is one,
 * is destroyed or forgotten. An action that this version does not know may do either. json: the
 * output of `show -json`; an unreadable file (also -1), or one larger than DF_LIMIT_PLAN_READ,
 * counts as true. */
bool df_plan_empties(int json);

/* The same for the JSON text. Class USER if it cannot be parsed. */
int df_plan_text_empties(const char *text, size_t n, bool *ret, struct df_err *err) DF_MUST_CHECK;

#endif
