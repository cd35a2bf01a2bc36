/*
 * follow.h - what all followers of a run share: waiting for news, server-sent events.
 *
 * A follower takes a mark, looks at everything that it shows, and when there was nothing new waits
 * for a change since that mark: no change is missed in between. While it waits it notices within a
 * second that its client went away or that the server stops.
 */
#ifndef DF_API_FOLLOW_H
#define DF_API_FOLLOW_H

#include "common/base/buf.h"
#include "spawner/api/exchange.h"

struct df_follower {
    struct df_api *api;
    struct df_spawner *s;
    int client_fd;
    char run[64];
    char step_uid[64]; /* whose streams are followed; "" while there is none */
    int64_t spoke_ms;  /* monotonic: when something was last sent */
};

void df_follower_init(struct df_follower *f, const struct df_request *req, const char *run);

/* Waits for news, with nothing to tell. What it returns is what the stream's next() is to return: 1
 * for news, or after 15 seconds with a comment that keeps proxies from closing a silent connection;
 * 0 when the server stops, which is said (the client may come back with Last-Event-ID); -1 when the
 * client went away. */
int df_follower_rest(struct df_follower *f, uint64_t mark, struct df_buf *out);

/* The mark to take before looking. */
uint64_t df_follower_mark(const struct df_follower *f);

/* One event: id and name may be NULL; data must have no line break. */
void df_sse_event(struct df_buf *out, const char *id, const char *name, const char *data);
/* The last event of a follower of a run: `end` with {"phase", "reason", "message"}. run NULL: it
 * was deleted. */
int df_sse_end(struct df_buf *out, const cJSON *run);

/* Appends n bytes as the inside of a JSON string; bytes that are no UTF-8 become U+FFFD. */
void df_sse_escape(struct df_buf *out, const char *bytes, size_t n);

/* How many bytes at the end of the n are the beginning of a character (0 to 3). */
size_t df_utf8_tail(const char *bytes, size_t n);

#endif
