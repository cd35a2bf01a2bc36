/*
 * ephemeral.h - the keys by which a Terrakube workspace places its ephemeral executor
 * (EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS and so on), as a placement.
 *
 * Contract: the parsers of Terrakube's EphemeralExecutorService, with what they do to odd input:
 * pairs are separated by `;`, split at the first `=`, trimmed, a pair without `=` has the value "",
 * the last of two wins; tolerations are `key[=value][:operator[:effect]]`, not trimmed, the
 * operator is Exists unless said otherwise, and more parts are not looked at. Mended: what crashed
 * the parser, or would be refused by the API server, is an error that names key, value and reason.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_EPHEMERAL_H
#define DF_EPHEMERAL_H

#include "common/json/json.h"

/* environment: spec.environment of an Executor, a list of {name, value}, or NULL. *ret: the
 * placement that its keys say, {} when there is none of them. The caller owns it. Class USER,
 * reason InvalidPlacement. TERRAKUBE_ENABLE_EPHEMERAL_EXECUTOR is known and changes nothing: every
 * step of ours is ephemeral. */
int df_ephemeral_placement(const cJSON *environment, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
