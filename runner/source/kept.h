/*
 * kept.h - the source of a plan as it was fetched, for an apply in the same place.
 *
 * The tool and the module's code add and change files in the checkout. Before an apply uses it,
 * what was not fetched is removed, and the rest must be as it was, `.git` included: its settings
 * can name programs that git runs. Thread rule: one thread.
 */
#ifndef DF_SOURCE_KEPT_H
#define DF_SOURCE_KEPT_H

#include "runner/source/source.h"

struct df_kept_source {
    struct df_strs paths; /* of all entries, in the order of df_tree_walk() */
    char digest[65];      /* of df_tree_digest_all() */
    char *lock;           /* content of the module's lock file, which `init` may extend; or NULL */
};
void df_kept_source_free(struct df_kept_source *k);

/* Notes what was fetched into the checkout, before anything else writes there. */
int df_kept_source_note(const char *checkout, const struct df_source_result *source,
                        struct df_kept_source *ret, struct df_err *err) DF_MUST_CHECK;

/* Makes the checkout what it was. *ret_same: it is. If not, or after a failure (a directory that
 * may not be written, say), fetch it again. */
int df_kept_source_restore(const char *checkout, const struct df_source_result *source,
                           const struct df_kept_source *k, bool *ret_same,
                           struct df_err *err) DF_MUST_CHECK;

#endif
