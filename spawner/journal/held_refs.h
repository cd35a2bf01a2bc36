/*
 * held_refs.h - references to what an engine made (status.engineRef) that wait for a write of their
 * step. The claim writes the step soon, so the reference comes with that write, or with an earlier one,
 * or in a write of its own after DF_HELD_REF_US. Whoever decides by the reference of a step that is not
 * claimed asks here. What a spawner that dies held is found again by its name.
 *
 * In memory: an entry for each step that was started just now. Thread rule: any thread.
 */
#ifndef DF_JOURNAL_HELD_REFS_H
#define DF_JOURNAL_HELD_REFS_H

#include "spawner/spawner.h"

/* Longer than a pod takes to its claim when ten start at once on two cores. */
#define DF_HELD_REF_US INT64_C(5000000)

/* Holds a copy of ref for the TaskAction, instead of that of an earlier attempt to start it. attempt: the
 * hash of the claim token (status.auth.claim), which each attempt that may have made something writes
 * before the engine is asked. */
int df_held_ref_put(struct df_spawner *s, const cJSON *task, const char *attempt, const cJSON *ref,
                    struct df_err *err) DF_MUST_CHECK;

/* Sets status.engineRef to what is held for this attempt. *ret_due_us: real time at which it is to be
 * written; 0: nothing is held. */
int df_held_ref_add(struct df_spawner *s, cJSON *task, int64_t *ret_due_us,
                    struct df_err *err) DF_MUST_CHECK;

/* The same for a document that is only looked at: exchanges *task for a document that has the reference,
 * also if it was written since *task was read. */
int df_held_ref_show(struct df_spawner *s, const cJSON **task, int64_t *ret_due_us,
                     struct df_err *err) DF_MUST_CHECK;

/* What was held for this attempt is written. */
void df_held_ref_drop(struct df_spawner *s, const cJSON *task);
/* The TaskAction of this name is final or gone. */
void df_held_ref_forget(struct df_spawner *s, const char *name);

/* When nobody uses it any more. */
void df_held_refs_free(struct df_held_refs *r);

#endif
