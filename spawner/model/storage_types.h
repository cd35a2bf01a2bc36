/*
 * storage_types.h - the types of spec.storage and their rules, one row each; for spawner/model
 * alone. Thread rule: pure functions, any thread.
 */
#ifndef DF_STORAGE_TYPES_H
#define DF_STORAGE_TYPES_H

#include <stdbool.h>

#define DF_STORAGE_SETTINGS 3 /* most settings in a list of a row */

/* A setting that says which store it is. Two executors with the same path collide if all of these
 * are equal in both. */
struct df_storage_place {
    const char *name;
    const char *other;    /* the setting that says it if this one is absent; or NULL */
    const char *standard; /* the value of an absent one; or NULL */
    bool is_address;      /* compared as a URL */
};

struct df_storage_type {
    const char *name;
    bool has_config;
    const char *path_key;  /* the backend's setting that spec.storage.path becomes; NULL: no path */
    const char *path_form; /* format of the default path of an executor; NULL: no default */
    const char *required[DF_STORAGE_SETTINGS + 1];
    struct df_storage_place place[DF_STORAGE_SETTINGS + 1];
};

/* The row of this type; NULL if there is none. */
const struct df_storage_type *df_storage_type_find(const char *name);

#endif
