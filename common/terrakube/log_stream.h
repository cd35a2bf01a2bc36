/*
 * log_stream.h - the lines of a step in Redis, where Terrakube's API reads them while the step
 * runs, and the heartbeat that tells the API that the job lives (2.33 on).
 *
 * One thread of its own sends: lines are queued (bounded), sent many at a time, and never block or
 * fail a step: a Redis that is away is tried again, and what does not fit is counted in a line of
 * its own. When a connection breaks, lines of the last batch may be written twice; none is left
 * out. The saved output of the step has everything in any case. With LogViaApi lines go to the API
 * by HTTP instead; heartbeat and live structured output still need a Redis, and are left out
 * without. Thread rule: calls from one thread. The program ignores SIGPIPE.
 */
#ifndef DF_TERRAKUBE_LOG_STREAM_H
#define DF_TERRAKUBE_LOG_STREAM_H

#include "common/base/wait_listener.h"
#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"

struct df_terrakube_stream; /* opaque */

/* Starts the thread and the heartbeat. Lines wait until _open(). s, p, pod and listener are
 * borrowed; the last two are those of heartbeat.h. */
int df_terrakube_stream_new(const struct df_terrakube_settings *s,
                            const struct df_terrakube_payload *p, const char *pod,
                            const struct df_wait_listener *listener,
                            struct df_terrakube_stream **ret, struct df_err *err) DF_MUST_CHECK;
/* From now on lines may be sent: the API has made its peace with the job's stream (queue race). */
void df_terrakube_stream_open(struct df_terrakube_stream *s);
/* Bytes of the log; LF and a lone CR end a line. */
void df_terrakube_stream_add(struct df_terrakube_stream *s, const char *bytes, size_t n);
/* One entry that may hold newlines (a banner). Ends a line that has no end yet. */
void df_terrakube_stream_entry(struct df_terrakube_stream *s, const char *text, size_t n);
/* Live structured output: one entry of "<job>-context". Left out while half of the queue is
 * full. */
void df_terrakube_stream_context(struct df_terrakube_stream *s, const char *json);
/* Ends a line that has no end yet, and waits until all lines are sent, at most this long. False:
 * some are not; then *why, which may be NULL, says what keeps them back. Does not wait for what
 * does not change: a wrong password, a stream that is not open. */
bool df_terrakube_stream_flush(struct df_terrakube_stream *s, int64_t timeout_ms,
                               struct df_err *why);
/* Ends the thread, forgets what was not sent, and removes the heartbeat. Takes as long as one
 * attempt to reach Redis at most. NULL is fine. */
void df_terrakube_stream_free(struct df_terrakube_stream *s);

#endif
