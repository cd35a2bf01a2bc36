/*
 * removals.h - holds off the removal of what documents name, while a backup is made.
 *
 * A backup copies the documents first and their blobs then. A blob that a copied document names must
 * not go between the two: whoever removes documents or their blobs begins and ends a removal here.
 * Thread rule: any thread.
 */
#ifndef DF_STEPS_REMOVALS_H
#define DF_STEPS_REMOVALS_H

#include "spawner/spawner.h"

/* RETRY BackupRunning while somebody holds removals off: try again later. Else the caller ends it
 * with df_removal_end(). Removals may be nested. */
int df_removal_begin(struct df_spawner *s, struct df_err *err) DF_MUST_CHECK;
void df_removal_end(struct df_spawner *s);

/* Waits until no removal is under way; none begins before df_removals_let_go(). Any number of callers
 * at a time. */
void df_removals_hold(struct df_spawner *s);
void df_removals_let_go(struct df_spawner *s);

#endif
