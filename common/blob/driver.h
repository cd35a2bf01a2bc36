/*
 * driver.h - the driver of a bucket (bucket.h) in the object store of a cloud. A request is sent a
 * second time where other credentials, the other region or the store's time may be accepted; a
 * protocol may ask for more, where a refusal does not say enough. What differs from store to store
 * is in a table: s3.c, gcs.c and azblob.c. Internal to common/blob. Thread rule: any thread.
 */
#ifndef DF_BLOB_DRIVER_H
#define DF_BLOB_DRIVER_H

#include "common/blob/bucket.h"
#include "common/http/pool.h"

struct df_driver_protocol;

/* What every driver begins with. */
struct df_driver {
    struct df_bucket bucket;
    const struct df_driver_protocol *protocol;
    char *url;              /* of the bucket, or of the service (GCS); without a slash at the end */
    char *prefix;           /* of the names of its objects, with a slash at the end; or "" */
    char *ca_file, *ca_pem; /* or NULL */
    struct df_http_pool *pool;
    bool names_keys; /* messages name the keys blobs.* of the configuration and the way out */
    int64_t skew_us; /* atomic: what the store's clock is ahead of ours, once that mattered */
};

static inline struct df_driver *df_driver_of(struct df_bucket *b)
{
    return (struct df_driver *)b; /* its first member */
}

/* ---- a request ---- */

enum df_driver_op {
    DF_DRIVER_GET,
    DF_DRIVER_PUT,
    DF_DRIVER_REMOVE,
    DF_DRIVER_LIST,
    DF_DRIVER_ASK, /* a description, for the protocol's own use */
    DF_DRIVER_OPS
};

enum { DF_DRIVER_PARAMETERS = 5 };

#define DF_DRIVER_CONTENT_TYPE "application/octet-stream" /* of every body */

/* What is asked of the store. All borrowed. */
struct df_driver_call {
    enum df_driver_op op;
    const char *name; /* of an object, without the prefix; "": the bucket itself */
    const char *what; /* for messages, instead of the op's word and the name; or NULL */
    struct df_http_parameter query[DF_DRIVER_PARAMETERS]; /* sorted by name */
    size_t query_len;
    const void *body; /* or NULL */
    size_t n;
    const struct df_bucket_version *version; /* NULL: any */
    size_t first;                            /* bytes of the object that are wanted; 0: all */
    size_t max_response;
    struct df_buf *out;          /* for the content, or NULL */
    struct df_driver_file *file; /* the same */
};

/* What a refusal says. */
struct df_driver_fault {
    int status;
    bool is_stores; /* GCS: the store said it, and not somebody on the way */
    char code[64], message[256];
    char region[64]; /* S3: where the bucket is */
};

/* A call on its way. */
struct df_driver_attempt {
    struct df_driver *driver;
    const struct df_driver_call *call;
    struct df_http *http;
    struct df_buf url;           /* owned; wiped, because it may have a signature */
    struct df_strs headers;      /* owned */
    struct df_http_response res; /* owned */
    struct df_driver_fault fault;
    int64_t
        skew_us; /* of the time that it is signed with: what the store's clock is ahead of ours */
    bool is_last, may_repeat; /* may_repeat: another attempt may be accepted */
};

/* Where a list goes on, and who gets what is in it. */
struct df_driver_page {
    const struct df_driver *driver;
    const struct df_bucket_sink *sink;
    char *next; /* owned; NULL: it is the last one */
};

