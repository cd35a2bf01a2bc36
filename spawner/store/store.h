/*
 * store.h - the store of documents: Executor, Run and TaskAction as JSON, with optimistic
 * concurrency and notifications.
 *
 * The interface has two backends: a SQLite file, and custom resources in a cluster. A write is
 * durable when the call returns 0. A document without status was applied with kubectl and is not
 * accepted yet (control/documents/applied.h). Thread rule: any thread. Documents passed in are
 * borrowed. Returned documents belong to the caller, except for those that it only looks at: these
 * are shared (common/json/shared.h), and those used last in a cluster cost no copy.
 */
#ifndef DF_STORE_H
#define DF_STORE_H

#include "common/base/strs.h"
#include "common/crypto/crypto.h"
#include "common/json/shared.h"
#include "spawner/model/audit_filter.h"
#include "spawner/model/model.h"

struct df_store; /* opaque */

enum df_change { DF_CHANGE_ADDED, DF_CHANGE_MODIFIED, DF_CHANGE_DELETED };

struct df_store_event {
    enum df_change change;
    enum df_kind kind;
    const char *name; /* borrowed during the call */
    const char *resource_version;
    bool is_external; /* written by kubectl or another replica, not through this store */
    bool is_noop;     /* only annotations or managedFields changed */
};

/* Called after each commit, in the order of commits, without the store's lock. The caller is the
 * writer's thread, before its call returns; for an external write it is any thread, soon after the
 * store has learned of the write. A watcher must be quick. It may read the store, but must not
 * write, watch or unwatch, nor take a lock that a writer holds. */
typedef void (*df_store_watcher)(void *arg, const struct df_store_event *event);

struct df_store_list_options {
    const char *label;       /* "key=value": only documents with that label; or NULL */
    const char *name_prefix; /* or NULL */
    const char *cursor;      /* continue after this (opaque, from ret_cursor); or NULL */
    int limit;               /* 0: 500; at most 1000 */
    bool newest_first;       /* by creation */
};

/* Which entries of the audit trail go: those before before_us, and of those before never_after_us
 * the ones that are not among the newest `keep`. 0: none for this cause. */
struct df_audit_limits {
    int64_t before_us, keep, never_after_us;
};

struct df_store_ops {
    void (*close)(struct df_store *s);
    int (*create)(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                  struct df_err *err);
    int (*look)(struct df_store *s, enum df_kind kind, const char *name, const cJSON **ret,
                struct df_err *err);
    int (*look_by_uid)(struct df_store *s, enum df_kind kind, const char *uid, const cJSON **ret,
                       struct df_err *err);
    int (*list)(struct df_store *s, enum df_kind kind, const struct df_store_list_options *o,
                cJSON **ret, char **ret_cursor, struct df_err *err);
    int (*count)(struct df_store *s, enum df_kind kind, const char *label, int64_t *ret,
                 struct df_err *err);
    int (*names)(struct df_store *s, enum df_kind kind, const char *label, struct df_strs *to,
                 struct df_err *err);
    int (*update)(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                  struct df_err *err);
    int (*remove)(struct df_store *s, enum df_kind kind, const char *name, const char *uid,
                  struct df_err *err);
    int (*watch)(struct df_store *s, df_store_watcher fn, void *arg, struct df_err *err);
    void (*unwatch)(struct df_store *s, df_store_watcher fn, void *arg);
    int (*audit)(struct df_store *s, const cJSON *entry, struct df_err *err);
    int (*audit_list)(struct df_store *s, const struct df_audit_filter *filter, const char *cursor,
                      int limit, cJSON **ret, char **ret_cursor, struct df_err *err);
    int (*audit_size)(struct df_store *s, int64_t *ret_count, int64_t *ret_bytes,
                      struct df_err *err);
    /* Or NULL: it never keeps more than a number of its own. */
    int (*audit_prune)(struct df_store *s, const struct df_audit_limits *limits, bool dry_run,
                       int64_t *ret_count, struct df_err *err);
    int (*snapshot)(struct df_store *s, const char *path, struct df_err *err); /* or NULL */
};

struct df_store {
    const struct df_store_ops *ops;
    unsigned char audit_key[DF_KEY_LEN];
    bool signs; /* with audit_key */
};

/* The SQLite backend. path: the database file; created if absent. SYSTEM for a corrupt file or a
 * file of another program, which is not changed; the message names the file and the way out. */
int df_store_sqlite_open(const char *path, struct df_store **ret, struct df_err *err) DF_MUST_CHECK;

