/*
 * awx_launch.h - what create() and cleanup() of the engine `ansible` do in AWX: a workflow becomes
 * a job, each of its Secrets a credential that lives as long as the workflow's document.
 *
 * Contract: kubernaut's ansible executor, its order of effects. Unlike there a job whose launch was
 * not answered is found again by the action's uid, and only credentials that were made here are
 * deleted. Nothing is kept: a call that failed half way is repeated. Thread rule: one call, one
 * handle, one thread.
 */
#ifndef DF_ENGINE_AWX_LAUNCH_H
#define DF_ENGINE_AWX_LAUNCH_H

#include "common/base/clock.h"
#include "common/kube/kube.h"
#include "spawner/engine/ansible/awx_client.h"
#include "spawner/engine/engine.h"
#include "spawner/model/never.h"

/* AWX may still do what it was asked for and has not answered, but not later than this. */
#define DF_AWX_LOST_SECONDS 30

/* All borrowed. */
struct df_awx_call {
    struct df_awx *awx;
    struct df_kube *kube;
    const char *name_space; /* of Secrets and ConfigMaps */
    const struct df_never *never;
    bool sees_pipelines; /* the service may look at Tekton's objects */
    /* Atomic, of the monotonic clock: until then a job that is not found may still come. Also
     * written here. */
    int64_t *quiet_us;
    const struct df_engine_step *step;
};

/* Something that was asked for has not been answered, whoever asked. */
static inline void df_awx_note_lost(int64_t *quiet_us)
{
    int64_t until_us = df_mono_us() + DF_AWX_LOST_SECONDS * INT64_C(1000000);
    __atomic_store_n(quiet_us, until_us, __ATOMIC_RELAXED);
}

/* Finds the job of the step, or launches one. *ret_ref: {kind, name, namespace, uid, credentials},
 * the last one with the ids of those that were made; the caller owns it. USER, with a reason: the
 * step cannot be started. CONFLICT as of df_awx_check_target(). RETRY, SYSTEM: it may have been. A
 * step that was asked for before is launched again only when AWX has had DF_AWX_LOST_SECONDS. */
int df_awx_create(const struct df_awx_call *c, cJSON **ret_ref, struct df_err *err) DF_MUST_CHECK;

/* CONFLICT TargetLocked, with the holder as the message: an object of another engine, or of another
 * scheduler, holds the target. They do not see jobs of AWX, so this is one half of a lock only. */
int df_awx_check_target(const struct df_awx_call *c, struct df_err *err) DF_MUST_CHECK;

/* Deletes the credentials that were made for the step. If it has no reference they are found by
 * their names, and a job whose launch was not answered is canceled. RETRY: something is left, or
 * may still come. */
int df_awx_remove(const struct df_awx_call *c, struct df_err *err) DF_MUST_CHECK;

#endif
