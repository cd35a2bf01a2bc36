/*
 * scalar.h - the type and value of a plain YAML scalar; used inside common/yaml only.
 */
#ifndef DF_YAML_SCALAR_H
#define DF_YAML_SCALAR_H

#include "common/json/json.h"

/* Returns the value of a plain scalar by the YAML 1.2 core schema: null, bool, number or string.
 * USER for numbers that JSON cannot express (.inf, .nan). */
int df_yaml_resolve(const char *text, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
