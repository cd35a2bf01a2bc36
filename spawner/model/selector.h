/*
 * selector.h - label selectors in the syntax of Kubernetes: `a=b`, `a==b`, `a!=b`, `a`, `!a`,
 * `a in (b,c)`, `a notin (b,c)`; several are separated by commas and must all hold. A document
 * without the label satisfies `!=` and `notin`, as in Kubernetes. Thread rule: one selector, any
 * thread.
 */
#ifndef DF_MODEL_SELECTOR_H
#define DF_MODEL_SELECTOR_H

#include "common/json/json.h"

struct df_selector; /* opaque */

/* Class USER: the message quotes the text. */
int df_selector_parse(const char *text, struct df_selector **ret, struct df_err *err) DF_MUST_CHECK;
void df_selector_free(struct df_selector *s); /* NULL is fine */

/* Do the labels of this document satisfy it? */
bool df_selector_matches(const struct df_selector *s, const cJSON *doc);

/* A label "key=value" that every matching document has, for an index look-up; or NULL. */
const char *df_selector_label(const struct df_selector *s);

#endif
