/*
 * job_engine.h - the engine `job` in parts: job.c has the operations, tofu_step.c and workflow.c
 * the two kinds of work, job_requests.c the requests that both send, job_rejection.c the last reason
 * why a Job could not be created. Inside spawner/engine only.
 */
#ifndef DF_JOB_ENGINE_H
#define DF_JOB_ENGINE_H

#include <pthread.h>

#include "spawner/engine/job/job.h"
#include "spawner/engine/job/job_object.h"
#include "spawner/engine/job/job_snapshot.h"

struct df_job_engine {
    struct df_engine engine; /* first: the pointer that callers have */
    struct df_job_options o; /* its strings are the two below */
    char *name_space, *image;
    struct df_job_watch *watch;
    pthread_mutex_t lock; /* guards rejections */
    cJSON *rejections;    /* step uid -> {reason, message}: why its Job could not be made last */
};

/* One call about one step. */
struct df_job_call {
    struct df_job_engine *engine;
    const struct df_engine_step *step;
    const struct df_job_kind *kind;
    char name[64]; /* of the Job */
};

/* What differs between the kinds of work. Operations fail as those of engine.h do. */
struct df_job_kind {
    /* The name of the Job. */
    int (*name)(const struct df_engine_step *step, char ret[64], struct df_err *err);
    /* The Job to create. The caller owns *ret. */
    int (*build)(const struct df_job_call *c, cJSON **ret, struct df_err *err);
    /* The name was taken when the Job was to be created. The step's own Job, when it still runs, is
     * *ret_job. RETRY: an ended Job is being removed. CONFLICT: another's. */
    int (*meet)(const struct df_job_call *c, cJSON **ret_job, struct df_err *err);
    int (*observe)(const struct df_job_call *c, struct df_engine_observation *ret,
                   struct df_err *err);
    int (*result)(const struct df_job_call *c, cJSON **ret, struct df_err *err);
    /* No process of the step lives any more. */
    int (*cleanup)(const struct df_job_call *c, struct df_err *err);
};
extern const struct df_job_kind df_job_of_tofu;     /* tofu_step.c */
extern const struct df_job_kind df_job_of_workflow; /* workflow.c */

/* ---- requests ---- */

struct df_kube_at df_job_at(const struct df_job_call *c);

/* The Job with its pod, and gone only after it; absent is success. */
int df_job_delete(const struct df_job_call *c, const cJSON *job, struct df_err *err) DF_MUST_CHECK;
/* The same at once, with the pod after it. */
int df_job_delete_in_background(const struct df_job_call *c, const cJSON *job,
                                struct df_err *err) DF_MUST_CHECK;
/* Deletes the Job, if it is this step's; one that has ended only with if_ended. */
int df_job_delete_own(const struct df_job_call *c, bool if_ended, struct df_err *err) DF_MUST_CHECK;
int df_job_delete_secret(const struct df_job_call *c, struct df_err *err) DF_MUST_CHECK;

/* What the API server has of the step now: df_job_snapshot() under the Job's name. */
int df_job_snapshot_of(const struct df_job_call *c, struct df_job_snapshot *ret,
                       struct df_err *err) DF_MUST_CHECK;

/* ---- rejections ---- */

/* Fails with what the API server refused (why), for good or to be tried again, and remembers it:
 * until a Job is made an observation tells it. */
int df_job_reject(const struct df_job_call *c, const struct df_err *why, struct df_err *err);
void df_job_rejection_forget(const struct df_job_call *c);
void df_job_rejection_report(const struct df_job_call *c, struct df_engine_observation *seen);

#endif
