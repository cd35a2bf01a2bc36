/*
 * client.h - one request to the API server, credentials and failures included. Internal to
 * common/kube.
 */
#ifndef DF_KUBE_CLIENT_H
#define DF_KUBE_CLIENT_H

#include "common/http/http.h"
#include "common/kube/credentials.h"
#include "common/kube/kube.h"

/* A kept connection. One thread at a time. */
struct df_kube_conn {
    struct df_http *http;      /* the same for the connection's whole life */
    unsigned generation;       /* of the credentials that it has */
    struct df_kube_conn *next; /* in the client's list of idle ones */
};
int df_kube_conn_new(struct df_kube *k, struct df_kube_conn **ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_kube_conn_free(struct df_kube_conn *c); /* NULL is fine */

struct df_kube_request {
    const char *verb; /* "create": for messages */
    const char *method;
    const struct df_kube_at *at;         /* with path: only its stop counts */
    const char *path;                    /* instead of at's; or NULL */
    const char *query;                   /* escaped, without the question mark; or NULL */
    const cJSON *body;                   /* or NULL */
    const char *content_type;            /* NULL: application/json */
    const char *accept;                  /* besides JSON, and rather; or NULL */
    size_t max_response;                 /* 0: DF_LIMIT_KUBE_OBJECT */
    const char *const *without;          /* as of df_kube_sink: of the tree; or NULL */
    int64_t timeout_ms, idle_timeout_ms; /* as of struct df_http_request */
    int (*on_data)(void *arg, const char *bytes, size_t n); /* the same */
    void *arg;
    struct df_kube_conn *conn; /* NULL: one of the client's */
    bool stop_wakes;           /* as of struct df_http_request, for at's stop; only with conn */
};

/* Any status below 400 is success; failures are those of kube.h. The caller frees *ret. */
int df_kube_request(struct df_kube *k, const struct df_kube_request *r,
                    struct df_http_response *ret, struct df_err *err) DF_MUST_CHECK;

/* The same; the answer as a tree. ret may be NULL. */
int df_kube_request_json(struct df_kube *k, const struct df_kube_request *r, cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;

/* "create jobs.batch build/net-1-plan": what failed. NULL on no memory; the caller frees. */
char *df_kube_request_what(const struct df_kube_request *r);

/* Adds "&key=value", escaped; a NULL value adds nothing. */
void df_kube_query(struct df_buf *query, const char *key, const char *value);

/* ---- answer.c ---- */

/* Turns a status >= 400 into a failure; 0 below. */
int df_kube_check(const struct df_kube_request *r, const struct df_http_response *res,
                  struct df_err *err) DF_MUST_CHECK;
/* A Status object (of an ERROR event) as a failure: always -1. */
int df_kube_fail_status(const char *what, const cJSON *status, bool secret, struct df_err *err);
/* "Too old a resourceVersion": list again. */
bool df_kube_is_expired(const struct df_err *err);

/* ---- list.c ---- */

/* df_kube_list() over a connection of one's own. */
int df_kube_list_on(struct df_kube *k, struct df_kube_conn *conn, const struct df_kube_at *at,
                    const struct df_kube_select *select, unsigned page,
                    const struct df_kube_sink *sink, struct df_err *err) DF_MUST_CHECK;

#endif
