/*
 * engine.h - what runs a step: `local` (a child process) or `job` (a Kubernetes Job).
 *
 * Engines know nothing of stores or runs. Every call is idempotent and may be repeated after a
 * crash. Thread rule: any thread; calls about one step are serialised by the control loop.
 */
#ifndef DF_ENGINE_H
#define DF_ENGINE_H

#include "common/json/json.h"
#include "spawner/engine/placement/placement.h"
#include "spawner/model/engine_kinds.h"
#include "spawner/model/model.h"

/* What only a step with the action `workflow` has. */
struct df_engine_workflow {
    const cJSON *spec;      /* spec.workflow; NULL: a step with a runner */
    const char *target;     /* spec.targetResource */
    const char *name_space; /* of the TaskAction */
    bool was_locked;        /* at the last observation another action held the target */
};

/* What only a step with a runner has. */
struct df_engine_runner {
    const char *server_url;    /* for the handoff */
    const char *ca_file;       /* PEM file that runners trust; NULL: the system's */
    const char *endpoint_file; /* has the URL of the spawner, also after its restart; or NULL */
    const char *claim_token;   /* create() only; never stored by the engine */
    const char *run, *executor, *action; /* for labels that people read; NULL: not of a run */
    const cJSON *labels;                 /* further ones, which no placement can change; or NULL */
    int64_t grace_seconds;
    int64_t apply_seconds; /* of the apply for which its pod stays (shared_pod.h); 0: for none */
    /* For create() of an engine that runs pods: [{"name", "audience"}], the tokens of the pod's
     * account that its integrations exchange (job_object.h); else NULL. */
    const cJSON *identities;
    /* For create() of a standby runner (steps/standby.h): the digest of its form. Name and uid are
     * its id then. NULL: a step. */
    const char *standby;
    const char *pod; /* uid or name of the pod whose runner claimed it; or NULL */
};

/* What a pod must be to serve a step. */
struct df_standby_form {
    char digest[33]; /* of the pod's template without names: SHA-256, its first half, in hex */
    /* Of a step: how long its Job may live. Of a standby runner: how long its Job may live after
     * the longest time that it may wait. */
    int64_t seconds;
    char run
        [64]; /* whose step it is; of a standby runner: for whose apply alone it is, "": any step */
};

/* What an engine needs to know of a step. All borrowed during the call. An engine reads what all
 * steps have, and the part of the kind that it was asked for; the other one is empty. */
struct df_engine_step {
    const char *name; /* of the TaskAction: deterministic, a DNS label */
    const char *uid;  /* of the TaskAction: ownership */
    int64_t timeout_seconds, pending_seconds;
    struct df_placement_levels placement;
    bool was_created; /* create() succeeded once: an absent object was deleted */
    bool is_deleted;  /* its document is being deleted: cleanup() removes everything */
    bool was_claimed; /* its runner has claimed it, or its workflow has started */
    /* status.engineRef: what create() gave, or with hostUid what it gave for the step whose pod
     * this one shares (shared_pod.h); NULL for create() itself. */
    const cJSON *ref;
    struct df_engine_runner runner;
    struct df_engine_workflow workflow;
};

/* A pod as its verified token names it. Borrowed. */
struct df_engine_pod {
    const char *name, *uid;
};

struct df_engine; /* opaque to callers */

typedef int (*df_standby_visit)(void *arg, const cJSON *ref, const struct df_standby_form *form,
                                int64_t age_ms, struct df_err *err);

/* What is done with every step, whether it has a runner or is a workflow. */
struct df_step_ops {
    /* Starts the step. If what runs this uid lives, that is success and nothing is started. If
     * the deterministic name belongs to another uid: CONFLICT, for a workflow with the reason
     * TargetLocked and the holder in the message. ret_ref: {kind, name, uid} for
     * status.engineRef; of a standby runner with hostUid, its id. */
    int (*create)(struct df_engine *e, const struct df_engine_step *step, cJSON **ret_ref,
                  struct df_err *err);
    /* Observes the step; absent is an answer, not an error. RETRY with the reason NotListedYet: the
     * engine has just started and does not know yet. */
    int (*status)(struct df_engine *e, const struct df_engine_step *step,
                  struct df_engine_observation *ret, struct df_err *err);
    /* The result document that the runner left; NOT_FOUND if there is none. For a workflow, as long
     * as its object exists: {engineRef, executionStatus} for the status. */
    int (*result)(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                  struct df_err *err);
    /* Asks the step to end. Returns at once; success if the step has ended. To a runner: SIGTERM,
     * once, and SIGKILL to all processes of the step after grace_seconds and a margin; a pod whose
     * step is not claimed gets seconds instead. A step is canceled in its document first, so no
     * runner claims it later. Processes that outlive their runner are killed as long after its
     * death, without a call. With a shared pod it ends that pod. */
    int (*cancel)(struct df_engine *e, const struct df_engine_step *step, struct df_err *err);
    /* Removes what the engine keeps of an ended step, if it belongs to this uid: nothing of a step
     * that shared the pod of another one. Absent is success; a live step: CONFLICT. */
    int (*cleanup)(struct df_engine *e, const struct df_engine_step *step, struct df_err *err);
};

