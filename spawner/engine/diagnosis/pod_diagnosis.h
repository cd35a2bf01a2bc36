/*
 * pod_diagnosis.h - the state of a step, derived from its Job, its pod and their Events: not
 * started and why, running, or ended and how.
 *
 * Classes follow the pod classification of Flyte's executor (grace periods, faults of the user and
 * of the system). Reasons are the words of docs/objects.md, so that a person reads the cause and
 * the way out. A diagnosis is about the pod alone: if the runner left a result document
 * (df_pod_result()), that explains better why a step failed. Thread rule: pure functions.
 */
#ifndef DF_POD_DIAGNOSIS_H
#define DF_POD_DIAGNOSIS_H

#include "common/json/json.h"
#include "spawner/model/model.h"

/* How long a failed start may last before it counts as failed. Invalid names, and a container that
 * would run as root, fail at once. */
#define DF_POD_PULL_GRACE_SECONDS 180
#define DF_POD_CREATE_GRACE_SECONDS 180
/* The Secret or ConfigMap that a container's environment names may be written a moment later. */
#define DF_POD_CONFIG_GRACE_SECONDS 30
/* If a kubelet does not report on a pod of its node for so long, the node has a fault. */
#define DF_POD_KUBELET_SECONDS 3

enum df_pod_class {
    DF_POD_UNKNOWN,      /* no information yet: observe again */
    DF_POD_QUEUED,       /* no node yet */
    DF_POD_INITIALIZING, /* on a node: it prepares images, volumes and containers */
    DF_POD_RUNNING,
    DF_POD_SUCCEEDED,
    DF_POD_RETRYABLE, /* failed; another pod may succeed */
    DF_POD_PERMANENT  /* failed; another pod would fail in the same way */
};

/* All borrowed. */
struct df_pod_view {
    const cJSON *job;            /* NULL: absent */
    const cJSON *pod;            /* the Job's newest; NULL: absent */
    const cJSON *events;         /* a list of Events, of any objects; or NULL */
    const char *container;       /* the main container: "runner" or "workflow" */
    bool was_created;            /* the Job existed: if it is absent, it was deleted */
    bool is_workflow;            /* it has other keys than a step with a runner */
    bool had_pod;                /* a pod existed: if it is absent, it was deleted */
    int64_t now_us;              /* real time */
    int64_t pending_deadline_us; /* a pod that has not started by then has failed; 0: none */
};

struct df_pod_diagnosis {
    enum df_engine_phase phase; /* of the processes: ENDED if all are known to be gone */
    enum df_pod_class class;
    enum df_fault fault;
    int exit_code;      /* of the container; -1: unknown */
    bool never_started; /* nothing of the step ran: another attempt is safe */
    bool give_up;       /* PENDING, and it will not start: delete the Job and end the step */
    bool of_workflow;   /* the way out names the keys of a workflow */
    bool lacks_room;    /* a quota is used up, or nodes are full: it may start when others end */
    char code[96];      /* the reasons of Kubernetes: "ContainersNotReady|ImagePullBackOff" */
    char reason[48];    /* of docs/objects.md; "": nothing to report */
    char message[1024]; /* for people: what happened, Kubernetes' words, the way out; or "" */
};

/* The diagnosis of the step. It depends only on the view. */
struct df_pod_diagnosis df_pod_diagnose(const struct df_pod_view *view);

/* Did the system lose this pod, so that another pod may succeed? False if it ran and ended by the
 * user's fault. The caller decides whether the step may have another attempt. */
bool df_pod_is_lost(const struct df_pod_diagnosis *v);

/* The diagnosis if the API server refused to create the Job, from the HTTP status and the message.
 * Phase ABSENT; class RETRYABLE or PERMANENT. */
struct df_pod_diagnosis df_pod_rejection(int http_status, const char *message, bool is_workflow);

/* The result document that the runner left as its termination message. The caller owns *ret.
 * NOT_FOUND: there is none, or it is incomplete. */
int df_pod_result(const cJSON *pod, const char *container, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
