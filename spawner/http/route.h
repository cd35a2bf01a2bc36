/*
 * route.h - a row of the table of routes: method, path, who may, accepted body, handler. The
 * table is in api/routes.c; df_api_start() gets it.
 */
#ifndef DF_SPAWNER_HTTP_ROUTE_H
#define DF_SPAWNER_HTTP_ROUTE_H

#include "spawner/http/target.h"
#include "spawner/model/kinds.h"
#include "spawner/model/verbs.h"

#define DF_ROUTE_PARAMS 6

struct df_request;
struct df_response;

enum df_access {
    DF_ACCESS_ANYONE,   /* probes and descriptions: the response has no user data */
    DF_ACCESS_CALLER,   /* whoever has a grant: the handler shows what they may view (rights.h) */
    DF_ACCESS_EXECUTOR, /* the route's verbs on the executor of its document (rights.h) */
    DF_ACCESS_READ,     /* a role: the verbs on all executors */
    DF_ACCESS_WRITE,
    DF_ACCESS_ADMIN,
    DF_ACCESS_STEP, /* the step's own token; checked by the route's gate */
};

enum df_body_kind {
    DF_BODY_NONE,
    DF_BODY_JSON,     /* an object; the handler decides whether it may be absent */
    DF_BODY_DOCUMENT, /* an object in JSON or YAML */
    DF_BODY_PATCH,    /* a JSON merge patch */
    DF_BODY_BYTES,    /* anything, in memory */
    DF_BODY_FILE,     /* anything, streamed to a file */
};

struct df_route {
    const char *method;
    const char *pattern; /* "/v1/runs/{name}" */
    enum df_access access;
    df_verbs verbs;  /* EXECUTOR: all of these are needed; else 0 */
    enum df_kind of; /* the kind of its documents: of the one whose name is the first parameter */
    enum df_body_kind body;
    size_t body_max;
    const char *query; /* names of its parameters, separated by blanks; or NULL */
    int (*handler)(struct df_request *req, struct df_response *res, struct df_err *err);
    /* Called before the body is received; for DF_ACCESS_STEP it checks the step's token. It reads
     * what this replica knows and changes nothing. NULL: `access` alone decides. */
    int (*gate)(struct df_request *req, struct df_err *err);
    /* Called after the handler; or NULL. began_us: real time; why: its failure; NULL: it
     * succeeded. */
    void (*after)(const struct df_request *req, int64_t began_us, const struct df_err *why);
    const char *audit;  /* the action in the audit trail; NULL: calls are not recorded */
    const char *kind;   /* the object's kind in the audit trail */
    bool basic;         /* HTTP basic is also accepted: password = token */
    bool token_in_path; /* STEP: the second parameter is its token, for tools that send no header */
    bool waits;         /* the handler may wait for seconds, as long as its client does */
    bool any_replica;   /* a read that any replica may serve if none leads (forward.h) */
};

struct df_route_table {
    const struct df_route *rows; /* borrowed for as long as the server runs */
    size_t count;
};

/* Finds the route of a method (HEAD finds GET) and a path; params gets the values of the {x}.
 * NOT_FOUND, or USER MethodNotAllowed with the methods of this path in allow ("GET, HEAD, PUT"). */
int df_route_find(const struct df_route_table *table, const char *method,
                  const struct df_target *target, const struct df_route **ret,
                  const char *params[DF_ROUTE_PARAMS], char allow[64],
                  struct df_err *err) DF_MUST_CHECK;

/* True if the route has a query parameter of this name. */
bool df_route_has_query(const struct df_route *route, const char *name);

#endif
