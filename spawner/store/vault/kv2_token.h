/*
 * kv2_token.h - the token for a server of Vault's API: read from a file, or got for the token of a
 * service account. Internal to spawner/store/vault.
 * Thread rule: any thread; one logs in, and whoever needs the token waits.
 */
#ifndef DF_KV2_TOKEN_H
#define DF_KV2_TOKEN_H

#include "common/http/pool.h"
#include "common/json/json.h"

/* How the server is called. All borrowed, and must live on. */
struct df_kv2_server {
    const char *url;
    const char *name_space; /* or NULL */
    struct df_http_pool *pool;
};

struct df_kv2_request {
    const char *method, *path; /* below /v1/, escaped */
    const char *token;         /* or NULL */
    const char *body;          /* JSON, or NULL */
};

/* Sends a request. *ret_status: 200, or 404; *ret: its body, which the caller wipes, or NULL. Every
 * other answer is a failure: DENIED SecretSourceDenied, RETRY SecretSourceUnavailable. */
int df_kv2_send(const struct df_kv2_server *server, const struct df_kv2_request *request,
                int *ret_status, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

struct df_kv2_token; /* opaque */

/* auth: that of the configuration, borrowed. */
int df_kv2_token_new(const struct df_kv2_server *server, const cJSON *auth,
                     struct df_kv2_token **ret, struct df_err *err) DF_MUST_CHECK;
void df_kv2_token_free(struct df_kv2_token *t); /* NULL is fine */

/* Copies the token, which the caller wipes and frees. refused: the one that the server did not
 * take, so that another is got if there may be one; or NULL. */
int df_kv2_token_get(struct df_kv2_token *t, const char *refused, char **ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
