/*
 * sealed.h - the secrets of one run, which no document may contain: the member `secrets` of its
 * request, {environment: {NAME: text}, variables: {name: JSON}, files: {NAME.tfvars: text}, plain:
 * [names]}.
 *
 * The values are in the vault, in one entry for each run. The entry is bound to the run's name; it
 * is written before the run is stored, and deleted before the run is final. The run's spec.sealed
 * has the entry's id and the names. A sweep deletes the entries that a crash left. Thread rule: any
 * thread.
 */
#ifndef DF_STEPS_SEALED_H
#define DF_STEPS_SEALED_H

#include "spawner/spawner.h"

/* Stores the secrets and sets spec.sealed of the run, which has a name but is not stored yet.
 * secrets: checked by df_model_check_secrets(); NULL: does nothing. */
int df_sealed_put(struct df_spawner *s, cJSON *run, const cJSON *secrets,
                  struct df_err *err) DF_MUST_CHECK;

/* *ret: the secrets; delete them with df_json_wipe(). Unchanged for a run without secrets. USER
 * InvalidStep if they are not in the vault any more. */
int df_sealed_get(struct df_spawner *s, const cJSON *run, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

/* The environment that a caller with the role write gave the run must leave alone what the document
 * of its step sets for the same provider. USER InvalidStep. */
int df_sealed_check(struct df_spawner *s, const cJSON *task, const cJSON *doc,
                    struct df_err *err) DF_MUST_CHECK;

/* Deletes the run's entry. Absent is success. */
int df_sealed_drop(struct df_spawner *s, const cJSON *run, struct df_err *err);

/* Deletes the entries of runs that are final, and those that belong to no stored run and are older
 * than the grace period. */
int df_sealed_sweep(struct df_spawner *s, int64_t now_us, struct df_err *err) DF_MUST_CHECK;

#endif
