/*
 * state_history.c - handlers for people: versions, rollback, push, lock and errored states. Most
 * begin with df_state_executor(), which refuses a state that is kept elsewhere. Errored states
 * exist for every storage: to list, read or discard them, df_state_owner() finds the executor.
 */
#include "common/base/parse.h"
#include "spawner/api/handlers.h"
#include "spawner/api/state.h"
#include "spawner/model/errored_states.h"
#include "spawner/model/move.h"
#include "spawner/model/state_command.h"
#include "spawner/steps/errored.h"

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
    return df_respond_state(req, res, uid, version, err) < 0 ? df_state_failed(req->params[0], err)
                                                             : 0;
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

/* An errored state, which would not fit any more, is stored or removed first. */
static int check_may_roll_back(const struct df_request *req, struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    if (df_store_look(req->s->store, DF_KIND_EXECUTOR, req->params[0], &executor, err) < 0)
        return -1;
    return df_state_rollback_check(executor, err) < 0 ? -1 : df_errored_check(executor, err);
}

int df_rollback_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    int64_t version = 0;
    DF_JSON cJSON *items = NULL;
    if (read_version(req, &version, err) < 0 || df_state_executor(req, uid, err) < 0 ||
        check_may_roll_back(req, err) < 0 ||
        df_state_rollback(req->s->states, uid, version, req->caller.name, err) < 0 ||
        df_state_versions(req->s->states, uid, &items, err) < 0)
        return df_state_failed(req->params[0], err);
    return df_respond_json(res, 200, cJSON_GetArrayItem(items, 0), err);
}

static int push_file(struct df_request *req, const char *uid, struct df_err *err)
{
    bool replace = false;
    DF_SHARED const cJSON *executor = NULL;
    if (df_request_flag(req, "replace", &replace, err) < 0 ||
        (replace &&
         df_verbs_require(req->verbs, DF_VERB_STATE_WRITE, "replace", req->params[0], err) < 0) ||
        df_store_look(req->s->store, DF_KIND_EXECUTOR, req->params[0], &executor, err) < 0 ||
        df_executor_check_push(executor, err) < 0 ||
        df_state_push(req->s->states, uid, req->body_path, replace, req->caller.name, err) < 0)
        return -1;
    free(req->body_path);
    req->body_path = NULL;
    return df_state_adopted(req, err);
}

int df_push_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    DF_JSON cJSON *items = NULL;
    if (df_state_executor(req, uid, err) < 0 || push_file(req, uid, err) < 0 ||
        df_state_versions(req->s->states, uid, &items, err) < 0)
        return df_state_failed(req->params[0], err);
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
    if (df_state_owner(req, uid, NULL, err) < 0 ||
        df_state_errored(req->s->states, uid, &items, err) < 0)
        return -1;
    return df_respond_list(res, items, NULL, err);
}

int df_push_errored_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    if (df_state_executor(req, uid, err) < 0 ||
        df_errored_state_check(req->s, req->params[1], err) < 0 ||
        df_state_push_errored(req->s->states, uid, req->params[1], req->caller.name, err) < 0 ||
        df_state_adopted(req, err) < 0 || df_errored_note(req->s, req->params[0], NULL, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}

int df_get_errored_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    if (df_state_owner(req, uid, NULL, err) < 0)
        return -1;
    res->content_type = "application/octet-stream";
    return df_state_open_errored(req->s->states, uid, req->params[1], &res->fd, &res->fd_size, err);
}

int df_discard_errored_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    char uid[64];
    DF_SHARED const cJSON *executor = NULL;
    if (df_state_owner(req, uid, &executor, err) < 0 ||
        df_errored_discard(req->s, executor, req->params[1], err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}

static int confirm_move(cJSON *executor, void *arg, struct df_err *err)
{
    (void)arg;
    return df_move_confirm(executor, err);
}

int df_forget_former_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (df_store_modify(req->s->store, DF_KIND_EXECUTOR, req->params[0], confirm_move, NULL, NULL,
                        err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
