/*
 * workflow_job.h - the Job of a `workflow` action, which runs the caller's image against a target
 * resource, and the meaning of its status.
 *
 * Contract: the job engine of kubernaut's workflow executor (its names, labels, environment,
 * mounts, status and summary tables), without its defects: parameters cannot replace values of the
 * system, labels are always valid, ownership also requires the namespace, and a pod is not replaced
 * without limit. Thread rule: pure functions.
 */
#ifndef DF_WORKFLOW_JOB_H
#define DF_WORKFLOW_JOB_H

#include "common/json/json.h"
#include "spawner/model/never.h"
#include "spawner/model/workflow.h"

#define DF_WORKFLOW_CONTAINER "workflow"
#define DF_WORKFLOW_PREFIX "wfe-" /* of the names of its Jobs */
#define DF_WORKFLOW_PODS 3        /* a workflow that needs more pods has failed */

struct df_workflow {
    const char *name;             /* of the action; NULL or "": no owner */
    const struct df_never *never; /* as in struct df_job_spec */
    const char *source_namespace; /* of the action */
    const char *workflow_id;
    const char *target;          /* spec.targetResource, unchanged */
    const char *image;           /* spec.workflow.executionBundle, unchanged, or the runner's */
    const char *service_account; /* NULL or "": DF_WORKFLOW_SERVICE_ACCOUNT */
    const cJSON *parameters;     /* {NAME: "text"}, or NULL */
    const cJSON *declared;    /* {NAME: true}: other parameters are dropped; NULL: all are kept */
    const cJSON *secrets;     /* [{name}], or NULL */
    const cJSON *config_maps; /* [{name}], or NULL */
    const cJSON *resources;   /* or NULL */
    const cJSON *placement;   /* resolved; or NULL */
    const char *namespace;    /* where the Job runs */
    const char *uid;          /* of the TaskAction, for a label; or NULL */
    int64_t deadline_seconds; /* df_workflow_deadline() */
};

/* The Job's name, which is the lock on the target: DF_WORKFLOW_PREFIX and 16 hex digits of the
 * target's SHA-256. */
int df_workflow_name(const char *target, char ret[21], struct df_err *err) DF_MUST_CHECK;

/* Prepares the target for a label: "/" becomes "__", at most 63 bytes. The result may still be an
 * invalid label. */
void df_workflow_sanitize(const char *target, char ret[64]);

/* Seconds until timed_out_at_us, at least 1. timed_out_at_us 0: the default. */
int64_t df_workflow_deadline(int64_t timed_out_at_us, int64_t now_us);

/* The parameters that are declared. *ret is NULL if both arguments are. The caller owns *ret. */
int df_workflow_parameters(const cJSON *parameters, const cJSON *declared, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;

/* Builds the Job. Class USER, reason InvalidStep, InvalidPlacement or PlacementDenied. The caller owns *ret. */
int df_workflow_job_build(const struct df_workflow *w, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* ---- ownership ---- */

/* Does the Job belong to this action? Its name must match (a Job without labels has no owner); its
 * source namespace and uid must match if the Job has these labels. */
bool df_workflow_owns(const struct df_workflow *w, const cJSON *job);

/* What create() does about an existing Job of the same name. */
enum df_workflow_clash {
    DF_WORKFLOW_CLASH_GONE,    /* it was just removed: create again */
    DF_WORKFLOW_CLASH_ADOPT,   /* it is our own, created before a crash: keep it */
    DF_WORKFLOW_CLASH_REPLACE, /* it is another action's and has ended: delete it (by its uid),
                                  create again */
    DF_WORKFLOW_CLASH_WAIT     /* it is another action's and lives, or has no owner: the target is
                                  locked */
};
/* job: the existing Job, or NULL. */
enum df_workflow_clash df_workflow_clash(const struct df_workflow *w, const cJSON *job);

/* The name of the action that owns the Job, or "". Borrowed. */
const char *df_workflow_owner(const cJSON *job);

/* ---- status ---- */

/* Has the Job its final condition, Complete or Failed? For all Jobs, also those of tofu steps. */
bool df_job_is_completed(const cJSON *job);

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
    bool out_of_pods; /* still running with more than DF_WORKFLOW_PODS pods: end it */
};

/* job: or NULL. events: a list of Events of the namespace, or NULL. They explain why a pod did not
 * start, and count how often it was replaced. */
struct df_workflow_status df_workflow_status(const cJSON *job, const cJSON *events);

#endif
