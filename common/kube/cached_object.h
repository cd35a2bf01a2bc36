/*
 * cached_object.h - what a cache keeps of one object: a tree (hot: readers share it) or its
 * packed text (common/json/packed.h). Internal to common/kube.
 *
 * It never changes, so several threads may read one tree. References are counted: who has one may
 * read without a lock while the cache replaces the object. Thread rule: any thread.
 */
#ifndef DF_KUBE_CACHED_OBJECT_H
#define DF_KUBE_CACHED_OBJECT_H

#include "common/json/packed.h"
#include "common/json/shared.h"

struct df_cached; /* opaque */

/* Makes a hot one; the caller owns *ret, the first reference. Takes over the tree, also on failure;
 * NULL counts as out of memory. */
int df_cached_new(cJSON *tree, struct df_cached **ret, struct df_err *err) DF_MUST_CHECK;
/* Makes a packed one of a hot one, which stays as it is. */
int df_cached_pack(struct df_packer *p, const struct df_cached *hot, struct df_cached **ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Adds a reference and returns k. */
struct df_cached *df_cached_share(struct df_cached *k);
/* Gives up a reference; the last one frees. NULL is fine. */
void df_cached_drop(struct df_cached *k);
static inline void df_cleanup_cached(struct df_cached **k)
{
    df_cached_drop(*k);
}
#define DF_CACHED DF_CLEANUP(df_cleanup_cached)

/* Borrowed as long as the reference; NULL: packed. */
const cJSON *df_cached_tree(const struct df_cached *k);
/* The length of its JSON text; of a hot one an estimate, without escapes and digits of numbers. */
size_t df_cached_text_len(const struct df_cached *k);
/* Copies or unpacks the tree. The caller owns *ret. p: the packer that packed it. */
int df_cached_copy(struct df_packer *p, const struct df_cached *k, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* The same as a reference (df_shared_drop): of a hot one nothing is copied. */
int df_cached_read(struct df_packer *p, const struct df_cached *k, const cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Changes a copy of an object into what readers are shown of it. */
typedef int (*df_cached_show)(void *arg, cJSON *object, struct df_err *err);
/* A reference to what show() makes of the object. Of a hot one it is made once: show() must always
 * be the same function for this object, and depend on nothing else. */
int df_cached_read_shown(struct df_packer *p, struct df_cached *k, df_cached_show show, void *arg,
                         const cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
