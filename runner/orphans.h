/*
 * orphans.h - ends every process that a step, or a part of it, leaves behind.
 *
 * As a child subreaper the runner becomes the parent of every process that tofu, its providers and
 * its provisioners leave behind, however they detach themselves. Thread rule: main thread.
 */
#ifndef DF_ORPHANS_H
#define DF_ORPHANS_H

#include "common/base/err.h"

/* From now on orphans of this process's descendants become its children. */
int df_orphans_adopt(struct df_err *err) DF_MUST_CHECK;

/* Kills (SIGKILL) all descendants, again and again, and reaps them until there is none. False: it
 * gave up after a few seconds. At the end of a step the engine deals with a process that the
 * kernel cannot end. */
bool df_orphans_end(void);
/* The same before something is read that a process which a script or a provider left running could
 * change. USER with the reason if one cannot be ended. */
int df_orphans_must_end(const char *reason, struct df_err *err) DF_MUST_CHECK;

#endif
