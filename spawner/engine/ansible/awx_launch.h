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

#include "common/kube/kube.h"
#include "spawner/engine/ansible/awx_client.h"
#include "spawner/engine/ansible/awx_lost.h"
#include "spawner/engine/engine.h"
#include "spawner/model/never.h"

/* All borrowed. */
struct df_awx_call {
    struct df_awx *awx;
    struct df_kube *kube;
    const char *name_space; /* of Secrets and ConfigMaps */
    const struct df_never *never;
    bool sees_pipelines; /* the service may look at Tekton's objects */
    struct df_awx_lost *lost;
    const struct df_engine_step *step;
};

/* Finds the job of the step, or launches one. *ret_ref: {kind, name, namespace, uid, credentials},
 * the last one with the ids of those that were made; the caller owns it. USER, with a reason: the
 * step cannot be started. CONFLICT as of df_awx_check_target(). RETRY, SYSTEM: it may have been. A
 * step that this process has asked for, and AWX may have done, is looked for and not launched
 * again; one that a process before may have asked for is, after DF_AWX_LOST_SECONDS. */
int df_awx_create(const struct df_awx_call *c, cJSON **ret_ref, struct df_err *err) DF_MUST_CHECK;

/* True: df_awx_create() does not launch the step again. to: why, for people. */
bool df_awx_tell_lost(const struct df_awx_call *c, char *to, size_t size);

/* CONFLICT TargetLocked, with the holder as the message: an object of another engine, or of another
 * scheduler, holds the target. They do not see jobs of AWX, so this is one half of a lock only. */
int df_awx_check_target(const struct df_awx_call *c, struct df_err *err) DF_MUST_CHECK;

/* Deletes the credentials that were made for the step. If it has no reference they are found by
 * their names, and a job whose launch was not answered is canceled. RETRY: something is left, or
 * may still come. */
int df_awx_remove(const struct df_awx_call *c, struct df_err *err) DF_MUST_CHECK;

#endif
