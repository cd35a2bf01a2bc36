/*
 * integrations.h - requests on integrations, and what an executor must be allowed to name one.
 *
 * The rule is that of secrets (secrets.h): the caller who makes an integration owns it; its owner
 * and admins change it; only an admin makes one for every executor, or one that uses an identity of
 * the service or of pods. The secret of an integration must be for the executor, too. Thread
 * rule: any thread.
 */
#ifndef DF_REQUESTS_INTEGRATIONS_H
#define DF_REQUESTS_INTEGRATIONS_H

#include "spawner/spawner.h"

struct df_integration_request {
    const char *name; /* in the path; NULL: of a new one, which its document names */
    cJSON *doc;       /* as the client sent it; changed. NULL: of a deletion or a test */
    enum df_role role;
    const char *actor;
};

/* CONFLICT AlreadyExists; DENIED as above; USER if a new one of a caller who is no admin names no
 * executors. */
int df_request_create_integration(struct df_spawner *s, const struct df_integration_request *q,
                                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* CONFLICT Conflict: metadata.resourceVersion is not the newest; USER PreconditionRequired: it is
 * absent; CONFLICT IntegrationInUse names executors that the change would take it from. */
int df_request_replace_integration(struct df_spawner *s, const struct df_integration_request *q,
                                   cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* CONFLICT IntegrationInUse names the executors and unfinished runs. */
int df_request_delete_integration(struct df_spawner *s, const struct df_integration_request *q,
                                  struct df_err *err) DF_MUST_CHECK;

/* Asks the provider whether it takes the credentials, as far as the service can ask it. *ret:
 * {"asked": bool, "message"}; the caller frees. USER IntegrationFailed or InvalidStep: no step
 * would get them, and why. For its owner and admins. */
int df_request_test_integration(struct df_spawner *s, const struct df_integration_request *q,
                                cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Refuses an executor that names an integration which is absent, twice of one provider (USER
 * InvalidDocument), or not for it (DENIED IntegrationNotAllowed), as df_request_check_secrets(). */
int df_request_check_integrations(struct df_spawner *s, const cJSON *executor, enum df_role role,
                                  const char *actor, struct df_err *err) DF_MUST_CHECK;

#endif
