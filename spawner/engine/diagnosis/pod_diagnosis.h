/*
 * pod_diagnosis.h - what a step's Job, its pod and their Events say about the step, as a pure
 * function: not started yet and why, running, ended and how.
 *
 * Classes follow the pod classification of Flyte's executor (grace periods, what is the user's
 * fault, what the system's); reasons are the words of docs/objects.md, so that a person reads the
 * cause and the way out. A verdict is about the pod alone: the runner's own result document, when
 * there is one (df_pod_result()), knows better why a step failed.
 * Thread rule: pure functions.
 */
#ifndef DF_POD_DIAGNOSIS_H
#define DF_POD_DIAGNOSIS_H

#include "common/json/json.h"
#include "spawner/model/model.h"

/* How long a start failure that may pass is waited for; missing keys and bad names have none. */
#define DF_POD_PULL_GRACE_SECONDS 180
#define DF_POD_CREATE_GRACE_SECONDS 180
/* A kubelet that has said nothing about a pod of its node for so long has a fault. */
#define DF_POD_TAKE_UP_SECONDS 3

enum df_pod_class {
    DF_POD_UNKNOWN,      /* nothing can be said: look again */
    DF_POD_QUEUED,       /* no node yet */
    DF_POD_INITIALIZING, /* on a node: images, volumes, containers are made */
    DF_POD_RUNNING,
    DF_POD_SUCCEEDED,
    DF_POD_RETRYABLE, /* failed; another pod might not */
    DF_POD_PERMANENT  /* failed; another pod would, too */
};

/* All borrowed. */
struct df_pod_view {
    const cJSON *job;            /* NULL: absent */
    const cJSON *pod;            /* the Job's newest; NULL: absent */
    const cJSON *events;         /* a list of Events, of any objects; or NULL */
    const char *container;       /* the one that counts: "runner" or "workflow" */
    bool was_created;            /* the Job was there before: absent means deleted */
    bool had_pod;                /* a pod was there before: absent means deleted */
    int64_t now_us;              /* real time */
    int64_t pending_deadline_us; /* a start that takes longer has failed; 0: none */
};

struct df_pod_diagnosis {
    enum df_engine_phase phase; /* of the processes: ENDED only when all are known to be gone */
    enum df_pod_class class;
    enum df_fault fault;
    int exit_code;      /* of the container; -1: nobody knows */
    bool never_started; /* nothing of the step ran: it may be tried again within its budget */
    bool give_up;       /* PENDING that will not start: delete the Job and end the step */
    char code[96];      /* in Kubernetes' own words: "ContainersNotReady|ImagePullBackOff" */
    char reason[48];    /* ours; "" while there is nothing to tell */
    char message[1024]; /* for a person: what, Kubernetes' words, the way out; or "" */
};

struct df_pod_diagnosis df_pod_diagnose(const struct df_pod_view *view);

/* Did the system lose this pod, so that another one may do what it did not? Not what the user's own
 * ended once it ran; whether the step may still have another one is for others to say. */
bool df_pod_is_lost(const struct df_pod_diagnosis *v);

/* What it means that the API server refused to create the Job: HTTP status and its message. Phase
 * ABSENT; RETRYABLE or PERMANENT. */
struct df_pod_diagnosis df_pod_rejection(int http_status, const char *message);

/* The result document that the runner left as its termination message. The caller owns *ret.
 * NOT_FOUND when there is none, or none that is whole. */
int df_pod_result(const cJSON *pod, const char *container, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
