/*
 * store.h - where the documents live: Executor, Run and TaskAction as JSON with optimistic
 * concurrency and a watch.
 *
 * One interface, two homes: a SQLite file, and custom resources in a cluster. A write is durable
 * when the call returns 0. A document without status was written by somebody else (kubectl apply)
 * and is still to be taken in. Thread rule: any thread. Documents handed in are borrowed, documents
 * handed out are the caller's.
 */
#ifndef DF_STORE_H
#define DF_STORE_H

#include "common/base/strs.h"
#include "spawner/model/model.h"

struct df_store; /* opaque */

enum df_change { DF_CHANGE_ADDED, DF_CHANGE_MODIFIED, DF_CHANGE_DELETED };

struct df_store_event {
    enum df_change change;
    enum df_kind kind;
    const char *name; /* borrowed during the call */
    const char *resource_version;
    bool is_external; /* not written through this store, but by kubectl or another replica */
    bool is_noop;     /* only annotations or managedFields changed */
};

/* Called after the commit, for each document in the order of its commits, outside of the store's
 * lock: from the writer's thread and before its call returns, or (is_external) from any thread, soon
 * after it came to be known. Be quick, do not write, watch or unwatch, and take no lock that is
 * held by anybody who writes. Reading is fine. */
typedef void (*df_store_watcher)(void *arg, const struct df_store_event *event);

struct df_store_list_options {
    const char *label;       /* "key=value": only documents with that label; or NULL */
    const char *name_prefix; /* or NULL */
    const char *cursor;      /* continue after this (opaque, from ret_cursor); or NULL */
    int limit;               /* 0: 500; at most 1000 */
    bool newest_first;       /* by creation */
};

struct df_store_ops {
    void (*close)(struct df_store *s);
    int (*create)(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                  struct df_err *err);
    int (*get)(struct df_store *s, enum df_kind kind, const char *name, cJSON **ret,
               struct df_err *err);
    int (*get_by_uid)(struct df_store *s, enum df_kind kind, const char *uid, cJSON **ret,
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
    int (*audit_list)(struct df_store *s, const char *cursor, int limit, cJSON **ret,
                      char **ret_cursor, struct df_err *err);
};

struct df_store {
    const struct df_store_ops *ops;
};

/* The SQLite home. path: the database file, made when absent. A corrupt or foreign file: class
 * SYSTEM, the message says which file and what to do; nothing is changed. */
int df_store_sqlite_open(const char *path, struct df_store **ret, struct df_err *err) DF_MUST_CHECK;

struct df_kube;

/* The home in a cluster: custom resources of this group (DF_API_GROUP, but for tests) in one
 * namespace, whose CRDs are there (rbac/crds). Both are copied; the client must live on. Reads are
 * answered from memory, where own writes are at once and those of others as soon as the watch tells
 * of them; a write that was made from what is not the newest fails (CONFLICT Conflict) and brings
 * the newest. Every call that writes may fail with RETRY, and may have been done then.
 * Returns before it knows what is there: before df_store_kube_wait() nothing may be
 * asked of it but watch(). */
int df_store_kube_open(struct df_kube *kube, const char *group, const char *name_space,
                       struct df_store **ret, struct df_err *err) DF_MUST_CHECK;
/* Waits until it knows all that is there, which watchers are not told of. RETRY NotListedYet when
 * the API server does not answer within 30 seconds. */
int df_store_kube_wait(struct df_store *s, struct df_err *err) DF_MUST_CHECK;
/* Asks for all that is there once more, however long that takes: reads are then no older than this
 * call. RETRY when *stop turns true. */
int df_store_kube_catch_up(struct df_store *s, const volatile bool *stop,
                           struct df_err *err) DF_MUST_CHECK;

static inline void df_store_close(struct df_store *s)
{
    if (s)
        s->ops->close(s);
}

/* Stores a new document: sets uid, resourceVersion, generation 1, creationTimestamp. CONFLICT
 * AlreadyExists. ret (may be NULL): the stored document. */
static inline int df_store_create(struct df_store *s, enum df_kind kind, const cJSON *doc,
                                  cJSON **ret, struct df_err *err)
{
    return s->ops->create(s, kind, doc, ret, err);
}

static inline int df_store_get(struct df_store *s, enum df_kind kind, const char *name, cJSON **ret,
                               struct df_err *err)
{
    return s->ops->get(s, kind, name, ret, err);
}

static inline int df_store_get_by_uid(struct df_store *s, enum df_kind kind, const char *uid,
                                      cJSON **ret, struct df_err *err)
{
    return s->ops->get_by_uid(s, kind, uid, ret, err);
}

/* An array. o may be NULL. A page may end before its limit when its documents are large. ret_cursor
 * (may be NULL): for the next page, owned by the caller; NULL at the end. */
static inline int df_store_list(struct df_store *s, enum df_kind kind,
                                const struct df_store_list_options *o, cJSON **ret,
                                char **ret_cursor, struct df_err *err)
{
    return s->ops->list(s, kind, o, ret, ret_cursor, err);
}

/* How many documents have this label ("key=value"), without reading them. */
static inline int df_store_count(struct df_store *s, enum df_kind kind, const char *label,
                                 int64_t *ret, struct df_err *err)
{
    return s->ops->count(s, kind, label, ret, err);
}

/* Adds the name of each document that has this label, in no order, without reading it. */
static inline int df_store_names(struct df_store *s, enum df_kind kind, const char *label,
                                 struct df_strs *to, struct df_err *err)
{
    return s->ops->names(s, kind, label, to, err);
}

/* Replaces the document if its metadata.resourceVersion (required) and uid (if it has one) are
 * still the stored ones: CONFLICT Conflict otherwise; NOT_FOUND when absent. generation grows when
 * spec differs. An update that changes nothing is success, without event or new version. */
static inline int df_store_update(struct df_store *s, enum df_kind kind, const cJSON *doc,
                                  cJSON **ret, struct df_err *err)
{
    return s->ops->update(s, kind, doc, ret, err);
}

/* uid: precondition, or NULL. NOT_FOUND when absent. */
static inline int df_store_remove(struct df_store *s, enum df_kind kind, const char *name,
                                  const char *uid, struct df_err *err)
{
    return s->ops->remove(s, kind, name, uid, err);
}

static inline int df_store_watch(struct df_store *s, df_store_watcher fn, void *arg,
                                 struct df_err *err)
{
    return s->ops->watch(s, fn, arg, err);
}

/* After the return fn is not running and will not be called again. */
static inline void df_store_unwatch(struct df_store *s, df_store_watcher fn, void *arg)
{
    s->ops->unwatch(s, fn, arg);
}

/* Appends {at, actor, role, action, kind, name, outcome, detail} to the audit trail. */
static inline int df_store_audit(struct df_store *s, const cJSON *entry, struct df_err *err)
{
    return s->ops->audit(s, entry, err);
}

/* The audit trail, newest first; cursor and limit as in lists. */
static inline int df_store_audit_list(struct df_store *s, const char *cursor, int limit,
                                      cJSON **ret, char **ret_cursor, struct df_err *err)
{
    return s->ops->audit_list(s, cursor, limit, ret, ret_cursor, err);
}

/* Reads, changes and writes a document again until no one is faster (at most 16 times). change
 * returns 0 to write, 1 to leave it (success; *ret is the document as read), -1 with err. ret may
 * be NULL. */
typedef int (*df_store_change)(cJSON *doc, void *arg, struct df_err *err);
int df_store_modify(struct df_store *s, enum df_kind kind, const char *name, df_store_change change,
                    void *arg, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
