/*
 * sender.h - the thread that delivers a step's log, events and progress to the spawner.
 *
 * Two spools feed it. The first bytes after a pause are posted at once; while a stream flows, posts
 * are DF_SENDER_GAP_MS apart, or DF_SENDER_GAP_FACTOR times what the last one took, but not more
 * than DF_SENDER_GAP_MAX_MS; they carry up to DF_LIMIT_STREAM_FRAME bytes. Progress is posted at
 * most every DF_PROGRESS_GAP_MS, and not after df_sender_drain(). The sender needs memory for one
 * frame. If there is nothing to send, it asks for the end of the log every few seconds, so that a
 * step that prints nothing notices a cancel. Thread rule: append to one stream from one thread;
 * everything else from the owner's thread.
 */
#ifndef DF_REPORT_SENDER_H
#define DF_REPORT_SENDER_H

#include "common/json/json.h"
#include "runner/report/link.h"

enum df_stream { DF_STREAM_LOG, DF_STREAM_EVENTS, DF_STREAMS };

#define DF_SENDER_GAP_MS 15
#define DF_SENDER_GAP_FACTOR 10
#define DF_SENDER_GAP_MAX_MS 250

struct df_sender; /* opaque */

/* Creates the spools spool_dir/log and spool_dir/events; no thread yet. */
int df_sender_new(const char *spool_dir, struct df_sender **ret, struct df_err *err) DF_MUST_CHECK;
/* Starts the thread, once. Takes over the link, also on failure. */
int df_sender_start(struct df_sender *s, struct df_link *link, struct df_err *err) DF_MUST_CHECK;
/* Ends the thread within 100 ms; undelivered bytes stay in the spools. NULL is fine. */
void df_sender_free(struct df_sender *s);

/* Never waits for the network. Fails if the spool cannot be written. */
int df_sender_append(struct df_sender *s, enum df_stream stream, const char *bytes, size_t n,
                     struct df_err *err) DF_MUST_CHECK;
/* Merges body, borrowed, into the progress that is not sent yet. hurries: it changes the step's
 * phase. Drops it if there is no memory. */
void df_sender_progress(struct df_sender *s, const cJSON *body, bool hurries);

/* Ends the streams and waits until each is acknowledged or refused, the step is over, or
 * deadline_ms (of df_mono_ms()). Once *stop is true (NULL: never) the first failure ends the
 * wait. */
void df_sender_drain(struct df_sender *s, int64_t deadline_ms, const volatile bool *stop);
/* Bytes of the stream so far. */
uint64_t df_sender_size(struct df_sender *s, enum df_stream stream);

/* The spawner answered 410: the thread sets it, or the owner if another request of the step got the
 * answer. The flag is for df_http_request.stop, the descriptor (readable from then on) for poll(2);
 * both belong to the sender. */
void df_sender_set_over(struct df_sender *s);
const volatile bool *df_sender_over(const struct df_sender *s);
int df_sender_over_fd(const struct df_sender *s);

#endif
