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

/* Fills in defaults of spec.storage: the path of an executor with this name, and a lock for s3.
 * spec: of an Executor, or its copy; unchanged without a storage. */
int df_storage_fill(cJSON *spec, const char *name, struct df_err *err) DF_MUST_CHECK;

/* A text that is equal for two executors exactly if they would write the same state; the caller
 * frees it. *ret is NULL for a managed state, and if only the module knows where its state is. */
int df_storage_location(const cJSON *executor, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
