/*
 * exchange.h - one request to one URL and its response; http.c follows redirects. Internal to
 * common/http. Thread rule: that of struct df_http.
 */
#ifndef DF_HTTP_EXCHANGE_H
#define DF_HTTP_EXCHANGE_H

#include "common/http/http.h"
#include "common/http/target.h"

struct df_http {
    CURLM *multi; /* keeps the connections */
    CURL *easy;
    char *ca_file, *ca_pem, *server_name, *proxy; /* owned; NULL: none */
    char *bearer, *user, *password, *user_agent;  /* owned; NULL: none */
    char *cert_pem, *key_pem;                     /* owned; NULL: none */
    char *aws_scope, *aws_token; /* owned; NULL: not signed. user, password: keys */
    bool follow_redirects, allow_file, insecure;
    int64_t connect_ms;
    size_t piece;
};

/* Fills *res, which must be empty and which the caller frees, also on failure. timeout_ms: 0 for
 * none. Fails as df_http_send() does. */
int df_http_exchange(struct df_http *h, const struct df_http_request *req,
                     const struct df_http_target *to, int64_t timeout_ms,
                     struct df_http_response *res, struct df_err *err) DF_MUST_CHECK;

#endif
