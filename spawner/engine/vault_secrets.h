/*
 * vault_secrets.h - no pod mounts a Secret of the vault: dayfly gives secrets to the executors that
 * name them, and to nobody else. Their names are free, so that only the label tells which they are.
 */
#ifndef DF_ENGINE_VAULT_SECRETS_H
#define DF_ENGINE_VAULT_SECRETS_H

#include "common/kube/kube.h"

#define DF_LABEL_VAULT "dayfly.dev/vault" /* of a Secret of the vault */

/* Refuses a tree that refers to a Secret of the service's vault, which is in this namespace. Class
 * USER, reason PlacementDenied; RETRY if the API server does not answer. Any thread. */
int df_engine_check_vault(struct df_kube *k, const char *name_space, const cJSON *tree,
                          struct df_err *err) DF_MUST_CHECK;

#endif
