/*
 * instance.h - checks the parts of the configuration that concern steps: settings of a class
 * (`classes`) and of an executor (`workspaces`). docs/configuration.md describes both.
 *
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_INSTANCE_H
#define DF_INSTANCE_H

#include "common/json/json.h"

/* classes: {name: {limit, standby, placement}}; or NULL. The message lists every fault. Defaults
 * are filled into the placements, as in df_model_admit(). Class USER. */
int df_classes_check(cJSON *classes, struct df_err *err) DF_MUST_CHECK;

/* workspaces: {executor: {class, environment, placement}}; or NULL. classes: already checked, or
 * NULL. The rest as above. */
int df_workspaces_check(cJSON *workspaces, const cJSON *classes, struct df_err *err) DF_MUST_CHECK;

/* Checks that the class exists. Every name is valid if no classes are configured; name NULL means
 * no class and is valid. Class USER, reason InvalidPlacement: otherwise a step with a misspelt
 * class would run without its placement and limit. */
int df_class_check(const cJSON *classes, const char *name, struct df_err *err) DF_MUST_CHECK;

#endif
