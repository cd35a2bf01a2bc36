/*
 * integration.h - credentials of providers: which keys of a secret become which variables of tofu's
 * environment, and which become files. Contract: InfraKitchen's integrations, same names.
 */
#ifndef DF_INTEGRATION_H
#define DF_INTEGRATION_H

#include "common/json/json.h"

/* The providers' names, ends with NULL. */
extern const char *const df_integration_providers[];

/* What an integration adds to: members of environment are name -> value, of files name -> text, of
 * binary name -> base64 of bytes. "@files/<name>" in a value is a placeholder for the later path of
 * such a file. */
struct df_integration_places {
    cJSON *environment, *files, *binary;
};

/* Turns a secret (key -> value) of this provider into variables and files. Class USER, reason
 * InvalidStep, if the secret lacks a key or has an unknown one, or if environment already has one
 * of the variables. The message never contains a value. */
int df_integration_apply(const char *provider, const cJSON *secret,
                         const struct df_integration_places *to, struct df_err *err) DF_MUST_CHECK;

/* Sets one variable. USER InvalidStep if environment already has it. */
int df_integration_set(const char *provider, const char *name, const char *value,
                       const struct df_integration_places *to, struct df_err *err) DF_MUST_CHECK;

/* The variable that both providers set; NULL: they do not exclude each other. Either may be NULL.
 */
const char *df_integration_conflict(const char *provider, const char *other);

#endif
