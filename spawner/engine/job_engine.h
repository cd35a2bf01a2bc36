/*
 * job_engine.h - the engine `job` in parts: job.c looks at, cancels and clears up what is there,
 * job_make.c makes it, job_refusal.c keeps why it could not be made. Inside spawner/engine only.
 */
#ifndef DF_JOB_ENGINE_H
#define DF_JOB_ENGINE_H

#include <pthread.h>

#include "spawner/engine/job.h"
#include "spawner/engine/job_object.h"
#include "spawner/engine/job_view.h"
#include "spawner/engine/pod_verdict.h"
#include "spawner/engine/workflow.h"

struct df_job_engine {
    struct df_engine engine; /* first: the pointer that callers have */
    struct df_job_options o; /* its strings are the two below */
    char *name_space, *image;
    struct df_job_watch *watch;
    pthread_mutex_t lock; /* guards refusals */
    cJSON *refusals;      /* step uid -> {reason, message}: why its Job could not be made last */
};

struct df_job_engine *df_job_of(struct df_engine *e);
struct df_kube_at df_job_at(const struct df_job_engine *j, const struct df_engine_step *step);
struct df_workflow_place df_job_place(const struct df_job_engine *j);

/* What the step's part of the cluster says; since_us: creation of its Job, 0 when nobody knows. */
struct df_pod_verdict df_job_judge(const struct df_engine_step *step, const struct df_job_view *v,
                                   int64_t since_us);

/* The Job with its pod, and gone only after it; absent is success. */
int df_job_delete(const struct df_job_engine *j, const struct df_engine_step *step,
                  const cJSON *job, struct df_err *err) DF_MUST_CHECK;
int df_job_delete_secret(const struct df_job_engine *j, const struct df_engine_step *step,
                         struct df_err *err) DF_MUST_CHECK;

/* The operations create and release of engine.h. */
int df_job_create(struct df_engine *e, const struct df_engine_step *asked, cJSON **ret_ref,
                  struct df_err *err) DF_MUST_CHECK;
int df_job_release(struct df_engine *e, const struct df_engine_step *step,
                   struct df_err *err) DF_MUST_CHECK;

/* Fails with what the API server refused (why), for good or to be tried again, and remembers it:
 * until a Job is made an observation tells it. */
int df_job_refuse(struct df_job_engine *j, const struct df_engine_step *step,
                  const struct df_err *why, struct df_err *err);
void df_job_refusal_forget(struct df_job_engine *j, const struct df_engine_step *step);
void df_job_refusal_tell(struct df_job_engine *j, const struct df_engine_step *step,
                         struct df_engine_observation *seen);

#endif
