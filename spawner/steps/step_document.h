/*
 * step_document.h - what a runner is told when it has claimed its step (docs/step-protocol.md):
 * the TaskAction, its secrets out of the vault, the tools of the configuration.
 */
#ifndef DF_STEPS_STEP_DOCUMENT_H
#define DF_STEPS_STEP_DOCUMENT_H

#include "spawner/engine/placement.h"
#include "spawner/spawner.h"

/* The tokens of one claim. Wipe it after use. */
struct df_step_tokens {
    const char *claim; /* the one that was shown, borrowed; NULL: none was */
    char step[65];
    char state[65];
};

/* *ret holds secrets: delete it with df_json_wipe(). Class USER, reason InvalidStep, when the step
 * asks for what is not there (a secret, a key of it); the message names it. */
int df_step_document(struct df_spawner *s, const cJSON *task, const struct df_step_tokens *tokens,
                     cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Who says what about the pod of a step. Borrowed from both. */
struct df_placement_levels df_step_placement(const struct df_config *config, const cJSON *task);

/* Its member `tools`. */
int df_step_tools(const struct df_config *c, bool in_pod, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
