/*
 * server.h - what the files of api/ share about the running server.
 */
#ifndef DF_API_SERVER_H
#define DF_API_SERVER_H

#include <pthread.h>

#include "common/metrics/metrics.h"
#include "spawner/api/api.h"
#include "spawner/api/connections.h"
#include "spawner/api/forward.h"
#include "spawner/api/tls.h"
#include "spawner/api/tokens.h"

struct MHD_Daemon;

struct df_api {
    struct df_spawner *s;
    struct MHD_Daemon *daemon;
    struct df_tokens *tokens; /* NULL: the embedded shape, loopback only */
    struct df_connections *connections;
    struct df_tls *tls; /* NULL: plain HTTP */
    struct df_forwarder *forwarder;

    pthread_mutex_t lock; /* guards the next four */
    pthread_cond_t quiet; /* in_flight fell to 0 */
    unsigned in_flight;
    bool stopping;
    int64_t denied_at_ms;    /* monotonic; the last refused login that was audited */
    unsigned denied_unheard; /* refused logins since */

    pthread_mutex_t creating; /* one create or change of an executor, one keyed POST at a time */

    struct df_metric *requests; /* method, route, code */
    struct df_metric *seconds;  /* route */
    struct df_metric *refused;
    struct df_metric *open;
};

bool df_api_is_stopping(struct df_api *a);

#endif
