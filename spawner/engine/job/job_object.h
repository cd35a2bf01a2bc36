/*
 * job_object.h - the Kubernetes objects of one tofu step, as JSON: its Job and, where the step is
 * handed over as a Secret, that Secret.
 *
 * What the pod has of ours:
 *   /work                            emptyDir, working directory and HOME
 *   /tmp                             emptyDir; the root file system is read-only
 *   /run/dayfly/handoff/handoff.json the handoff, from the annotation dayfly.dev/handoff
 *   /run/dayfly/handoff/ca.pem       the spawner's CA, from the annotation dayfly.dev/ca
 *   /run/dayfly/token/token          claim mode token: a projected token for the audience
 *                                    dayfly/<step uid>
 *   /run/dayfly/step/step.json       claim mode secret: the step document
 *   /dev/termination-log             the runner's result document (termination message)
 * The handoff and the CA are no secrets: annotations spare a ConfigMap, its right and its clean-up.
 * No object but the Secret holds a secret value.
 * Thread rule: pure functions.
 */
#ifndef DF_JOB_OBJECT_H
#define DF_JOB_OBJECT_H

#include "common/json/json.h"

#define DF_JOB_CONTAINER "runner"
#define DF_JOB_HANDOFF_FILE "/run/dayfly/handoff/handoff.json"
#define DF_JOB_CA_FILE "/run/dayfly/handoff/ca.pem"
#define DF_JOB_TOKEN_FILE "/run/dayfly/token/token"
#define DF_JOB_STEP_FILE "/run/dayfly/step/step.json"
#define DF_JOB_WORK_DIR "/work"

/* Labels of the Job and its pod, beside run and executor (labels.h); the uid is what ownership is
 * checked by. */
#define DF_LABEL_STEP_UID "dayfly.dev/step-uid"
#define DF_LABEL_ACTION "dayfly.dev/action"
/* What a list or watch of ours selects. */
#define DF_JOB_SELECTOR "app.kubernetes.io/managed-by=dayfly"

enum df_claim_mode {
    DF_CLAIM_TOKEN, /* the runner asks the spawner, with a projected token */
    DF_CLAIM_SECRET /* the step lies in a Secret, made before the pod can be */
};

struct df_job_spec {
    const char *name;      /* of the Job: the step's */
    const char *namespace; /* where it runs */
    const char *uid;       /* of the TaskAction */
    const char *run, *executor, *action;
    enum df_claim_mode claim;
    const char *image;      /* of the runner, unless placement says another; or NULL */
    const char *server_url; /* for the handoff; NULL: the pod cannot reach the spawner */
    const char *ca_pem;     /* to trust besides the system's; or NULL */
    int64_t timeout_seconds, grace_seconds, pending_seconds;
    int64_t ttl_seconds;    /* how long an ended Job stays to be looked at */
    const cJSON *placement; /* resolved; or NULL */
    bool has_plugin_claim;  /* see struct df_placement_target */
};

/* The Job. In mode secret it is suspended: create it, create its Secret, then send
 * DF_JOB_UNSUSPEND. The caller owns *ret. Class USER, reason InvalidPlacement, when the placement
 * cannot be put into a pod, or takes away what a step needs: its container, its image, or
 * restartPolicy Never. */
int df_job_build(const struct df_job_spec *spec, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A merge patch. */
#define DF_JOB_UNSUSPEND "{\"spec\":{\"suspend\":false}}"

/* "dayfly-<step uid>": a name that nobody else has, because the spawner may not read Secrets and so
 * could not see whose one is that it removes. The caller frees; NULL without memory. */
char *df_job_secret_name(const char *uid);

/* The Secret of mode secret, owned by the Job of this uid and so removed with it. step: the step
 * document. The caller deletes *ret with df_json_wipe(). LIMIT, beyond DF_LIMIT_STEP_SECRET. */
int df_job_secret_build(const struct df_job_spec *spec, const char *job_uid, const cJSON *step,
                        cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
