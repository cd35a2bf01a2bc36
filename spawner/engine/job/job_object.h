/*
 * job_object.h - the Kubernetes objects of one tofu step as JSON: its Job and, if the step document
 * is handed over in a Secret, that Secret.
 *
 * Paths in the pod:
 *   /work                            emptyDir, working directory and HOME
 *   /tmp                             emptyDir; the root file system is read-only
 *   /run/dayfly/handoff/handoff.json the handoff, from the annotation dayfly.dev/handoff
 *   /run/dayfly/handoff/ca.pem       the spawner's CA, from the annotation dayfly.dev/ca
 *   /run/dayfly/token/token          claim mode token: a projected token for the audience
 *                                    dayfly/<step uid>
 *   /run/dayfly/step/step.json       claim mode secret: the step document
 *   /run/dayfly/identity/NAME        a projected token for each integration NAME that exchanges one
 *   /dev/termination-log             the runner's result document (termination message)
 * The handoff and the CA are not secret. As annotations they need no ConfigMap, no permission for
 * it and no cleanup. Only the Secret contains secret values.
 * Thread rule: pure functions.
 */
#ifndef DF_JOB_OBJECT_H
#define DF_JOB_OBJECT_H

#include "common/json/json.h"
#include "spawner/model/labels.h"
#include "spawner/model/never.h"

#define DF_JOB_CONTAINER "runner"
#define DF_JOB_HANDOFF "dayfly.dev/handoff" /* annotation of the pod: the text of this file: */
#define DF_JOB_HANDOFF_FILE "/run/dayfly/handoff/handoff.json"
#define DF_JOB_CA_FILE "/run/dayfly/handoff/ca.pem"
#define DF_JOB_TOKEN_FILE "/run/dayfly/token/token"
#define DF_JOB_STEP_FILE "/run/dayfly/step/step.json"
#define DF_JOB_WORK_DIR "/work"
#define DF_JOB_IDENTITY_DIR "/run/dayfly/identity"

/* Labels of the Job and its pod, besides run and executor (labels.h). The uid decides which step a
 * Job belongs to. */
#define DF_LABEL_ACTION "dayfly.dev/action"
#define DF_LABEL_STANDBY "dayfly.dev/standby" /* of a standby runner: the digest of its form */
/* The watches select the Jobs and pods of this service by DF_JOB_SELECTOR. The NetworkPolicies of
 * charts/ and rbac/ select its pods by both labels, so every pod has them, and no placement may
 * change them. */
#define DF_LABEL_NAME "app.kubernetes.io/name"
#define DF_LABEL_MANAGED_BY "app.kubernetes.io/managed-by"
#define DF_JOB_LABEL_NAME "dayfly-runner"
#define DF_JOB_LABEL_MANAGED_BY "dayfly"
#define DF_JOB_SELECTOR DF_LABEL_MANAGED_BY "=" DF_JOB_LABEL_MANAGED_BY

enum df_claim_mode {
    DF_CLAIM_TOKEN, /* the runner claims the step from the spawner with a projected token */
    DF_CLAIM_SECRET /* the step document is in a Secret that is created before the pod */
};

struct df_job_spec {
    const char *name;                    /* of the Job: the step's */
    const char *namespace;               /* where it runs */
    const char *uid;                     /* of the TaskAction */
    const char *run, *executor, *action; /* run, executor: NULL: not of a run */
    const cJSON *labels;                 /* further ones; or NULL */
    const char *standby; /* of a standby runner, whose id is name and uid: the digest of its form */
    enum df_claim_mode claim;
    const char *image;      /* of the runner, unless the placement has another one; or NULL */
    const char *server_url; /* for the handoff; NULL: the pod cannot reach the spawner */
    const char *ca_pem;     /* trusted in addition to the system's CAs; or NULL */
    int64_t timeout_seconds, grace_seconds, pending_seconds;
    int64_t apply_seconds;   /* of a second step in this pod; 0: there is none */
    int64_t ttl_seconds;     /* how long an ended Job stays */
    const cJSON *identities; /* [{"name", "audience"}]: tokens in DF_JOB_IDENTITY_DIR; or NULL */
    const cJSON *placement;  /* resolved; or NULL */
    bool has_plugin_claim;   /* see struct df_placement_target */
    const struct df_never *never; /* what no step may have; NULL: only what is built in */
};

/* Builds the Job. In mode secret it is suspended: create it, create its Secret, then send
 * DF_JOB_UNSUSPEND. The caller owns *ret. Class USER, reason InvalidPlacement, if the placement
 * cannot be applied to a pod, or removes what a step needs: its container, its image, or
 * restartPolicy Never. Reason PlacementDenied if the pod would have something that no step may have
 * (never.h), whichever level of the placement asked for it. */
int df_job_build(const struct df_job_spec *spec, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A merge patch. */
#define DF_JOB_UNSUSPEND "{\"spec\":{\"suspend\":false}}"

/* "dayfly-<step uid>". The name must be unique, because the spawner may delete Secrets but not read
 * them, and cannot check whose Secret it deletes. The caller frees; NULL: out of memory. */
char *df_job_secret_name(const char *uid);

/* Builds the Secret of mode secret. Its owner is the Job with the uid job_uid, so that Kubernetes
 * deletes it with the Job. step: the step document. The caller frees *ret with df_json_wipe().
 * LIMIT: larger than DF_LIMIT_STEP_SECRET. */
int df_job_secret_build(const struct df_job_spec *spec, const char *job_uid, const cJSON *step,
                        cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
