/*
 * workflow.h - what the engines that take workflows share, whatever objects they make of them:
 * names, parameters, labels, ownership of an existing object, and the result for the status.
 * workflow.c has names and parameters, placement.c the placement, owner.c labels and ownership,
 * cluster.c what is asked of the API server, failure.c the kinds of failures, status.c conditions
 * and the result.
 *
 * Contract: kubernaut's workflow executor (its names, labels and summary), without its defects:
 * labels are always valid, one has the version, and ownership also requires the namespace. Thread
 * rule: pure functions, if nothing else is said.
 */
#ifndef DF_ENGINE_WORKFLOW_H
#define DF_ENGINE_WORKFLOW_H

#include "common/kube/kube.h"
#include "spawner/engine/engine.h"
#include "spawner/model/never.h"
#include "spawner/model/workflow.h"

#define DF_WORKFLOW_PREFIX "wfe-" /* of the names of its objects */
#define DF_LABEL_WORKFLOW_EXECUTION "kubernaut.ai/workflow-execution"

struct df_workflow {
    const char *name;                  /* of the action; NULL or "": no owner */
    const struct df_never *never;      /* what no step may have; or NULL */
    const char *source_namespace;      /* of the action */
    const char *workflow_id, *version; /* or NULL */
    const char *target;                /* spec.targetResource, unchanged */
    const char *image; /* spec.workflow.executionBundle, unchanged; NULL: none is named */
    const char *service_account;
    const cJSON *parameters;  /* {NAME: "text"}, or NULL */
    const cJSON *declared;    /* {NAME: true}: other parameters are dropped; NULL: all are kept */
    const cJSON *secrets;     /* [{name}], or NULL */
    const cJSON *config_maps; /* [{name}], or NULL */
    const cJSON *resources;   /* or NULL */
    const cJSON *placement;   /* resolved; or NULL */
    const char *namespace;    /* where its object is */
    const char *uid;          /* of the TaskAction, for a label; or NULL */
    int64_t deadline_seconds; /* df_workflow_deadline() */
};

/* The name of its object, which is the lock on the target towards other schedulers:
 * DF_WORKFLOW_PREFIX and 16 hex digits of the target's SHA-256. */
int df_workflow_name(const char *target, char ret[21], struct df_err *err) DF_MUST_CHECK;

/* Everything that the step says. Borrowed from it. image, never, placement and namespace are for
 * the engine to complete. account: of a workflow that names none. */
struct df_workflow df_workflow_of(const struct df_engine_step *step, const char *account);

/* The placement of its pods. That of the instance is without its image, account, resources and
 * plugin cache, which are for runners; taken: and without keys that are not in this list, which
 * ends with NULL; or NULL. The caller owns *ret. */
