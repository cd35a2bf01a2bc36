/*
 * crew.h - runs numbered jobs on a few threads: the chunks of one blob. Internal to common/blob.
 */
#ifndef DF_BLOB_CREW_H
#define DF_BLOB_CREW_H

#include "common/blob/objects.h"

/* One job; other threads run other numbers at the same time. work: of this thread. */
typedef int (*df_blob_job)(void *arg, size_t number, struct df_object_work *work,
                           struct df_err *err);

/* Runs the jobs 0 to n-1, in this order, on at most `threads` threads, the caller's among them.
 * After a failure no further job is begun; err is of the first one that failed. If no thread can be
 * made the caller's does it all. *ret_begun: how many were begun, all of them ended by then. */
int df_blob_crew_run(size_t n, size_t threads, df_blob_job job, void *arg, size_t *ret_begun,
                     struct df_err *err) DF_MUST_CHECK;

#endif
