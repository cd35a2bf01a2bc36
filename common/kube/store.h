/*
 * store.h - objects of one type in memory, by namespace and name and by an index word. Internal to
 * common/kube; cache.c has the lock. Thread rule: one store, one thread at a time.
 */
#ifndef DF_KUBE_STORE_H
#define DF_KUBE_STORE_H

#include "common/json/packed.h"

/* One allocation. */
struct df_kube_entry {
    struct df_kube_entry *next;       /* in its bucket */
    struct df_kube_entry *index_next; /* in its bucket of the index */
    unsigned mark;                    /* of the list that told of it last */
    const char *name_space, *name;    /* never NULL; "" for a cluster's own */
    const char *uid, *version;
    const char *index; /* "" for none */
    struct df_packed text;
    char bytes[]; /* all of these */
};

struct df_kube_store {
    struct df_kube_entry **buckets, **index_buckets;
    size_t len;
    unsigned mark;
};

enum df_kube_put { DF_KUBE_PUT_CHANGED, DF_KUBE_PUT_SAME, DF_KUBE_PUT_OLDER };

/* Strings borrowed. */
struct df_kube_item {
    const char *name_space, *name, *uid, *version, *index;
    const struct df_packed *text;
};

int df_kube_store_init(struct df_kube_store *s, struct df_err *err) DF_MUST_CHECK;
void df_kube_store_free(struct df_kube_store *s);

/* Borrowed until the next change; NULL: not there. */
const struct df_kube_entry *df_kube_store_find(const struct df_kube_store *s,
                                               const char *name_space, const char *name);

/* Would an object of this version change anything? Marks the entry that is there. */
enum df_kube_put df_kube_store_look(struct df_kube_store *s, const char *name_space,
                                    const char *name, const char *uid, const char *version);

/* Puts or replaces. LIMIT beyond DF_LIMIT_KUBE_OBJECTS. */
int df_kube_store_put(struct df_kube_store *s, const struct df_kube_item *item,
                      struct df_err *err) DF_MUST_CHECK;

/* Takes it away unless it is newer than version; false when nothing was. */
bool df_kube_store_remove(struct df_kube_store *s, const char *name_space, const char *name,
                          const char *version);

/* What is put or looked at from now on is marked anew. */
void df_kube_store_begin(struct df_kube_store *s);
/* Takes away all that was not marked since and is not newer than version (NULL: whatever it is), as
 * a chain by `next` that the caller frees one by one. */
struct df_kube_entry *df_kube_store_sweep(struct df_kube_store *s, const char *version);

/* Adds copies of the texts of this index word (NULL: of all). */
int df_kube_store_texts(const struct df_kube_store *s, const char *index, struct df_packed_list *to,
                        struct df_err *err) DF_MUST_CHECK;

#endif
