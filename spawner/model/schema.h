/*
 * schema.h - checks documents against tables with one row a field; for spawner/model only.
 *
 * A check finds every fault, each with its path. It fills in defaults, and refuses unknown fields.
 * Thread rule: pure functions over the document handed in.
 */
#ifndef DF_SCHEMA_H
#define DF_SCHEMA_H

#include "spawner/model/field.h"

/* The path of a value: a list from the leaf to the root, on the stack of the check. */
struct df_path {
    const struct df_path *up; /* NULL: the root, which has no name */
    const char *key;          /* NULL: the item number index */
    int index;
};

/* What is wrong, as one text: "spec.a: is required; spec.b: must be a string". */
struct df_faults {
    char text[900];
    size_t len;
    int count;
    int left_out; /* faults for which text had no space left */
    bool no_memory;
};

/* Adds "path: text" to the faults. If there is no space left, the fault is only counted. */
void df_fault(struct df_faults *f, const struct df_path *path, const char *fmt, ...)
    DF_PRINTF(3, 4);

/* 0 if there are no faults. Otherwise fails with class USER, this reason and a message of the
 * prefix and all faults, or with no memory. */
int df_faults_fail(const struct df_faults *f, const char *reason, const char *prefix,
                   struct df_err *err) DF_MUST_CHECK;

/* Checks the members of object against the rows. old: the object before the change, to compare
 * frozen fields; or NULL. */
void df_schema_check(const struct df_field *fields, cJSON *object, const cJSON *old,
                     const struct df_path *path, struct df_faults *f);

#endif
