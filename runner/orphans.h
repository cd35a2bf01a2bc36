/*
 * orphans.h - no process of a step outlives it.
 *
 * As child subreaper the runner becomes the parent of whatever tofu, its providers and its
 * provisioners leave behind, however they detach themselves. Thread rule: main thread.
 */
#ifndef DF_ORPHANS_H
#define DF_ORPHANS_H

#include "common/base/err.h"

/* From now on orphans of this process's descendants become its children. */
int df_orphans_adopt(struct df_err *err) DF_MUST_CHECK;

/* Kills (SIGKILL) and reaps every child, then the children they leave, until there is none, for at
 * most a few seconds: a process that the kernel cannot end is left to the engine. */
void df_orphans_end(void);

#endif
