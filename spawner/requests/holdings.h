/*
 * holdings.h - refuses requests after which nobody would know of existing resources: those in an
 * executor's state, whoever stored it. Thread rule: any thread.
 */
#ifndef DF_HOLDINGS_H
#define DF_HOLDINGS_H

#include "spawner/spawner.h"

/* A request to leave resources behind on purpose. */
struct df_forget {
    int64_t state_version; /* the newest that the caller has seen; 0: there is none; -1: any */
    /* Also if the state is locked or cannot be read; not if an errored state is kept. */
    bool abandon;
};

/* Checks whether the executor may be deleted. forget (NULL: none): an admin may do it while nobody
 * holds the state's lock, or whoever holds it (abandon). DENIED; CONFLICT WrongState names the
 * resources, or that an errored state is kept, and what to do; CONFLICT
 * PreconditionFailed if the state has another version now. */
int df_holdings_check_delete(struct df_spawner *s, const cJSON *executor, df_verbs verbs,
                             const struct df_forget *forget, struct df_err *err) DF_MUST_CHECK;

#endif
