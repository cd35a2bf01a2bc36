/*
 * storage_types.h - the types of spec.storage and their rules, one row each; for spawner/model
 * alone. Thread rule: pure functions, any thread.
 */
#ifndef DF_STORAGE_TYPES_H
#define DF_STORAGE_TYPES_H

#include "spawner/model/storage_place.h"

#define DF_STORAGE_SETTINGS 3 /* most settings in a list of a row */

struct df_storage_type {
    const char *name;
    bool has_config;
    bool has_history;      /* a bucket, whose versions a runner can read (runner/history.h) */
    const char *path_key;  /* the backend's setting that spec.storage.path becomes; NULL: no path */
    const char *path_form; /* format of the default path of an executor; NULL: no default */
    const char *required[DF_STORAGE_SETTINGS + 1];
    const char *stores[DF_STORAGE_SETTINGS + 1]; /* settings that are the address of a store */
    df_storage_place *place; /* NULL: only dayfly or the module knows the place */
};

/* The row of this type; NULL if there is none. */
const struct df_storage_type *df_storage_type_find(const char *name);

#endif
