/*
 * client.h - a spawner's REST interface as calls: JSON in, JSON out, problems as errors.
 *
 * Thread rule: one client, one thread; make another one for another thread.
 */
#ifndef DF_CLI_CLIENT_H
#define DF_CLI_CLIENT_H

#include "common/http/http.h"
#include "common/json/json.h"
#include "spawner/cli/sse.h"

/* Where a spawner is and who we are to it. */
struct df_client_address {
    char *url;     /* owned, without a slash at the end */
    char *token;   /* owned, a secret; NULL: none */
    char *ca_file; /* owned; NULL: the system's */
};
void df_client_address_free(struct df_client_address *a);
int df_client_address_copy(const struct df_client_address *from, struct df_client_address *ret,
                           struct df_err *err) DF_MUST_CHECK;

struct df_client; /* opaque */

/* The address is copied. Connects to nothing yet. */
int df_client_new(const struct df_client_address *address, struct df_client **ret,
                  struct df_err *err) DF_MUST_CHECK;
void df_client_free(struct df_client *c); /* NULL is fine */

const struct df_client_address *df_client_address_of(const struct df_client *c);

/* "/v1/" and the segments, each percent-encoded, up to a NULL. The caller frees; NULL on no memory.
 */
char *df_path(const char *first, ...) __attribute__((sentinel));

/* Sends body (or none) as JSON and reads a JSON answer; an answer without content is NULL in *ret.
 * ret may be NULL. Every POST carries a fresh Idempotency-Key unless key gives one, so that a
 * repeated attempt with the same key is the same request. A problem becomes an error with its class
 * and reason; RETRY: the server was not reached or the answer was lost. */
int df_client_call(struct df_client *c, const char *method, const char *path, const cJSON *body,
                   const char *key, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Does a spawner answer there? RETRY if not. */
int df_client_alive(struct df_client *c, struct df_err *err) DF_MUST_CHECK;

/* PUT of bytes as they are. */
int df_client_put_bytes(struct df_client *c, const char *path, const void *bytes, size_t n,
                        struct df_err *err) DF_MUST_CHECK;

/* POST of the first n bytes of a file as they are, streamed; the JSON answer in *ret (may be NULL).
 */
int df_client_post_file(struct df_client *c, const char *path, int fd, size_t n, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;

/* GET of a body of any size, handed to fn in pieces as it comes; fn returns -1 to stop (success).
 */
typedef int (*df_bytes_fn)(void *arg, const char *bytes, size_t n);
int df_client_fetch(struct df_client *c, const char *path, df_bytes_fn fn, void *arg,
                    struct df_err *err) DF_MUST_CHECK;
/* The same into a file descriptor. */
int df_client_download(struct df_client *c, const char *path, int fd,
                       struct df_err *err) DF_MUST_CHECK;

/* A stream to read: where, from which event on, who takes the events, what ends it. */
struct df_client_stream {
    const char *path;
    const char *last_id; /* of the last event that was seen; NULL or "": from the beginning */
    df_sse_fn fn;        /* -1 ends the stream, which is success */
    void *arg;
    const volatile bool *stop; /* or NULL */
};

/* Reads until the server ends it, fn does, or *stop turns true (RETRY). A server that is silent for
 * DF_CLIENT_SILENCE_MS is taken for lost (RETRY): ours says at least every 15 seconds that it
 * lives. */
#define DF_CLIENT_SILENCE_MS 60000
int df_client_stream(struct df_client *c, const struct df_client_stream *stream,
                     struct df_err *err) DF_MUST_CHECK;

#endif
