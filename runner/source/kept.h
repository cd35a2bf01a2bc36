/*
 * kept.h - the source of a plan as it was fetched, for an apply in the same place.
 *
 * The tool and the module's code add and change files in the checkout. Before an apply uses it, what
 * was not fetched is removed, and the digest must be that of the fetch. Thread rule: one thread.
 */
#ifndef DF_SOURCE_KEPT_H
#define DF_SOURCE_KEPT_H

#include "runner/source/source.h"

struct df_kept_source {
    struct df_strs paths; /* of all entries, in the order of df_tree_walk() */
    char *lock;           /* content of the module's lock file, which `init` may extend; or NULL */
};
void df_kept_source_free(struct df_kept_source *k);

/* Notes what was fetched into the checkout, before anything else writes there. */
int df_kept_source_note(const char *checkout, const struct df_source_result *source,
                        struct df_kept_source *ret, struct df_err *err) DF_MUST_CHECK;

/* Makes the checkout what it was, except for the providers that `init` installed for the module.
 * *ret_same: it is, by the digest of the source. If not, fetch it again: a file was changed or
 * removed. */
int df_kept_source_restore(const char *checkout, const struct df_source_result *source,
                           const struct df_kept_source *k, bool *ret_same,
                           struct df_err *err) DF_MUST_CHECK;

#endif
