/*
 * task.h - the pure decision about a step: what comes next, from its document and from what the
 * engine observes. docs/architecture.md draws its phases. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_TASK_H
#define DF_MODEL_TASK_H

#include "spawner/model/task_status.h"

/* A step is claimed once, and a claimed step is never started again: status.attempts is 1 from its
 * start on. A runner that ended before its claim, without a fault of the user, is a lost attempt:
 * status.systemFailures counts it, and another one follows until the count exceeds
 * control.maxSystemFailures. The claim resets the count to 0. A temporary refusal of the API server
 * does not count: the service retries until the pending deadline. */
#define DF_MAX_SYSTEM_FAILURES 3

/* What the engine observes of a step. */
enum df_engine_phase {
    DF_ENGINE_ABSENT,  /* no resources: never created, or cleaned up */
    DF_ENGINE_PENDING, /* created, its runner not started yet */
    DF_ENGINE_RUNNING, /* a process of the step lives */
    DF_ENGINE_ENDED    /* every process of the step is proven gone */
};

struct df_engine_observation {
    enum df_engine_phase phase;
    int exit_code;          /* ENDED: of the runner; -1: unknown */
    bool has_result;        /* ENDED: the runner left a result document */
    bool is_unrecorded;     /* created, but the document does not say so: create() finds it again */
    bool gives_up;          /* it cannot start, or would fail again in the same way: do not retry */
    bool lacks_room;        /* others have the room: a quota is used up, or nodes are full */
    bool takes_none;        /* ABSENT: the engine can start no workflow now, as `reason` says */
    bool is_gone;           /* no process of the step is left, and nothing that could create one */
    bool serves_other_step; /* its pod works or waits for another step. Set by the control loop. */
    /* The engine could not say: `phase` is assumed, and `cause` says why. Set by the control
     * loop. */
    bool is_unknown;
    int64_t since_us; /* real time of creation */
    /* Since when runners can reach this service, real time; 0: always. Set by the control loop. */
    int64_t reachable_since_us;
    int64_t max_system_failures; /* 0: DF_MAX_SYSTEM_FAILURES. Set by the control loop. */
    enum df_fault fault;         /* of the reason; NONE: df_reason_fault() */
    char
        reason[48]; /* why it does not start or why it ended: "Unschedulable", "OOMKilled"; or "" */
    char cause[960]; /* the same for people: "killed by signal 9"; or "" */
};

/* Counts a lost attempt in status.systemFailures. A second call for the same attempt changes
 * nothing: status.engineRef.lost marks it as counted. */
int df_task_count_lost_attempt(cJSON *task, const struct df_engine_observation *observed,
                               int64_t now_us, struct df_err *err) DF_MUST_CHECK;
/* Call the first at the first start, the second at the claim. */
int df_task_count_attempt(cJSON *task, struct df_err *err) DF_MUST_CHECK;
int df_task_reset_failures(cJSON *task, struct df_err *err) DF_MUST_CHECK;

enum df_task_next {
    DF_TASK_WAIT,    /* until something changes, or until wake_us */
    DF_TASK_CREATE,  /* ask the engine to start the runner */
    DF_TASK_COLLECT, /* the engine has a result document that the status lacks: store it */
    DF_TASK_CLEAN,   /* final, and the engine still holds resources */
    DF_TASK_REMOVE,  /* final, deleted, and the engine holds nothing: remove the document */
    DF_TASK_CANCEL,  /* ask the engine to end it */
    DF_TASK_FAIL,    /* final failure with the reason given */
    DF_TASK_SUCCEED  /* final success of a workflow, which has no runner to report it */
};

struct df_task_verdict {
    enum df_task_next next;
    int64_t wake_us;     /* WAIT, CANCEL: reconcile again at this real time; 0: after a change */
    enum df_fault fault; /* FAIL: of the reason; NONE: df_reason_fault() */
    char reason[48];     /* FAIL, SUCCEED */
    char message[1024];
};

/* The one decision about a step. It depends only on what is stored and observed now, so that the
 * next call repairs a crash between any two writes.
 *
 * CREATE never follows a claim. A step that was never claimed may be created again until its
 * pending deadline. A claimed step that ends without a result is RunnerLost. The pending deadline
 * counts from `created` in the timeline, which the control loop writes before it asks the engine
 * for the first time. A step that was interrupted (status.interrupted is its runner's report) ends
 * with its pod, with the reason that the engine finds. A step that was offered to the pod of
 * another one (shared_pod.h) is created when that pod is gone or has not claimed it by the pending
 * deadline.
 *
 * A workflow has no runner that claims; the engine's observation is everything. It is created once:
 * if it is absent after status.engineRef was written, or long after `created`, it is not created
 * again. While status.lockedBy names the holder of its target, it waits, up to its time limit. */
struct df_task_verdict df_task_next(const cJSON *task, const struct df_engine_observation *observed,
                                    int64_t now_us);

/* Does this observation explain why the runner of a claimed step is being terminated, more exactly
 * than status.disruption {reason, message} does? Then store it: it disappears with the pod. */
bool df_task_is_disruption(const cJSON *task, const struct df_engine_observation *observed);

/* True if the runner reports Canceled although this service did not cancel it: an eviction, a node
 * drain, a deleted Job. is_elsewhere: its engine does not run here (runs_here). The runner cannot
 * know who ended it; the cluster can. */
bool df_task_was_interrupted(const cJSON *task, const cJSON *result, bool is_elsewhere);

/* Time since the engine was first asked to create the step; 0: never. */
int64_t df_task_age_us(const cJSON *task, int64_t now_us);

/* When to retry a create() that was refused, after at least pause_us. The pauses grow with the age
 * of the step; the last one ends at the pending deadline. */
int64_t df_task_retry_at(const cJSON *task, int64_t now_us, int64_t pause_us);

#endif
