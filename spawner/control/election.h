/*
 * election.h - several spawners are replicas of one service: each answers the API, and one of them
 * leads: it reconciles and writes. A new leader first lists all documents, because its cache may be
 * behind: a client must not hear "not found" about a run that the last leader made.
 *
 * A leader that loses the Lease ends its process at once; each pass may be cut off anywhere.
 * docs/internals/lease.md says why no two replicas write at the same time.
 */
#ifndef DF_CONTROL_ELECTION_H
#define DF_CONTROL_ELECTION_H

#include "common/kube/lease.h"
#include "spawner/control/control.h"

struct df_election; /* opaque */

/* Starts to compete for the Lease in that namespace, and starts the control loop when it is won.
 * Fences s->kube, the client that the service writes with. config: for the election's own client;
 * takes ownership. Sets s->lease, and s->leads when the replica may answer as leader. */
int df_election_start(struct df_spawner *s, struct df_kube_config *config, const char *name_space,
                      struct df_election **ret, struct df_err *err) DF_MUST_CHECK;
/* After the return the control loop is not started any more, and no start is under way: it can be
 * stopped. */
void df_election_close(struct df_election *e);
/* Gives the Lease back. The control loop must have been stopped. */
void df_election_stop(struct df_election *e);
void df_election_free(struct df_election *e); /* when no thread reads s->lease; NULL is fine */

#endif
