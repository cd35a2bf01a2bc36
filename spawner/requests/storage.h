/*
 * storage.h - keeps two executors from storing their states at the same location, where they would
 * overwrite each other.
 *
 * Places that an executor is moving to, or that still keep its state of before a move
 * (spawner/model/move.h), count as its own.
 *
 * The check and the following write of the executor are done under one lock; otherwise two
 * concurrent requests could both pass the check. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_STORAGE_H
#define DF_REQUESTS_STORAGE_H

#include "spawner/spawner.h"

/* Held around df_storage_check() and the write. */
void df_storage_lock(void);
void df_storage_unlock(void);

/* CONFLICT StorageInUse if another executor stores its state at the same location. */
int df_storage_check(struct df_spawner *s, const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

/* The same for the storage that a run moves its executor's state to, and WrongState while another
 * unfinished run moves it; success for other runs. */
int df_storage_check_move(struct df_spawner *s, const cJSON *run, struct df_err *err) DF_MUST_CHECK;

#endif
