/*
 * sse.h - server-sent events out of pieces of a body (WHATWG HTML, 9.2): field lines, a blank line
 * ends an event. Thread rule: one reader, one thread.
 */
#ifndef DF_CLI_SSE_H
#define DF_CLI_SSE_H

#include "common/base/buf.h"

#define DF_SSE_ID 160 /* longer ids are cut; a server of ours sends `<step>:<offset>` */

/* One event, borrowed during the call. */
struct df_sse_event {
    const char *name; /* "message" when the server named none */
    const char *id;   /* of this or the last event that had one: where to take up again; or "" */
    const char *data;
    size_t len;
};

/* Returns 0 to go on, -1 to stop. */
typedef int (*df_sse_fn)(void *arg, const struct df_sse_event *event);

struct df_sse {
    df_sse_fn fn;
    void *arg;
    struct df_buf line;
    struct df_buf data;
    char name[32];
    char id[DF_SSE_ID];
    bool after_cr; /* a LF now belongs to the CR before it */
};

/* An event may be as large as a document or a log frame, escaped. */
void df_sse_init(struct df_sse *s, df_sse_fn fn, void *arg);
void df_sse_free(struct df_sse *s);

/* Reads the next n bytes and calls fn for each event that is complete. -1 when fn stopped it
 * (*err untouched) or with class LIMIT when a line or event is too large. */
int df_sse_feed(struct df_sse *s, const char *bytes, size_t n, struct df_err *err);

#endif
