/*
 * restored.h - runs, steps and workflows whose custom resources were made again from a backup. What was
 * under way then may have been done since, and a plan that waited may have been applied: each of
 * them is canceled. A restored data directory is settled before it is one (spawner/backup/restore.h).
 * Thread rule: one thread, before the workers start.
 */
#ifndef DF_CONTROL_RESTORED_H
#define DF_CONTROL_RESTORED_H

#include "spawner/control/loop.h"

/* Cancels what has not ended, with an entry in the audit trail for each. Repeating it changes
 * nothing. */
int df_restored_cancel(struct df_control *c, struct df_err *err) DF_MUST_CHECK;

#endif
