/*
 * bucket_owner.h - the mark of the installation whose blobs are in a bucket or below its prefix: the
 * object "owner", whose first line is the installation's id. Without it two installations would share
 * a place unnoticed, and each would take the other's blobs for orphans. Thread rule: any thread.
 */
#ifndef DF_BLOB_BUCKET_OWNER_H
#define DF_BLOB_BUCKET_OWNER_H

#include "common/blob/bucket.h"

/* Puts the mark of this installation where none is, or where that of former (NULL: nobody's) is.
 * USER: it is that of another one; the message names it. Else as the bucket fails. */
int df_bucket_claim(struct df_bucket *b, const char *id, const char *former,
                    struct df_err *err) DF_MUST_CHECK;

#endif
