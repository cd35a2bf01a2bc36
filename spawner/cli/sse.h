/*
 * sse.h - parses server-sent events (WHATWG HTML, 9.2) from pieces of a body. Thread rule: one
 * reader, one thread.
 */
#ifndef DF_CLI_SSE_H
#define DF_CLI_SSE_H

#include "common/base/buf.h"

#define DF_SSE_ID 160 /* longer ids are cut; a spawner sends `<step>:<offset>` */

/* One event, borrowed during the call. */
struct df_sse_event {
    const char *name; /* "message" if the server sent none */
    const char *id;   /* of the latest event with an id, to resume after it; or "" */
    const char *data;
    size_t len;
};

/* Returns 0 to continue, -1 to stop. */
typedef int (*df_sse_fn)(void *arg, const struct df_sse_event *event);

struct df_sse {
    df_sse_fn fn;
    void *arg;
    struct df_buf line;
    struct df_buf data;
    char name[32];
    char id[DF_SSE_ID];
    bool after_cr; /* the last byte was a CR: skip a LF now */
};

/* An event may have DF_LIMIT_SSE_EVENT bytes: a document or a log frame, escaped. */
void df_sse_init(struct df_sse *s, df_sse_fn fn, void *arg);
void df_sse_free(struct df_sse *s);

/* Parses the next n bytes and calls fn for each complete event. Returns -1 if fn stopped it (*err
 * is not set), or with class LIMIT if a line or event is too large. */
int df_sse_feed(struct df_sse *s, const char *bytes, size_t n, struct df_err *err);

#endif
