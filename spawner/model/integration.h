/*
 * integration.h - credentials of providers: which keys of a secret become which variables of tofu's
 * environment, and which become files. Contract: InfraKitchen's integrations, same names.
 */
#ifndef DF_INTEGRATION_H
#define DF_INTEGRATION_H

#include "common/json/json.h"

/* The providers' names, ends with NULL. */
extern const char *const df_integration_providers[];

/* Turns a secret (key -> value) of this provider into members of environment (name -> value) and
 * files (name -> content). "@files/<name>" in a value is a placeholder for the file's later path.
 * Class USER, reason InvalidStep, if the secret lacks a key or has an unknown one, or if
 * environment already has one of the variables. The message never contains a value. */
int df_integration_apply(const char *provider, const cJSON *secret, cJSON *environment,
                         cJSON *files, struct df_err *err) DF_MUST_CHECK;

#endif
