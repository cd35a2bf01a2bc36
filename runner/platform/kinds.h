/*
 * kinds.h - which resource of the API server a kind is: discovery, asked once for each group and
 * version. Thread rule: one table, one thread.
 */
#ifndef DF_PLATFORM_KINDS_H
#define DF_PLATFORM_KINDS_H

#include "common/base/strs.h"
#include "common/kube/kube.h"

struct df_kind {
    char *group, *version, *kind, *plural; /* owned */
    bool is_namespaced;
    struct df_kind *next;
};
struct df_kinds {
    struct df_kind *first; /* NULL: nothing was asked yet */
    /* Those that the server did not have ("example.com/v1 Thing"): they are not asked for again.
     * Who waits for a definition forgets them by df_strs_free(). */
    struct df_strs absent;
};
void df_kinds_free(struct df_kinds *k);

/* *ret is borrowed from the table. NOT_FOUND, reason KindUnknown: the server has no such kind, or
 * had none when it was asked. */
int df_kinds_find(struct df_kinds *k, struct df_kube *kube, const char *api_version,
                  const char *kind, const struct df_kind **ret, struct df_err *err) DF_MUST_CHECK;

/* True of a failure that says: the server has no such group, kind or object. */
static inline bool df_kind_is_absent(const struct df_err *why)
{
    return why->cls == DF_ERR_NOT_FOUND || df_streq(why->reason, "NotServed");
}

/* The kind as a resource; its strings are those of the kind. */
struct df_kube_resource df_kind_resource(const struct df_kind *k);

#endif
