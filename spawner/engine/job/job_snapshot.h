/*
 * job_snapshot.h - what the cluster has of our steps: the watches on Jobs, pods and Events, and what of
 * it is one step's. Inside spawner/engine only.
 */
#ifndef DF_JOB_SNAPSHOT_H
#define DF_JOB_SNAPSHOT_H

#include "common/kube/cache.h"
#include "spawner/engine/engine.h"

struct df_job_watch; /* opaque: the three watches */

struct df_job_watch_options {
    struct df_kube *kube;
    const char *name_space; /* both borrowed, and outlive the watch */
    df_engine_notify notify;
    void *notify_arg;
};

int df_job_watch_start(const struct df_job_watch_options *o, struct df_job_watch **ret,
                       struct df_err *err) DF_MUST_CHECK;
void df_job_watch_stop(struct df_job_watch *w); /* NULL is fine */

/* A step's part of the cluster. All owned: df_job_snapshot_free(). */
struct df_job_snapshot {
    cJSON *job;    /* NULL: there is none, or one of another step */
    cJSON *pod;    /* the newest of the step; NULL */
    cJSON *events; /* a list: warnings, and of a workflow's Job the pods that it made */
    bool is_other; /* the name is held by a Job of another step */
};
void df_job_snapshot_free(struct df_job_snapshot *v);
#define DF_JOB_SNAPSHOT DF_CLEANUP(df_job_snapshot_free)

/* name: of the Job. RETRY while the Jobs and pods are not listed; soon after the start it waits a
 * moment for the lists. What the step must have (was_created, its pod when was_claimed) and the
 * watches do not know is asked of the API server itself, and whether the Job of a pod that is being
 * deleted is still there. */
int df_job_snapshot(struct df_job_watch *w, const char *name, const struct df_engine_step *step,
                    struct df_job_snapshot *ret, struct df_err *err) DF_MUST_CHECK;

/* RETRY while the list of Events is not there; df_job_snapshot() does not wait for it. */
int df_job_await_events(struct df_job_watch *w, struct df_err *err) DF_MUST_CHECK;

/* Adds the Events of all pods that the Job had: of those, too, that are gone. */
int df_job_add_pod_events(struct df_job_watch *w, struct df_job_snapshot *v,
                          struct df_err *err) DF_MUST_CHECK;

/* A Job as the API server answered it to a write of ours: the watch tells of it later. */
int df_job_note(struct df_job_watch *w, const cJSON *job, struct df_err *err) DF_MUST_CHECK;

/* The Job as the API server has it now; NULL in *ret when there is none. The caller owns it. */
int df_job_read(struct df_kube *k, const char *name_space, const char *name, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;

#endif
