/*
 * job.h - the engine that gives a step a Kubernetes Job.
 *
 * The Job has the step's name, so that a repeated create is the same create, and the step's uid as
 * a label, by which ownership is checked. One watch each for Jobs, pods and Events (warnings, and
 * pods made for workflows) of the namespace tells what becomes of them; single objects are read
 * only where a watch that lags behind would make "it is not there" a wrong answer. An ended Job
 * stays until its TTL, so that people can look at it.
 *
 * It takes the action `workflow`, too, behind the same operations: engines are chosen by
 * spec.engine, and "job" is what the contract calls the engine of both. The two share the watches,
 * the ownership by uid, rejections, cancel and cleanup; a workflow differs in what its Job is, in its
 * name, which is the lock on the target and not the step's, and in that nobody claims it, so that
 * the Job's own state tells how it ended (workflow.c).
 */
#ifndef DF_ENGINE_JOB_H
#define DF_ENGINE_JOB_H

#include "common/kube/kube.h"
#include "spawner/engine/diagnosis/pod_diagnosis.h"
#include "spawner/engine/engine.h"

struct df_job_options {
    struct df_kube *kube;    /* borrowed; must outlive the engine */
    const char *name_space;  /* of the Jobs */
    const char *image;       /* of the runner; or NULL: the placement must say it */
    bool by_secret;          /* hand the step over in a Secret instead of a claim */
    bool reachable;          /* pods can reach the spawner */
    int64_t ttl_seconds;     /* ended Jobs stay that long */
    df_engine_notify notify; /* or NULL */
    void *notify_arg;
};

/* Starts the watches and returns at once: until they have told everything, status() fails with
 * class RETRY. The strings are copied. */
int df_engine_job_new(const struct df_job_options *o, struct df_engine **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* The Job of a tofu step, as create() would send it. The caller owns *ret. */
int df_job_render(const struct df_job_options *o, const struct df_engine_step *step, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

/* What it means that the API server refused a Job or its pod. */
struct df_pod_diagnosis df_job_rejection(const struct df_err *why);

#endif