/* What a store's protocol says. */
struct df_driver_protocol {
    struct df_driver_verb {
        const char *method, *word; /* word: for messages, before the name of an object */
    } verbs[DF_DRIVER_OPS];
    /* A version is a generation, and print_url() puts it into the URL. Else it is an ETag, and
     * stands in the headers If-Match and If-None-Match. */
    bool has_generations;
    /* Appends the URL of a call, without the parameters of its query. NULL: names are in it as they
     * are, behind the bucket's. */
    void (*print_url)(const struct df_driver_attempt *a, struct df_buf *out);
    /* Adds to the URL and the headers what proves who asks, calls df_driver_exchange(), and sets
     * may_repeat after a refusal. */
    int (*attempt)(struct df_driver_attempt *a, struct df_err *err);
    /* Fills in what the body of a refusal says. */
    void (*read_fault)(const struct df_http_response *res, struct df_driver_fault *f);
    enum df_err_class (*class_of)(const struct df_driver_call *c, const struct df_driver_fault *f);
    /* Appends what to do about a refusal: "; set ...". */
    void (*add_way_out)(const struct df_driver_attempt *a, struct df_buf *out);
    /* A call was refused, and failed as why says. 0: something was done about it, and the call is
     * sent once more. NULL: nothing can be done. */
    int (*recover)(struct df_driver *d, const struct df_driver_call *c,
                   const struct df_driver_fault *f, const struct df_err *why, struct df_err *err);
    /* Sets the query for the names with a prefix that come behind after (NULL: the first ones). */
    void (*ask_for_page)(struct df_driver_call *c, const char *prefix, const char *after);
    /* Calls df_driver_give() for each object in the answer, and sets p->next. */
    int (*read_page)(struct df_driver_page *p, const struct df_buf *body, struct df_err *err);
    /* As in struct df_bucket_ops, for a name with the prefix. NULL: the driver cannot tell. */
    int (*list_kept)(struct df_driver *d, const char *whole, size_t max,
                     const struct df_bucket_kept_sink *sink, struct df_err *err);
    const char *version_parameter; /* of a query that names one of those */
    /* Frees what the protocol's own struct has. */
    void (*free)(struct df_driver *d);
};

/* Sends a call, a second time if need be. Fails as bucket.h says. */
int df_driver_send(struct df_driver *d, const struct df_driver_call *c,
                   struct df_http_response *ret, struct df_err *err) DF_MUST_CHECK;

/* For attempt(): one exchange with the store. An answer with whatever status is success. */
int df_driver_exchange(struct df_driver_attempt *a, struct df_err *err) DF_MUST_CHECK;

/* True if the store refused the call, and there can be another attempt. */
bool df_driver_was_refused(const struct df_driver_attempt *a);

void df_driver_add_parameter(struct df_driver_call *c, const char *name, const char *value);

/* An object of a page: goes to the sink if it is ours. whole: its name, with the prefix. */
int df_driver_give(const struct df_driver_page *p, const char *whole, int64_t size, int64_t made_us,
                   struct df_err *err) DF_MUST_CHECK;

/* What a status of 300 and above means, unless the store's protocol says otherwise. */
enum df_err_class df_driver_class_of(int status);

/* Takes over the time of the answer as that of the store's clock. How far it is from what this
 * attempt took it for; 0: the answer has none. */
int64_t df_driver_take_time(struct df_driver_attempt *a);

/* Where save() writes. */
struct df_driver_file {
    int fd; /* borrowed */
    int64_t left;
    struct df_err err;
};
/* Empties the file. */
int df_driver_file_begin(struct df_driver_file *f, int fd, int64_t max,
                         struct df_err *err) DF_MUST_CHECK;
/* on_data of the request; arg is the struct df_driver_file. */
int df_driver_file_take(void *arg, const char *bytes, size_t n);
/* What prevented its end, after an answer. */
int df_driver_file_end(const struct df_driver_file *f, struct df_err *err) DF_MUST_CHECK;

/* ---- opening ---- */

struct df_driver_options {
    const struct df_driver_protocol *protocol;
    char *bucket,
        *url; /* "s3://bucket", and as in struct df_driver; both are taken; NULL: no memory */
    const char *prefix;           /* "" or NULL: the whole bucket is ours */
    const char *ca_file, *ca_pem; /* or NULL */
    bool names_keys;
};

/* Fills in d, which is all zero. On failure, too, df_driver_opened() is to be called. */
int df_driver_init(struct df_driver *d, const struct df_driver_options *o,
                   struct df_err *err) DF_MUST_CHECK;

/* The end of opening: hands d over as *ret; or, if result is -1, closes it and says where the place
 * is configured. */
int df_driver_opened(struct df_driver *d, int result, struct df_bucket **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* A prefix becomes a part of URLs. USER; so is "". */
int df_driver_check_prefix(const char *prefix, struct df_err *err) DF_MUST_CHECK;

/* https://host[:port], or http; NULL and "": the store's own. USER. */
int df_driver_check_endpoint(const char *endpoint, struct df_err *err) DF_MUST_CHECK;

/* Puts the key of the configuration whose value is wrong in front of a message, if names_keys.
 * Returns -1. */
int df_driver_at(bool names_keys, const char *key, struct df_err *err);

#endif
