/*
 * exchange.h - one request and its answer, as handlers see them.
 *
 * A handler is plain blocking code on the connection's own thread:
 *     int handler(struct df_request *req, struct df_response *res, struct df_err *err);
 * It returns 0 with the answer in *res, or -1 with err, which becomes problem+json. By the time it
 * is called the caller's role, the media type, the size of the body and the names of the query
 * parameters have been checked against the route, and a JSON or YAML body has been parsed.
 * Thread rule: one exchange, one thread.
 */
#ifndef DF_API_EXCHANGE_H
#define DF_API_EXCHANGE_H

#include "common/base/limits.h"
#include "common/base/strs.h"
#include "spawner/api/auth.h"
#include "spawner/api/routes.h"
#include "spawner/api/target.h"
#include "spawner/control/control.h"

struct MHD_Connection;

struct df_request {
    struct df_api *api;
    struct df_spawner *s;
    struct MHD_Connection *connection;
    const struct df_route *route;
    char *uri;          /* as received; owned */
    const char *method; /* as received: "HEAD" where the route says GET */
    struct df_target target;
    const char *params[DF_ROUTE_PARAMS]; /* values of the route's {x}, in order */
    struct df_caller caller;
    struct df_credentials credentials;
    struct df_buf body; /* DF_BODY_BYTES, and JSON before it was parsed */
    char *body_path;    /* DF_BODY_FILE: a complete file in df_blob_tmp_dir; unlinked afterwards
                           unless a handler moved it */
    cJSON *json;        /* DF_BODY_JSON, DF_BODY_DOCUMENT, DF_BODY_PATCH; NULL without a body */
};

/* A body that is made while it is sent. */
struct df_stream_source {
    /* Appends the next piece to out, waiting for it when there is none yet. Returns 1: there is
     * more; 0: this was the end; -1: broken off. */
    int (*next)(struct df_stream_source *source, struct df_buf *out);
    void (*free)(struct df_stream_source *source);
};

struct df_response {
    int status;               /* 200 unless set */
    const char *content_type; /* literal; NULL: no body */
    struct df_buf body;
    bool secret; /* the body holds secrets: it is wiped afterwards */
    int fd;      /* a file as the body, with its size; -1: none; closed afterwards */
    int64_t fd_size;
    struct df_stream_source *stream; /* owned; NULL: none */
    char etag[128];                  /* with its quotes, or "" */
    char location[256];              /* or "" */
    char allow[64];                  /* 405 */
    bool replayed;                   /* Idempotency-Replayed: true */
    cJSON *problem_extra;            /* further members of a problem; owned */
    char audit_name[64];             /* what was changed, where the path does not say it; or "" */
    const char *audit; /* a word for the trail that the route itself has not; or NULL */
};

typedef int (*df_handler)(struct df_request *req, struct df_response *res, struct df_err *err);

/* The request's header, or NULL. Borrowed. */
const char *df_request_header(const struct df_request *req, const char *name);
/* The query parameter, or NULL. */
const char *df_request_query(const struct df_request *req, const char *name);
/* A parameter that is true, false or absent (fallback); class USER otherwise. */
int df_request_flag(const struct df_request *req, const char *name, bool *ret,
                    struct df_err *err) DF_MUST_CHECK;
/* A whole number within [min, max], or the fallback when absent. */
int df_request_number(const struct df_request *req, const char *name, int64_t min, int64_t max,
                      int64_t *ret, struct df_err *err) DF_MUST_CHECK;

/* Sets the answer to this JSON value. */
int df_respond_json(struct df_response *res, int status, const cJSON *doc,
                    struct df_err *err) DF_MUST_CHECK;
/* {"items": [...], "nextCursor": "..."}; cursor may be NULL. items is taken over, also on failure.
 */
int df_respond_list(struct df_response *res, cJSON *items, const char *cursor,
                    struct df_err *err) DF_MUST_CHECK;
/* A document as outsiders may see it (without status.auth), with its ETag; 304 when If-None-Match
 * names that ETag. */
int df_respond_document(const struct df_request *req, struct df_response *res, int status,
                        cJSON *doc, struct df_err *err) DF_MUST_CHECK;
/* 201 with the place of what was made. */
int df_respond_created(const struct df_request *req, struct df_response *res, enum df_kind kind,
                       cJSON *doc, struct df_err *err) DF_MUST_CHECK;
/* Does a list of entity tags (If-Match, If-None-Match; NULL does not) name this document's? */
bool df_etag_listed(const char *list, const cJSON *doc);
/* 204 */
void df_respond_nothing(struct df_response *res);

/* Takes out of a document what only the spawner may see. */
void df_hide_private(cJSON *doc);

/* Fails with class USER when the request's JSON object has a member that is not in the list
 * (NULL-terminated). */
int df_request_members(const struct df_request *req, const char *const *allowed,
                       struct df_err *err) DF_MUST_CHECK;

#endif
