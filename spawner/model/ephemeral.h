/*
 * ephemeral.h - translates the keys that place the ephemeral executor of a Terrakube workspace
 * (EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS and so on) into a placement.
 *
 * Contract: the parsers of Terrakube's EphemeralExecutorService, odd input included: pairs are
 * separated by `;`, split at the first `=` and trimmed; a pair without `=` has the value ""; of two
 * equal keys the last wins. Tolerations are `key[=value][:operator[:effect]]`, not trimmed; the
 * default operator is Exists, and further parts are ignored. One difference: input that crashes
 * Terrakube's parser, or that the API server would refuse, is an error that names key, value and
 * reason.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_EPHEMERAL_H
#define DF_EPHEMERAL_H

#include "common/json/json.h"

/* environment: spec.environment of an Executor, a list of {name, value}, or NULL. *ret: the
 * placement, {} if there is none of the keys. The caller owns it. Class USER, reason
 * InvalidPlacement. TERRAKUBE_ENABLE_EPHEMERAL_EXECUTOR has no effect: every step here is
 * ephemeral. */
int df_ephemeral_placement(const cJSON *environment, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Is this variable one of the keys, or misspelled as one: does it begin with EPHEMERAL_? */
bool df_ephemeral_is_key(const char *name);

#endif
