/*
 * feed.h - several event streams of a server at once, read by a thread each, handed to one reader
 * that polls a descriptor.
 *
 * Thread rule: the functions are for one thread, the reader; the threads inside are the feed's own.
 * A reader that is slow slows the server down: at most FEED_QUEUE events wait.
 */
#ifndef DF_CLI_FEED_H
#define DF_CLI_FEED_H

#include "spawner/cli/client.h"

struct df_feed; /* opaque */

struct df_feed_event {
    int stream;    /* as given to df_feed_add() */
    char name[32]; /* of the event; "closed" once a stream is over, with *failure* */
    char id[DF_SSE_ID];
    cJSON *data;           /* owned; NULL for "closed" and for data that is no JSON */
    struct df_err failure; /* "closed": why; cls DF_ERR_NONE: the server ended it in order */
};
void df_feed_event_free(struct df_feed_event *e);
#define DF_FEED_EVENT DF_CLEANUP(df_feed_event_free)

int df_feed_open(struct df_feed **ret, struct df_err *err) DF_MUST_CHECK;
/* Stops the threads (within 100 ms) and drops what was not read. NULL is fine. */
void df_feed_close(struct df_feed *f);

/* Starts reading a stream from behind the event last_id (NULL or "": from its beginning). The
 * strings are copied. */
struct df_feed_source {
    const struct df_client_address *address;
    const char *path;
    const char *last_id;
    int stream;
};
int df_feed_add(struct df_feed *f, const struct df_feed_source *source,
                struct df_err *err) DF_MUST_CHECK;

/* Readable while there is something to take. Borrowed. */
int df_feed_fd(const struct df_feed *f);
/* Takes the oldest event; false when there is none now. Never blocks. */
bool df_feed_next(struct df_feed *f, struct df_feed_event *ret);

#endif