/* Checks a file that may come from somebody else, before anything else opens it: every page is
 * intact, and there is no table, index, view or trigger in it that dayfly does not make. */
int df_store_sqlite_check(const char *path, struct df_err *err) DF_MUST_CHECK;

struct df_kube;

/* The Kubernetes backend: custom resources of one group (DF_API_GROUP, except in tests) in one
 * namespace. The CRDs (rbac/crds) must be installed. kube is borrowed until close; the strings are
 * copied. Reads are answered from a watch cache: it contains local writes at once, and external
 * writes when the watch has delivered them. A write that is based on an older version fails with
 * CONFLICT Conflict and refreshes the cached document. Every write may fail with RETRY; it may have
 * been done all the same. This call does not wait for the first list: until df_store_kube_wait()
 * has succeeded, only df_store_watch() may be called. */
int df_store_kube_open(struct df_kube *kube, const char *group, const char *name_space,
                       struct df_store **ret, struct df_err *err) DF_MUST_CHECK;
/* Waits until all existing documents are in the cache; watchers are not notified of these. RETRY
 * NotListedYet if the API server does not answer within 30 seconds. */
int df_store_kube_wait(struct df_store *s, struct df_err *err) DF_MUST_CHECK;
/* Lists all documents again, without a time limit; afterwards reads are at least as new as this
 * call. RETRY when *stop becomes true. */
int df_store_kube_catch_up(struct df_store *s, const volatile bool *stop,
                           struct df_err *err) DF_MUST_CHECK;

/* Removes the finalizer of a document, whether the document is deleted or not. Success if it has
 * none, or does not exist. */
int df_store_kube_release(struct df_store *s, enum df_kind kind, const char *name,
                          struct df_err *err) DF_MUST_CHECK;

static inline void df_store_close(struct df_store *s)
{
    if (!s)
        return;
    explicit_bzero(s->audit_key, sizeof(s->audit_key));
    s->ops->close(s);
}

/* Stores a new document; sets uid, resourceVersion, generation 1 and creationTimestamp. CONFLICT
 * AlreadyExists. ret (may be NULL): the stored document. */
static inline int df_store_create(struct df_store *s, enum df_kind kind, const cJSON *doc,
                                  cJSON **ret, struct df_err *err)
{
    return s->ops->create(s, kind, doc, ret, err);
}

/* Looks at a document: *ret is a reference (df_shared_drop). NOT_FOUND. */
static inline int df_store_look(struct df_store *s, enum df_kind kind, const char *name,
                                const cJSON **ret, struct df_err *err)
{
    return s->ops->look(s, kind, name, ret, err);
}

