/*
 * routes.h - the one table of everything the server answers to.
 */
#ifndef DF_API_ROUTES_H
#define DF_API_ROUTES_H

#include "spawner/api/target.h"

#define DF_ROUTE_PARAMS 2

struct df_request;
struct df_response;

/* Who may call a route. */
enum df_access {
    DF_ACCESS_ANYONE, /* probes and descriptions: nothing of a user's is in the answer */
    DF_ACCESS_READ,
    DF_ACCESS_WRITE,
    DF_ACCESS_ADMIN,
    DF_ACCESS_STEP, /* the step's own token; checked by steps/steps.h */
};

enum df_body_kind {
    DF_BODY_NONE,
    DF_BODY_JSON,     /* an object; may be absent where the handler says so */
    DF_BODY_DOCUMENT, /* an object in JSON or YAML */
    DF_BODY_PATCH,    /* a JSON merge patch */
    DF_BODY_BYTES,    /* anything, in memory */
    DF_BODY_FILE,     /* anything, streamed to a file */
};

struct df_route {
    const char *method;
    const char *pattern; /* "/v1/runs/{name}" */
    enum df_access access;
    enum df_body_kind body;
    size_t body_max;
    const char *query; /* names of its parameters between blanks, or NULL */
    int (*handler)(struct df_request *req, struct df_response *res, struct df_err *err);
    /* Asked before a large body is taken in, where `access` alone does not tell whether the caller
     * may; or NULL */
    int (*gate)(struct df_request *req, struct df_err *err);
    const char *audit; /* the word for the audit trail, when every call is recorded; or NULL */
    const char *kind;  /* what it is done to */
    bool basic;        /* HTTP basic is accepted too: password = token */
    bool any_replica;  /* answered here when no replica leads (forward.h) */
};

/* The table, for tests. */
const struct df_route *df_routes(size_t *ret_count);

/* Finds the route of a method (HEAD finds GET) and path; the {x} go to params. NOT_FOUND, or
 * USER MethodNotAllowed with the methods that would do in allow ("GET, HEAD, PUT"). */
int df_route_find(const char *method, const struct df_target *target, const struct df_route **ret,
                  const char *params[DF_ROUTE_PARAMS], char allow[64],
                  struct df_err *err) DF_MUST_CHECK;

/* Has the route a parameter of this name? */
bool df_route_has_query(const struct df_route *route, const char *name);

#endif
