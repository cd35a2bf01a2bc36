/*
 * forward.h - forwards requests to the leader: every replica accepts requests, but only the leader
 * executes them. The request is sent as it was received; the leader's response is relayed as a
 * stream. Both replicas check the authorization. Thread rule: any thread.
 */
#ifndef DF_SPAWNER_HTTP_FORWARD_H
#define DF_SPAWNER_HTTP_FORWARD_H

#include "spawner/http/request.h"

struct df_forwarder; /* opaque: a pool of connections to the leader */

int df_forwarder_new(struct df_spawner *s, struct df_forwarder **ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_forwarder_free(struct df_forwarder *f); /* no request may be in flight; NULL is fine */

/* True if this replica executes requests: it leads, or it is the only one. */
bool df_leads(const struct df_spawner *s);

/* True if this replica must forward the request. Also true on a new leader until its cache has the
 * writes of the previous leaders; until then no replica leads. */
bool df_forwards(const struct df_request *req);

/* True if another replica has sent the request, on a connection that it keeps. */
bool df_is_forwarded(const struct df_request *req);

/* Adds to the answer of a claim how the runner reaches the replica that leads without the hop over
 * another: leader{url, forwarded} (docs/step-protocol.md). Nothing without an election, or without
 * TLS, whose certificate proves that the runner has reached it. */
int df_offer_leader(const struct df_request *req, cJSON *document,
                    struct df_err *err) DF_MUST_CHECK;

int df_fail_no_leader(struct df_err *err, const char *why); /* RETRY, reason "NoLeader" */

/* Sends the request with its received body to the leader; *res becomes the leader's response.
 * RETRY, reason "NoLeader": no replica leads, or the leader does not respond; then *res is
 * unchanged. */
int df_forward(struct df_forwarder *f, struct df_request *req, struct df_response *res,
               struct df_err *err) DF_MUST_CHECK;

#endif
