/*
 * shown.h - the outputs of managed states as callers without the role admin see them.
 *
 * The runner of a step alone knows all that its log masks: besides stored secrets the keys and
 * tokens that were made for this step. At its end it fetches those outputs of the state that it
 * wrote, and sends them back with their secrets masked: {name: {digest, value}}, where digest is
 * the SHA-256 of the value in the state. They are stored for the step and as the newest of its
 * executor (outputs.h). A value without a secret is stored as it is: that says that it has none.
 * While a value stays the same, so does what is shown for it.
 *
 * Of an output that another step wrote, and did not mask because it was killed, a later runner does
 * not know the secrets. It is masked by that runner all the same when it is old enough
 * (DF_SHOWN_RIPE_SECONDS) for keys and tokens to have expired. So is what a person stored, at once.
 * Thread rule: any thread.
 */
#ifndef DF_STEPS_SHOWN_H
#define DF_STEPS_SHOWN_H

#include "spawner/spawner.h"

/* Replaces the values in outputs, which are of this version (0: the current one) of the executor's
 * state, by what is shown for them: "***" for one that a step wrote and no runner has masked.
 * Values in a state that a person stored, and that are not known, stay. On failure they must not be
 * shown. */
int df_shown_apply(struct df_spawner *s, const char *executor_uid, int64_t version, cJSON *outputs,
                   struct df_err *err) DF_MUST_CHECK;

#endif
