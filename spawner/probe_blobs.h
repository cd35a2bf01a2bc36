/*
 * probe_blobs.h - a thread of each replica that learns how the store of the blobs is while nobody
 * asks for a blob: /readyz, metrics and `dayfly why` say it, and must not wait for a store that does
 * not answer. Thread rule: start and stop in one thread.
 */
#ifndef DF_PROBE_BLOBS_H
#define DF_PROBE_BLOBS_H

#include "common/blob/blob.h"

struct df_blob_prober; /* opaque */

/* blobs: borrowed until the stop. */
int df_blob_prober_start(struct df_blob *blobs, struct df_blob_prober **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* NULL is fine. Waits for a request that is on its way. */
void df_blob_prober_stop(struct df_blob_prober *p);

#endif
