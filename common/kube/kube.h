/*
 * kube.h - the API server of a Kubernetes cluster: the verbs, over any resource.
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
 * After RETRY a request without an answer may have been executed all the same.
 *
 * Thread rule: one client, any number of threads; each call has a kept connection to itself.
 */
#ifndef DF_KUBE_H
#define DF_KUBE_H

#include "common/json/json.h"
#include "common/kube/config.h"

struct df_kube; /* opaque */

/* Takes ownership of the configuration: *config is empty afterwards, also on failure. Does not
 * connect yet. */
int df_kube_new(struct df_kube_config *config, struct df_kube **ret,
                struct df_err *err) DF_MUST_CHECK;
/* Must not be called while a call, watch or cache is in use. NULL is fine. */
void df_kube_free(struct df_kube *k);
static inline void df_cleanup_kube(struct df_kube **k)
{
    df_kube_free(*k);
}
#define DF_KUBE DF_CLEANUP(df_cleanup_kube)

/* From now on every call that changes something first calls may_write (from any thread, at once).
 * If it returns false the call fails with RETRY NotLeader. Set it before other threads use the
 * client. */
void df_kube_fence(struct df_kube *k, bool (*may_write)(void *arg), void *arg);

/* The namespace of the configuration; never NULL. */
const char *df_kube_namespace(const struct df_kube *k);
/* Returns the address of the API server, for messages. */
const char *df_kube_server(const struct df_kube *k);

/* A resource type: {"batch", "v1", "jobs"}; the core group is "". */
struct df_kube_resource {
    const char *group, *version, *plural;
};
extern const struct df_kube_resource df_kube_jobs, df_kube_pods, df_kube_events, df_kube_secrets,
    df_kube_config_maps, df_kube_leases;

/* The object or collection of a call. All borrowed during the call. */
struct df_kube_at {
    const struct df_kube_resource *resource;
    const char *name_space;    /* NULL: a cluster's resource, or all namespaces (list, watch) */
    const char *name;          /* NULL: the collection */
    const char *subresource;   /* "status", "log", ...; or NULL */
    const volatile bool *stop; /* when it becomes true the call ends soon with RETRY; or NULL */
    bool metadata_only; /* the answer has only apiVersion, kind and metadata: for large objects */
};

/* A member of an object's metadata: who wrote which field. Half of an object's text. */
#define DF_KUBE_MANAGED "managedFields"

/* In all of these ret may be NULL; otherwise the caller owns *ret. What a write answers comes
 * without metadata.managedFields. */

