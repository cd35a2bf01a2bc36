/*
 * integrations.h - what the integrations of an executor give to a step. Keys that live long stay
 * with the service where a role is assumed: the step gets the role's temporary keys alone. Thread
 * rule: any thread.
 */
#ifndef DF_STEPS_INTEGRATIONS_H
#define DF_STEPS_INTEGRATIONS_H

#include "common/aws/credentials.h"
#include "spawner/model/integration_spec.h"
#include "spawner/spawner.h"

/* What one integration gave besides variables and files. */
struct df_integration_grant {
    cJSON *secrets;   /* name -> value: of these nothing may be shown; delete with df_json_wipe() */
    char *token_file; /* that the tool reads where it runs; NULL: none. Owned */
};
void df_integration_grant_free(struct df_integration_grant *g);
#define DF_INTEGRATION_GRANT DF_CLEANUP(df_integration_grant_free) struct df_integration_grant

/* For which step an integration is granted. Borrowed. */
struct df_integration_ask {
    struct df_spawner *s;
    const cJSON *task;
    const cJSON *entry; /* of spec.integrations */
    bool in_pod;        /* the tool will run in a pod (df_step_is_in_pod) */
};

/* Adds an entry of spec.integrations to the places. Class USER if the step can never have it:
 * InvalidStep, SecretNotAllowed, IntegrationNotAllowed, or IntegrationFailed where AWS refuses.
 * Notes the use of a named one. */
int df_integration_grant(const struct df_integration_ask *ask,
                         const struct df_integration_places *to, struct df_integration_grant *ret,
                         struct df_err *err) DF_MUST_CHECK;

/* Assumes the role: with the keys of the secret, or, secret NULL, with the identity of the service.
 * role->session must be set. USER IntegrationFailed, or RETRY. */
int df_integration_assume(const struct df_integration_role *role, const cJSON *secret,
                          struct df_aws_keys *ret, struct df_err *err) DF_MUST_CHECK;

/* The tokens that the step's pod needs: [{"name": integration, "audience"}]. Those that are absent
 * or not for the executor are left out: the claim tells why. */
int df_integration_tokens(struct df_spawner *s, const cJSON *task, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

#endif
