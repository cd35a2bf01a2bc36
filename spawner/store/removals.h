/*
 * removals.h - holds off the removal of what documents name, while a backup is made.
 *
 * A backup copies the documents first and their blobs then. A blob that a copied document names
 * must not go between the two: whoever removes documents or their blobs begins and ends a removal
 * here. It counts, and remembers nothing about one document, as memory.h does. Thread rule: any
 * thread.
 */
#ifndef DF_STORE_REMOVALS_H
#define DF_STORE_REMOVALS_H

#include <pthread.h>

#include "common/base/err.h"

/* All zeros: nothing is removed or held off. */
struct df_removals {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t none;  /* active became 0 */
    unsigned active;      /* removals under way */
    unsigned held;        /* backups that hold off new ones */
};

/* RETRY BackupRunning while somebody holds removals off: try again later. Else the caller ends it
 * with df_removal_end(). Removals may be nested. */
int df_removal_begin(struct df_removals *r, struct df_err *err) DF_MUST_CHECK;
void df_removal_end(struct df_removals *r);

/* Waits until no removal is under way; none begins before df_removals_release(). Any number of
 * callers at a time. */
void df_removals_hold(struct df_removals *r);
void df_removals_release(struct df_removals *r);

#endif
