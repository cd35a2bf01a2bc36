/*
 * lease.h - leader election with a Lease (coordination.k8s.io/v1), as client-go does it.
 *
 * The holder renews the Lease every sixth of its duration. The candidates watch it, and take it
 * when it has not changed for its whole duration by their own clock, or at once when it was given
 * back. A holder regards itself as leader until two thirds of the duration after it sent the last
 * renewal that was acknowledged; the rest is for requests under way. It stops at once when it reads
 * that another one holds the Lease. Each new holder adds one to leaseTransitions, the epoch. Each
 * write carries the resourceVersion that was read, so that only one of two candidates succeeds. See
 * docs/internals/lease.md.
 *
 * Thread rule: any thread.
 */
#ifndef DF_KUBE_LEASE_H
#define DF_KUBE_LEASE_H

#include "common/kube/kube.h"

#define DF_LEASE_ADDRESS "dayfly.dev/address" /* annotation: where the holder answers the others */

struct df_lease_options {
    const char *name_space, *name;
    const char *identity; /* unique for this process, not only for its pod */
    const char *address;  /* of this replica, for the Lease's annotation; or NULL */
    const char *pod; /* uid of this process's pod: a holder that ran in it has ended, because a pod
                           * starts its container again only then; NULL or "": none */
    int64_t duration_s;
    /* Called when the Lease was won or lost, from the thread that renews it: be quick. */
    void (*changed)(void *arg, bool held);
    void (*failed)(void *arg, const struct df_err *err); /* for the log; it tries again */
    void *arg;
};

struct df_lease; /* opaque */

/* An identity: the name of the pod or host, and a random suffix, which makes a process that was
 * restarted in the same pod a new candidate. The caller frees. */
int df_lease_identity(char **ret, struct df_err *err) DF_MUST_CHECK;

/* Strings are copied; the client must live on, and must not be fenced. */
int df_lease_new(struct df_kube *k, const struct df_lease_options *o, struct df_lease **ret,
                 struct df_err *err) DF_MUST_CHECK;
/* Starts to compete. Call it once. */
int df_lease_start(struct df_lease *l, struct df_err *err) DF_MUST_CHECK;
/* Gives the Lease back, so that the next holder need not wait, and stops competing. changed is not
 * called after the return; df_lease_look() still knows who holds it. */
void df_lease_stop(struct df_lease *l);
void df_lease_free(struct df_lease *l); /* stopped, or never started; NULL is fine */

/* True while this replica leads. Costs one reading of the clock. */
bool df_lease_is_held(const struct df_lease *l);

/* RETRY NoLeader if nobody has renewed the Lease for twice its duration, as far as this replica
 * knows: it is then free, and nobody can take it. The message has the last failure of this
 * replica. */
int df_lease_check(struct df_lease *l, struct df_err *err) DF_MUST_CHECK;

struct df_lease_view {
    char holder[256];  /* identity; "" if nobody holds it */
    char address[256]; /* of the holder, or "" */
    int64_t epoch;     /* leaseTransitions; -1 if there is no Lease yet */
};
/* The Lease as this replica read it last. */
void df_lease_look(struct df_lease *l, struct df_lease_view *ret);

#endif
