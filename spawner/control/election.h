/*
 * election.h - several spawners are replicas of one service: each answers the API, and one of them
 * is the leader, which reconciles and writes. A new leader first lists all documents, because its
 * cache may be stale: a client must not get "not found" for a run that the previous leader created.
 *
 * A leader that loses the Lease ends its process at once, so a pass may be interrupted at any line.
 * docs/internals/lease.md says why no two replicas write at the same time.
 */
#ifndef DF_CONTROL_ELECTION_H
#define DF_CONTROL_ELECTION_H

#include "common/kube/lease.h"
#include "spawner/control/control.h"

struct df_election; /* opaque */

/* Asked when this replica has got the Lease, from another thread, and again while it fails with
 * RETRY. If it fails otherwise the process ends before it has written anything. */
struct df_leader_check {
    int (*may_lead)(void *arg, struct df_err *err);
    void *arg;
};

/* Starts to compete for the Lease in that namespace, and starts the control loop when this replica
 * gets the Lease. Fences s->kube, the client with which the service writes. config: for the
 * election's own client; takes ownership. Sets s->lease, and s->leads when the replica may answer
 * as leader. */
int df_election_start(struct df_spawner *s, struct df_kube_config *config, const char *name_space,
                      const struct df_leader_check *check, struct df_election **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* After this call the election does not start the control loop any more, and no start is under way:
 * the caller can stop the loop. */
void df_election_close(struct df_election *e);
/* Gives the Lease back. The control loop must have been stopped. */
void df_election_stop(struct df_election *e);
void df_election_free(struct df_election *e); /* when no thread reads s->lease; NULL is fine */

#endif
