/*
 * election.h - several spawners of one service: each answers the API, one leads, which means that
 * it moves runs and steps on and writes. One that has just won lists all documents first: what it
 * knows of them may be far behind, and who asks for a run that the last leader made must not hear
 * that there is none.
 *
 * A leader that loses the Lease ends its process at once: another leads by then, and every pass is
 * made to be cut off anywhere. What it had under way is held back by the fence of its kube client
 * (df_lease_is_held() before each write; the Lease is still nobody else's for a third of its
 * duration then) and by the resourceVersion that every write of a document carries.
 */
#ifndef DF_CONTROL_ELECTION_H
#define DF_CONTROL_ELECTION_H

#include "common/kube/lease.h"
#include "spawner/control/control.h"

struct df_election; /* opaque */

/* Begins to try for the Lease in that namespace; the control loop is started when it is won.
 * s->kube, which the service writes with, is fenced from now on; config: for a client of the
 * election's own, taken over. Sets s->lease, and s->leads when it may answer. */
int df_election_start(struct df_spawner *s, struct df_kube_config *config, const char *name_space,
                      struct df_election **ret, struct df_err *err) DF_MUST_CHECK;
/* From here on the control loop is not started any more, and has been started if it ever was: it
 * can be stopped. */
void df_election_close(struct df_election *e);
/* Gives the Lease back. The control loop must have been stopped. */
void df_election_stop(struct df_election *e);
void df_election_free(struct df_election *e); /* when nobody looks at s->lease; NULL is fine */

#endif
