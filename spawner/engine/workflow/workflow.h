/*
 * workflow.h - what the engines that take workflows share, whatever objects they make of them:
 * names, parameters, labels, ownership of an existing object, and the result for the status.
 * workflow.c has names and parameters, owner.c labels and ownership, status.c the result.
 *
 * Contract: kubernaut's workflow executor (its names, labels and summary), without its defects:
 * labels are always valid, one has the version, and ownership also requires the namespace. Thread
 * rule: pure functions.
 */
#ifndef DF_ENGINE_WORKFLOW_H
#define DF_ENGINE_WORKFLOW_H

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

/* Prepares the target for a label: "/" becomes "__", at most 63 bytes. The result may still be an
 * invalid label. */
void df_workflow_sanitize(const char *target, char ret[64]);

/* Seconds until timed_out_at_us, at least 1. timed_out_at_us 0: the default. */
int64_t df_workflow_deadline(int64_t timed_out_at_us, int64_t now_us);

/* The parameters that are declared. *ret is NULL if both arguments are. The caller owns *ret. */
int df_workflow_parameters(const cJSON *parameters, const cJSON *declared, cJSON **ret,
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

/* ---- status ---- */

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
    bool out_of_pods; /* still running, after more pods than it may have: end it */
};

/* The object of a workflow, for status.engineRef. */
struct df_workflow_object {
    const char *kind, *name, *name_space, *uid, *service_account;
};

/* The result of engine.h: {engineRef, executionStatus}. The caller owns *ret. */
int df_workflow_result(const struct df_workflow_object *o, const struct df_workflow_status *s,
                       cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
