/*
 * allowed.h - what the asker of an executor, a run or a workflow may say about its pod: the policy
 * placement.allow, applied to documents. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_ALLOWED_H
#define DF_REQUESTS_ALLOWED_H

#include "spawner/model/model.h"
#include "spawner/spawner.h"

/* What a caller may do. */
struct df_rights {
    df_verbs verbs;    /* with the executor and its runs */
    enum df_role role; /* with what is not the executor's own: the pod, secrets, integrations */
};

/* Checks what differs from old, the document before the change; NULL: everything. The environment
 * counts, too: the keys of ephemeral.h. Class USER, reason PlacementDenied. */
int df_allowed_executor(const struct df_spawner *s, const cJSON *doc, const cJSON *old,
                        enum df_role role, struct df_err *err) DF_MUST_CHECK;
/* executor: the run's, with which it decides about the class. */
int df_allowed_run(const struct df_spawner *s, const cJSON *run, const cJSON *executor,
                   enum df_role role, struct df_err *err) DF_MUST_CHECK;
int df_allowed_workflow(const struct df_spawner *s, const cJSON *task, enum df_role role,
                        struct df_err *err) DF_MUST_CHECK;

#endif
