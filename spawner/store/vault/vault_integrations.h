/*
 * vault_integrations.h - the documents of the kind Integration. They are in the vault beside the
 * secrets, each in an entry of its own, dayfly-integration.NAME: sealed on disk, in a cluster a
 * Secret with the label of the vault. df_vault_list() and the other functions of vault.h do not
 * reach these entries, because their names are not valid secret names. Thread rule: any thread.
 */
#ifndef DF_VAULT_INTEGRATIONS_H
#define DF_VAULT_INTEGRATIONS_H

#include "spawner/store/vault/vault.h"

/* *ret: the document, with status.lastUsedAt and lastUsedBy once it was used; the caller frees.
 * NOT_FOUND names the integration. */
int df_vault_integration_get(struct df_vault *v, const char *name, cJSON **ret,
                             struct df_err *err) DF_MUST_CHECK;
/* Documents, sorted by name. */
int df_vault_integration_list(struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Creates or replaces the document; its last use stays. LIMIT: larger than
 * DF_LIMIT_SECRET_VALUE. */
int df_vault_integration_put(struct df_vault *v, const char *name, const cJSON *doc,
                             struct df_err *err) DF_MUST_CHECK;
/* Writes the last use. by: the name of a run. If the document is deleted meanwhile, it stays so:
 * the rest of its entry is found by nobody, and deleted with the next document of this name. */
int df_vault_integration_note(struct df_vault *v, const char *name, const char *by, int64_t now_us,
                              struct df_err *err) DF_MUST_CHECK;
/* NOT_FOUND if absent. */
int df_vault_integration_delete(struct df_vault *v, const char *name,
                                struct df_err *err) DF_MUST_CHECK;

#endif
