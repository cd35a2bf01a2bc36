/*
 * link.h - the way to the spawner for one step and one thread: its address, which may change when
 * it restarts, and the back-off between tries.
 *
 * Thread rule: one link, one thread.
 */
#ifndef DF_REPORT_LINK_H
#define DF_REPORT_LINK_H

#include "common/http/http.h"

struct df_link; /* opaque */

struct df_link_options {
    const char *server;        /* URL */
    const char *endpoint_file; /* where the URL of a spawner that came back stands; or NULL */
    const char *ca_file;       /* PEM to trust; NULL: the system's */
    const char *uid;
    const char *token;      /* the bearer; NULL with token_file */
    const char *token_file; /* the bearer is read from it anew at each try: Kubernetes renews it */
};
/* The strings are copied. Connects lazily. */
int df_link_new(const struct df_link_options *o, struct df_link **ret,
                struct df_err *err) DF_MUST_CHECK;
/* A second link to the same step, for another thread. */
int df_link_copy(const struct df_link *l, const char *token, struct df_link **ret,
                 struct df_err *err) DF_MUST_CHECK;
void df_link_free(struct df_link *l); /* NULL is fine */
static inline void df_cleanup_link(struct df_link **l)
{
    df_link_free(*l);
}
#define DF_LINK DF_CLEANUP(df_cleanup_link)

/* The bearer from now on; a token file is forgotten. */
int df_link_set_token(struct df_link *l, const char *token, struct df_err *err) DF_MUST_CHECK;

/* One try. path begins behind /v1/steps/{uid}; req->url is set here, and idle_timeout_ms
 * where there is none. Success is any answer. */
int df_link_send(struct df_link *l, struct df_http_request *req, const char *path,
                 struct df_http_response *ret, struct df_err *err) DF_MUST_CHECK;

/* How long to wait before the next try, in milliseconds: 25 doubling up to 2000, less a random part
 * of up to a half. Reads endpoint_file again. An answer to df_link_send() below 500 starts over. */
int64_t df_link_next_pause_ms(struct df_link *l);

/* When to give up trying: at deadline_ms (of df_mono_ms()), or as soon as *stop turns true (NULL:
 * never). */
struct df_patience {
    int64_t deadline_ms;
    const volatile bool *stop;
};

/* May the same request succeed later? sent and err are what df_link_send() returned. */
bool df_link_is_passing(int sent, const struct df_http_response *answer, const struct df_err *err);
/* Waits for the next try. False: patience is at its end. */
bool df_link_pause(struct df_link *l, const struct df_patience *p);

/* Sends until there is a definite answer, which may be a refusal, or patience ends. */
int df_link_try(struct df_link *l, struct df_http_request *req, const char *path,
                const struct df_patience *p, struct df_http_response *ret,
                struct df_err *err) DF_MUST_CHECK;

#endif
