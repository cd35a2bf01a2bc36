/*
 * tree.h - masks known secret values in a JSON value. Thread rule: the set may be shared.
 */
#ifndef DF_REDACT_TREE_H
#define DF_REDACT_TREE_H

#include "common/json/json.h"
#include "common/redact/redact.h"

/* Masks every text of the value and every name of a member in it, but not the name of the value
 * itself. A number that contains a secret becomes a text. Masked names stay different (names.h).
 * Sets *ret_changed if there was any secret. The depth is that of the value: df_json_parse() caps
 * it. On failure the value must not be shown. */
int df_redact_tree(const struct df_redact_set *set, cJSON *value, bool *ret_changed,
                   struct df_err *err) DF_MUST_CHECK;

/* The same for one text, which is replaced. */
int df_redact_text(const struct df_redact_set *set, char **text, bool *ret_changed,
                   struct df_err *err) DF_MUST_CHECK;

#endif
