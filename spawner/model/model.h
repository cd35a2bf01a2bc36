/*
 * model.h - what Executor, Run and TaskAction may say, and the pure decisions about them. No I/O,
 * no clock, no store. The documents are described in docs/objects.md; states and permissions follow
 * the contract of InfraKitchen's executors with its defects mended. Thread rule: pure functions,
 * any thread.
 */
#ifndef DF_MODEL_H
#define DF_MODEL_H

#include "common/json/json.h"

#define DF_API_GROUP "dayfly.dev"
#define DF_API_VERSION DF_API_GROUP "/v1alpha1"

/* ---- names ------------------------------------------------------------------------------------
 */

enum df_kind { DF_KIND_EXECUTOR, DF_KIND_RUN, DF_KIND_TASK_ACTION };
#define DF_KIND_COUNT 3

const char *df_kind_name(enum df_kind kind);   /* "Executor" */
const char *df_kind_plural(enum df_kind kind); /* "executors" */
/* Either form, or the lower-case singular. */
int df_kind_parse(const char *name, enum df_kind *ret, struct df_err *err) DF_MUST_CHECK;

enum df_role { DF_ROLE_NONE, DF_ROLE_READ, DF_ROLE_WRITE, DF_ROLE_ADMIN };
const char *df_role_name(enum df_role role); /* "none", "read", "write", "admin" */
/* "read", "write" or "admin". */
int df_role_parse(const char *name, enum df_role *ret, struct df_err *err) DF_MUST_CHECK;

enum df_action { DF_ACTION_PROVISION, DF_ACTION_DRY_RUN, DF_ACTION_DESTROY };
const char *df_action_name(enum df_action action); /* "provision", "dry-run", "destroy" */
int df_action_parse(const char *name, enum df_action *ret, struct df_err *err) DF_MUST_CHECK;

/* A name within 63 characters: `<base>-<suffix>`; a base that is too long is cut and `-` + 8 hex of
 * its SHA-256 put in. Runs are `<executor>-<number>`, TaskActions `<run>-plan` and `<run>-apply`.
 * suffix: at most 40 characters. */
int df_model_name(const char *base, const char *suffix, char ret[64],
                  struct df_err *err) DF_MUST_CHECK;

/* ---- documents --------------------------------------------------------------------------------
 */

/* Checks a document that a client sent (no status allowed; metadata only name, namespace, labels,
 * annotations, and resourceVersion). Every fault is found; the message lists them, each with its
 * path ("spec.source.url: is required"). Class USER, reason InvalidDocument. Defaults are filled
 * in, apiVersion and kind too. old == NULL for a create; else frozen fields are compared. */
int df_model_admit(enum df_kind kind, cJSON *doc, const cJSON *old,
                   struct df_err *err) DF_MUST_CHECK;

/* The setting of tofu's backend that spec.storage.path becomes ("key", "prefix", "path"); NULL for
 * managed. Borrowed literal. */
const char *df_storage_path_key(const char *type);

/* ---- executors --------------------------------------------------------------------------------
 */

/* May somebody with this role ask for this run now? An executor that is busy takes further runs
 * into its queue; what is refused is a role that is too low (DENIED) or a state in which it makes
 * no sense (CONFLICT, reason WrongState). */
int df_executor_check_action(const cJSON *executor, enum df_action action, enum df_role role,
                             struct df_err *err) DF_MUST_CHECK;

/* The words a person with this role may use on the executor now: contract E21 with its mends. At
 * most 8; ends with NULL. Borrowed literals. What is offered is never refused. "execute" and
 * "recreate" are a run with action provision, "dryrun" and "destroy" the runs of that name; "edit"
 * and "delete" change or remove the document; "cancel" ends the run that is queued, under way or
 * waiting for approval. */
void df_executor_actions(const cJSON *executor, enum df_role role, const char *ret[9]);

