/*
 * feed.h - reads several event streams of a server, each in a thread of its own, and merges them
 * into one queue. The reader polls a descriptor.
 *
 * The queue has FEED_QUEUE events. If the reader is slow, the threads wait, and so does the server.
 * Thread rule: one thread, the reader, calls these functions; the feed owns the other threads.
 */
#ifndef DF_CLI_FEED_H
#define DF_CLI_FEED_H

#include "spawner/cli/client.h"

struct df_feed; /* opaque */

struct df_feed_event {
    int stream;    /* as given to df_feed_add() */
    char name[32]; /* of the event; "closed": the stream has ended, see failure */
    char id[DF_SSE_ID];
    cJSON *data;           /* owned; NULL for "closed" and for data that is not JSON */
    struct df_err failure; /* "closed": the cause; cls DF_ERR_NONE: the server ended it */
};
void df_feed_event_free(struct df_feed_event *e);
#define DF_FEED_EVENT DF_CLEANUP(df_feed_event_free)

int df_feed_open(struct df_feed **ret, struct df_err *err) DF_MUST_CHECK;
/* Stops the threads (within 100 ms) and drops the events that were not read. NULL is fine. */
void df_feed_close(struct df_feed *f);

/* Starts to read a stream after the event last_id (NULL or "": from its beginning). Copies the
 * strings. */
struct df_feed_source {
    const struct df_client_address *address;
    const char *path;
    const char *last_id;
    int stream;
};
int df_feed_add(struct df_feed *f, const struct df_feed_source *source,
                struct df_err *err) DF_MUST_CHECK;

/* Readable while the queue has events. Borrowed. */
int df_feed_fd(const struct df_feed *f);
/* Takes the oldest event; false if the queue is empty. Never blocks. */
bool df_feed_next(struct df_feed *f, struct df_feed_event *ret);

#endif
