/*
 * blob.h - named byte strings of any size: states, plans, logs. Durable when a call returned 0.
 *
 * Keys are slash-separated segments of [A-Za-z0-9._-], none of them "." or "..", at most
 * DF_LIMIT_BLOB_KEY bytes: class USER otherwise. A blob is replaced completely or not at all: after
 * a failure or a kill it is never half. Thread rule: any thread; the caller serialises two writers
 * of one key (create and append need no such lock).
 *
 * One interface, two backends. A directory: files of mode 0600, one process a directory. An object
 * store: any number of processes. The only object store is a namespace of Kubernetes: blobs are in
 * Secrets, and in ConfigMaps that only those Secrets can decrypt; failures are also those of
 * kube.h. There class RETRY may mean that the call succeeded and its answer was lost: repeat put
 * and delete; a repeated create or append fails with CONFLICT then. SYSTEM with the reason
 * BlobDamaged: the store answers, and this one blob is not what was put.
 */
#ifndef DF_BLOB_H
#define DF_BLOB_H

#include "common/base/buf.h"
#include "common/base/strs.h"

struct df_blob; /* opaque */
struct df_kube;

/* Creates the directory if it is absent; removes unfinished files of an earlier process. */
int df_blob_open(const char *directory, struct df_blob **ret, struct df_err *err) DF_MUST_CHECK;

/* The label of the Secrets and ConfigMaps that hold blobs: "head" or "chunk". */
#define DF_BLOB_LABEL "dayfly.dev/blob"

struct df_blob_kube_options {
    struct df_kube *kube; /* borrowed: must live on */
    const char *name_space;
    const char *directory; /* its tmp/ belongs to this process: created if absent, else emptied;
                              nothing else in the directory is touched */
};
/* In a namespace; head.h describes the layout. A blob has at most DF_LIMIT_BLOB_KUBE bytes: class
 * LIMIT beyond. Sends no request yet. What a killed writer left is removed by the first list an
 * hour later. */
int df_blob_kube_open(const struct df_blob_kube_options *o, struct df_blob **ret,
                      struct df_err *err) DF_MUST_CHECK;

void df_blob_close(struct df_blob *b); /* NULL is fine */
static inline void df_cleanup_blob(struct df_blob **b)
{
    df_blob_close(*b);
}
#define DF_BLOB DF_CLEANUP(df_cleanup_blob)

/* ---- a service that works with them ---------------------------------------------------------- */

struct df_blob_service {
    const char *place; /* for messages: "s3://bucket/prefix" */
    bool is_remote;    /* df_blob_probe() asks the store even if nothing failed before */
    /* What is worth a line of the log: reads or writes begin to fail (cls: how), or work again
     * (NONE); or a sweep left chunks whose head does not open (RETRY: it comes again), once for
     * each such state. In the thread of the call that found it, with no lock held. */
    void (*tell)(void *arg, enum df_err_class cls, const char *message);
    void *arg; /* borrowed */
};

/* To be called once when a service has started, before other threads use b. From now on what the
 * store refuses (DENIED: rights, keys; USER: a bucket that is gone) becomes RETRY with the reason
 * StorageRefused: it is no fault of the service's caller, and may be over without a restart.
 * Whether the store can be read and written is remembered. place is copied. */
int df_blob_serve(struct df_blob *b, const struct df_blob_service *service,
                  struct df_err *err) DF_MUST_CHECK;

/* 0: the last read and the last write were answered; or there was none, or no df_blob_serve(). Else
 * RETRY: what cannot be done, where, since when, and why; os_errno is that of the failure. Sends no
 * request. Thread rule: any. */
int df_blob_check(struct df_blob *b, struct df_err *err) DF_MUST_CHECK;

/* Tries the store when no request does: one read, if it is remote or reads failed last; the owner
 * of a remote one; the put and removal of one small blob, if writes failed last. df_blob_check()
 * has the result. Takes as long as the store lets it wait. Thread rule: one thread. */
void df_blob_probe(struct df_blob *b);

/* The reason of what is refused since another installation has the bucket. */
#define DF_BLOB_TAKEN_OVER "StorageTakenOver"

/* 0: the place is this installation's, or of a kind that nobody can take over. SYSTEM
 * StorageTakenOver: another one has the bucket now, and every write fails like this, too. at_once:
 * looks there, and may fail as the store does; else it tells what is known, without a request. */