/* May it be changed, may it be deleted (DENIED, or CONFLICT WrongState with the way out)? */
int df_executor_check_edit(const cJSON *executor, enum df_role role,
                           struct df_err *err) DF_MUST_CHECK;
int df_executor_check_delete(const cJSON *executor, enum df_role role,
                             struct df_err *err) DF_MUST_CHECK;

/* What a run's phase means for its executor: sets state, status, activeRun and lastRun in the
 * executor's status. To be called with the oldest unfinished run (from Pending on) and with every
 * run that gets a final phase; other runs wait in the queue and change nothing. run: the document
 * with its new phase and steps. Idempotent. Write the executor before the run, so that a crash
 * between the two is repaired by the next pass. Dry-runs leave state and status alone. */
int df_executor_follow_run(cJSON *executor, const cJSON *run, struct df_err *err) DF_MUST_CHECK;

/* ---- runs -------------------------------------------------------------------------------------
 */

bool df_run_is_final(const cJSON *run);
const char *df_run_phase(const cJSON *run); /* never NULL; "Pending" at first */

/* The action of the run's plan step: "plan", or "plan-destroy" for a destroy and for a dry-run of
 * an executor in state destroy. */
const char *df_run_plan_action(const cJSON *run, const cJSON *executor);

enum df_run_next {
    DF_RUN_WAIT,        /* nothing to do until something changes, or until wake_us */
    DF_RUN_START,       /* its turn: make the plan's TaskAction */
    DF_RUN_ASK,         /* plan done: set phase WaitingApproval */
    DF_RUN_APPLY,       /* approved: make the apply's TaskAction */
    DF_RUN_CANCEL_STEP, /* pass the cancel on to the live TaskAction */
    DF_RUN_FINISH       /* set the final phase, reason and message given in the verdict */
};

struct df_run_verdict {
    enum df_run_next next;
    int64_t wake_us;   /* WAIT: look again at this real time; 0: only on a change */
    const char *phase; /* FINISH: the final phase; borrowed literal */
    char reason[48];
    char message[1024];
};

/* What a run is decided by. All borrowed. */
struct df_run_view {
    const cJSON *run;
    const cJSON *executor; /* NULL: gone */
    const cJSON *plan;     /* its TaskActions; NULL while they do not exist */
    const cJSON *apply;
    bool is_first; /* the oldest unfinished run of its executor */
};

/* The one decision about a run. Rules: an apply is made once (never when there is one, or when
 * status.steps says that there was one), an approval is waited for until the plan expires. So a
 * TaskAction is created first and noted in status.steps (with its taskAction) afterwards. */
struct df_run_verdict df_run_next(const struct df_run_view *view, int64_t now_us);

/* ---- TaskActions ------------------------------------------------------------------------------
 */

bool df_task_is_final(const cJSON *task);
bool df_task_succeeded(const cJSON *task);
/* Reason of the Progressing condition ("Queued", "Initializing", "Executing", or the final one). */
const char *df_task_reason(const cJSON *task);

/* Message of that condition, or NULL. */
const char *df_task_message(const cJSON *task);

/* When it got its final condition, or fallback. */
int64_t df_task_ended_at(const cJSON *task, int64_t fallback);

/* Sets the conditions Progressing, Succeeded and Failed of a run or step together, each True or
 * False, with observedGeneration, and lastTransitionTime where a status changes. message may be
 * NULL. */
enum df_outcome { DF_OUTCOME_NONE, DF_OUTCOME_SUCCEEDED, DF_OUTCOME_FAILED };
int df_set_conditions(cJSON *doc, enum df_outcome outcome, const char *reason, const char *message,
                      int64_t now_us, struct df_err *err) DF_MUST_CHECK;

/* The same of a step, whose phase history and, for a failure, status.errorState go with them. */
int df_task_set_conditions(cJSON *task, enum df_outcome outcome, const char *reason,
                           const char *message, int64_t now_us, struct df_err *err) DF_MUST_CHECK;

