/*
 * client.h - an HTTP client for a spawner's REST API: sends and parses JSON, and turns problem
 * documents into errors.
 *
 * Thread rule: one client, one thread; create another client for another thread.
 */
#ifndef DF_CLI_CLIENT_H
#define DF_CLI_CLIENT_H

#include "common/http/http.h"
#include "common/json/json.h"
#include "spawner/cli/sse.h"

/* The address of a spawner, and the caller's identity. */
struct df_client_address {
    char *url;     /* owned, without a slash at the end */
    char *token;   /* owned, a secret; NULL: none */
    char *ca_file; /* owned; NULL: the system's */
    bool is_login; /* the token is that of a login (login/logins.h), which a client reads when it
                    * needs it */
    bool is_stray; /* the caller has a token but named no server: that of this machine gets it */
};
void df_client_address_free(struct df_client_address *a);
int df_client_address_copy(const struct df_client_address *from, struct df_client_address *ret,
                           struct df_err *err) DF_MUST_CHECK;

struct df_client; /* opaque */

/* Copies the address. The first request connects. */
int df_client_new(const struct df_client_address *address, struct df_client **ret,
                  struct df_err *err) DF_MUST_CHECK;
void df_client_free(struct df_client *c); /* NULL is fine */

const struct df_client_address *df_client_address_of(const struct df_client *c);

/* Makes the token of a login one that is good for a while; each request below does so. Errors of
 * df_logins_token(). */
int df_client_renew(struct df_client *c, struct df_err *err) DF_MUST_CHECK;

/* "/v1" followed by the segments, each percent-encoded, up to a NULL. The caller frees. NULL: no
 * memory. */
char *df_path(const char *first, ...) __attribute__((sentinel));

/* For all requests below, a path NULL counts as out of memory.
 *
 * Sends body (may be NULL) as JSON and parses the JSON answer; *ret is NULL if the answer has no
 * content. ret may be NULL. A POST carries an Idempotency-Key: key, or a new one if it is NULL. The
 * server takes requests with the same key for the same request. A problem document becomes an error
 * with its class and reason. RETRY: the server could not be reached or the answer was lost. */
int df_client_call(struct df_client *c, const char *method, const char *path, const cJSON *body,
                   const char *key, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Succeeds if a spawner answers at the address; else RETRY. */
int df_client_alive(struct df_client *c, struct df_err *err) DF_MUST_CHECK;

/* PUT of n bytes as an octet stream. */
int df_client_put_bytes(struct df_client *c, const char *path, const void *bytes, size_t n,
                        struct df_err *err) DF_MUST_CHECK;

/* POST of the first n bytes of a file, unchanged and streamed. *ret: the JSON answer; ret may be
 * NULL. */
int df_client_post_file(struct df_client *c, const char *path, int fd, size_t n, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;

/* GET of a body of any size, passed to fn in pieces. fn returns -1 to stop, which is success. */
typedef int (*df_bytes_fn)(void *arg, const char *bytes, size_t n);
int df_client_fetch(struct df_client *c, const char *path, df_bytes_fn fn, void *arg,
                    struct df_err *err) DF_MUST_CHECK;
/* The same; writes the body to a file descriptor. */
int df_client_download(struct df_client *c, const char *path, int fd,
                       struct df_err *err) DF_MUST_CHECK;

/* An event stream to read. */
struct df_client_stream {
    const char *path;
    const char *last_id; /* of the last event that was seen; NULL or "": from the beginning */
    df_sse_fn fn;        /* -1 ends the stream, which is success */
    void *arg;
    const volatile bool *stop; /* or NULL */
};

/* Reads until the server or fn ends the stream, or until *stop becomes true (RETRY). A server that
 * sends nothing for DF_CLIENT_SILENCE_MS counts as lost (RETRY): a spawner sends a heartbeat every
 * 15 seconds. */
#define DF_CLIENT_SILENCE_MS 60000
int df_client_stream(struct df_client *c, const struct df_client_stream *stream,
                     struct df_err *err) DF_MUST_CHECK;

#endif
