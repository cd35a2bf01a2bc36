/*
 * creations.h - the objects that one apply began to create, read from the tool's events, and which
 * of them a state contains. Pass in every event, then every candidate state, then ask for the
 * missing objects.
 *
 * Sources: the machine-readable UI of OpenTofu and Terraform (internal/command/views/json: hook.go,
 * and resource_addr.go for the parts of an address), the state file's version 4
 * (internal/states/statefile/version4.go). Objects are matched by the parts of their addresses,
 * which are the same in events and states. Thread rule: one object, one thread; no I/O.
 */
#ifndef DF_STEPS_CREATIONS_H
#define DF_STEPS_CREATIONS_H

#include "common/json/json.h"

struct df_creations; /* opaque */

struct df_creations *df_creations_new(void); /* NULL if out of memory */
void df_creations_free(struct df_creations *c);
static inline void df_cleanup_creations(struct df_creations **c)
{
    df_creations_free(*c);
}
#define DF_CREATIONS DF_CLEANUP(df_cleanup_creations)

/* Reads one line of the events; call it in their order. Garbage, truncated lines and other events
 * are ignored. The only possible failure is out of memory. */
int df_creations_event(struct df_creations *c, const char *line, size_t n,
                       struct df_err *err) DF_MUST_CHECK;

/* The caller has other proof that the tool ended by itself and wrote its state. */
void df_creations_tool_ended(struct df_creations *c);

/* False if no object that was begun is missing: then no state needs to be compared any more. */
bool df_creations_any(const struct df_creations *c);

/* Marks the objects that this state contains. state: a parsed state file. */
int df_creations_compare(struct df_creations *c, const cJSON *state,
                         struct df_err *err) DF_MUST_CHECK;

/* Call it if no state can be compared. why: a literal, kept by pointer. Then the events alone
 * decide. */
void df_creations_incomparable(struct df_creations *c, const char *why);

/* *ret: NULL if nothing is missing, else `status.unrecorded` of a TaskAction (docs/objects.md) with
 * at most DF_LIMIT_UNRECORDED items; the caller deletes it. */
int df_creations_missing(const struct df_creations *c, cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;

#endif
