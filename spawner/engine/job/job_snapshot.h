/*
 * job_snapshot.h - the watches on Jobs, pods and Events, and the snapshot of one step in them. For
 * spawner/engine only.
 */
#ifndef DF_JOB_SNAPSHOT_H
#define DF_JOB_SNAPSHOT_H

#include "common/kube/cache.h"
#include "spawner/engine/engine.h"

struct df_job_watch; /* opaque: the three watches */

struct df_job_watch_options {
    struct df_kube *kube;
    const char *name_space; /* both borrowed; they must outlive the watch */
    df_engine_notify notify;
    void *notify_arg;
};

/* Starts the three watches. Stop them with df_job_watch_stop(). */
int df_job_watch_start(const struct df_job_watch_options *o, struct df_job_watch **ret,
                       struct df_err *err) DF_MUST_CHECK;
void df_job_watch_stop(struct df_job_watch *w); /* w may be NULL */

/* The Job, pod and Events of one step. All owned: df_job_snapshot_free(). */
struct df_job_snapshot {
    const cJSON *job; /* shared; NULL: absent, or it belongs to another step */
    const cJSON *pod; /* shared; the pod that claimed the step, else the newest; or NULL */
    cJSON *events;    /* a list: warnings, and for a workflow's Job the creations of its pods */
    bool is_other;    /* the Job of this name belongs to another step */
    int64_t ahead_us; /* what the cluster's clock, whose times the objects have, is ahead of ours */
};
/* When the Job was made, by the cluster's clock; 0: there is none. Compare it with
 * df_job_snapshot_now_us(), and take ahead_us off to compare it with our own times. */
int64_t df_job_snapshot_made_us(const struct df_job_snapshot *v);
int64_t df_job_snapshot_now_us(const struct df_job_snapshot *v);
void df_job_snapshot_free(struct df_job_snapshot *v);
#define DF_JOB_SNAPSHOT DF_CLEANUP(df_job_snapshot_free)

/* name: of the Job. RETRY: the first lists of Jobs and pods are not complete; soon after the start
 * the call waits a moment for them. An object that must exist (the Job if was_created, the pod if
 * was_claimed) and that the watches do not have is read from the API server. So is the Job of a pod
 * that is being deleted. */
int df_job_snapshot(struct df_job_watch *w, const char *name, const struct df_engine_step *step,
                    struct df_job_snapshot *ret, struct df_err *err) DF_MUST_CHECK;

/* A reference (df_shared_drop) to the pod with this name and uid; NULL if there is none. It is read
 * from the API server only if the cache does not have it: the cache usually has a pod before its
 * first container starts, but lags behind after a restart. */
int df_job_find_pod(struct df_job_watch *w, const struct df_engine_pod *pod, const cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Calls fn for each pod of the step that the cache has, in no order. */
int df_job_each_pod(struct df_job_watch *w, const char *step_uid,
                    int (*fn)(void *arg, const cJSON *pod, struct df_err *err), void *arg,
                    struct df_err *err) DF_MUST_CHECK;

/* Waits for the first list of Events, for which df_job_snapshot() does not wait. RETRY: it is not
 * complete. */
int df_job_await_events(struct df_job_watch *w, struct df_err *err) DF_MUST_CHECK;

/* Adds the Events of all pods of the Job, including pods that are gone. */
int df_job_add_pod_events(struct df_job_watch *w, struct df_job_snapshot *v,
                          struct df_err *err) DF_MUST_CHECK;

/* Puts the API server's answer to our own write of a Job into the cache, before the watch reports
 * it. */
int df_job_note(struct df_job_watch *w, const cJSON *job, struct df_err *err) DF_MUST_CHECK;

/* Reads the Job from the API server. *ret: owned by the caller; NULL if it is absent. */
int df_job_read(struct df_kube *k, const char *name_space, const char *name, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;

#endif
