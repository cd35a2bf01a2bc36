/*
 * strs.h - a vector of strings, NULL-terminated so that it can be an argv or an environment.
 *
 * Invariants: items is NULL while the vector is empty and was never grown, else items[len] == NULL;
 * every item is owned. Like struct df_buf, the first failure sticks and is read by df_strs_check().
 * Thread rule: one vector, one thread.
 */
#ifndef DF_BASE_STRS_H
#define DF_BASE_STRS_H

#include "common/base/err.h"

struct df_strs {
    char **items;
    size_t len;
    size_t cap;
    int failed; /* 0 or ENOMEM */
};

#define DF_STRS DF_CLEANUP(df_strs_free)

void df_strs_free(struct df_strs *v);
/* Overwrites every string with zeros, then frees all. For vectors with secrets. */
void df_strs_wipe(struct df_strs *v);
#define DF_SECRET_STRS DF_CLEANUP(df_strs_wipe)
int df_strs_add(struct df_strs *v, const char *s); /* a copy; s == NULL counts as out of memory */
int df_strs_addf(struct df_strs *v, const char *fmt, ...) DF_PRINTF(2, 3);
/* Takes ownership of s, also on failure. s == NULL counts as out of memory. */
int df_strs_take(struct df_strs *v, char *s);
int df_strs_check(const struct df_strs *v, struct df_err *err) DF_MUST_CHECK;
bool df_strs_has(const struct df_strs *v, const char *s);
/* Adds a copy unless the vector has the string. True if it was added. */
bool df_strs_add_new(struct df_strs *v, const char *s);

/* For environments: replaces "NAME=..." or adds it. */
int df_strs_set_env(struct df_strs *v, const char *name, const char *value);
/* The value behind "NAME=", borrowed, or NULL. */
const char *df_strs_get_env(const struct df_strs *v, const char *name);

/* Items joined by sep. The caller frees; NULL on no memory. */
char *df_strs_join(const struct df_strs *v, const char *sep);

#endif
