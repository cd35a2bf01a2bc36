/*
 * values.h - the values of resources, and which of them are sensitive, as `show -json` has both:
 * trees of the same shape, where `true` marks what is sensitive or unknown. Thread rule: pure
 * functions.
 *
 * They make new trees, for the caller to delete; out of memory a part is absent, never shown.
 */
#ifndef DF_RUNNER_TERRAKUBE_VALUES_H
#define DF_RUNNER_TERRAKUBE_VALUES_H

#include "common/json/json.h"

/* The value with null for all that is sensitive. Either may be NULL. */
cJSON *df_values_hide(const cJSON *value, const cJSON *sensitive);

/* The marks of a resource: those of the input of terraform_data are those of its output. */
cJSON *df_values_marks(const char *type, const char *address, const cJSON *sensitive);

/* The marks of both. */
cJSON *df_values_merge(const cJSON *a, const cJSON *b);

/* `true` where a sensitive value changes; NULL: nowhere. */
cJSON *df_values_changed(const cJSON *before, const cJSON *after, const cJSON *before_sensitive,
                         const cJSON *after_sensitive);

/* Puts what was unknown, and is known now, into *after, but nothing sensitive. Returns what is
 * still unknown. */
cJSON *df_values_resolve(const cJSON *unknown, cJSON **after, const cJSON *known,
                         const cJSON *sensitive);

#endif