/* What is done with steps that have a runner. */
struct df_runner_ops {
    struct df_step_ops step;
    /* The path of a file that the runner of an ended step did not deliver: "log" or "events" (the
     * whole stream) or "errored.tfstate". The caller frees *ret_path; NOT_FOUND if there is
     * none. */
    int (*leftover)(struct df_engine *e, const struct df_engine_step *step, const char *name,
                    char **ret_path, struct df_err *err);
    /* Checks that the pod was made for this step by what create() made. DENIED with the reason
     * PodNotOfStep if it was not; RETRY if the engine cannot find out now. Only engines that
     * run pods have it; NULL in the others. */
    int (*check_pod)(struct df_engine *e, const struct df_engine_step *step,
                     const struct df_engine_pod *pod, struct df_err *err);
    /* The form of the pod that the step needs, for a comparison with standby runners. NULL in
     * engines that have none: those whose runners do not claim as pods. */
    int (*form)(struct df_engine *e, const struct df_engine_step *step, struct df_standby_form *ret,
                struct df_err *err);
    /* Lists the standby runners that exist, ended ones excepted: `ref` as create() gave it. RETRY:
     * the engine does not know yet. NULL as above. */
    int (*standbys)(struct df_engine *e, df_standby_visit visit, void *arg, struct df_err *err);
};

/* Reads the output of a workflow, part by part: of each pod, or of what else prints. The name of a
 * part is its own for ever. Both functions fail with err. */
struct df_output_reader {
    /* A part comes, from its first byte on; 1: none of it is wanted. */
    int (*begin)(void *arg, const char *part, struct df_err *err);
    int (*add)(void *arg, const char *bytes, size_t n, struct df_err *err);
    void *arg;
};

/* What is done with workflows. */
struct df_workflow_ops {
    struct df_step_ops step;
    /* Gives the reader what was printed so far. The parts come in the order in which they began,
     * and none behind one that may still grow. Nothing is there: success. */
    int (*output)(struct df_engine *e, const struct df_engine_step *step,
                  const struct df_output_reader *to, struct df_err *err);
    /* Removes what only a running workflow needs, such as credentials: it has ended. Without a
     * reference it may have been started all the same, and that is ended. If it fails, it is called
     * again. NULL: there is nothing. */
    int (*release)(struct df_engine *e, const struct df_engine_step *step, struct df_err *err);
};

struct df_engine_ops {
    /* Begins to watch what exists, and returns at once. The calls about steps begin to when they
     * need it, and then wait for the first lists: a spawner that will act calls this before. NULL:
     * there is nothing to watch. */
    int (*watch)(struct df_engine *e, struct df_err *err);
    /* Can it take a step now? If not, err says why. NULL: it always can. */
    int (*check)(struct df_engine *e, struct df_err *err);
    /* Removes objects of this service that ended DF_WORKFLOW_TTL_SECONDS ago and that nothing else
     * removes, if may_go() says so for the uid of their step. Called once an hour. NULL: none
     * stays. */
    int (*sweep)(struct df_engine *e, bool (*may_go)(void *arg, const char *step_uid), void *arg,
                 struct df_err *err);
    void (*close)(struct df_engine *e);
    const struct df_runner_ops *runner;     /* NULL: it runs no steps with a runner */
    const struct df_workflow_ops *workflow; /* NULL: it runs no workflows */
};

struct df_engine {
    const struct df_engine_ops *ops;
    const struct df_engine_kind *kind;
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
/* Unknown: class USER, `unsupported execution engine: "x" (registered: [a b])`, and behind it what
 * to write into the configuration, or the engines that dayfly has. */
int df_engine_get(const struct df_engine_registry *r, const char *name, struct df_engine **ret,
                  struct df_err *err) DF_MUST_CHECK;
/* The operations for this step; NULL: the engine does not run its kind. */
const struct df_step_ops *df_engine_ops_of(const struct df_engine *e,
                                           const struct df_engine_step *step);
/* df_engine_get() of an engine that runs this step. It does not: class USER, reason InvalidStep. */
int df_engine_get_for(const struct df_engine_registry *r, const char *name,
                      const struct df_engine_step *step, struct df_engine **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* NULL if no engine of that name is open; name may be NULL. */
struct df_engine *df_engine_find(const struct df_engine_registry *r, const char *name);
/* Every engine that there is, for people: [{name, takes: ["runs", "workflows"], available,
 * message}]. message: why it is not available. The caller owns *ret. */
int df_engine_list(const struct df_engine_registry *r, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* RETRY if no engine is open. */
int df_engine_registry_check(const struct df_engine_registry *r, struct df_err *err) DF_MUST_CHECK;
/* Calls watch() of all engines. */
int df_engine_registry_watch(const struct df_engine_registry *r, struct df_err *err) DF_MUST_CHECK;
void df_engine_registry_close(struct df_engine_registry *r);

/* ---- local ----------------------------------------------------------------------------------
 * Starts `dayfly-runner step --handoff-fd N --work-dir <directory>/<uid>`: a child in its own
 * session that outlives the spawner. The runner inherits N (the handoff of docs/step-protocol.md),
 * a second descriptor that it keeps open and passes to nobody (its lock, which proves that it
 * lives), stdout and stderr to runner.log, and PATH, HOME, locale, proxies, SSL_CERT_FILE; nothing
 * else. In its directory it works below work/, writes result.json atomically before it ends, and
 * writes tofu.pid ("<pid> <start time> <boot id>") when it has started tofu, which stays in the
 * runner's session and has no death signal. If a runner was killed, the engine sends its tofu one
 * SIGINT, unless tofu.pid.interrupted exists: either side creates that file before its SIGINT,
 * because at a second SIGINT tofu gives up its state. step_dir.h has the whole layout.
 */
struct df_local_options {
    const char *directory;   /* has a directory <uid>/ for each step */
    const char *runner_path; /* dayfly-runner */
    df_engine_notify notify; /* or NULL */
    void *notify_arg;
    bool keep_failed;       /* keep the work dir of failed steps for inspection */
    const cJSON *isolation; /* of the handoff (docs/step-protocol.md); NULL: none */
};
int df_engine_local_new(const struct df_local_options *o, struct df_engine **ret,
                        struct df_err *err) DF_MUST_CHECK;

#endif
