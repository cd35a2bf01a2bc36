/*
 * The routes of integrations. Their rules are in requests/integrations.h.
 */
#include "spawner/requests/integrations.h"
#include "spawner/api/handlers.h"
#include "spawner/store/vault/vault_integrations.h"

static struct df_integration_request request_of(const struct df_request *req)
{
    return (struct df_integration_request){.name = req->params[0],
                                           .doc = req->json,
                                           .role = req->caller.role,
                                           .actor = req->caller.name};
}

int df_list_integrations(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *items = NULL;
    if (df_vault_integration_list(req->s->vault, &items, err) < 0)
        return -1;
    return df_respond_list(res, DF_TAKE(items), NULL, err);
}

int df_get_integration(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_vault_integration_get(req->s->vault, req->params[0], &doc, err) < 0)
        return -1;
    return df_respond_json(res, 200, doc, err);
}

int df_create_integration(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const struct df_integration_request q = request_of(req);
    const char *name = df_json_str(req->json, "metadata.name");
    DF_JSON cJSON *doc = NULL;
    (void)snprintf(res->audit_name, sizeof(res->audit_name), "%s", name ? name : "");
    if (df_request_create_integration(req->s, &q, &doc, err) < 0)
        return -1;
    (void)snprintf(res->location, sizeof(res->location), "/v1/integrations/%s",
                   df_json_str(doc, "metadata.name"));
    return df_respond_json(res, 201, doc, err);
}

int df_replace_integration(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const struct df_integration_request q = request_of(req);
    DF_JSON cJSON *doc = NULL;
    if (df_request_replace_integration(req->s, &q, &doc, err) < 0)
        return -1;
    return df_respond_json(res, 200, doc, err);
}

int df_delete_integration(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const struct df_integration_request q = request_of(req);
    if (df_request_delete_integration(req->s, &q, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}

int df_test_integration(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const struct df_integration_request q = request_of(req);
    DF_JSON cJSON *result = NULL;
    if (df_request_test_integration(req->s, &q, &result, err) < 0)
        return -1;
    return df_respond_json(res, 200, result, err);
}
