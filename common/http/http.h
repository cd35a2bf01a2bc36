/*
 * http.h - HTTP requests over libcurl: blocking calls with caps, deadlines and kept connections.
 *
 * A struct df_http is a connection cache with TLS and credentials settings: create one per peer and
 * thread and reuse it. Redirects are not followed unless requested. Only http and https (and file
 * where allowed) are supported. Credentials are sent in headers; a URL that contains them is
 * refused. Proxies are taken from the usual variables (https_proxy, NO_PROXY, ...), but addresses
 * of this machine and of its link (metadata services) are always connected to directly. Thread
 * rule: a df_http is used by one thread at a time.
 */
#ifndef DF_HTTP_H
#define DF_HTTP_H

#include <sys/types.h>

#include "common/base/buf.h"
#include "common/base/strs.h"

struct df_http; /* opaque */

struct df_http_options {
    const char *ca_file; /* PEM; NULL: the system's */
    const char *ca_pem;  /* the same as text, instead of a file; or NULL */
    const char *bearer;  /* token, or NULL */
    const char *user;    /* with password: HTTP basic; or NULL */
    const char *password;
    const char *user_agent; /* NULL: "dayfly/<version>" */
    /* The name that the certificate must have, instead of the URL's host; or NULL. Not with
     * follow_redirects. */
    const char *server_name;
    bool insecure;     /* accepts any certificate: only if an operator configured it */
    const char *proxy; /* for every host, instead of the usual variables; "": none; or NULL */
    /* Of GET and HEAD: up to 5, never from https to http, never to file, never from elsewhere to an
     * address of this machine or its link; credentials are sent only to the original scheme, host
     * and port. */
    bool follow_redirects;
    bool allow_file; /* file:// too; its response has status 200 */
    /* Time limit for connecting, TLS included; 0: DF_TIMEOUT_CONNECT_MS. */
    int64_t connect_ms;
    size_t piece; /* bytes of a body that are received at once; 0: 16 KiB, curl's own */
};

/* The options are copied. */
int df_http_new(const struct df_http_options *options, struct df_http **ret,
                struct df_err *err) DF_MUST_CHECK;
void df_http_free(struct df_http *h); /* NULL is fine */
static inline void df_cleanup_http(struct df_http **h)
{
    df_http_free(*h);
}
#define DF_HTTP DF_CLEANUP(df_cleanup_http)

/* Replaces the bearer token (copied) for later calls. */
int df_http_set_bearer(struct df_http *h, const char *token, struct df_err *err) DF_MUST_CHECK;

/* Sets the client certificate and its key (PEM, copied) for later calls. A connection opened with
 * another certificate is not reused. */
int df_http_set_client_certificate(struct df_http *h, const char *cert_pem, const char *key_pem,
                                   struct df_err *err) DF_MUST_CHECK;

/* Keys that sign each later request as AWS's Signature Version 4 (s3, sts). All copied. */
struct df_http_aws {
    const char *access_key, *secret_key;
    const char *token;   /* of temporary keys: sent as X-Amz-Security-Token; or NULL */
    const char *region;  /* "eu-central-1" */
    const char *service; /* "s3" */
};
int df_http_set_aws(struct df_http *h, const struct df_http_aws *keys,
                    struct df_err *err) DF_MUST_CHECK;

/* Makes a waiting exchange check its stop flag now. The only function that other threads may call.
 */
void df_http_wake(struct df_http *h);

struct df_http_response;

struct df_http_request {
    const char *method; /* "GET", "POST", "LOCK", ... */
    const char *url;    /* NULL counts as out of memory */
    const struct df_strs
        *headers;             /* "Name: value", or NULL; sent to redirects too, so no secrets */
    const char *content_type; /* NULL: application/json when there is a body */
    const void *body;         /* or NULL */
    size_t body_len;
    int body_fd;        /* with body == NULL and >= 0: body_len bytes from its offset 0, streamed */
    int64_t timeout_ms; /* whole exchange; 0: DF_TIMEOUT_REQUEST_MS; -1: none (streams) */
    int64_t idle_timeout_ms; /* ends the exchange after this long without a byte; 0: none */
    size_t max_response;     /* 0: DF_LIMIT_HTTP_RESPONSE, with on_data: no limit */
    /* It is sent on a new connection, which ends with it. On a kept one that breaks before the
     * answer begins, curl sends any request again, also a POST that the peer has executed. */
    bool once;
    /* If set, each piece of a 2xx body goes here instead of into the response. If it returns -1 the
     * exchange ends; df_http_send() then returns 0 with stopped set. */
    int (*on_data)(void *arg, const char *bytes, size_t n);
    /* Called once before the first on_data, with everything but the body. Or NULL. */
    void (*on_head)(void *arg, const struct df_http_response *head);
    void *arg;
    const volatile bool
        *stop; /* when it becomes true the exchange ends within 100 ms, class RETRY; or NULL */
    bool
        stop_wakes; /* whoever sets *stop calls df_http_wake() afterwards: an idle exchange, such as
                        a stream that lasts for minutes, need not look at the flag by the clock */
};

