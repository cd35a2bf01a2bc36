#include "spawner/api/handlers.h"
#include "spawner/api/pages.h"

int df_list_taskactions(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return df_respond_page(req, res, DF_KIND_TASK_ACTION, NULL, true, err);
}

int df_get_taskaction(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    if (df_store_get(req->s->store, DF_KIND_TASK_ACTION, req->params[0], &task, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, task, err);
}
