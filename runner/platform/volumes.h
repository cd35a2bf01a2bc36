/*
 * volumes.h - the PersistentVolumes of a component that is removed.
 *
 * Claims and volumes get labels before anything is deleted, so that a teardown that was killed is
 * continued by the next one: without its Application nothing else says whose they are. Thread rule:
 * main thread.
 */
#ifndef DF_PLATFORM_VOLUMES_H
#define DF_PLATFORM_VOLUMES_H

#include "runner/platform/platform.h"

/* Of claims and volumes: the component that is, or was, theirs. */
#define DF_LABEL_COMPONENT "dayfly.dev/component"

extern const struct df_kube_resource df_volumes; /* PersistentVolumes */

/* Gives the volumes behind the Application's claims the reclaim policy that PV_POLICY asks for, and
 * labels both; a dry run notes the volumes in p->removal instead. app: with its status. */
int df_volumes_mark(struct df_platform *p, const struct df_component *c, const cJSON *app,
                    struct df_err *err) DF_MUST_CHECK;

/* Deletes the claims that are left (a StatefulSet leaves its own). *ret_left: how many of them, and
 * of the volumes that shall go, are still there. */
int df_volumes_release(struct df_platform *p, const struct df_component *c, int *ret_left,
                       struct df_err *err) DF_MUST_CHECK;

/* Volumes of the components in scope that are left: an array of {name, claim, component, policy,
 * phase}. The caller owns *ret. */
int df_volumes_left(struct df_platform *p, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
