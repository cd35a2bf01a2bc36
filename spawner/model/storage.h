/*
 * storage.h - spec.storage of an Executor: where its state is kept. Thread rule: pure functions,
 * any thread.
 */
#ifndef DF_MODEL_STORAGE_H
#define DF_MODEL_STORAGE_H

#include "common/json/json.h"

/* The setting of tofu's backend that gets spec.storage.path ("key", "prefix", "path"); NULL for
 * managed and module. Borrowed literal. */
const char *df_storage_path_key(const char *type);

/* Does dayfly store the state of this Executor or TaskAction? */
bool df_storage_is_managed(const cJSON *doc);

/* Can a run list and roll back the versions of this Executor's state that a bucket keeps? */
bool df_storage_has_history(const cJSON *executor);

/* Fills in defaults of spec.storage: the path of an executor with this name, and a lock for s3. The
 * number as the name of a bucket becomes its digits. spec: of an Executor, or its copy; unchanged
 * without a storage. */
int df_storage_fill(cJSON *spec, const char *name, struct df_err *err) DF_MUST_CHECK;

/* Are these two spec.storage (NULL: none) of an executor with this name the same, with the defaults
 * of today? A document of an older version may lack some. False if memory runs out. */
bool df_storage_is_same(const char *name, const cJSON *a, const cJSON *b);

/* A spec.storage (NULL: none) as a message calls it: "the s3 storage
 * executors/net/terraform.tfstate, bucket states, region r, endpoint URL". The caller frees; NULL:
 * no memory. */
char *df_storage_words(const cJSON *storage);

/* The place of the state (storage_place.h): equal for two executors if their settings lead to the
 * same state, however they are written; the caller frees it. *ret is NULL for a managed state, and
 * if only the module knows where its state is. */
int df_storage_location(const cJSON *executor, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
