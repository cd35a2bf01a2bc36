/*
 * link.h - the connection of one step (or of a runner that waits for one) and one thread to the
 * spawner: its address, which may change when the spawner restarts, and the back-off between
 * attempts. A proxy of the environment is not used: clusters add one to pods, and it rarely reaches
 * the services of the cluster.
 *
 * Thread rule: one link, one thread.
 */
#ifndef DF_REPORT_LINK_H
#define DF_REPORT_LINK_H

#include "common/http/http.h"

struct df_link; /* opaque */

struct df_link_options {
    const char *server;        /* URL */
    const char *endpoint_file; /* has the URL of a spawner that restarted; or NULL */
    const char *ca_file;       /* PEM to trust; NULL: the system's */
    const char *uid;           /* of the step */
    const char *runner;        /* instead: the id of a runner that waits for its step */
    const char *token;         /* the bearer; NULL with token_file */
    const char *token_file;    /* read again for each attempt, because Kubernetes renews it */
};
/* The strings are copied. Connects lazily. */
int df_link_new(const struct df_link_options *o, struct df_link **ret,
                struct df_err *err) DF_MUST_CHECK;
/* A second link to the same step, for another thread, without its leader. */
int df_link_copy(const struct df_link *l, struct df_link **ret, struct df_err *err) DF_MUST_CHECK;
void df_link_free(struct df_link *l); /* NULL is fine */
static inline void df_cleanup_link(struct df_link **l)
{
    df_link_free(*l);
}
#define DF_LINK DF_CLEANUP(df_cleanup_link)

/* From now on the link is of this step, and has this bearer instead of a token file. */
int df_link_set_step(struct df_link *l, const char *uid, const char *token,
                     struct df_err *err) DF_MUST_CHECK;

/* From now on the link asks the replica at this URL (copied), whose certificate has the name of the
 * server, on a new connection. The first request that fails there ends that: then the server is
 * asked again. Not of a link with a token file or an endpoint file. Without memory, or if the URL
 * has no TLS and the server's has, nothing changes. */
void df_link_set_leader(struct df_link *l, const char *url);
/* True, once, if the last attempt failed at the leader: the same request to the server may follow
 * at once. */
bool df_link_has_left_leader(struct df_link *l);

/* One attempt. path is relative to /v1/steps/{uid}, or to /v1/runners/{runner}; sets req->url, and
 * idle_timeout_ms if it is 0. Any answer is success. */
int df_link_send(struct df_link *l, struct df_http_request *req, const char *path,
                 struct df_http_response *ret, struct df_err *err) DF_MUST_CHECK;

/* True if the spawner has one address for good: no other service can answer there. */
bool df_link_is_fixed(const struct df_link *l);

/* The pause before the next attempt in milliseconds: 25, doubling up to 2000, less a random part of
 * up to a half. Reads endpoint_file again. An answer below 500 to df_link_send() resets it. */
int64_t df_link_next_pause_ms(struct df_link *l);

/* When to stop retrying: at deadline_ms (of df_mono_ms()), or once *stop is true (NULL: never). */
struct df_retry {
    int64_t deadline_ms;
    const volatile bool *stop;
};

/* True if the same request may succeed later. sent and err: of df_link_send(). */
bool df_link_is_passing(int sent, const struct df_http_response *answer, const struct df_err *err);
/* Waits before the next attempt. False: p has ended. */
bool df_link_pause(struct df_link *l, const struct df_retry *p);

/* Retries until there is a definite answer, which may be a refusal, or p ends. req->stop ends also
 * an attempt that is under way; NULL: that of p. */
int df_link_try(struct df_link *l, struct df_http_request *req, const char *path,
                const struct df_retry *p, struct df_http_response *ret,
                struct df_err *err) DF_MUST_CHECK;

#endif
