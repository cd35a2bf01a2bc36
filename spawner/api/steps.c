/*
 * steps.c - the routes of runners, over steps/steps.h. docs/step-protocol.md describes each:
 * claim, streams, artifacts, progress and result.
 */
#include "spawner/steps/steps.h"
#include "spawner/api/handlers.h"
#include "spawner/http/forward.h"
#include "spawner/steps/errored.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/waits.h"

static const char *uid_of(const struct df_request *req)
{
    return req->params[0];
}

static const char *token_of(const struct df_request *req)
{
    return req->credentials.secret;
}

static int need_body(const struct df_request *req, struct df_err *err)
{
    return req->json ? 0 : df_fail(err, DF_ERR_USER, "a JSON body is required");
}

int df_gate_claim(struct df_request *req, struct df_err *err)
{
    return df_step_check_claim(req->s, uid_of(req), token_of(req), err);
}

int df_gate_step(struct df_request *req, struct df_err *err)
{
    return df_step_check(req->s, uid_of(req), token_of(req), err);
}

int df_gate_live_step(struct df_request *req, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    return df_step_open(req->s, uid_of(req), token_of(req), &task, err);
}

static void tell_wait(const struct df_request *req, bool is_optional, int64_t began_us,
                      const struct df_err *why)
{
    const struct df_wait_case w = {.kind = DF_KIND_TASK_ACTION,
                                   .uid = uid_of(req),
                                   .what = req->route,
                                   .is_optional = is_optional};
    if (why)
        df_wait_failed(req->s, &w, began_us, why);
    else
        df_wait_passed(req->s, &w);
}

void df_after_storage(const struct df_request *req, int64_t began_us, const struct df_err *why)
{
    tell_wait(req, false, began_us, why);
}

void df_after_storage_aside(const struct df_request *req, int64_t began_us,
                            const struct df_err *why)
{
    tell_wait(req, true, began_us, why);
}

int df_claim_step(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_SECRET_JSON cJSON *step = NULL;
    if (need_body(req, err) < 0 ||
        df_step_claim(req->s, uid_of(req), token_of(req), req->json, &step, err) < 0 ||
        df_offer_leader(req, step, err) < 0)
        return -1;
    res->secret = true;
    return df_respond_json(res, 200, step, err);
}

/* ---- streams ---- */

static int stream_of(const struct df_request *req, enum df_stream *ret, struct df_err *err)
{
    if (!df_streq(req->params[1], "log") && !df_streq(req->params[1], "events"))
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "a step has the streams log and events, not \"%.64s\"", req->params[1]);
    *ret = df_streq(req->params[1], "log") ? DF_STREAM_LOG : DF_STREAM_EVENTS;
    return 0;
}

static int respond_offset(struct df_response *res, int64_t offset, struct df_err *err)
{
    DF_JSON cJSON *answer = cJSON_CreateObject();
    if (df_json_add_num(answer, "offset", (double)offset, err) < 0)
        return df_fail_oom(err);
    return df_respond_json(res, 200, answer, err);
}

int df_get_step_stream(struct df_request *req, struct df_response *res, struct df_err *err)
{
    enum df_stream stream = DF_STREAM_LOG;
    int64_t end = 0;
    if (stream_of(req, &stream, err) < 0 ||
        df_step_stream_end(req->s, uid_of(req), token_of(req), stream, &end, err) < 0)
        return -1;
    return respond_offset(res, end, err);
}

/* A frame after a gap: the problem tells the runner where the stream ends. */
static void add_end(struct df_request *req, struct df_response *res, enum df_stream stream)
{
    int64_t end = 0;
    if (df_step_stream_end(req->s, uid_of(req), token_of(req), stream, &end, NULL) < 0)
        return;
    res->problem_extra = cJSON_CreateObject();
    (void)df_json_add_num(res->problem_extra, "offset", (double)end, NULL);
}

int df_append_step_stream(struct df_request *req, struct df_response *res, struct df_err *err)
{
    enum df_stream stream = DF_STREAM_LOG;
    int64_t offset = 0, end = 0;
    if (stream_of(req, &stream, err) < 0)
        return -1;
    if (!df_request_query(req, "offset"))
        return df_fail(err, DF_ERR_USER, "?offset: is required");
    if (df_request_number(req, "offset", 0, (int64_t)DF_LIMIT_STREAM, &offset, err) < 0)
        return -1;
    const struct df_frame frame = {stream, offset, df_buf_str(&req->body), req->body.len};
    if (df_step_append(req->s, uid_of(req), token_of(req), &frame, &end, err) < 0) {
        if (df_streq(err->reason, "Gap"))
            add_end(req, res, stream);
        return -1;
    }
    return respond_offset(res, end, err);
}

/* ---- artifacts ---- */

int df_get_step_plan(struct df_request *req, struct df_response *res, struct df_err *err)
{
    res->content_type = "application/octet-stream";
    return df_step_get_plan(req->s, uid_of(req), token_of(req), &res->fd, &res->fd_size, err);
}

int df_get_step_errored_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    res->content_type = "application/octet-stream";
    return df_step_get_errored_state(req->s, uid_of(req), token_of(req), &res->fd, &res->fd_size,
                                     err);
}

typedef int (*taker)(struct df_spawner *s, const char *uid, const char *token, const char *path,
                     struct df_err *err);

static int put_artifact(struct df_request *req, struct df_response *res, taker take,
                        struct df_err *err)
{
    if (!req->body_path)
        return df_fail(err, DF_ERR_USER, "a body is required");
    if (take(req->s, uid_of(req), token_of(req), req->body_path, err) < 0)
        return -1;
    /* The steps room has moved the file. */
    free(req->body_path);
    req->body_path = NULL;
    res->status = 201;
    return 0;
}

int df_put_step_plan(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return put_artifact(req, res, df_step_put_plan, err);
}

int df_put_step_errored_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return put_artifact(req, res, df_step_put_errored_state, err);
}

int df_put_step_outputs(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return put_artifact(req, res, df_step_put_outputs, err);
}

int df_get_step_shown(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_SECRET_JSON cJSON *missing = NULL;
    if (df_step_get_shown(req->s, uid_of(req), token_of(req), &missing, err) < 0)
        return -1;
    res->secret = true;
    return df_respond_json(res, 200, missing, err);
}

int df_put_step_shown(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return put_artifact(req, res, df_step_put_shown, err);
}

/* ---- reports ---- */

int df_report_step_progress(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (need_body(req, err) < 0 ||
        df_step_progress(req->s, uid_of(req), token_of(req), req->json, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}

int df_report_step_result(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (need_body(req, err) < 0 ||
        df_step_result(req->s, uid_of(req), token_of(req), req->json, err) < 0)
        return -1;
    res->status = 200;
    return 0;
}
