/* What is special about the routes of workflows, which are TaskActions (documents.c). */
#include "spawner/api/documents.h"
#include "spawner/api/handlers.h"

int df_make_workflow(struct df_request *req, const cJSON *marks, cJSON **ret, struct df_err *err)
{
    const struct df_document_request request = {req->json, marks, req->caller.role,
                                                req->caller.name};
    return df_request_create_workflow(req->s, &request, ret, err);
}

int df_cancel_taskaction(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    const char *reason = NULL;
    if (df_request_reason(req, &reason, err) < 0 ||
        df_request_cancel_workflow(req->s, req->params[0], req->caller.name, reason, &task, err) <
            0)
        return -1;
    return df_respond_document(req, res, 200, task, err);
}

int df_delete_taskaction(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (df_request_delete_workflow(req->s, req->params[0], err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
