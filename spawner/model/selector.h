/*
 * selector.h - label selectors in the syntax of Kubernetes: `a=b`, `a==b`, `a!=b`, `a`, `!a`,
 * `a in (b,c)`, `a notin (b,c)`, several separated by commas: all of them must hold. As there, what
 * lacks the label satisfies `!=` and `notin`. Thread rule: one selector, any thread.
 */
#ifndef DF_MODEL_SELECTOR_H
#define DF_MODEL_SELECTOR_H

#include "common/json/json.h"

struct df_selector; /* opaque */

/* Class USER names the text. */
int df_selector_parse(const char *text, struct df_selector **ret, struct df_err *err) DF_MUST_CHECK;
void df_selector_free(struct df_selector *s); /* NULL is fine */

/* Do the labels of this document satisfy it? */
bool df_selector_matches(const struct df_selector *s, const cJSON *doc);

/* "key=value" that every match has, to find them by; NULL when the selector asks for none. */
const char *df_selector_label(const struct df_selector *s);

#endif
