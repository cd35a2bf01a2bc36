/*
 * scalar.h - what a plain YAML scalar means; inside common/yaml only.
 */
#ifndef DF_YAML_SCALAR_H
#define DF_YAML_SCALAR_H

#include "common/json/json.h"

/* The value of a plain scalar by the YAML 1.2 core schema: null, bool, number or string. Numbers
 * that no JSON number can be (.inf, .nan, 1e999) are refused with class USER. */
int df_yaml_resolve(const char *text, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