/* ---- what a step tells the world ---- */

/* Who reports the Events that this service writes itself: they are no news to it. */
#define DF_EVENTS_REPORTER "dayfly.dev/spawner"

/* status.phaseHistory[] {phase, occurredAt, message}: the phases Queued, Initializing, Executing,
 * RetryableFailure (a try was lost, and there will be another), Completed, PermanentFailure,
 * Aborted, TimedOut, in the order in which this service saw them. It only grows, never by the phase
 * that is the last one already, and to at most DF_LIMIT_PHASE_HISTORY; the last place is kept for
 * the end. message: why, or absent; of an end "<reason>: <message>".
 *
 * The phase itself, of a run or a step, from its conditions alone; the numbers are those of
 * flyteidl2's ActionPhase. */
enum df_task_phase {
    DF_TASK_PHASE_UNSPECIFIED = 0,
    DF_TASK_PHASE_QUEUED = 1,
    DF_TASK_PHASE_INITIALIZING = 3,
    DF_TASK_PHASE_RUNNING = 4,
    DF_TASK_PHASE_SUCCEEDED = 5,
    DF_TASK_PHASE_FAILED = 6,
    DF_TASK_PHASE_ABORTED = 7,
    DF_TASK_PHASE_TIMED_OUT = 8,
    DF_TASK_PHASE_PAUSED = 9
};
enum df_task_phase df_task_phase(const cJSON *doc);
const char *df_task_phase_name(enum df_task_phase phase); /* "QUEUED"; borrowed literal */

/* Whose fault an end is: in status.errorState {code, kind, message} of a failed step, kind is
 * "USER" or "SYSTEM", or "" when nobody knows. */
enum df_fault { DF_FAULT_NONE, DF_FAULT_USER, DF_FAULT_SYSTEM };
const char *df_fault_name(enum df_fault fault);

/* Is it a reason word of ours (docs/objects.md)? Then its fault as far as the word tells; NONE for
 * a success, too. */
bool df_reason_is_known(const char *reason);
enum df_fault df_reason_fault(const char *reason);

/* Adds {name, at} to the timeline unless that name is there. */
int df_task_add_time(cJSON *task, const char *name, int64_t at_us,
                     struct df_err *err) DF_MUST_CHECK;

/* Is this result (a runner's) what became of a SIGTERM that nobody here sent? A runner in a pod
 * cannot know who ended it: the cluster does, and is asked. */
bool df_task_was_interrupted(const cJSON *task, const cJSON *result);

/* Does a runner have it, or did one? A document that was handed over in a Secret
 * (claimedBy.handedOver) has none until its pod asked for leave: nothing was started. */
bool df_task_has_runner(const cJSON *task);

/* Did somebody delete the document? It is to end then, with the reason Aborted for Canceled, and
 * goes when nothing is left of it. */
bool df_doc_is_deleted(const cJSON *doc);
/* Is it to end, because somebody asked for that or deleted it? */
bool df_task_is_canceled(const cJSON *task);

/* Budgets. A step is claimed once, and what was claimed is never started again: status.attempts is
 * 1 from its start on. What ended before its claim by no fault of the user's is a try that the
 * system lost: it is counted in status.systemFailures, and there is another one until there are
 * more of them than the service's control.maxSystemFailures; the claim sets the count back to 0.
 * What the API server refuses for now is no failure: it is waited out until the pending deadline.
 */
#define DF_MAX_SYSTEM_FAILURES 3

/* What the engine sees of a step. */
enum df_engine_phase {
    DF_ENGINE_ABSENT,  /* nothing there: never created, or cleaned up */
    DF_ENGINE_PENDING, /* created, its runner not started yet */
    DF_ENGINE_RUNNING, /* a process of the step lives */
    DF_ENGINE_ENDED    /* every process of the step is proven gone */
};

