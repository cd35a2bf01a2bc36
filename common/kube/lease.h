/*
 * lease.h - who of several leads: a Lease (coordination.k8s.io/v1), taken and renewed as
 * client-go's leader election does.
 *
 * The holder renews it every sixth of its duration. The others watch it, and take it when it has
 * not changed for its whole duration by their own clock, or at once when it was given back. A
 * holder counts itself as such only until two thirds of the duration after it sent the last renewal
 * that was acknowledged: the rest is for what it had under way; and not at all once the Lease was
 * seen to name another, whatever the clocks say. Every taking adds one to
 * leaseTransitions, the epoch. All writes carry the resourceVersion that was seen, so that two
 * candidates cannot both succeed, whatever their clocks say.
 *
 * Thread rule: any thread.
 */
#ifndef DF_KUBE_LEASE_H
#define DF_KUBE_LEASE_H

#include "common/kube/kube.h"

struct df_lease_options {
    const char *name_space, *name;
    const char *identity; /* of this process, not only of its pod: unique */
    const char *address;  /* where the others reach it, as an annotation of the Lease; or NULL */
    int64_t duration_s;
    /* It was taken or lost. From the lease's thread, which renews nothing meanwhile: be quick. */
    void (*changed)(void *arg, bool held);
    void (*failed)(void *arg, const struct df_err *err); /* for the log; tried again */
    void *arg;
};

struct df_lease; /* opaque */

/* Strings are copied; the client must live on, and must not be fenced. */
int df_lease_new(struct df_kube *k, const struct df_lease_options *o, struct df_lease **ret,
                 struct df_err *err) DF_MUST_CHECK;
/* Begins to try, once. */
int df_lease_start(struct df_lease *l, struct df_err *err) DF_MUST_CHECK;
/* Gives the lease back, so that the next need not wait, and tries no more. No callback comes after
 * it. */
void df_lease_stop(struct df_lease *l);
void df_lease_free(struct df_lease *l); /* stopped, or never started; NULL is fine */

/* Is it held at this moment? Costs a look at the clock. */
bool df_lease_is_held(const struct df_lease *l);

struct df_lease_view {
    char holder[256];  /* identity; "" when nobody holds it */
    char address[256]; /* of the holder, or "" */
    int64_t epoch;     /* leaseTransitions; -1 when there is no lease yet */
};
/* What the lease says, as far as is known here. */
void df_lease_look(struct df_lease *l, struct df_lease_view *ret);

#endif
