/*
 * spawner.h - everything the spawner is made of. Owned by whoever built it (service.c); borrowed by
 * all others.
 */
#ifndef DF_SPAWNER_H
#define DF_SPAWNER_H

#include "common/base/log.h"
#include "common/blob/blob.h"
#include "spawner/config/config.h"
#include "spawner/engine/engine.h"
#include "spawner/store/memory.h"
#include "spawner/store/removals.h"
#include "spawner/store/store.h"
#include "spawner/store/tofu_state/state.h"
#include "spawner/store/vault/vault.h"

struct df_upstream;

struct df_spawner {
    const struct df_config *config;
    struct df_store *store;
    struct df_vault *vault;
    struct df_blob *blobs;
    struct df_states *states;
    struct df_removals removals;
    struct df_memory memory;
    struct df_log_gate unwritten_waits; /* lines about waits that no document says */
    struct df_engine_registry engines;
    struct df_control *control;
    struct df_journal *journal;
    struct df_kube *kube;           /* NULL: no cluster */
    struct df_never never;          /* what no step may have (placement.never) */
    struct df_claims *claims;       /* NULL: no step runs in a pod */
    struct df_oidc *oidc;           /* NULL: no OpenID provider is configured */
    struct df_personal *personal;   /* the tokens that people made (identity/personal.h) */
    struct df_standby *standby;     /* steps/standby.h; NULL: no step runs in a pod */
    struct df_deletions *deletions; /* NULL: no webhook tells who deletes (kubernetes.webhook) */
    struct df_lease *lease;         /* NULL: alone, or (config.elects) no candidate yet. Atomic */
    bool leads; /* once it has the Lease, and knows what leaders before it wrote. Atomic */
    const struct df_upstream *upstream; /* upstream.h: who else gives steps */
    void *upstream_data; /* the upstream's own; NULL: config.upstream_listen is not set */
    char *server_url;    /* set once the API listens */
    const char *ca_file; /* what runners are to trust, PEM; NULL: the system's. Of the API */
    char *local_token;   /* local_token.h; NULL: callers have other tokens, or need none */
    char *endpoint_file; /* <data>/endpoint: the URL, for runners and clients */
};

#endif
