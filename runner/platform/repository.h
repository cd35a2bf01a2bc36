/*
 * repository.h - the git repository of the platform, fetched here: for its dag.yaml, for the
 * commit that gitRevision is now, for the files of components of the bootstrap. Thread rule: main
 * thread.
 */
#ifndef DF_PLATFORM_REPOSITORY_H
#define DF_PLATFORM_REPOSITORY_H

#include "runner/platform/platform.h"

/* Fetches gitRevision into p->checkout, a new directory below TMPDIR, and sets p->commit. */
int df_repository_fetch(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;
/* Removes the directory, which p->checkout leads into; nothing if there is none. */
void df_repository_remove(struct df_platform *p);

#endif
