/*
 * claim.h - verifies that a claim comes from a pod of the step.
 *
 * The pod sends the service account token that Kubernetes projected into it for the audience
 * `dayfly/<step uid>`, or of a standby runner (steps/standby.h) `dayfly/<its id>`. The token is
 * verified offline with the cluster's keys (jwks.h). It must name a pod, the namespace of the
 * step's Job, and the Job's service account if status.engineRef names one. Everybody who may create
 * pods in that namespace can get such a token, so steps.c then asks the engine whether the pod is
 * the one that its Job made, and gives the step to one pod only. Thread rule: any thread.
 */
#ifndef DF_IDENTITY_CLAIM_H
#define DF_IDENTITY_CLAIM_H

#include "common/base/limits.h"
#include "common/json/json.h"

struct df_claims; /* opaque */

struct df_claims_options {
    /* Gets a path of jwks.h from the cluster's API server; arg is borrowed. NULL: jwks_url is
     * used. */
    int (*fetch)(void *arg, const char *path, struct df_buf *ret, struct df_err *err);
    void *arg;
    int64_t (*ahead_us)(void *arg); /* of jwks.h, for fetch; or NULL */
    const char *issuer;             /* NULL: as the cluster publishes it; required with jwks_url */
    const char *jwks_url;           /* https:// or file:///; or NULL */
    const char *ca_file;            /* for jwks_url, PEM; NULL: the system's */
    const char *namespace;          /* of Jobs whose engineRef has none; or NULL */
};

/* The strings are copied. */
int df_claims_new(const struct df_claims_options *o, struct df_claims **ret,
                  struct df_err *err) DF_MUST_CHECK;
void df_claims_free(struct df_claims *c); /* NULL is fine */

/* The pod that claims. */
struct df_claim_pod {
    char uid[64];
    char name[254];
    char node[254]; /* "" if the token has none */
};

/* id: of the audience. ref: where the Job is, as status.engineRef {namespace, serviceAccountName}
 * says; NULL: not known yet. DENIED with a reason of jwt.h, or TokenNotOfPod, TokenNamespace,
 * TokenServiceAccount; RETRY while the keys are not available. */
int df_claim_check(struct df_claims *c, const char *id, const cJSON *ref, const char *token,
                   struct df_claim_pod *ret, struct df_err *err) DF_MUST_CHECK;
/* The token alone, of a pod in any namespace: for an id whose Job is not known. The errors of
 * jwt.h, and RETRY as above. */
int df_claim_check_audience(struct df_claims *c, const char *id, const char *token,
                            struct df_err *err) DF_MUST_CHECK;

/* The service account of a token for the audience "dayfly", as "namespace/name". DENIED with a
 * reason of jwt.h, or TokenNotOfAccount; RETRY as above. */
int df_claim_account(struct df_claims *c, const char *token, char ret[DF_LIMIT_CALLER + 1],
                     struct df_err *err) DF_MUST_CHECK;

#endif
