/*
 * workflow_job.h - the Job of a `workflow` action: an image of the caller's, run against a target
 * resource, and what its state means.
 *
 * Contract: the job engine of kubernaut's workflow executor (its names, labels, environment,
 * mounts, status and summary tables) with its defects mended: parameters cannot stand for the
 * system's values, labels are always valid, ownership needs the namespace too, and a pod that is
 * replaced again and again comes to an end. Thread rule: pure functions.
 */
#ifndef DF_WORKFLOW_JOB_H
#define DF_WORKFLOW_JOB_H

#include "common/json/json.h"
#include "spawner/model/workflow.h"

#define DF_WORKFLOW_CONTAINER "workflow"
#define DF_WORKFLOW_PREFIX "wfe-" /* of the names of its Jobs */
#define DF_WORKFLOW_SERVICE_ACCOUNT "kubernaut-workflow-runner"
#define DF_WORKFLOW_PODS 3 /* more than these were not started by an accident */

struct df_workflow {
    const char *name;             /* of the action; NULL or "": nobody's */
    const char *source_namespace; /* of the action */
    const char *workflow_id;
    const char *target;          /* the target resource: raw */
    const char *image;           /* the execution bundle, as it is */
    const char *service_account; /* NULL or "": DF_WORKFLOW_SERVICE_ACCOUNT */
    const cJSON *parameters;     /* {NAME: "text"}, or NULL */
    const cJSON *declared;       /* {NAME: true}: all others are dropped; NULL: none is */
    const cJSON *secrets;        /* [{name}], or NULL */
    const cJSON *config_maps;    /* [{name}], or NULL */
    const cJSON *resources;      /* or NULL */
    const cJSON *placement;      /* resolved; or NULL */
    const char *namespace;       /* where the Job runs */
    const char *uid;             /* of the TaskAction, for a label; or NULL */
    int64_t deadline_seconds;    /* df_workflow_deadline() */
};

/* DF_WORKFLOW_PREFIX and 16 hex digits of the target's SHA-256: the lock on the target. */
int df_workflow_name(const char *target, char ret[21], struct df_err *err) DF_MUST_CHECK;

/* The target as a label: "/" becomes "__", at most 63 bytes. It may be no valid label yet. */
void df_workflow_sanitize(const char *target, char ret[64]);

/* Seconds until timed_out_at, at least 1; 0 for timed_out_at: nobody says. */
int64_t df_workflow_deadline(int64_t timed_out_at_us, int64_t now_us);

/* The parameters that are declared. NULL of both is NULL. The caller owns *ret. */
int df_workflow_parameters(const cJSON *parameters, const cJSON *declared, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;

/* The Job. Class USER, reason InvalidStep or InvalidPlacement. The caller owns *ret. */
int df_workflow_job_build(const struct df_workflow *w, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* ---- whose is it? ---- */

/* Does the Job belong to this action: the same name (an unlabelled one is nobody's), the same
 * source namespace and the same uid, the last two as far as the Job names them. */
bool df_workflow_owns(const struct df_workflow *w, const cJSON *job);

/* What to do about a Job that is in the way of a create. */
enum df_workflow_clash {
    DF_WORKFLOW_CLASH_GONE,    /* no Job any more: create again */
    DF_WORKFLOW_CLASH_ADOPT,   /* our own, from before a crash */
    DF_WORKFLOW_CLASH_REPLACE, /* another action's that has ended: delete it (by its uid), create
                                  again */
    DF_WORKFLOW_CLASH_WAIT     /* another's that lives, or nobody's: the target is locked */
};
/* job: the one of our name, or NULL. */
enum df_workflow_clash df_workflow_clash(const struct df_workflow *w, const cJSON *job);

/* The action that holds the Job; "" when it does not say. Borrowed. */
const char *df_workflow_owner(const cJSON *job);

/* ---- how is it? ---- */

/* Has the Job its final condition, Complete or Failed? True of every Job, also of a tofu step. */
bool df_workflow_is_completed(const cJSON *job);

enum df_workflow_phase {
    DF_WORKFLOW_ABSENT, /* an answer, not an error */
    DF_WORKFLOW_RUNNING,
    DF_WORKFLOW_COMPLETED,
    DF_WORKFLOW_FAILED
};

struct df_workflow_status {
    enum df_workflow_phase phase;
    char reason[64];
    char message[1024];
    struct {
        const char *status; /* "True", "False" or "Unknown": borrowed literal */
        const char *reason; /* "Succeeded", "Failed", "Running" or "": borrowed literal */
        char message[1024];
        int completed_tasks, total_tasks;
        int retry_count; /* pods beyond the first */
    } summary;
    bool out_of_pods; /* still running, with more than DF_WORKFLOW_PODS: end it */
};

/* job: or NULL. events: a list of Events of the namespace, or NULL: they tell why a pod did not
 * start, and how often it was made again. */
struct df_workflow_status df_workflow_status(const cJSON *job, const cJSON *events);

#endif
