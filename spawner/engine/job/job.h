/*
 * job.h - the engine that runs a step as a Kubernetes Job.
 *
 * The Job has the step's name, so that a repeated create() is idempotent, and the step's uid as a
 * label, by which ownership is checked. Three watches keep the Jobs, pods and Events (warnings, and
 * pods created for workflows) of a namespace in memory. A single object is read from the API
 * server only if a watch that lags behind could wrongly report it as absent. An ended Job stays
 * until its TTL, so that people can inspect it.
 *
 * The same operations also run the action `workflow`, because spec.engine selects the engine and
 * the contract calls the engine of both "job". The two kinds of work share the watches, the
 * ownership by uid, rejections, cancel and cleanup. A workflow has another Job, its Job's name is
 * that of the target instead of the step's, and nobody claims it, so that the state of the
 * Job decides how it ended (workflow.c).
 */
#ifndef DF_ENGINE_JOB_H
#define DF_ENGINE_JOB_H

#include "common/kube/kube.h"
#include "spawner/engine/diagnosis/pod_diagnosis.h"
#include "spawner/engine/engine.h"
#include "spawner/model/never.h"

struct df_job_options {
    struct df_kube *kube;   /* borrowed; must outlive the engine */
    const char *name_space; /* of new Jobs; a step whose ref has another one ends there */
    const char *image;      /* of the runner; NULL: the placement must have one */
    const char
        *workflow_account; /* of workflows that name none; NULL: DF_WORKFLOW_SERVICE_ACCOUNT */
    int64_t ttl_seconds;   /* how long an ended Job stays */
    const struct df_never *never; /* what no step may have; borrowed, must outlive the engine */
    bool sees_pipelines;          /* the service may look at Tekton's objects */
    bool has_vault;               /* the service keeps its secrets as Secrets of that namespace */
    const unsigned char *key; /* DF_KEY_LEN bytes, copied: proves which Jobs are this service's; or
                                   * NULL: no proof is made, and none asked for */
    df_engine_notify notify;  /* or NULL */
    void *notify_arg;
};

/* Sends nothing yet: the first call that needs the watches of a namespace starts them. Until their
 * first lists are complete, status() fails with class RETRY. The strings are copied. */
int df_engine_job_new(const struct df_job_options *o, struct df_engine **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* The Job of a tofu step, as create() would send it. The caller owns *ret. */
int df_job_render(const struct df_job_options *o, const struct df_engine_step *step, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

/* The diagnosis for an error of the API server that refused a Job or its pod. */
struct df_pod_diagnosis df_job_rejection(const struct df_err *why, bool is_workflow);

#endif
