/*
 * hold_lease.h - the Lease of the replicas (control/election.h) for something that must be done
 * while none of them leads, before this one serves. Thread rule: the thread that starts the
 * service.
 */
#ifndef DF_HOLD_LEASE_H
#define DF_HOLD_LEASE_H

#include "common/kube/lease.h"
#include "spawner/config/config.h"

struct df_lease_hold_options {
    const struct df_config *config;
    const char *name_space; /* of the Lease */
    struct df_kube *own;    /* for the Lease alone: borrowed, must live on */
    struct df_kube *fenced; /* borrowed: writes with it are refused once the Lease may be over */
    const char *what;       /* "blobs.move": for the log */
};

struct df_lease_hold; /* opaque */

/* Waits until it has the Lease, however long another replica leads, unless SIGTERM or SIGINT, which
 * the caller has blocked, comes: RETRY. If the Lease is lost later the process ends. */
int df_lease_hold_begin(const struct df_lease_hold_options *o, struct df_lease_hold **ret,
                        struct df_err *err) DF_MUST_CHECK;
/* RETRY if the Lease may be over: the process is about to end. */
int df_lease_hold_check(const struct df_lease_hold *h, struct df_err *err) DF_MUST_CHECK;
/* Gives the Lease back. NULL is fine. */
void df_lease_hold_end(struct df_lease_hold *h);

#endif