#define DF_HTTP_REQUEST(m, u) ((struct df_http_request){.method = (m), .url = (u), .body_fd = -1})

struct df_http_response {
    int status; /* 100..599 */
    struct df_buf body;
    char content_type[128];
    char etag[128];
    char generation[32];    /* x-goog-generation, of an object of Google Cloud Storage */
    char bucket_region[40]; /* x-amz-bucket-region, of S3 */
    char location[1024];
    char date[64];     /* the header Date; "" if there is none */
    int retry_after_s; /* Retry-After in seconds, or -1 */
    bool stopped;      /* on_data ended it */
    bool is_foreign;   /* after a redirect to another scheme, host or port */
    bool is_unsent;    /* df_http_send() failed before anything of the request was sent */
};
void df_http_response_free(struct df_http_response *r);
#define DF_HTTP_RESPONSE DF_CLEANUP(df_http_response_free)

/* Sends a request. Any HTTP response is success, whatever its status. Failures: RETRY (no
 * connection, timeout, connection lost, stop; reason "Idle" after idle_timeout_ms), LIMIT (response
 * too large), USER (bad URL, header or CA file, scheme or redirect not allowed), DENIED (TLS
 * verification), NOT_FOUND (no such file:// file). Messages show the URL without its query. */
int df_http_send(struct df_http *h, const struct df_http_request *req, struct df_http_response *ret,
                 struct df_err *err) DF_MUST_CHECK;

/* GET of a document of at most ret->max bytes, which are appended. what: "get the keys". Fails as
 * df_http_send() and df_http_check() do. */
int df_http_get(struct df_http *h, const char *url, const char *what, struct df_buf *ret,
                struct df_err *err) DF_MUST_CHECK;

/* Turns a status >= 400 into a failure: class as in err.h (429, 502, 503, 504: RETRY); reason from
 * the last segment of the problem's type; message from its title and detail, or without a problem
 * document from the first line of a text body. A foreign response has no reason, and its text is
 * not in the message. 0 for a status below 400. what: "claim the step". */
int df_http_check(const struct df_http_response *r, const char *what,
                  struct df_err *err) DF_MUST_CHECK;

/* A date as in headers, "Tue, 24 Nov 2026 09:30:00 GMT", in microseconds; -1 if it is none. */
int df_http_date(const char *text, int64_t *ret_real_us) DF_MUST_CHECK;

/* The time of the header Date, by the peer's clock; -1 if it told none. */
int df_http_time(const struct df_http_response *r, int64_t *ret_real_us) DF_MUST_CHECK;

/* How far the peer's clock is ahead, in microseconds; 0: not so far that it can be measured.
 * from_us: when the request was sent. -1: the answer does not tell, or took too long. */
int df_http_clock_ahead(const struct df_http_response *r, int64_t from_us,
                        int64_t *ret_us) DF_MUST_CHECK;

/* Returns the host of a URL, without brackets and port. The caller frees; NULL if out of memory. */
char *df_url_host(const char *url);

/* True if both URLs have the same scheme, host and port; a port that is not there is that of the
 * scheme. False for what is no URL of http(s), has a user in it, or if out of memory. */
bool df_url_same_origin(const char *one, const char *other);

/* True for https, and for http to this machine by its address or as localhost: nobody on the way
 * reads or changes what goes there. False for what is no URL, has a user in it, or if out of
 * memory. */
bool df_url_is_safe(const char *url);

/* Percent-encodes a path segment or query value. The caller frees; NULL if out of memory. */
char *df_url_escape(const char *s);
/* The same, appended. */
void df_url_add_escaped(struct df_buf *out, const char *s);

/* A parameter of a query, not encoded. Borrowed. */
struct df_http_parameter {
    const char *name, *value;
};
/* Appends it to a URL, behind the query that it has, or as its first. */
void df_url_add_parameter(struct df_buf *url, const char *name, const char *value);

/* Call once per process, before other threads start. */
int df_http_global_init(struct df_err *err) DF_MUST_CHECK;

#endif
