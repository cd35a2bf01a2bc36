/*
 * revisions.h - keeps each accepted spec of an executor as a document (revision.h of the model).
 * It is stored after the executor: whoever changes the executor calls this for the new one, and for
 * the old one before, and the control loop for every one that it looks at. So a crash between two
 * writes loses nothing. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_REVISIONS_H
#define DF_REQUESTS_REVISIONS_H

#include "spawner/spawner.h"

/* Stores the executor's present revision, unless it is stored already, or its spec is not accepted
 * or it is being deleted. */
int df_revision_keep(struct df_spawner *s, const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

/* False if that call would store something. */
bool df_revision_is_kept(struct df_spawner *s, const cJSON *executor);

#endif
