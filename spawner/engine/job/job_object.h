/*
 * job_object.h - the Job of one tofu step as JSON.
 *
 * Paths in the pod:
 *   /work                            emptyDir, working directory and HOME
 *   /tmp                             emptyDir; the root file system is read-only
 *   /run/dayfly/handoff/handoff.json the handoff, from the annotation dayfly.dev/handoff
 *   /run/dayfly/handoff/ca.pem       the spawner's CA, from the annotation dayfly.dev/ca
 *   /run/dayfly/token/token          a projected token for the audience dayfly/<step uid>
 *   /run/dayfly/identity/NAME        a projected token for each integration NAME that exchanges one
 *   /dev/termination-log             the runner's result document (termination message)
 * The handoff and the CA are not secret. As annotations they need no ConfigMap, no permission for
 * it and no cleanup.
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
#define DF_JOB_WORK_DIR "/work"
#define DF_JOB_IDENTITY_DIR "/run/dayfly/identity"

/* Labels of the Job and its pod, besides run and executor (labels.h). The uid decides which step a
 * Job belongs to. */
#define DF_LABEL_ACTION "dayfly.dev/action"
#define DF_LABEL_STANDBY "dayfly.dev/standby" /* of a standby runner: the digest of its form */

struct df_job_spec {
    const char *name;                    /* of the Job: the step's */
    const char *namespace;               /* where it runs */
    const char *uid;                     /* of the TaskAction */
    const char *run, *executor, *action; /* run, executor: NULL: not of a run */
    const cJSON *labels;                 /* further ones; or NULL */
    const char *standby; /* of a standby runner, whose id is name and uid: the digest of its form */
    const char *image;   /* of the runner, unless the placement has another one; or NULL */
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

/* Builds the Job. The caller owns *ret. Class USER, reason InvalidPlacement, if the placement
 * cannot be applied to a pod, or removes what a step needs: its container, its image, or
 * restartPolicy Never. Reason PlacementDenied if the pod would have something that no step may have
 * (never.h), whichever level of the placement asked for it. */
int df_job_build(const struct df_job_spec *spec, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