int df_workflow_placement(const struct df_engine_step *step, const char *const *taken, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Prepares the target for a label: "/" becomes "__", at most 63 bytes. The result may still be an
 * invalid label. */
void df_workflow_sanitize(const char *target, char ret[64]);

/* Seconds until timed_out_at_us, at least 1. timed_out_at_us 0: the default. */
int64_t df_workflow_deadline(int64_t timed_out_at_us, int64_t now_us);

/* The parameters that are declared. *ret is NULL if both arguments are. The caller owns *ret. */
int df_workflow_parameters(const cJSON *parameters, const cJSON *declared, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;
/* The same of a workflow whose parameters become environment variables or those of a Pipeline. USER
 * InvalidStep: there are too many, or one has a name or value that these may not have. */
int df_workflow_valid_parameters(const struct df_workflow *w, enum df_parameters as, cJSON **ret,
                                 struct df_err *err) DF_MUST_CHECK;
/* The next parameter in the order of the names, from which the same workflow always gives the same
 * object. last: NULL: the first one. NULL: there is none. */
const cJSON *df_workflow_next_parameter(const cJSON *parameters, const char *last);

/* ---- labels ---- */

/* Sets a valid label for the text. If that is not the text itself, an annotation of the same key
 * has it. text NULL: no label. */
int df_workflow_put_label(cJSON *metadata, const char *key, const char *text,
                          struct df_err *err) DF_MUST_CHECK;
/* All labels of the contract that say whose object it is and what for. */
int df_workflow_put_labels(cJSON *metadata, const struct df_workflow *w,
                           struct df_err *err) DF_MUST_CHECK;

/* ---- ownership ---- */

/* Does the object belong to this action? Its name must match (one without labels has no owner); its
 * source namespace and uid must match if the object has these labels. */
bool df_workflow_owns(const struct df_workflow *w, const cJSON *object);

/* What create() does about an existing object of the same name. */
enum df_workflow_clash {
    DF_WORKFLOW_CLASH_GONE,    /* it was just removed: create again */
    DF_WORKFLOW_CLASH_ADOPT,   /* it is our own, created before a crash: keep it */
    DF_WORKFLOW_CLASH_REPLACE, /* it is another action's and has ended: delete it (by its uid),
                                  create again */
    DF_WORKFLOW_CLASH_WAIT     /* it is another action's and lives, or has no owner: the target is
                                  locked */
};
/* object: the existing one, or NULL. is_over: it has ended. */
enum df_workflow_clash df_workflow_clash(const struct df_workflow *w, const cJSON *object,
                                         bool is_over);
/* Who has the target, for people: "the Job build/wfe-0 of restart". */
void df_workflow_describe_holder(const char *kind, const char *name_space, const char *name,
                                 const cJSON *object, char *to, size_t size);

/* The name of the action that owns the object, or "". Borrowed. */
const char *df_workflow_owner(const cJSON *object);

/* ---- in the cluster: any thread ---- */

struct df_workflow_kind {
    const char *name;
    const struct df_kube_resource *resource;
};
extern const struct df_workflow_kind df_workflow_job, df_workflow_pipeline_run;

/* Reads the object. *ret: owned by the caller; NULL if it is absent. */
int df_workflow_read(struct df_kube *k, const struct df_workflow_kind *kind, const char *name_space,
                     const char *name, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Did a request fail because the cluster does not know the kind: its definition is not there? */
bool df_workflow_is_unserved(const struct df_err *why);
/* CONFLICT TargetLocked, with the holder as the message. Returns -1. */
int df_workflow_fail_locked(const struct df_workflow_kind *kind, const char *name_space,
                            const char *name, const cJSON *object, struct df_err *err);
/* The kinds do not exclude each other by their names, so an engine looks for a live object of the
 * other kind before it creates its own. CONFLICT TargetLocked: there is one. Success if the cluster
 * does not know the kind, or this service may not read it. */
int df_workflow_check_free(struct df_kube *k, const struct df_workflow_kind *kind,
                           const char *name_space, const char *name,
                           struct df_err *err) DF_MUST_CHECK;

/* Before the next attempt to create the object: if the target is locked, by an object of either
 * kind, the observation says so. kind: of the engine's own objects;
 * other: NULL: the service has no right to see the other kind. */
int df_workflow_find_lock(struct df_kube *k, const struct df_workflow_kind *kind,
                          const struct df_workflow_kind *other, const struct df_workflow *w,
                          const char *name, struct df_engine_observation *observed,
                          struct df_err *err) DF_MUST_CHECK;

/* ---- pace ---- */

#define DF_WORKFLOW_PACE_MIN_US INT64_C(2000000)
#define DF_WORKFLOW_PACE_MAX_US INT64_C(30000000)
/* How long until a workflow of this age is asked about again: a tenth of its age, within these. */
int64_t df_workflow_pace_us(int64_t age_us);

/* ---- output ---- */

/* A container that has begun. */
struct df_workflow_printer {
    const char *name_space, *pod, *container;
    const char *part; /* its name for the reader: of the pod, or with the container */
};
/* Gives the reader what it has printed (output() of engine.h). A pod that has just been removed has
 * no output any more: success. */
int df_workflow_give_pod(struct df_kube *k, const struct df_workflow_printer *p,
                         const struct df_output_reader *to, struct df_err *err) DF_MUST_CHECK;

/* ---- objects ---- */

/* The condition of this type, of any object; NULL: it has none. Borrowed. */
const cJSON *df_workflow_condition(const cJSON *object, const char *type);
/* Has the Job or PipelineRun its final condition? */
bool df_workflow_is_over(const cJSON *object);

/* ---- status ---- */

enum df_workflow_phase {
    DF_WORKFLOW_ABSENT, /* an answer, not an error */
    DF_WORKFLOW_RUNNING,
    DF_WORKFLOW_COMPLETED,
    DF_WORKFLOW_FAILED
};

/* Why a workflow failed, as far as its engine tells. All strings borrowed: literals, or of the
 * object. */
struct df_workflow_failure {
    const char
        *reason;      /* a word of the contract: "OOMKilled", ..., "Unknown"; NULL: none is told */
    const char *word; /* the same as a reason of docs/objects.md */
    const char *task; /* the one that failed; "": unknown */
    int task_index;   /* among the tasks of the object */
    int exit_code;    /* of the task; 0: unknown */
    bool was_execution; /* it had begun: its target may be half changed */
};

/* Failures of one kind. Literals. */
struct df_workflow_class {
    const char *reason, *word;  /* as in struct df_workflow_failure */
    bool may_precede_execution; /* also of what has begun: nothing may have run */
    bool is_of_execution;       /* what has not begun cannot have failed so */
};

struct df_workflow_status {
    enum df_workflow_phase phase;
    char reason[64];
    char message[1024];
    struct {
        const char *status; /* "True", "False" or "Unknown": borrowed */
        const char *reason; /* "Succeeded", "Failed", "Running", ... or "": borrowed */
        char message[1024];
        int completed_tasks, total_tasks;
        int retry_count; /* pods beyond the first */
    } summary;
    bool out_of_pods; /* still running, after more pods than it may have: end it */
    struct df_workflow_failure failure;
};

/* The kind of a failure: by the contract's table for its reason and message, as the object tells
 * them; or by a reason of docs/objects.md and "", if the engine knows that. Never NULL. */
const struct df_workflow_class *df_workflow_class_of(const char *reason, const char *message);

/* The object of a workflow, for status.engineRef. */
struct df_workflow_object {
    const char *kind, *name, *name_space, *uid, *service_account;
};

/* status.engineRef. The caller owns *ret. */
int df_workflow_ref(const struct df_workflow_object *o, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;
/* The result of engine.h: {engineRef, executionStatus}, and failureDetails if the failure has a
 * reason. The caller owns *ret. */
int df_workflow_result(const struct df_workflow_object *o, const struct df_workflow_status *s,
                       cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
