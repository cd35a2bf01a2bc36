/*
 * override.h - the file that sets the tool's backend, whatever the module says. Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_RUNNER_OVERRIDE_H
#define DF_RUNNER_OVERRIDE_H

#include "runner/tofu/tool.h"

/* The content of the override file for `state` of the step document: {"terraform": {"backend":
 * {"<type>": {...}}}}, where the tool reads every text literally. The caller deletes. *ret is NULL
 * if the module's backend is kept. Class USER, reason InvalidStep, for a state without what its
 * type needs. */
int df_override_make(const cJSON *state, const struct df_tool *tool, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
