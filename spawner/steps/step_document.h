/*
 * step_document.h - the step document, which a runner receives as the answer to its claim
 * (docs/step-protocol.md). It is made of the TaskAction, its secrets from the vault, and the tools
 * of the configuration.
 */
#ifndef DF_STEPS_STEP_DOCUMENT_H
#define DF_STEPS_STEP_DOCUMENT_H

#include "spawner/engine/placement/placement.h"
#include "spawner/spawner.h"

/* The tokens of one claim. Wipe it after use. */
struct df_step_tokens {
    const char *claim; /* the token that the runner sent, borrowed; or NULL */
    char step[65];
    char state[65];
    char providers[65]; /* a part of the URL of its mirror */
};

/* *ret holds secrets: delete it with df_json_wipe(). Class USER, reason InvalidStep, if the step
 * refers to a secret or a key that does not exist; the message names it. */
int df_step_document(struct df_spawner *s, const cJSON *task, const struct df_step_tokens *tokens,
                     cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The levels of configuration and TaskAction that decide about the step's pod. Borrowed from
 * both. */
struct df_placement_levels df_step_placement(const struct df_config *config, const cJSON *task);

/* True if the step's runner is a pod, by its engine's traits; false if no such engine is open. */
bool df_step_is_in_pod(const struct df_spawner *s, const cJSON *task);

/* What a runner in a pod may get ready before it has a step: the members of its step document that
 * say where tool and source are, as far as they are no secret. plan: of the apply that it waits
 * for, with its source known; NULL: of any step. */
int df_step_preparation(const struct df_config *config, const cJSON *plan, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;

/* The document's member `tools`. */
int df_step_tools(const struct df_config *c, bool in_pod, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