/* Unknown fields are refused by the server instead of dropped silently. */
int df_kube_create(struct df_kube *k, const struct df_kube_at *at, const cJSON *object, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* A dry run of the same: checks whether the server would accept the object, including admission and
 * quotas. */
int df_kube_dry_run(struct df_kube *k, const struct df_kube_at *at, const cJSON *object,
                    struct df_err *err) DF_MUST_CHECK;
int df_kube_get(struct df_kube *k, const struct df_kube_at *at, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;
/* PUT: metadata.resourceVersion must be the current one. */
int df_kube_update(struct df_kube *k, const struct df_kube_at *at, const cJSON *object, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

enum df_kube_patch_type {
    DF_KUBE_PATCH_MERGE, /* RFC 7386; a metadata.resourceVersion in it must be the current one */
    DF_KUBE_PATCH_STRATEGIC, /* built-in resources only */
    DF_KUBE_PATCH_JSON,      /* RFC 6902 */
    DF_KUBE_PATCH_APPLY /* server-side apply: sets the given fields, creates the object if absent */
};
struct df_kube_patch {
    enum df_kube_patch_type type;
    const cJSON *body;
    const char *manager; /* of the fields; required for APPLY, else it may be NULL */
    bool force;          /* APPLY takes over fields of other managers */
    bool dry_run;        /* nothing is stored; the answer is what would be */
};
int df_kube_patch(struct df_kube *k, const struct df_kube_at *at, const struct df_kube_patch *patch,
                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;

struct df_kube_delete_options {
    const char *uid;              /* precondition: CONFLICT if the uid differs; or NULL */
    const char *resource_version; /* the same; or NULL */
    const char *propagation;      /* "Background", "Foreground", "Orphan"; NULL: the default */
    int64_t grace_seconds;        /* -1: the object's own */
};
#define DF_KUBE_DELETE_OPTIONS ((struct df_kube_delete_options){.grace_seconds = -1})
/* NOT_FOUND if absent: the caller decides whether that is success. The object may exist until its
 * grace period is over and its finalizers are removed. */
int df_kube_delete(struct df_kube *k, const struct df_kube_at *at,
                   const struct df_kube_delete_options *o, struct df_err *err) DF_MUST_CHECK;

struct df_kube_select {
    const char *labels; /* "app=dayfly,!old", as it travels; or NULL */
    const char *fields; /* "status.phase=Running"; or NULL */
};

/* Receives a list. Both functions may end it by returning -1 with err. */
struct df_kube_sink {
    /* A list begins, as of this resourceVersion. It may begin again when the server forgot it half
     * way (410): what was given before counts no more. Or NULL. */
    int (*begin)(void *arg, const char *resource_version, struct df_err *err);
    /* An object, borrowed. Items of a list have no apiVersion and kind. */
    int (*item)(void *arg, const cJSON *object, struct df_err *err);
    void *arg;
    /* Members with these names are left out, as of df_json_parse_without(): a path begins with
     * ".items.". Or NULL. */
    const char *const *without;
    /* Instead of item(): the receiver may take the object over, and then sets *object to NULL. */
    int (*take)(void *arg, cJSON **object, struct df_err *err);
};
enum { DF_KUBE_PAGE = 200 }; /* objects: some MiB as trees */
/* Lists all objects in pages, read from etcd and never from a cache. page: objects per page, 0 for
 * DF_KUBE_PAGE; a page over the cap is requested again in smaller ones. */
int df_kube_list(struct df_kube *k, const struct df_kube_at *at,
                 const struct df_kube_select *select, unsigned page,
                 const struct df_kube_sink *sink, struct df_err *err) DF_MUST_CHECK;

/* Any other GET, such as "/version" or "/openid/v1/jwks". */
int df_kube_get_raw(struct df_kube *k, const char *path, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Receives a text in pieces; -1 with err ends it. */
typedef int (*df_kube_text)(void *arg, const char *bytes, size_t n, struct df_err *err);
/* A GET whose answer is a text, as of the subresource "log". query: as it travels
 * ("container=workflow"); or NULL. RETRY also if nothing comes for ten seconds. */
int df_kube_get_text(struct df_kube *k, const struct df_kube_at *at, const char *query,
                     df_kube_text take, void *arg, struct df_err *err) DF_MUST_CHECK;

/* What the server's clock is ahead of ours, in microseconds; negative: behind. By the last answer
 * that said it; 0 up to five seconds. For times that the cluster writes: a node's clock is taken to
 * be the server's. Any thread. */
int64_t df_kube_clock_ahead_us(const struct df_kube *k);

/* Returns the server's clock: real time in microseconds, with the precision of a second. */
int df_kube_time(struct df_kube *k, int64_t *ret_real_us, struct df_err *err) DF_MUST_CHECK;

/* Metadata of an object. Borrowed; NULL if missing. */
const char *df_kube_name(const cJSON *object);
const char *df_kube_uid(const cJSON *object);
const char *df_kube_version(const cJSON *object); /* metadata.resourceVersion */
const char *df_kube_label(const cJSON *object, const char *key);
const char *df_kube_annotation(const cJSON *object, const char *key);
/* True if the object is being deleted: it disappears when its grace period is over and it has no
 * finalizer. */
bool df_kube_is_deleted(const cJSON *object);

/* Asks the API server to keep no list of who owns which field of this object, by the form that it
 * documents for that (metadata.managedFields: [{}]) in the body of an update, but not of a
 * subresource. Only for objects that this service alone writes. The list begins anew when somebody
 * uses server-side apply. */
int df_kube_disown_fields(cJSON *metadata, struct df_err *err) DF_MUST_CHECK;

#endif