int df_blob_check_owner(struct df_blob *b, bool at_once, struct df_err *err) DF_MUST_CHECK;

/* The service was asked to stop: what is repeated after a failure returns with it at once, and from
 * now on nothing is repeated. Thread rule: any. */
void df_blob_hasten(struct df_blob *b);

/* ---- blobs ----------------------------------------------------------------------------------- */

int df_blob_put(struct df_blob *b, const char *key, const void *bytes, size_t n,
                struct df_err *err) DF_MUST_CHECK;
/* CONFLICT if the key exists: locks are built on this. */
int df_blob_create(struct df_blob *b, const char *key, const void *bytes, size_t n,
                   struct df_err *err) DF_MUST_CHECK;
/* Moves a finished file (on the file system of df_blob_tmp_dir) into place. */
int df_blob_put_file(struct df_blob *b, const char *key, const char *path,
                     struct df_err *err) DF_MUST_CHECK;
/* Makes a blob durable whose call failed at its last sync. In an object store every blob is
 * durable. */
int df_blob_sync(struct df_blob *b, const char *key, struct df_err *err) DF_MUST_CHECK;
/* Appends to out; more than out->max: class LIMIT. */
int df_blob_get(struct df_blob *b, const char *key, struct df_buf *out,
                struct df_err *err) DF_MUST_CHECK;
/* An open descriptor for reading; the caller closes. size may be NULL. */
int df_blob_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                      struct df_err *err) DF_MUST_CHECK;
/* Appends the bytes from offset on to out, as far as out has room; none if the blob ends before.
 * *ret_size: of the whole blob at that moment. NOT_FOUND if absent. Bytes before offset are not
 * fetched. */
int df_blob_read_at(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                    int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
/* Absent is success. */
int df_blob_delete(struct df_blob *b, const char *key, struct df_err *err) DF_MUST_CHECK;
/* Whether a blob may go. */
struct df_blob_condition {
    size_t max; /* bytes of its content; more: class LIMIT */
    /* False: it stays. Asked again when the content was another one in the meantime: the last
     * answer counts. */
    bool (*agrees)(void *arg, const struct df_buf *content);
    void *arg;
};
enum df_blob_removal { DF_BLOB_REMOVED, DF_BLOB_ABSENT, DF_BLOB_STAYS };
/* Removes what agrees() agreed to (c NULL: whatever is there), and nothing that somebody else put
 * in its place meanwhile. For that a blob that this process created is not read again; but it stays
 * only for what is stored now. */
int df_blob_delete_if(struct df_blob *b, const char *key, const struct df_blob_condition *c,
                      enum df_blob_removal *ret, struct df_err *err) DF_MUST_CHECK;
/* Everything below prefix (a whole directory), and the directory. Absent is success. */
int df_blob_delete_all(struct df_blob *b, const char *prefix, struct df_err *err) DF_MUST_CHECK;
/* Keys below prefix (a whole directory; "" for all), sorted, added to out. */
int df_blob_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                 struct df_err *err) DF_MUST_CHECK;

struct df_blob_info {
    const char *key; /* borrowed */
    int64_t size; /* what it takes in a directory or bucket; in a cluster the size of its content */
    int64_t changed_us; /* by the store's clock; in a cluster: since when it exists */
};
/* Calls visit for each blob below prefix ("" for all), in no order, without reading any. visit
 * returns -1 with err to end the walk. A blob that is changed or removed meanwhile may be left
 * out. */
typedef int (*df_blob_visit)(void *arg, const struct df_blob_info *info, struct df_err *err);
int df_blob_each(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                 struct df_err *err) DF_MUST_CHECK;

/* For append-only blobs (streams). Appends at exactly this offset; CONFLICT with the real size in
 * *ret_size if the blob ends elsewhere: the caller cuts the overlap. ret_size is also set on
 * success. What a failed append wrote is removed, unless only its answer was lost. */
int df_blob_append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                   int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
/* 0 for an absent blob. */
int df_blob_size(struct df_blob *b, const char *key, int64_t *ret_size,
                 struct df_err *err) DF_MUST_CHECK;

/* Where to build files for df_blob_put_file. Borrowed. */
const char *df_blob_tmp_dir(const struct df_blob *b);

#endif
