/*
 * hot.h - the objects of a cache that are kept as trees, in the order of their use. Internal to
 * common/kube.
 *
 * A tree needs about five times the memory of its text, so they are few, and none is large: every
 * function here looks at all of them. Thread rule: one thread at a time.
 */
#ifndef DF_KUBE_HOT_H
#define DF_KUBE_HOT_H

#include "common/base/err.h"

enum {
    DF_KUBE_MAX_HOT = 32,     /* in one cache: the steps of ten runs at once */
    DF_KUBE_MAX_TREE = 16384, /* bytes of text; a longer one is packed at once */
};

struct df_kube_object;

/* Initialize with {0}. */
struct df_kube_hot {
    struct df_kube_object **objects; /* borrowed; first the one that was not used for longest */
    size_t len, room;
};

void df_kube_hot_free(struct df_kube_hot *h);
/* Makes room for one more object. */
int df_kube_hot_reserve(struct df_kube_hot *h, struct df_err *err) DF_MUST_CHECK;
/* Makes the object the last one. If it is not there yet, there must be room. */
void df_kube_hot_use(struct df_kube_hot *h, struct df_kube_object *o);
/* Takes the object out. If it is not there, nothing happens. */
void df_kube_hot_drop(struct df_kube_hot *h, const struct df_kube_object *o);

#endif
