/*
 * instance.h - what the configuration of an instance says about steps: by their class (`classes`)
 * and by their executor (`workspaces`). docs/configuration.md describes both.
 *
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_INSTANCE_H
#define DF_INSTANCE_H

#include "common/json/json.h"

/* {name: {limit, placement}}; or NULL. Every fault is named. The placements may be given defaults,
 * as with df_model_admit(). Class USER. */
int df_classes_check(cJSON *classes, struct df_err *err) DF_MUST_CHECK;

/* {executor: {class, environment, placement}}; or NULL. classes: what has been checked, or NULL.
 * The rest as above. */
int df_workspaces_check(cJSON *workspaces, const cJSON *classes, struct df_err *err) DF_MUST_CHECK;

/* Is it one of them? Where no classes are configured, every name is; NULL is no class at all. Class
 * USER, reason InvalidPlacement: a misspelt class is not to run where nobody meant it to. */
int df_class_check(const cJSON *classes, const char *name, struct df_err *err) DF_MUST_CHECK;

#endif
