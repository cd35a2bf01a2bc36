#include "common/base/parse.h"
#include "spawner/api/handlers.h"
#include "spawner/api/state.h"

int df_get_outputs(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    bool show = false;
    DF_JSON cJSON *outputs = NULL;
    if (df_request_flag(req, "showSensitive", &show, err) < 0)
        return -1;
    if (show) {
        res->audit = "show-sensitive";
        if (df_auth_require(&req->caller, DF_ROLE_ADMIN, err) < 0)
            return -1;
    }
    if (df_state_executor(req, uid, err) < 0 ||
        df_state_outputs(req->s->states, uid, show, &outputs, err) < 0)
        return -1;
    res->secret = show;
    int result = df_respond_json(res, 200, outputs, err);
    df_json_wipe(DF_TAKE(outputs));
    return result;
}

int df_list_state_versions(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    cJSON *items = NULL;
    if (df_state_executor(req, uid, err) < 0 ||
        df_state_versions(req->s->states, uid, &items, err) < 0)
        return -1;
    return df_respond_list(res, items, NULL, err);
}

int df_get_state_version(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    int64_t version = 0;
    if (df_parse_i64(req->params[1], 1, INT32_MAX, &version, err) < 0)
        return df_err_wrap(err, "version");
    if (df_state_executor(req, uid, err) < 0)
        return -1;
    return df_respond_state(req, res, uid, version, err);
}

static int read_version(const struct df_request *req, int64_t *ret, struct df_err *err)
{
    static const char *const members[] = {"version", NULL};
    if (df_request_members(req, members, err) < 0)
        return -1;
    double version = df_json_num(req->json, "version", 0);
    if (!(version >= 1 && version <= INT32_MAX) || (double)(int64_t)version != version)
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "version: must be the number of a state version, from 1");
    *ret = (int64_t)version;
    return 0;
}

int df_rollback_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    int64_t version = 0;
    DF_JSON cJSON *items = NULL;
    if (read_version(req, &version, err) < 0 || df_state_executor(req, uid, err) < 0 ||
        df_state_rollback(req->s->states, uid, version, req->caller.name, err) < 0 ||
        df_state_versions(req->s->states, uid, &items, err) < 0)
        return -1;
    return df_respond_json(res, 200, cJSON_GetArrayItem(items, 0), err);
}

int df_get_state_lock(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    DF_JSON cJSON *info = NULL;
    if (df_state_executor(req, uid, err) < 0 ||
        df_state_lock_info(req->s->states, uid, &info, err) < 0)
        return -1;
    if (info)
        return df_respond_json(res, 200, info, err);
    df_respond_nothing(res);
    return 0;
}

int df_force_unlock_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    if (df_state_executor(req, uid, err) < 0 || df_state_force_unlock(req->s->states, uid, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}

int df_list_errored_states(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    cJSON *items = NULL;
    if (df_state_executor(req, uid, err) < 0 ||
        df_state_errored(req->s->states, uid, &items, err) < 0)
        return -1;
    return df_respond_list(res, items, NULL, err);
}

int df_push_errored_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    if (df_state_executor(req, uid, err) < 0 ||
        df_state_push_errored(req->s->states, uid, req->params[1], req->caller.name, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
