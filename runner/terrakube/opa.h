/*
 * opa.h - evaluates one policy of Terrakube on a plan (policy.h). Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_OPA_H
#define DF_RUNNER_TERRAKUBE_OPA_H

#include "runner/terrakube/policy.h"

/* policy: of the payload's policyList; number: its place there. *ret: the value of
 * data.terraform.analysis, for the caller to delete. Fails if there is none: then there was no
 * policy to evaluate. */
int df_opa_evaluate(struct df_context *c, const struct df_terrakube_policies *q,
                    const cJSON *policy, size_t number, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

#endif
