/*
 * output_types.h - the types of outputs, whose attributes have names: the key of a map may be a
 * secret. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_OUTPUT_TYPES_H
#define DF_MODEL_OUTPUT_TYPES_H

#include "common/json/json.h"

/* Replaces each name in the types of outputs ({name: {type, value}}) that is no name in the
 * output's value, as it is shown, by "***", so that a type says nothing that the value hides. Names
 * of one object stay different. */
int df_output_types_hide(cJSON *outputs, struct df_err *err) DF_MUST_CHECK;

#endif
