/*
 * documents.h - the routes that are the same for every kind: list, get, create, replace and patch.
 * A route says its kind (`of`); the verbs of the kind do what only the kind knows.
 */
#ifndef DF_API_DOCUMENTS_H
#define DF_API_DOCUMENTS_H

#include "spawner/api/idempotency.h"

struct df_document_verbs {
    df_creator create;
    /* Stores doc, as the client sent it, as the next version of old. res: for the audit trail. */
    int (*change)(struct df_request *req, struct df_response *res, cJSON *doc, const cJSON *old,
                  cJSON **ret, struct df_err *err);
};

/* executors.c, taskactions.c */
int df_make_executor(struct df_request *req, const cJSON *marks, cJSON **ret, struct df_err *err);
int df_change_executor(struct df_request *req, struct df_response *res, cJSON *doc,
                       const cJSON *old, cJSON **ret, struct df_err *err);
int df_make_workflow(struct df_request *req, const cJSON *marks, cJSON **ret, struct df_err *err);

#endif