struct df_engine_observation {
    enum df_engine_phase phase;
    int exit_code;    /* ENDED: of the runner, or -1 when nobody knows */
    bool has_result;  /* ENDED: the runner left a result document */
    bool is_held;     /* PENDING: made, and not to start before release() */
    bool gives_up;    /* it will not start, or would end again as it did: no other try */
    bool is_gone;     /* neither a process of the step nor anything that could make one is left */
    int64_t since_us; /* real time of creation */
    /* Since when this service hears runners, real time; 0: always. Set by the control loop. */
    int64_t hears_since_us;
    int64_t max_system_failures; /* 0: DF_MAX_SYSTEM_FAILURES. Set by the control loop. */
    enum df_fault fault;         /* whose fault reason is; NONE: as the word says */
    char reason[48]; /* "Unschedulable", "OOMKilled", ... for what keeps it or ended it; or "" */
    char cause[960]; /* the same for a person: "killed by signal 9"; or "" */
};

/* Counts a lost try, once: status.engineRef, by which it is known, says so until there is another.
 */
int df_task_count_lost_try(cJSON *task, const struct df_engine_observation *seen, int64_t now_us,
                           struct df_err *err) DF_MUST_CHECK;
/* The first start, and the claim. */
int df_task_count_attempt(cJSON *task, struct df_err *err) DF_MUST_CHECK;
int df_task_forgive_failures(cJSON *task, struct df_err *err) DF_MUST_CHECK;

enum df_task_next {
    DF_TASK_WAIT,    /* until something changes, or until wake_us */
    DF_TASK_CREATE,  /* ask the engine to start the runner */
    DF_TASK_RELEASE, /* ask the engine to let go what it holds back */
    DF_TASK_COLLECT, /* the engine has a result document that the status lacks: store it */
    DF_TASK_CLEAN,   /* final, and the engine still holds resources */
    DF_TASK_REMOVE,  /* final, deleted, and nothing is left: the document may go */
    DF_TASK_CANCEL,  /* ask the engine to end it */
    DF_TASK_FAIL,    /* final failure with the reason given */
    DF_TASK_SUCCEED  /* the same for a success that nobody reports: of a workflow */
};

struct df_task_verdict {
    enum df_task_next next;
    int64_t wake_us;     /* WAIT, CANCEL: look again at this real time; 0: only on a change */
    enum df_fault fault; /* FAIL: whose; NONE: as the reason says */
    char reason[48];     /* FAIL, SUCCEED */
    char message[1024];
};

/* The one decision about a step (design: task_action_next): level-triggered, so that a crash
 * between any two lines is repaired by the next call. Rules: never CREATE when claimedBy is set; a
 * step that was never claimed may be created again until its pending deadline; one whose document
 * was handed over may not, and has the same deadline for its runner to ask; after that an end
 * without result is RunnerLost. The pending deadline counts from `created` in the timeline, which
 * the control loop writes before it asks the engine for the first time. A step that was interrupted
 * (status.interrupted: what its runner said) ends with its pod, as the engine explains it.
 *
 * A workflow has no runner that claims: what the engine sees is all there is. It is made once: when
 * it is gone after status.engineRef was written, or long after `created`, it is not made again.
 * While status.lockedBy says who holds its target, it waits, as long as it may run. */
struct df_task_verdict df_task_next(const cJSON *task, const struct df_engine_observation *seen,
                                    int64_t now_us);

/* Does this observation say who takes the runner of a claimed step away, while it still lives and
 * better than status.disruption ({reason, message}) does? It is to be kept: it goes with the pod.
 */
bool df_task_is_disruption(const cJSON *task, const struct df_engine_observation *seen);

/* How long ago the engine was asked for the first time; 0: it was not. */
int64_t df_task_age_us(const cJSON *task, int64_t now_us);

/* When a create() that was refused is worth another try: the pauses grow with the time that it has
 * taken so far, and the last one ends with the pending deadline. */
int64_t df_task_retry_at(const cJSON *task, int64_t now_us);

#endif
