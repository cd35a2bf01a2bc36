/*
 * objects.h - objects of one type in memory: by namespace and name, by any number of index words,
 * in order of creation. Internal to common/kube; cache.c has the lock.
 *
 * Thread rule: one set, one thread at a time.
 */
#ifndef DF_KUBE_OBJECTS_H
#define DF_KUBE_OBJECTS_H

#include "common/base/strs.h"
#include "common/kube/cached_object.h"
#include "common/kube/hot.h"

struct df_kube_word; /* opaque: an index word and the objects that have it */

/* One allocation: the struct, then the strings. */
struct df_kube_object {
    struct df_kube_object *next; /* in its bucket of names */
    const char *name;
    int64_t order;   /* of creation */
    uint64_t digest; /* of the item */
    struct df_cached *kept;
    uint32_t generation; /* of the last list that had it */
    uint16_t member_count;
    bool is_tombstone; /* removed by us, but not yet by the watch: only find() sees it */
    struct df_kube_member {
        struct df_kube_word *word;
        uint32_t at; /* index among the word's objects */
    } members[];
};

struct df_kube_objects {
    struct df_kube_object **names;
    struct df_kube_word **words;
    size_t count;        /* with tombstones */
    uint32_t generation; /* of the list that is coming, or came last */
    struct df_kube_hot hot;
};

/* All borrowed. words may be NULL: none. */
struct df_kube_item {
    const char *name_space, *name, *uid, *version;
    struct df_cached *kept; /* the object adds a reference */
    const struct df_strs *words;
    int64_t order;
    uint64_t digest; /* of what matters to the owner */
};

int df_kube_objects_init(struct df_kube_objects *s, struct df_err *err) DF_MUST_CHECK;
void df_kube_objects_free(struct df_kube_objects *s);

/* Borrowed until the object changes; never NULL. */
const char *df_kube_object_space(const struct df_kube_object *o);
const char *df_kube_object_uid(const struct df_kube_object *o);
const char *df_kube_object_version(const struct df_kube_object *o);

/* Borrowed until the next change; NULL: there is none. */
struct df_kube_object *df_kube_objects_find(const struct df_kube_objects *s, const char *name_space,
                                            const char *name);

/* Some object that has this word. */
struct df_kube_object *df_kube_objects_first(const struct df_kube_objects *s, const char *word);

/* True if an object of this uid and version would change the set. An older version never does, nor
 * does a version of a tombstone. Marks an existing object as listed. */
bool df_kube_objects_is_news(struct df_kube_objects *s, const char *name_space, const char *name,
                             const char *uid, const char *version);

/* Adds or replaces an object. LIMIT beyond DF_LIMIT_KUBE_OBJECTS. */
int df_kube_objects_put(struct df_kube_objects *s, const struct df_kube_item *item,
                        struct df_err *err) DF_MUST_CHECK;
/* Makes the object a tombstone, which keeps nothing. */
void df_kube_objects_bury(struct df_kube_objects *s, struct df_kube_object *o);
/* Takes the object out; the caller frees it. */
void df_kube_objects_remove(struct df_kube_objects *s, struct df_kube_object *o);
/* NULL is fine. */
void df_kube_object_free(struct df_kube_object *o);

/* The object was read: the other hot ones are cooled before it. */
void df_kube_objects_use(struct df_kube_objects *s, struct df_kube_object *o);
/* Returns what the hot object that was not used for longest keeps, borrowed; NULL: at most `most`
 * are hot. */
struct df_cached *df_kube_objects_coldest(const struct df_kube_objects *s, size_t most);
/* If an object still keeps `hot`, it keeps `cold` instead, and adds a reference to it. */
void df_kube_objects_cool(struct df_kube_objects *s, const struct df_cached *hot,
                          struct df_cached *cold);

/* A new list begins: objects that are put or asked for from now on are listed. */
void df_kube_objects_begin(struct df_kube_objects *s);
/* An object that was not listed since begin(), or NULL: the caller removes it, or sets its
 * generation. *bucket: where the search continues; 0 at first. */
struct df_kube_object *df_kube_objects_unlisted(const struct df_kube_objects *s, size_t *bucket);

/* How many have this word. */
size_t df_kube_objects_count(const struct df_kube_objects *s, const char *word);
/* Adds their names, in no order. df_strs_check() of `to` says whether that worked. */
void df_kube_objects_names(const struct df_kube_objects *s, const char *word, struct df_strs *to);

/* {0}: all. */
struct df_kube_query {
    const char *word;   /* only those that have it; or NULL */
    const char *prefix; /* of the name; or NULL */
    int64_t after;      /* only those after this order; 0: all */
    bool newest_first;
};
/* All that match, in order of creation; *ret is the caller's to free, the objects are borrowed. */
int df_kube_objects_select(const struct df_kube_objects *s, const struct df_kube_query *q,
                           struct df_kube_object ***ret, size_t *ret_count,
                           struct df_err *err) DF_MUST_CHECK;

#endif
