/*
 * context.h - the structured output that Terrakube's UI shows of a plan or apply: one row a
 * resource, diagnostics, outputs. Contract: section 3.7 (2.31 for plans, 2.33 for the rest).
 *
 * A thread of its own reads the API's document, adds what is new of this step, and writes it back:
 * at most one request a second; it never delays the tool. It ends silently if the API has no
 * context or takes none from this job any more. Sensitive values are null before they leave. Thread
 * rule: calls from one thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_CONTEXT_H
#define DF_RUNNER_TERRAKUBE_CONTEXT_H

#include "common/terrakube/api.h"
#include "common/terrakube/log_stream.h"

struct df_terrakube_context; /* opaque */

/* Starts the thread. s and p are borrowed; live gets each change for those who watch, or NULL. */
int df_terrakube_context_new(const struct df_terrakube_settings *s,
                             const struct df_terrakube_payload *p, struct df_terrakube_stream *live,
                             struct df_terrakube_context **ret, struct df_err *err) DF_MUST_CHECK;

/* Bytes of the events of the tool (-json), redacted; cut anywhere. */
void df_terrakube_context_events(struct df_terrakube_context *c, const char *bytes, size_t n);
/* The rows of a plan, from its `show -json`. An apply begins with those of the plan that the API
 * has. */
void df_terrakube_context_plan(struct df_terrakube_context *c, const cJSON *plan);
/* Of `show -json` of the state, after an apply: what was unknown in the plan. */
void df_terrakube_context_state(struct df_terrakube_context *c, const cJSON *state);
/* Of `output -json`. */
void df_terrakube_context_outputs(struct df_terrakube_context *c, const cJSON *outputs);
/* Adds a member of the API's document (a copy of value), as policies have it. */
void df_terrakube_context_add(struct df_terrakube_context *c, const char *key, const cJSON *value);

/* Sends what is left, waits at most this long, and ends the thread. NULL is fine. */
void df_terrakube_context_free(struct df_terrakube_context *c, int64_t timeout_ms);

#endif
