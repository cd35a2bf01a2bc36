/*
 * creations.h - what one apply began to create, read from the tool's own events, and which of it
 * a state knows. Feed it every event, then every state that could know, then ask for the rest.
 *
 * Sources: the machine-readable UI of OpenTofu and Terraform (internal/command/views/json: hook.go,
 * and resource_addr.go for the parts of an address), the state file's version 4
 * (internal/states/statefile/version4.go). Objects are matched by the parts of their addresses,
 * which events and states write alike, so no address has to be composed here.
 * Thread rule: one object, one thread; no I/O.
 */
#ifndef DF_STEPS_CREATIONS_H
#define DF_STEPS_CREATIONS_H

#include "common/json/json.h"

struct df_creations; /* opaque */

struct df_creations *df_creations_new(void); /* NULL on no memory */
void df_creations_free(struct df_creations *c);
static inline void df_cleanup_creations(struct df_creations **c)
{
    df_creations_free(*c);
}
#define DF_CREATIONS DF_CLEANUP(df_cleanup_creations)

/* One line of the events, in their order. What is no event (garbage, a line that was cut) or does
 * not matter is passed over. Fails on no memory alone. */
int df_creations_event(struct df_creations *c, const char *line, size_t n,
                       struct df_err *err) DF_MUST_CHECK;

/* Something else than the events proves that the tool came to its own end, and so wrote its state.
 */
void df_creations_tool_ended(struct df_creations *c);

/* False: whatever was begun is known to be recorded, no state need be read. */
bool df_creations_any(const struct df_creations *c);

/* Ticks off what this state records. state: a parsed state file. */
int df_creations_compare(struct df_creations *c, const cJSON *state,
                         struct df_err *err) DF_MUST_CHECK;

/* Why no state could be asked; literal, kept by pointer. Then only the tool's own end is believed.
 */
void df_creations_incomparable(struct df_creations *c, const char *why);

/* *ret: NULL when nothing is missing, else what docs/objects.md says of a TaskAction's
 * `status.unrecorded`; the caller deletes. At most DF_LIMIT_UNRECORDED items. */
int df_creations_missing(const struct df_creations *c, cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;

#endif
