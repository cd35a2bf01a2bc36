/*
 * probe_blobs.h - a thread of each replica that learns how the store of the blobs is while nobody
 * asks for a blob: /readyz, metrics and `dayfly why` say it, and must not wait for a store that
 * does not answer. Thread rule: start and stop in one thread.
 */
#ifndef DF_PROBE_BLOBS_H
#define DF_PROBE_BLOBS_H

#include "common/base/periodic.h"
#include "common/blob/blob.h"

/* blobs: borrowed until df_periodic_stop(), which waits for a request that is on its way. */
int df_probe_blobs_start(struct df_blob *blobs, struct df_periodic **ret,
                         struct df_err *err) DF_MUST_CHECK;

#endif
