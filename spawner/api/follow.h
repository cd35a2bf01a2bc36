/*
 * follow.h - the common part of all event streams: waiting for changes, server-sent events.
 *
 * A stream takes a mark, reads everything that it shows, and if nothing is new waits for a change
 * since that mark: so it misses no change. While it waits it notices within a second that its
 * client has disconnected or that the server stops.
 */
#ifndef DF_API_FOLLOW_H
#define DF_API_FOLLOW_H

#include "common/base/buf.h"
#include "spawner/http/request.h"
#include "spawner/journal/journal.h"
#include "spawner/model/recipe.h"

struct df_follower {
    struct df_api *api;
    struct df_spawner *s;
    const struct df_request *req; /* lives until its response has ended */
    /* The document that is followed, a run or a TaskAction; no name: all documents are. */
    enum df_kind kind;
    char name[64], uid[64];
    /* The TaskActions of it: those of the run's recipe, or the TaskAction itself. */
    char steps[DF_RECIPE_STEPS][64];
    size_t step_count;
    struct df_subscription subscription;
    int64_t sent_ms; /* monotonic: the last time that something was sent */
};

/* Fails with LIMIT TooManyRequests if the caller has as many streams as it may. Subscribes to the
 * document, a run or a TaskAction, and to its steps, and (streams) to the streams of these steps;
 * doc NULL: to all documents. */
int df_follower_init(struct df_follower *f, const struct df_request *req, enum df_kind kind,
                     const cJSON *doc, bool streams, struct df_err *err) DF_MUST_CHECK;
/* A reference to the document; *ret: NULL if it was deleted, also if another one has its name
 * since. */
int df_follower_look(struct df_follower *f, const cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Does the document, as it was looked at, change no more? */
bool df_follower_is_final(const struct df_follower *f, const cJSON *doc);
/* Ends the subscription. */
void df_follower_end(struct df_follower *f);

/* Blocks until something changed since the mark. Returns the value for the stream's next(): 1 for a
 * change, or after 15 seconds with a heartbeat comment in out, which keeps proxies from closing the
 * connection; 0 if the server stops, with an event that says so (the client may reconnect with
 * Last-Event-ID); -1 if the client has disconnected. */
int df_follower_wait(struct df_follower *f, uint64_t mark, struct df_buf *out);

/* Returns the mark to take before reading. */
uint64_t df_follower_mark(const struct df_follower *f);

/* Appends an event. id and name may be NULL; data must not contain a line break. */
void df_sse_event(struct df_buf *out, const char *id, const char *name, const char *data);
/* Appends the last event of the stream of a run or TaskAction: `end` with {"phase", "reason",
 * "message"}. doc NULL: it was deleted. */
int df_sse_end(struct df_buf *out, enum df_kind kind, const cJSON *doc);

/* Appends n bytes as the content of a JSON string; NUL and bytes that are not UTF-8 become U+FFFD.
 * Returns whether there are none of these. */
bool df_sse_escape(struct df_buf *out, const char *bytes, size_t n);

/* Returns how many bytes at the end are an incomplete character (0 to 3). */
size_t df_utf8_tail(const char *bytes, size_t n);

#endif
