/*
 * door.h - the runner as the ephemeral executor of Terrakube: started by a Job of Terrakube's API,
 * with the job and all settings in the environment. Contract: sections 1.2, 3.1 and 4.
 *
 * Thread rule: main thread, before any other exists.
 */
#ifndef DF_RUNNER_TERRAKUBE_DOOR_H
#define DF_RUNNER_TERRAKUBE_DOOR_H

#include "common/base/util.h"

/* True if the environment says so: EphemeralFlagBatch=true. */
bool df_terrakube_door_is_ours(void);

/* Runs the step of EphemeralJobData. From then on the environment of this process, also as
 * /proc/<pid>/environ shows it, has no variable of the platform. Returns the exit code of the
 * process: 0 if the API knows the end of the step, however it ended, or if something was started;
 * 1 if Kubernetes may start the pod again, because nothing was. */
int df_terrakube_door(void);

#endif
