/*
 * integration_spec.h - the document of the kind Integration, and what its settings become: a role
 * of AWS that the service assumes for a step, or variables and files by which the tool itself
 * exchanges an identity token. docs/objects.md describes the fields. Thread rule: pure functions.
 */
#ifndef DF_MODEL_INTEGRATION_SPEC_H
#define DF_MODEL_INTEGRATION_SPEC_H

#include "common/aws/sts.h"
#include "spawner/model/integration.h"
#include "spawner/model/rules.h"

/* For tables.h. */
extern const struct df_field df_integration_rows[]; /* of the spec */
df_rule df_rule_integration;

/* Who may use it, as model/secret_use.h: from spec.executors and status.owner. The caller frees. */
int df_integration_use(const cJSON *doc, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* True if it uses an identity of the service or of a step's pod, and not only keys of a
 * secret: only an admin may make it. */
bool df_integration_has_identity(const cJSON *spec);

/* The audience of the token that the step's tool exchanges; NULL: it exchanges none. Borrowed, or
 * of *made, which the caller frees. */
const char *df_integration_audience(const cJSON *spec, char **made);

/* A role of AWS, to be assumed by the service before the step gets its keys. All but owned_arn is
 * borrowed. */
struct df_integration_role {
    struct df_aws_role role; /* without session */
    const char *region;
    char *owned_arn;
};
void df_integration_role_free(struct df_integration_role *r);
#define DF_INTEGRATION_ROLE DF_CLEANUP(df_integration_role_free) struct df_integration_role

/* The region of STS, borrowed: that of a role, of the secret, or us-east-1. role, secret: or NULL.
 * USER InvalidStep if it is none. */
int df_integration_region(const cJSON *role, const cJSON *secret, const char **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* From spec.assumeRole, or from the keys aws_assumed_role_name, aws_account and
 * aws_session_duration of the secret. spec, secret: or NULL. *ret has no arn if there is no role.
 * USER InvalidStep if the keys do not make one. */
int df_integration_role_of(const cJSON *spec, const cJSON *secret, struct df_integration_role *ret,
                           struct df_err *err) DF_MUST_CHECK;

/* The keys in a secret of the integration aws; the caller wipes *ret. USER InvalidStep names one
 * that is missing. */
int df_integration_keys(const cJSON *secret, struct df_aws_keys *ret,
                        struct df_err *err) DF_MUST_CHECK;

/* The secret of the integration aws for a step with these temporary keys: without the keys that
 * assumed the role. secret: or NULL. The caller deletes *ret with df_json_wipe(). */
int df_integration_assumed(const struct df_integration_role *r, const struct df_aws_keys *keys,
                           const cJSON *secret, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Variables and files of an integration with webIdentity, workloadIdentity or federation.
 * token_file: its path where the tool runs; session: the name of AWS's session. USER InvalidStep as
 * df_integration_apply(). */
int df_integration_identity(const cJSON *spec, const char *token_file, const char *session,
                            const struct df_integration_places *to,
                            struct df_err *err) DF_MUST_CHECK;

#endif
