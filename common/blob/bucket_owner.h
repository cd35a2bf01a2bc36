/*
 * bucket_owner.h - the mark of the installation whose blobs are in a bucket or below its prefix:
 * the object "owner", whose first line is the installation's id. Without it two installations would
 * share a place unnoticed, and each would take the other's blobs for orphans. Thread rule: any
 * thread.
 */
#ifndef DF_BLOB_BUCKET_OWNER_H
#define DF_BLOB_BUCKET_OWNER_H

#include "common/blob/bucket.h"

struct df_bucket_owner; /* what an installation that works with a place knows of its mark; opaque */

/* Puts the mark of this installation where none is, or where that of former (NULL: nobody's) is.
 * USER: it is that of another one; the message names it. Else as the bucket fails. */
int df_bucket_claim(struct df_bucket *b, const char *id, const char *former,
                    struct df_bucket_owner **ret, struct df_err *err) DF_MUST_CHECK;
void df_bucket_owner_free(struct df_bucket_owner *o); /* NULL is fine */

/* Before a write. SYSTEM StorageTakenOver: another installation has the place now, and keeps it
 * until this one is opened anew. Looks at the mark if the last look is older than
 * DF_BUCKET_OWNER_SECONDS: so long it may write after it lost the place. A look that fails refuses
 * nothing: the write then fails by itself. o NULL: nothing is claimed, and nothing refused. */
int df_bucket_owner_allows(struct df_bucket_owner *o, struct df_bucket *b,
                           struct df_err *err) DF_MUST_CHECK;

/* As df_blob_check_owner(). */
int df_bucket_owner_check(struct df_bucket_owner *o, struct df_bucket *b, bool at_once,
                          struct df_err *err) DF_MUST_CHECK;

#endif
