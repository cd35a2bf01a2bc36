/*
 * kept.h - what a cache keeps of one object: a tree (hot: readers share it) or its packed text
 * (common/json/packed.h). Internal to common/kube.
 *
 * It never changes, so several threads may read one tree. References are counted: who has one may
 * read without a lock while the cache replaces the object. Thread rule: any thread.
 */
#ifndef DF_KUBE_KEPT_H
#define DF_KUBE_KEPT_H

#include "common/json/packed.h"
#include "common/json/shared.h"

struct df_kept; /* opaque */

/* Makes a hot one; the caller owns *ret, the first reference. Takes over the tree, also on failure;
 * NULL counts as out of memory. */
int df_kept_new(cJSON *tree, struct df_kept **ret, struct df_err *err) DF_MUST_CHECK;
/* Makes a packed one of a hot one, which stays as it is. */
int df_kept_pack(struct df_packer *p, const struct df_kept *hot, struct df_kept **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Adds a reference and returns k. */
struct df_kept *df_kept_share(struct df_kept *k);
/* Gives up a reference; the last one frees. NULL is fine. */
void df_kept_drop(struct df_kept *k);
static inline void df_cleanup_kept(struct df_kept **k)
{
    df_kept_drop(*k);
}
#define DF_KEPT DF_CLEANUP(df_cleanup_kept)

/* Borrowed as long as the reference; NULL: packed. */
const cJSON *df_kept_tree(const struct df_kept *k);
/* The length of its JSON text; of a hot one an estimate, without escapes and digits of numbers. */
size_t df_kept_text_len(const struct df_kept *k);
/* Copies or unpacks the tree. The caller owns *ret. p: the packer that packed it. */
int df_kept_copy(struct df_packer *p, const struct df_kept *k, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;
/* The same as a reference (df_shared_drop): of a hot one nothing is copied. */
int df_kept_read(struct df_packer *p, const struct df_kept *k, const cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Changes a copy of an object into what readers are shown of it. */
typedef int (*df_kept_show)(void *arg, cJSON *object, struct df_err *err);
/* A reference to what show() makes of the object. Of a hot one it is made once: show() must always
 * be the same function for this object, and depend on nothing else. */
int df_kept_read_shown(struct df_packer *p, struct df_kept *k, df_kept_show show, void *arg,
                       const cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
