/*
 * revision.h - the history of an executor: each spec that was accepted is a document of the kind
 * Revision, named `<executor>-r<number>`. The number is the executor's status.revision, and
 * status.revised says who wrote that spec, so that the revision follows from the executor alone
 * (requests/revisions.h). Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_REVISION_H
#define DF_MODEL_REVISION_H

#include "common/base/err.h"
#include "common/json/json.h"

/* Sets revision and revised {by, at} of an executor's status. author: NULL: nobody knows; at: a
 * time as text, or NULL. */
int df_revision_set(cJSON *status, int64_t number, const char *author, const char *at,
                    struct df_err *err) DF_MUST_CHECK;

/* The name of the executor's revision with this number. */
int df_revision_name(const char *executor, int64_t number, char ret[64],
                     struct df_err *err) DF_MUST_CHECK;

#endif
