/*
 * holdings.h - what stands in the way of losing sight of resources: whatever an executor's state
 * holds, wherever that state came from. Thread rule: any thread.
 */
#ifndef DF_HOLDINGS_H
#define DF_HOLDINGS_H

#include "spawner/spawner.h"

/* Resources that are left behind on purpose. */
struct df_forget {
    int64_t state_version; /* the newest one that the caller has; 0: there is none; -1: any */
};

/* May the executor be deleted? forget (NULL: none): an admin may do it, while nobody holds the
 * state's lock. Class DENIED; CONFLICT WrongState with the resources and the ways out; CONFLICT
 * PreconditionFailed when the state has another version by now. */
int df_holdings_check_delete(struct df_spawner *s, const cJSON *executor, enum df_role role,
                             const struct df_forget *forget, struct df_err *err) DF_MUST_CHECK;

#endif
