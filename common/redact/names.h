/*
 * names.h - keeps the names of an object's members apart after some of them were masked: two
 * secrets become one mask, and another member may be called like a mask. Thread rule: one thread an
 * object.
 */
#ifndef DF_REDACT_NAMES_H
#define DF_REDACT_NAMES_H

#include "common/json/json.h"

/* The members of one object whose names were masked, in their order. {0} before. */
struct df_redact_names {
    cJSON **masked; /* the array is owned, its items are borrowed */
    size_t len, cap;
};

/* The name of this member was masked. In the order of the object. */
int df_redact_names_add(struct df_redact_names *n, cJSON *member, struct df_err *err) DF_MUST_CHECK;

/* Numbers the masked names ("*** 2") from the second on, and so that each differs from every other
 * name of the object. The names that were not masked stay. */
int df_redact_names_number(const struct df_redact_names *n, const cJSON *object,
                           struct df_err *err) DF_MUST_CHECK;

void df_redact_names_free(struct df_redact_names *n);
#define DF_REDACT_NAMES DF_CLEANUP(df_redact_names_free) struct df_redact_names

#endif
