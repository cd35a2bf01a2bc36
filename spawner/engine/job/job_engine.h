/*
 * job_engine.h - shared by the parts of the engine `job`; for spawner/engine only. job.c has the
 * operations, tofu_step.c and workflow.c the two kinds of work, job_requests.c the requests that
 * both send, job_rejection.c the last reason why a Job was not created, workflow_output.c what a
 * workflow prints, standby.c the Jobs that wait for a step.
 */
#ifndef DF_JOB_ENGINE_H
#define DF_JOB_ENGINE_H

#include <pthread.h>

#include "spawner/engine/job/job.h"
#include "spawner/engine/job/job_object.h"
#include "spawner/engine/job/job_snapshot.h"
#include "spawner/engine/proof.h"

struct df_job_engine {
    struct df_engine engine; /* first: the pointer that callers have */
    struct df_job_options o; /* its strings are the three below */
    char *name_space, *image, *workflow_account;
    struct df_proof_key key;
    pthread_mutex_t lock; /* guards what follows */
    /* Where Jobs of live steps may be: the namespace of new Jobs first. The others are those that
     * the configuration named before; steps that started there end there. */
    struct df_job_place {
        char *name_space;
        struct df_job_watch *watch;
    } places[DF_LIMIT_STEP_NAMESPACES];
    size_t place_count;
    cJSON *rejections; /* step uid -> {reason, message, lacksRoom}: why its last Job was refused */
};

/* One call about one step. */
struct df_job_call {
    struct df_job_engine *engine;
    const struct df_engine_step *step; /* the step whose Job it is */
    const struct df_job_kind *kind;
    /* If the step of the call is in the pod of a standby runner or of another step: what that pod
     * was made for, and `step` points here. */
    struct df_engine_step host;
    bool is_shared;         /* the pod is that of another step */
    const char *uid;        /* of the step of the call: whose result is looked for */
    const char *name_space; /* of the Job: the recorded one, or that of new Jobs */
    struct df_job_watch *watch;
    char name[64]; /* of the Job */
};

/* What differs between tofu steps and workflows. The operations fail as those of engine.h do. */
struct df_job_kind {
    /* The name of the Job. */
    int (*name)(const struct df_engine_step *step, char ret[64], struct df_err *err);
    /* The Job to create. The caller owns *ret. */
    int (*build)(const struct df_job_call *c, cJSON **ret, struct df_err *err);
    /* A Job of this name exists already. If it is the step's own and has not ended, it becomes
     * *ret_job. RETRY: an ended Job is being removed. CONFLICT: the Job of another step. */
    int (*adopt)(const struct df_job_call *c, cJSON **ret_job, struct df_err *err);
    int (*observe)(const struct df_job_call *c, struct df_engine_observation *ret,
                   struct df_err *err);
    int (*result)(const struct df_job_call *c, cJSON **ret, struct df_err *err);
    /* Called when every process of the step has ended. */
    int (*cleanup)(const struct df_job_call *c, struct df_err *err);
};
extern const struct df_job_kind df_job_of_tofu;     /* tofu_step.c */
extern const struct df_job_kind df_job_of_workflow; /* workflow.c */

/* ---- the namespaces ---- */

/* The watches of a namespace; the first call for a namespace starts them. Both are valid as long as
 * the engine is. LIMIT: more than DF_LIMIT_STEP_NAMESPACES. */
int df_job_place_of(struct df_job_engine *j, const char *name_space,
                    const struct df_job_place **ret, struct df_err *err) DF_MUST_CHECK;
void df_job_places_close(struct df_job_engine *j);

/* ---- references ---- */

/* status.engineRef for this Job. The caller owns *ret. */
int df_job_ref(const cJSON *job, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* ---- standby runners: operations of engine.h ---- */

int df_job_form(struct df_engine *e, const struct df_engine_step *step, struct df_standby_form *ret,
                struct df_err *err) DF_MUST_CHECK;
int df_job_standbys(struct df_engine *e, df_standby_visit visit, void *arg,
                    struct df_err *err) DF_MUST_CHECK;

/* ---- requests ---- */

/* The address of the Job of this call. Its strings are borrowed from *c. */
struct df_kube_at df_job_at(const struct df_job_call *c);

/* Deletes the pod, then the Job (foreground propagation). Success if the Job is absent. */
int df_job_delete(const struct df_job_call *c, const cJSON *job, struct df_err *err) DF_MUST_CHECK;
/* Deletes the Job at once and its pod later (background propagation). */
int df_job_delete_in_background(const struct df_job_call *c, const cJSON *job,
                                struct df_err *err) DF_MUST_CHECK;
/* Deletes the Job if it belongs to this step; an ended one only with if_ended. */
int df_job_delete_own(const struct df_job_call *c, bool if_ended, struct df_err *err) DF_MUST_CHECK;
/* Deletes the pods of this step within seconds, whatever their grace period: for a step that no
 * runner can claim any more. Success without the right to delete pods. */
int df_job_delete_unclaimed(const struct df_job_call *c, struct df_err *err) DF_MUST_CHECK;
/* df_job_snapshot() for the Job of this call. */
int df_job_snapshot_of(const struct df_job_call *c, struct df_job_snapshot *ret,
                       struct df_err *err) DF_MUST_CHECK;

/* Refuses a Job whose pod uses a Secret of the service's vault (vault_secrets.h). */
int df_job_check_vault(const struct df_job_options *o, const cJSON *job,
                       struct df_err *err) DF_MUST_CHECK;

/* ---- the output of a workflow (workflow_output.c): as of engine.h ---- */

int df_job_output(const struct df_job_call *c, const struct df_output_reader *to,
                  struct df_err *err) DF_MUST_CHECK;

/* ---- rejections ---- */

/* Fails with the API server's rejection (why), of class USER if it is permanent, else RETRY, and
 * stores it. While the step has no Job, its observations report the stored rejection. */
int df_job_reject(const struct df_job_call *c, const struct df_err *why, struct df_err *err);
/* Removes the stored rejection of the step, if there is one. */
void df_job_rejection_forget(const struct df_job_call *c);
/* Copies the stored rejection to reason, cause and lacks_room of the observation; "" and false
 * without one. */
void df_job_rejection_report(const struct df_job_call *c, struct df_engine_observation *observed);

#endif
