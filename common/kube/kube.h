/*
 * kube.h - the API server of a Kubernetes cluster: plain verbs over any resource.
 *
 * Contract: the Kubernetes API conventions (resourceVersion, optimistic locking, Status objects,
 * lists in pages). Objects are cJSON trees as they travel. Every answer is capped.
 *
 * Failures of every verb carry what the API server said, with verb and resource named; never a
 * token, and of Secrets no value:
 *   USER       the object or the request is wrong: 400, 405, 415, 422 (reason "Invalid", the causes
 *              in the message)
 *   DENIED     401 (after the credentials were read once more), 403, TLS verification
 *   NOT_FOUND  404
 *   CONFLICT   409, reason "AlreadyExists" or "Conflict" (resourceVersion, precondition); 410,
 *              reason "Expired": the resourceVersion is too old to go on from
 *   LIMIT      413, or an answer over its cap
 *   RETRY      429, every 5xx, no connection; err->retry_after_s when the server said for how long
 * What was sent and not answered (RETRY) may have been done.
 *
 * Thread rule: one client, any number of threads; each call has a kept connection to itself.
 */
#ifndef DF_KUBE_H
#define DF_KUBE_H

#include "common/json/json.h"
#include "common/kube/config.h"

struct df_kube; /* opaque */

/* The configuration moves into the client: *config is empty afterwards, also on failure. Connects
 * to nothing yet. */
int df_kube_new(struct df_kube_config *config, struct df_kube **ret,
                struct df_err *err) DF_MUST_CHECK;
/* No call, watch or cache may be under way. NULL is fine. */
void df_kube_free(struct df_kube *k);
static inline void df_cleanup_kube(struct df_kube **k)
{
    df_kube_free(*k);
}
#define DF_KUBE DF_CLEANUP(df_cleanup_kube)

/* From now on every call that changes something first asks may_write (any thread, at once), and is
 * refused without it: RETRY, reason "NotLeader". Before other threads use the client. */
void df_kube_fence(struct df_kube *k, bool (*may_write)(void *arg), void *arg);

/* The namespace of the configuration; never NULL. */
const char *df_kube_namespace(const struct df_kube *k);
/* Where the API server is, for messages. */
const char *df_kube_server(const struct df_kube *k);

/* A resource type: {"batch", "v1", "jobs"}; the core group is "". */
struct df_kube_resource {
    const char *group, *version, *plural;
};
extern const struct df_kube_resource df_kube_jobs, df_kube_pods, df_kube_events, df_kube_secrets,
    df_kube_config_maps, df_kube_leases;

/* What a call is about. All borrowed during the call. */
struct df_kube_at {
    const struct df_kube_resource *resource;
    const char *name_space;    /* NULL: a cluster's resource, or all namespaces (list, watch) */
    const char *name;          /* NULL: the collection */
    const char *subresource;   /* "status", "log", ...; or NULL */
    const volatile bool *stop; /* when it turns true the call ends soon, class RETRY; or NULL */
    bool metadata_only; /* the answer is apiVersion, kind and metadata alone: for large objects */
};

/* ret may be NULL in all of these when the answer is not wanted; else the caller owns *ret. */

/* Fields that the server does not know are refused, not dropped silently. */
int df_kube_create(struct df_kube *k, const struct df_kube_at *at, const cJSON *object, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* The same, but nothing is made: would the server take it, admission and quotas included? */
int df_kube_dry_run(struct df_kube *k, const struct df_kube_at *at, const cJSON *object,
                    struct df_err *err) DF_MUST_CHECK;
int df_kube_get(struct df_kube *k, const struct df_kube_at *at, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;
/* PUT: the object's metadata.resourceVersion is the one that must still hold. */
int df_kube_update(struct df_kube *k, const struct df_kube_at *at, const cJSON *object, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

enum df_kube_patch_type {
    DF_KUBE_PATCH_MERGE,     /* RFC 7386; a metadata.resourceVersion in it must still hold */
    DF_KUBE_PATCH_STRATEGIC, /* built-in resources only */
    DF_KUBE_PATCH_JSON,      /* RFC 6902 */
    DF_KUBE_PATCH_APPLY      /* server-side apply: the object's own fields, made if absent */
};
struct df_kube_patch {
    enum df_kube_patch_type type;
    const cJSON *body;
    const char *manager; /* of the fields; required for APPLY, else it may be NULL */
    bool force;          /* APPLY takes fields over from other managers */
};
int df_kube_patch(struct df_kube *k, const struct df_kube_at *at, const struct df_kube_patch *patch,
                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;

struct df_kube_delete_options {
    const char *uid;              /* only if it still is this one; else CONFLICT. Or NULL */
    const char *resource_version; /* the same; or NULL */
    const char *propagation;      /* "Background", "Foreground", "Orphan"; NULL: the default */
    int64_t grace_seconds;        /* -1: the object's own */
};
#define DF_KUBE_DELETE_OPTIONS ((struct df_kube_delete_options){.grace_seconds = -1})
/* Absent is NOT_FOUND: the caller knows whether that is success. The object may live on for its
 * grace period and finalizers. */
int df_kube_delete(struct df_kube *k, const struct df_kube_at *at,
                   const struct df_kube_delete_options *o, struct df_err *err) DF_MUST_CHECK;

struct df_kube_select {
    const char *labels; /* "app=dayfly,!old", as it travels; or NULL */
    const char *fields; /* "status.phase=Running"; or NULL */
};

/* Takes a list as it comes. Both may end the list by returning -1 with err. */
struct df_kube_sink {
    /* A list begins, as of this resourceVersion. It may begin again when the server forgot it half
     * way (410): what was given before counts no more. Or NULL. */
    int (*begin)(void *arg, const char *resource_version, struct df_err *err);
    /* One object, borrowed. Items of a list bring no apiVersion and kind. */
    int (*item)(void *arg, const cJSON *object, struct df_err *err);
    void *arg;
    /* Objects come without members of these names, wherever they stand (ended by NULL); or NULL. */
    const char *const *without;
};
enum { DF_KUBE_PAGE = 200 }; /* objects: some MiB as trees */
/* All objects, in pages, from etcd's own truth (never from a cache that lags behind). page: objects
 * at once, 0 for DF_KUBE_PAGE; a page over the cap is asked for again in smaller ones. */
int df_kube_list(struct df_kube *k, const struct df_kube_at *at,
                 const struct df_kube_select *select, unsigned page,
                 const struct df_kube_sink *sink, struct df_err *err) DF_MUST_CHECK;

/* Any other GET, as "/version" or "/openid/v1/jwks". */
int df_kube_get_raw(struct df_kube *k, const char *path, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* The server's clock, in whole seconds of real time as microseconds. */
int df_kube_time(struct df_kube *k, int64_t *ret_real_us, struct df_err *err) DF_MUST_CHECK;

/* What every object has. Borrowed; NULL when it is missing. */
const char *df_kube_name(const cJSON *object);
const char *df_kube_uid(const cJSON *object);
const char *df_kube_version(const cJSON *object); /* metadata.resourceVersion */
const char *df_kube_label(const cJSON *object, const char *key);
const char *df_kube_annotation(const cJSON *object, const char *key);
/* Did somebody ask for its deletion? It goes when its grace is over and no finalizer holds it. */
bool df_kube_is_deleted(const cJSON *object);

#endif
