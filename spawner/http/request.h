/*
 * request.h - one request and its response, as handlers see them.
 *
 * A handler is plain blocking code on the connection's own thread:
 *     int handler(struct df_request *req, struct df_response *res, struct df_err *err);
 * It returns 0 with the response in *res, or -1 with err, which becomes problem+json. Before the
 * call, validate.c has checked the caller's role, the media type, the size of the body and the
 * names of the query parameters against the route, and has parsed a JSON or YAML body.
 *
 * Thread rule: one request, one thread.
 */
#ifndef DF_SPAWNER_HTTP_REQUEST_H
#define DF_SPAWNER_HTTP_REQUEST_H

#include "common/base/limits.h"
#include "common/base/strs.h"
#include "spawner/http/route.h"
#include "spawner/http/target.h"
#include "spawner/identity/auth.h"
#include "spawner/spawner.h"

struct MHD_Connection;

struct df_request {
    struct df_api *api;
    struct df_spawner *s;
    struct MHD_Connection *connection;
    const struct df_route *route;
    char *uri;          /* as received; owned */
    const char *method; /* as received: it may be "HEAD" if the route has GET */
    struct df_target target;
    const char *params[DF_ROUTE_PARAMS]; /* values of the route's {x}, in order */
    struct df_caller caller;
    df_verbs verbs; /* the caller's on the executor of the route; 0: the route is about none */
    struct df_credentials credentials;
    struct df_buf body; /* DF_BODY_BYTES; JSON until it is parsed */
    char *body_path;    /* DF_BODY_FILE: a complete file in df_blob_tmp_dir(); unlinked after the
                         * handler, unless the handler moved it and set this to NULL */
    cJSON *json;        /* DF_BODY_JSON, DF_BODY_DOCUMENT, DF_BODY_PATCH; NULL without a body */
};

/* A response body that is generated while it is sent. */
struct df_stream_source {
    /* Appends the next piece to out; blocks until there is one. Returns 1: more follows; 0: this
     * was the last piece; -1: the connection must be aborted. */
    int (*next)(struct df_stream_source *source, struct df_buf *out);
    void (*free)(struct df_stream_source *source);
};

struct df_response {
    int status;               /* 200 unless set */
    const char *content_type; /* literal; NULL: no body */
    struct df_buf body;
    const char *fixed; /* the body is this text, which lives as long as the program; NULL: none */
    size_t fixed_len;
    bool secret; /* the body contains secrets: it is wiped after sending */
    int fd;      /* the body is this file; -1: none; closed after sending */
    int64_t fd_size;
    struct df_stream_source *stream; /* owned; NULL: none */
    char etag[128];                  /* with its quotes, or "" */
    char location[256];              /* or "" */
    char allow[64];                  /* 405 */
    bool replayed;                   /* Idempotency-Replayed: true */
    cJSON *problem_extra;            /* further members of a problem; owned */
    char audit_name[64];             /* the changed object, if the path does not name it; or "" */
    const char *audit;               /* replaces the route's audit word; or NULL */
    char *audit_detail;              /* of an entry about success; owned; NULL: none */
};

typedef int (*df_handler)(struct df_request *req, struct df_response *res, struct df_err *err);

/* The request's connection in the list of the server (connections.h); NULL if it is not there. */
struct df_connection *df_request_connection(const struct df_request *req);
/* The client has disconnected. For the thread of the request, as the next one. */
bool df_request_client_left(const struct df_request *req);
/* Nobody waits for the response: the client has disconnected, or the server stops. */
bool df_request_is_gone(const struct df_request *req);
/* The value of this header of the request, or NULL. Borrowed. */
const char *df_request_header(const struct df_request *req, const char *name);
/* The value of this query parameter, or NULL. Borrowed. */
const char *df_request_query(const struct df_request *req, const char *name);
/* Reads "true", "false" or "" (true). An absent one leaves *ret unchanged. USER for any other
 * value. */
int df_request_flag(const struct df_request *req, const char *name, bool *ret,
                    struct df_err *err) DF_MUST_CHECK;
/* Reads a whole number within [min, max]. An absent one leaves *ret unchanged. */
int df_request_number(const struct df_request *req, const char *name, int64_t min, int64_t max,
                      int64_t *ret, struct df_err *err) DF_MUST_CHECK;

/* Responds with this JSON value. */
int df_respond_json(struct df_response *res, int status, const cJSON *doc,
                    struct df_err *err) DF_MUST_CHECK;
/* Responds with {"items": [...], "nextCursor": "..."}. cursor may be NULL. Takes ownership of
 * items, also on failure. */
int df_respond_list(struct df_response *res, cJSON *items, const char *cursor,
                    struct df_err *err) DF_MUST_CHECK;
/* Responds with a document as clients may see it (without status.auth) and its ETag; with 304 if
 * If-None-Match lists that ETag. */
int df_respond_document(const struct df_request *req, struct df_response *res, int status,
                        cJSON *doc, struct df_err *err) DF_MUST_CHECK;
/* Responds with 201, the created document and its Location. */
int df_respond_created(const struct df_request *req, struct df_response *res, enum df_kind kind,
                       cJSON *doc, struct df_err *err) DF_MUST_CHECK;
/* True if a list of entity tags (If-Match, If-None-Match; NULL: false) contains this document's
 * tag. */
bool df_etag_listed(const char *list, const cJSON *doc);
/* Checks If-Match against the document; without the header every change is allowed. CONFLICT
 * PreconditionFailed. */
int df_request_check_match(const struct df_request *req, const cJSON *doc,
                           struct df_err *err) DF_MUST_CHECK;
/* Responds with 204, without a body. */
void df_respond_nothing(struct df_response *res);

/* Removes the fields that only the spawner may see. */
void df_hide_private(cJSON *doc);

/* Fails with class USER if the request's JSON object has a member that is not in the
 * NULL-terminated list. */
int df_request_members(const struct df_request *req, const char *const *allowed,
                       struct df_err *err) DF_MUST_CHECK;

#endif
