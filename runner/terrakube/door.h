/*
 * door.h - the runner as the ephemeral executor of Terrakube: started by a Job of Terrakube's API,
 * with the job and all settings in the environment. Contract: sections 1.2, 3.1 and 4.
 *
 * Thread rule: main thread, before any other exists.
 */
#ifndef DF_RUNNER_TERRAKUBE_DOOR_H
#define DF_RUNNER_TERRAKUBE_DOOR_H

#include "common/base/err.h"

/* True if the environment says so: EphemeralFlagBatch=true. */
bool df_terrakube_door_is_ours(void);

/* Opens the step of EphemeralJobData; the caller closes *ret_opened, a struct df_terrakube_opened
 * (open.h). From then on the environment of this process, also as /proc/<pid>/environ shows it, has
 * no variable of the platform. */
int df_terrakube_door(void **ret_opened, struct df_err *err) DF_MUST_CHECK;

/* Of the process: 0 if the API knows the end of the step, however it ended, or if something was
 * started; else not 0: Kubernetes may start the pod again, because nothing was. opened NULL: it
 * could not be opened. */
int df_terrakube_door_exit_code(const void *opened, int code);

#endif
