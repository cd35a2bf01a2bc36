/*
 * engine.h - who gives a step its process: `local` (a child process), `job` (a Kubernetes Job).
 *
 * Engines know nothing of stores or runs. Every call is idempotent and may be repeated after a
 * crash. Thread rule: any thread; calls about one step are serialised by the control loop.
 */
#ifndef DF_ENGINE_H
#define DF_ENGINE_H

#include "common/json/json.h"
#include "spawner/engine/placement/placement.h"
#include "spawner/model/model.h"

/* What the action `workflow` has, and a step of tofu has not. */
struct df_engine_workflow {
    const cJSON *spec;      /* spec.workflow; NULL: a step of tofu */
    const char *target;     /* spec.targetResource */
    const char *name_space; /* of the TaskAction */
    bool was_locked;        /* another held the target when it was observed last */
};

/* What an engine needs to know of a step. All borrowed during the call. */
struct df_engine_step {
    const char *name;          /* of the TaskAction: deterministic, a DNS label */
    const char *uid;           /* of the TaskAction: ownership */
    const char *server_url;    /* for the handoff */
    const char *ca_file;       /* PEM that runners are to trust; NULL: the system's */
    const char *endpoint_file; /* where the URL of a spawner that came back stands; or NULL */
    const char *claim_token;   /* create() only; never stored by the engine */
    const char *run, *executor, *action; /* for people who look at what the engine made */
    int64_t timeout_seconds, grace_seconds, pending_seconds;
    struct df_placement_levels placement;
    const cJSON *document; /* create() of an engine that hands over; else NULL */
    struct df_engine_workflow workflow;
    bool was_created; /* create() succeeded once: what is absent was deleted */
    bool is_deleted;  /* its document goes: cleanup() leaves nothing of it */
    bool was_claimed; /* a runner of it, or its workflow, lived */
    const char *pod;  /* uid or name of the pod whose runner has it; or NULL */
};

struct df_engine; /* opaque to callers */

struct df_engine_ops {
    const char *name; /* "local" */
    /* Starts the runner. A step of this uid that has a live process is success (nothing is
     * started); the deterministic name held by another uid: CONFLICT, for a workflow with the
     * reason TargetLocked and a message that says who holds it. ret_ref: {kind, name, uid} for
     * status.engineRef. */
    int (*create)(struct df_engine *e, const struct df_engine_step *step, cJSON **ret_ref,
                  struct df_err *err);
    /* Lets go what create() held back until the step's document counts as handed over; NULL:
     * create() holds nothing back, the runner claims its step. Twice is success. */
    int (*release)(struct df_engine *e, const struct df_engine_step *step, struct df_err *err);
    /* What is there; absent is an answer, not an error. RETRY with the reason NotListedYet: the
     * engine began a moment ago and does not know yet. */
    int (*status)(struct df_engine *e, const struct df_engine_step *step,
                  struct df_engine_observation *ret, struct df_err *err);
    /* The runner's result document, when it left one. NOT_FOUND otherwise. Of a workflow, as long
     * as something of it is there: {engineRef, executionStatus} as they are to stand in the status.
     */
    int (*result)(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                  struct df_err *err);
    /* Where a file lies that the runner of an ended step did not hand over: "log" or "events", the
     * whole stream, or "errored.tfstate". The caller frees *ret_path; NOT_FOUND when there is none.
     */
    int (*leftover)(struct df_engine *e, const struct df_engine_step *step, const char *name,
                    char **ret_path, struct df_err *err);
    /* Asks the step to end: SIGTERM to the runner, once, and SIGKILL to everything of the step
     * grace_seconds (and a little) after the first call. Processes that outlive their runner are
     * killed that long after its death, without any call. Returns at once; a step that has ended is
     * success. */
    int (*cancel)(struct df_engine *e, const struct df_engine_step *step, struct df_err *err);
    /* Removes what the engine keeps of an ended step, after checking that it is this uid's. Absent
     * is success; a live step: CONFLICT. */
    int (*cleanup)(struct df_engine *e, const struct df_engine_step *step, struct df_err *err);
    void (*close)(struct df_engine *e);
};

struct df_engine {
    const struct df_engine_ops *ops;
    bool hands_over;      /* create() needs the step's document, and release() after it */
    bool is_remote;       /* its steps live elsewhere: a spawner that stops leaves them alone, and
                             others may end them */
    bool runs_pods;       /* its runners are pods: they claim with a token of the cluster, and have
                             the tools and plugin cache of their image and placement */
    bool takes_workflows; /* the action `workflow`, too */
};

/* Called from an engine thread when something about a step may have changed. */
typedef void (*df_engine_notify)(void *arg, const char *step_name);

/* ---- registry ---- */
struct df_engine_registry {
    struct df_engine *engines[8];
    size_t count;
};
int df_engine_register(struct df_engine_registry *r, struct df_engine *e,
                       struct df_err *err) DF_MUST_CHECK;
/* Unknown: class USER, `unsupported execution engine: "x" (registered: [a b])`. */
int df_engine_get(const struct df_engine_registry *r, const char *name, struct df_engine **ret,
                  struct df_err *err) DF_MUST_CHECK;
/* NULL: none of that name is open; name may be NULL. */
struct df_engine *df_engine_find(const struct df_engine_registry *r, const char *name);
void df_engine_registry_close(struct df_engine_registry *r);

/* ---- local ----------------------------------------------------------------------------------
 * Starts `dayfly-runner step --handoff-fd N --work-dir <directory>/<uid>`: a child in its own
 * session that outlives the spawner. The runner inherits N (the handoff of docs/step-protocol.md),
 * one more descriptor that it keeps open and never hands on (its lock: proof that it lives), stdout
 * and stderr to runner.log, and PATH, HOME, locale, proxies, SSL_CERT_FILE; nothing else. In its
 * directory it works below work/, writes result.json atomically before it ends, and tofu.pid
 * ("<pid> <start time> <boot id>") as soon as a tofu runs, which stays in the runner's session and
 * has no death signal. A tofu whose runner was killed gets one SIGINT from the engine, unless the
 * file tofu.pid.interrupted is there, which either side makes before its SIGINT: at a second one
 * tofu would give up its state. The whole layout: step_dir.h.
 */
struct df_local_options {
    const char *directory;   /* <directory>/<uid>/ is made for each step */
    const char *runner_path; /* dayfly-runner */
    df_engine_notify notify; /* or NULL */
    void *notify_arg;
    bool keep_failed; /* leave the work dir of failed steps for people to look at */
};
int df_engine_local_new(const struct df_local_options *o, struct df_engine **ret,
                        struct df_err *err) DF_MUST_CHECK;

#endif
