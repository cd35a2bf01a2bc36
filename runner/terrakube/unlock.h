/*
 * unlock.h - the lock that the ended command of this step left on the state. Thread rule: main
 * thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_UNLOCK_H
#define DF_RUNNER_TERRAKUBE_UNLOCK_H

#include "runner/context.h"

/* Releases the lock at which a command of the tool failed, if the last command that changed
 * resources took it and has ended. errors: a file with what the tool said. False: it failed at
 * something else, somebody else may hold the lock, or it is not released. */
bool df_terrakube_unlock_own(struct df_context *c, const char *errors) DF_MUST_CHECK;

#endif
