/*
 * providers.c - the mirror of providers that this service is for its pods: the provider network
 * mirror protocol (opentofu internal/getproviders/http_mirror_source.go) over
 * steps/provider_mirror.h.
 */
#include "spawner/api/handlers.h"
#include "spawner/steps/provider_mirror.h"
#include "spawner/steps/step_auth.h"

int df_gate_providers(struct df_request *req, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_by_uid(req->s->store, DF_KIND_TASK_ACTION, req->params[0], &task, err) < 0)
        return -1;
    if (df_step_check_token(task, "providers", req->credentials.secret, err) == 0)
        return 0;
    return err->cls == DF_ERR_DENIED ? df_err_reason(err, "Unauthorized") : -1;
}

int df_get_provider_file(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const char *const *p = req->params;
    struct df_provider_file file = {.fd = -1};
    DF_FREE char *source = df_strf("%s/%s/%s", p[2], p[3], p[4]);
    if (df_check_alloc(source, err) < 0 ||
        df_provider_mirror_get(req->s->config, source, p[5], &file, err) < 0)
        return -1;
    res->content_type = df_ends_with(p[5], ".zip") ? "application/zip" : "application/json";
    res->fd = file.fd;
    res->fd_size = file.size;
    int failed = file.text && df_buf_adds(&res->body, file.text) < 0;
    free(file.text);
    return failed ? df_buf_check(&res->body, err) : 0;
}
