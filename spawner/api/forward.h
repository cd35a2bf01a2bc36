/*
 * forward.h - what another replica must do: only the leader acts, but every replica answers. A
 * request is handed to the leader as it came, its answer is passed on while it comes. Authorization
 * was checked here and is checked there.
 *
 * Thread rule: any thread.
 */
#ifndef DF_API_FORWARD_H
#define DF_API_FORWARD_H

#include "spawner/api/exchange.h"

struct df_forwarder; /* opaque: kept connections to the leader */

int df_forwarder_new(struct df_spawner *s, struct df_forwarder **ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_forwarder_free(struct df_forwarder *f); /* no exchange may be under way; NULL is fine */

/* Is this request another replica's to answer? Also while this one has just won the Lease and does
 * not know yet what leaders before it wrote; nobody leads then. */
bool df_forwards(const struct df_request *req);

int df_fail_no_leader(struct df_err *err, const char *why); /* RETRY, reason "NoLeader" */

/* Asks the leader, with the request's body as it was taken. RETRY, reason "NoLeader": nobody leads
 * now, or the leader does not answer; nothing was answered then. */
int df_forward(struct df_forwarder *f, struct df_request *req, struct df_response *res,
               struct df_err *err) DF_MUST_CHECK;

#endif
