#include "spawner/api/handlers.h"
#include "spawner/api/idempotency.h"
#include "spawner/api/pages.h"
#include "spawner/api/reserved.h"
#include "spawner/api/server.h"
#include "spawner/model/workflow.h"

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

/* ---- those that stand alone ---- */

static int check_document(cJSON *doc, struct df_err *err)
{
    if (!doc)
        return df_fail(err, DF_ERR_USER, "a body with the TaskAction is required");
    if (df_json_str(doc, "spec.action") && !df_task_is_workflow(doc))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "spec.action: only " DF_ACTION_WORKFLOW
                              " can be asked for; the others are steps of runs");
    if (df_model_admit(DF_KIND_TASK_ACTION, doc, NULL, err) < 0)
        return -1;
    cJSON *metadata = df_json_object_at(doc, "metadata");
    if (df_keep_reserved(metadata, NULL, "labels", err) < 0)
        return -1;
    return df_keep_reserved(metadata, NULL, "annotations", err);
}

static int create(struct df_request *req, struct df_response *res, cJSON **ret, struct df_err *err)
{
    struct df_idempotency key;
    if (df_idempotency_find(req, DF_KIND_TASK_ACTION, &key, ret, err) < 0)
        return -1;
    res->replayed = *ret != NULL;
    if (res->replayed)
        return 0;
    if (check_document(req->json, err) < 0 ||
        df_idempotency_mark(&key, df_json_object_at(req->json, "metadata"), err) < 0)
        return -1;
    return df_control_create_task(req->s, req->json, req->caller.name, ret, err);
}

int df_create_taskaction(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *made = NULL;
    const char *name = df_json_str(req->json, "metadata.name");
    (void)snprintf(res->audit_name, sizeof(res->audit_name), "%s", name ? name : "");
    (void)pthread_mutex_lock(&req->api->creating);
    int result = create(req, res, &made, err);
    (void)pthread_mutex_unlock(&req->api->creating);
    return result < 0 ? -1 : df_respond_created(req, res, DF_KIND_TASK_ACTION, made, err);
}

int df_cancel_taskaction(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    const char *reason = NULL;
    if (df_request_reason(req, &reason, err) < 0 ||
        df_control_cancel_task(req->s, req->params[0], req->caller.name, reason, &task, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, task, err);
}

int df_delete_taskaction(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (df_control_delete_task(req->s, req->params[0], err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
