/*
 * policy.h - the policies that Terrakube's API hangs on a workspace (2.34): Rego files that `opa`
 * evaluates on the plan. Contract: section 2.5 of the second reading (policyList,
 * policyExemptionList).
 *
 * Nothing passes because it could not be evaluated: without `opa` on the runner's PATH, with a
 * repository that cannot be read, without an answer that is understood, or if the API does not take
 * the result, the step fails. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_POLICY_H
#define DF_RUNNER_TERRAKUBE_POLICY_H

#include "common/terrakube/api.h"
#include "runner/context.h"
#include "runner/terrakube/context.h"

/* Violations, by what they do: a hard one fails the step, a soft one makes the API ask for an
 * override. */
struct df_terrakube_verdict {
    int hard, soft, warnings, exempted;
};

struct df_terrakube_policies {
    const struct df_terrakube_payload *payload;
    struct df_terrakube_api *api;         /* gets the result: it decides about overrides */
    struct df_terrakube_context *context; /* keeps the result in its document; or NULL */
    const char *known_hosts;              /* of repositories over ssh; or NULL */
    const char *plan_json;                /* file of `show -json` of the plan */
};

/* Evaluates every policy of the payload on the plan; none: 0 at once. c needs output, masks, stop,
 * dirs and source. Writes what was found to the output. DENIED, reason PolicyFailed: a
 * hard-mandatory policy denies the plan, or could not be evaluated; *ret is filled then, too. */
int df_terrakube_policies_check(struct df_context *c, const struct df_terrakube_policies *q,
                                struct df_terrakube_verdict *ret, struct df_err *err) DF_MUST_CHECK;

#endif
