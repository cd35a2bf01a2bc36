/*
 * server.h - the running server, as the files of http/ share it.
 */
#ifndef DF_SPAWNER_HTTP_SERVER_H
#define DF_SPAWNER_HTTP_SERVER_H

#include <pthread.h>

#include "common/metrics/metrics.h"
#include "spawner/http/api.h"
#include "spawner/http/connections.h"
#include "spawner/http/forward.h"
#include "spawner/http/liveness.h"
#include "spawner/http/tls.h"
#include "spawner/identity/tokens.h"

struct MHD_Daemon;

struct df_api {
    struct df_spawner *s;
    const struct df_route_table *routes;
    struct MHD_Daemon *daemon;
    struct df_tokens *tokens; /* NULL: every caller is admin; only this machine can connect */
    bool tells_address;       /* ca_file and server_url of the spawner are of this server */
    bool is_local;            /* only this machine can connect, and no browser's page may */
    struct df_connections *connections;
    struct df_tls *tls;             /* NULL: plain HTTP */
    struct df_forwarder *forwarder; /* NULL: requests are answered here or not at all */
    struct df_liveness *liveness;   /* NULL: /livez is answered by the API alone */

    pthread_mutex_t lock; /* guards the next five */
    pthread_cond_t quiet; /* in_flight fell to 0 */
    unsigned in_flight;
    bool stopping;
    struct df_audit_gate {
        int64_t since_ms; /* monotonic: a minute began; 0: unused */
        unsigned noted;   /* in it */
        unsigned skipped; /* since then, or before, without an entry */
        char caller[DF_LIMIT_CALLER + 1];
    } logins, refusals[DF_LIMIT_AUDIT_CALLERS]; /* what the audit trail has of 401 and other 4xx */

    pthread_mutex_t keyed;   /* one POST with an Idempotency-Key at a time */
    pthread_mutex_t foreign; /* one body of a stranger as a tree at a time */

    struct df_log_gate leaderless; /* lines about requests that no leader could execute */
    struct df_log_gate storeless;  /* and about those that the store of the blobs refused */
    struct df_log_gate full;       /* and about those that found a full disk */

    struct df_metric *requests; /* method, route, code */
    struct df_metric *seconds;  /* route */
    struct df_metric *refused;
    struct df_metric *open;
};

bool df_api_is_stopping(struct df_api *a);

#endif
