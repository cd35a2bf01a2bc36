/*
 * storage.h - two executors that wrote to one place would destroy each other's state.
 *
 * The check and the write of the executor that follows are made under one lock, or two that come at
 * once would both pass. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_STORAGE_H
#define DF_REQUESTS_STORAGE_H

#include "spawner/spawner.h"

/* Around df_storage_check() and the write. */
void df_storage_lock(void);
void df_storage_unlock(void);

/* Does no other executor keep its state where this one does? CONFLICT StorageInUse. */
int df_storage_check(struct df_spawner *s, const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#endif
