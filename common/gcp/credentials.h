/*
 * credentials.h - access tokens for Google Cloud, from where Google's own libraries take them:
 *
 *   GOOGLE_APPLICATION_CREDENTIALS  a file: the key of a service account ("type": service_account),
 *                                   or workload identity federation (external_account, with a token
 *                                   file), with or without impersonation
 *   else                            the metadata service of the machine or pod (GKE Workload
 *                                   Identity); GCE_METADATA_HOST names another
 *
 * Tokens are fetched again five minutes before they expire. Thread rule: any thread.
 */
#ifndef DF_GCP_CREDENTIALS_H
#define DF_GCP_CREDENTIALS_H

#include "common/base/err.h"

struct df_gcp_credentials; /* opaque */

/* Sends no request yet. */
int df_gcp_credentials_new(struct df_gcp_credentials **ret, struct df_err *err) DF_MUST_CHECK;
void df_gcp_credentials_free(struct df_gcp_credentials *c); /* NULL is fine */

/* What the file would hold, as text, instead of it. USER: it is not JSON. */
int df_gcp_credentials_given(const char *json, struct df_gcp_credentials **ret,
                             struct df_err *err) DF_MUST_CHECK;

/* *ret: a token for the storage service; the caller wipes and frees it. USER: the file cannot be
 * read or is of another type; else as its source failed, and RETRY where that has NOT_FOUND or
 * CONFLICT. */
int df_gcp_credentials_get(struct df_gcp_credentials *c, char **ret,
                           struct df_err *err) DF_MUST_CHECK;

/* A service refused this token: the next get() fetches anew. */
void df_gcp_credentials_refused(struct df_gcp_credentials *c, const char *token);

#endif
