/*
 * credentials.h - what opens a storage account of Azure, from where Azure's own programs take it.
 * The first of these that the environment offers decides:
 *
 *   AZURE_STORAGE_KEY            the account's key: signs each request (shared_key.h)
 *   AZURE_STORAGE_SAS_TOKEN      a shared access signature: a part of each URL
 *   AZURE_FEDERATED_TOKEN_FILE   workload identity: with AZURE_CLIENT_ID and AZURE_TENANT_ID
 *   AZURE_CLIENT_SECRET          a service principal: with the same two
 *   else                         managed identity: IDENTITY_ENDPOINT and IDENTITY_HEADER (App
 *                                Service), or the metadata service of the machine or pod; with
 *                                AZURE_CLIENT_ID that identity
 *
 * AZURE_AUTHORITY_HOST names another authority, AZURE_POD_IDENTITY_AUTHORITY_HOST another metadata
 * service. Tokens are fetched again five minutes before they expire. Thread rule: any thread.
 */
#ifndef DF_AZURE_CREDENTIALS_H
#define DF_AZURE_CREDENTIALS_H

#include "common/base/err.h"

struct df_azure_credentials; /* opaque */

enum df_azure_kind { DF_AZURE_KEY, DF_AZURE_SAS, DF_AZURE_TOKEN };

struct df_azure_grant {
    enum df_azure_kind kind;
    char *text; /* owned: the key in base64, the query of the signature, the token */
};
void df_azure_grant_wipe(struct df_azure_grant *g); /* and frees */
#define DF_AZURE_GRANT DF_CLEANUP(df_azure_grant_wipe) struct df_azure_grant

/* Sends no request yet. */
int df_azure_credentials_new(struct df_azure_credentials **ret, struct df_err *err) DF_MUST_CHECK;
/* This key of the account, in base64, copied, and nothing else. */
int df_azure_credentials_given(const char *key, struct df_azure_credentials **ret,
                               struct df_err *err) DF_MUST_CHECK;
void df_azure_credentials_free(struct df_azure_credentials *c); /* NULL is fine */

/* USER: the environment has a part of it only; else as its source failed, and RETRY where that has
 * NOT_FOUND or CONFLICT. */
int df_azure_credentials_get(struct df_azure_credentials *c, struct df_azure_grant *ret,
                             struct df_err *err) DF_MUST_CHECK;

/* An application of Azure and its secret. Borrowed. */
struct df_azure_application {
    const char *client, *tenant, *secret;
};
/* Asks the authority for a token for Azure's resource manager, and drops it: does Azure take this
 * secret? Fails as http.h does: DENIED or USER where it does not. */
int df_azure_check_application(const struct df_azure_application *a,
                               struct df_err *err) DF_MUST_CHECK;

/* A service refused this grant: the next get() fetches a token anew. */
void df_azure_credentials_refused(struct df_azure_credentials *c, const struct df_azure_grant *g);

/* A token for another service of Azure than Storage: resource is its id or URL, percent-encoded.
 * The environment decides as above, without the first two. The caller wipes and frees *ret. Fails
 * as the source of the token did. */
int df_azure_token(const char *resource, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
