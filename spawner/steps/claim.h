/*
 * claim.h - is it the pod of this step that asks for it?
 *
 * A pod shows the service account token that Kubernetes projected into it for the audience
 * `dayfly/<step uid>`. It is verified offline with the keys of the cluster (jwks.h). It must name a
 * pod, be of the namespace where the step's Job is, and of the Job's service account where
 * status.engineRef names one. Whoever may make pods in that namespace may make such a token: the
 * namespace is the border. That a step is given to one pod only is the business of steps.c.
 * Thread rule: any thread.
 */
#ifndef DF_STEPS_CLAIM_H
#define DF_STEPS_CLAIM_H

#include "common/base/limits.h"
#include "common/json/json.h"

struct df_claims; /* opaque */

struct df_claims_options {
    /* Asks the API server of the cluster for one of the paths of jwks.h; arg is borrowed. NULL:
     * jwks_url is asked. */
    int (*fetch)(void *arg, const char *path, struct df_buf *ret, struct df_err *err);
    void *arg;
    const char *issuer;    /* NULL: what the cluster says of itself; needed with jwks_url */
    const char *jwks_url;  /* https:// or file:///; or NULL */
    const char *ca_file;   /* for jwks_url, PEM; NULL: the system's */
    const char *namespace; /* of Jobs whose engineRef names none; or NULL */
};

/* The strings are copied. */
int df_claims_new(const struct df_claims_options *o, struct df_claims **ret,
                  struct df_err *err) DF_MUST_CHECK;
void df_claims_free(struct df_claims *c); /* NULL is fine */

/* Who claims. */
struct df_claim_pod {
    char uid[64];
    char name[254];
    char node[254]; /* "" when the cluster does not say it */
};

/* Is task one whose runner lives in a pod, so that it is claimed by such a token? */
bool df_claim_is_of_pod(const cJSON *task);

/* DENIED with a reason of jwt.h, or TokenNotOfPod, TokenNamespace, TokenServiceAccount; RETRY while
 * the keys cannot be had. */
int df_claim_check(struct df_claims *c, const cJSON *task, const char *token,
                   struct df_claim_pod *ret, struct df_err *err) DF_MUST_CHECK;

/* The account of the cluster behind a service account token for the audience "dayfly", as
 * "namespace/name". DENIED with a reason of jwt.h, or TokenNotOfAccount; RETRY as above. */
int df_claim_account(struct df_claims *c, const char *token, char ret[DF_LIMIT_CALLER + 1],
                     struct df_err *err) DF_MUST_CHECK;

#endif