/* The same for a document that may be absent: success then, with *ret NULL. */
static inline int df_store_look_for(struct df_store *s, enum df_kind kind, const char *name,
                                    const cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    *ret = NULL;
    if (s->ops->look(s, kind, name, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

static inline int df_store_look_by_uid(struct df_store *s, enum df_kind kind, const char *uid,
                                       const cJSON **ret, struct df_err *err)
{
    return s->ops->look_by_uid(s, kind, uid, ret, err);
}

/* The NOT_FOUND of df_store_look(). Always -1. */
int df_store_fail_absent(enum df_kind kind, const char *key, struct df_err *err);

/* The same three for a caller that changes the document, or keeps it long. */
int df_store_get(struct df_store *s, enum df_kind kind, const char *name, cJSON **ret,
                 struct df_err *err);
int df_store_find(struct df_store *s, enum df_kind kind, const char *name, cJSON **ret,
                  struct df_err *err);
int df_store_get_by_uid(struct df_store *s, enum df_kind kind, const char *uid, cJSON **ret,
                        struct df_err *err);

/* *ret: an array. o may be NULL. A page of large documents may have fewer than limit. ret_cursor
 * (may be NULL): the cursor of the next page, owned by the caller; NULL after the last page. */
static inline int df_store_list(struct df_store *s, enum df_kind kind,
                                const struct df_store_list_options *o, cJSON **ret,
                                char **ret_cursor, struct df_err *err)
{
    return s->ops->list(s, kind, o, ret, ret_cursor, err);
}

/* Calls visit for each document with this label ("key=value"; NULL: for all), however many there
 * are. visit borrows doc; -1 with err ends the walk. A document that is created or removed
 * meanwhile may be left out. */
typedef int (*df_store_visit)(const cJSON *doc, void *arg, struct df_err *err);
int df_store_each(struct df_store *s, enum df_kind kind, const char *label, df_store_visit visit,
                  void *arg, struct df_err *err) DF_MUST_CHECK;

/* Counts the documents with this label ("key=value"), without reading them. */
static inline int df_store_count(struct df_store *s, enum df_kind kind, const char *label,
                                 int64_t *ret, struct df_err *err)
{
    return s->ops->count(s, kind, label, ret, err);
}

/* Adds the names of the documents with this label, in no order, without reading the documents. */
static inline int df_store_names(struct df_store *s, enum df_kind kind, const char *label,
                                 struct df_strs *to, struct df_err *err)
{
    return s->ops->names(s, kind, label, to, err);
}

/* Replaces the stored document if its resourceVersion is that of doc (required), and its uid too if
 * doc has one; otherwise CONFLICT Conflict. NOT_FOUND if absent. generation grows if spec differs.
 * An update that changes nothing succeeds without an event and without a new version. */
static inline int df_store_update(struct df_store *s, enum df_kind kind, const cJSON *doc,
                                  cJSON **ret, struct df_err *err)
{
    return s->ops->update(s, kind, doc, ret, err);
}

/* uid: precondition, or NULL. NOT_FOUND if absent. */
static inline int df_store_remove(struct df_store *s, enum df_kind kind, const char *name,
                                  const char *uid, struct df_err *err)
{
    return s->ops->remove(s, kind, name, uid, err);
}

/* fn is called after the watchers that were there before it. */
static inline int df_store_watch(struct df_store *s, df_store_watcher fn, void *arg,
                                 struct df_err *err)
{
    return s->ops->watch(s, fn, arg, err);
}

/* Waits until fn is not running; it is not called again. */
static inline void df_store_unwatch(struct df_store *s, df_store_watcher fn, void *arg)
{
    s->ops->unwatch(s, fn, arg);
}

/* From now on the store seals the entries of its audit trail with this key, which is copied.
 * Before other threads use the store. */
static inline void df_store_sign_audit(struct df_store *s, const unsigned char key[DF_KEY_LEN])
{
    memcpy(s->audit_key, key, DF_KEY_LEN);
    s->signs = true;
}

/* The key; NULL: there is none. */
static inline const unsigned char *df_store_audit_key(const struct df_store *s)
{
    return s->signs ? s->audit_key : NULL;
}

/* Appends {at, actor, role, action, kind, name, outcome, detail, ...} to the audit trail, as the
 * next link of its chain (model/audit_chain.h). */
static inline int df_store_audit(struct df_store *s, const cJSON *entry, struct df_err *err)
{
    return s->ops->audit(s, entry, err);
}

/* The audit trail, newest first; cursor and limit as in df_store_list(). filter NULL: all, in the
 * order of the chain. */
static inline int df_store_audit_list(struct df_store *s, const struct df_audit_filter *filter,
                                      const char *cursor, int limit, cJSON **ret, char **ret_cursor,
                                      struct df_err *err)
{
    return s->ops->audit_list(s, filter, cursor, limit, ret, ret_cursor, err);
}

static inline int df_store_audit_size(struct df_store *s, int64_t *ret_count, int64_t *ret_bytes,
                                      struct df_err *err)
{
    return s->ops->audit_size(s, ret_count, ret_bytes, err);
}

/* Removes the oldest entries, or only counts them (dry_run). *ret_count: how many. An entry says so
 * before they are gone. */
static inline int df_store_audit_prune(struct df_store *s, const struct df_audit_limits *limits,
                                       bool dry_run, int64_t *ret_count, struct df_err *err)
{
    *ret_count = 0;
    return s->ops->audit_prune ? s->ops->audit_prune(s, limits, dry_run, ret_count, err) : 0;
}

/* Writes everything of one moment (documents, audit trail, secrets) into a new SQLite file at path,
 * without stopping writers: what was acknowledged before the call is in it. On failure the caller
 * removes the file. Only for a store that is a file: CONFLICT else. */
static inline int df_store_snapshot(struct df_store *s, const char *path, struct df_err *err)
{
    if (!s->ops->snapshot)
        return df_fail_reason(err, DF_ERR_CONFLICT, "BackupElsewhere",
                              "documents and secrets are objects of the cluster: back up its "
                              "namespace, as docs/upkeep.md describes");
    return s->ops->snapshot(s, path, err);
}

/* Reads, changes and writes a document; repeats this after a conflict, at most 16 times. change
 * returns 0 to write the document, 1 to leave it (success; *ret is the document as read), -1 with
 * err. ret may be NULL. */
typedef int (*df_store_change)(cJSON *doc, void *arg, struct df_err *err);
int df_store_modify(struct df_store *s, enum df_kind kind, const char *name, df_store_change change,
                    void *arg, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
