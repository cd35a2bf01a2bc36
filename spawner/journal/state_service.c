/*
 * One call to the State Service: the request from a TaskAction, and what its answer means.
 */
#include "spawner/journal/state_service.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/http/http.h"

#define PUT "/flyteidl2.workflow.StateService/Put"
#define RECORD "/flyteidl2.workflow.EventsProxyService/Record"
#define LONGEST_WAIT_S 300 /* a Retry-After beyond that is taken for a mistake */

struct df_state_service {
    const struct df_config *config;
    struct df_http *http;
    struct df_strs headers;
    struct df_action_scope scope;
    bool is_put;
    char *url;
};

void df_state_service_free(struct df_state_service *s)
{
    if (!s)
        return;
    df_http_free(s->http);
    df_strs_free(&s->headers);
    free(s->url);
    free(s);
}

static char *join(const char *base, const char *path)
{
    size_t n = strlen(base);
    while (n && base[n - 1] == '/')
        n--;
    return df_strf("%.*s%s", (int)n, base, path);
}

int df_state_service_new(const struct df_config *config, struct df_state_service **ret,
                         struct df_err *err)
{
    const struct df_http_options options = {.ca_file = config->state_service_ca_file};
    struct df_state_service *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    s->config = config;
    s->is_put = df_streq(config->state_service_protocol, "put");
    s->scope =
        (struct df_action_scope){config->state_service_project, config->state_service_domain};
    s->url = join(config->state_service_url, s->is_put ? PUT : RECORD);
    (void)df_strs_add(&s->headers, "Connect-Protocol-Version: 1");
    int result = s->url ? df_strs_check(&s->headers, err) : df_fail_oom(err);
    if (result == 0)
        result = df_http_new(&options, &s->http, err);
    if (result < 0)
        df_state_service_free(s);
    else
        *ret = s;
    return result;
}

int df_state_service_most(const struct df_state_service *s)
{
    return s->is_put ? 1 : DF_LIMIT_PHASE_HISTORY;
}

/* ---- what is sent ---- */

static int build_events(const struct df_state_service *s, const cJSON *task, int index, int n,
                        cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *request = cJSON_CreateObject();
    cJSON *events = df_json_array_at(request, "events");
    if (!events)
        return df_fail_oom(err);
    for (int i = index; i < index + n; i++) {
        cJSON *event = NULL;
        if (df_action_event(task, i, &s->scope, &event, err) < 0 ||
            df_json_append(events, event, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(request);
    return 0;
}

static int build(const struct df_state_service *s, const cJSON *task, int index, int n, char **ret,
                 struct df_err *err)
{
    DF_JSON cJSON *request = NULL;
    int result = s->is_put ? df_action_put(task, index, &s->scope, &request, err)
                           : build_events(s, task, index, n, &request, err);
    if (result < 0)
        return -1;
    return df_check_alloc(*ret = df_json_print(request), err);
}

/* The file is read each time: what mounts it renews it. */
static int show_token(const struct df_state_service *s, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    if (!s->config->state_service_token_file)
        return 0;
    if (df_fs_read(s->config->state_service_token_file, &token, err) < 0)
        return df_err_wrap(err, "stateService.tokenFile");
    while (token.len && strchr(" \t\r\n", token.data[token.len - 1]))
        token.data[--token.len] = '\0';
    return token.len ? df_http_set_bearer(s->http, df_buf_str(&token), err)
                     : df_fail(err, DF_ERR_USER, "stateService.tokenFile: it is empty");
}

static int send(struct df_state_service *s, const char *body, struct df_http_response *ret,
                struct df_err *err)
{
    struct df_http_request req = DF_HTTP_REQUEST("POST", s->url);
    req.headers = &s->headers;
    req.body = body;
    req.body_len = strlen(body);
    req.timeout_ms = DF_TIMEOUT_STATE_SERVICE_MS;
    req.max_response = DF_LIMIT_STATE_ANSWER;
    return show_token(s, err) < 0 ? -1 : df_http_send(s->http, &req, ret, err);
}

/* ---- what it answers ---- */

/* Codes of Connect and gRPC that say more than the status they come with. */
static const struct code {
    const char *name;
    int number;
    enum df_state_answer means;
} codes[] = {
    {"canceled", 1, DF_STATE_LATER},        {"invalid_argument", 3, DF_STATE_REFUSED},
    {"not_found", 5, DF_STATE_REFUSED},     {"already_exists", 6, DF_STATE_TAKEN},
    {"aborted", 10, DF_STATE_LATER},        {"failed_precondition", 9, DF_STATE_REFUSED},
    {"out_of_range", 11, DF_STATE_REFUSED},
};

static const struct code *find_code(const char *name, int64_t number)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(codes); i++)
        if (name ? df_streq(codes[i].name, name) : codes[i].number == number)
            return &codes[i];
    return NULL;
}

/* Without a code: who may not speak, or speaks to the wrong place, is helped by an operator, and
 * then nothing is to be missing. */
static enum df_state_answer by_status(int status)
{
    static const int later[] = {401, 403, 404, 405, 407, 408, 425, 429};
    if (status < 400 || status >= 500)
        return DF_STATE_LATER;
    for (size_t i = 0; i < DF_ARRAY_SIZE(later); i++)
        if (status == later[i])
            return DF_STATE_LATER;
    return DF_STATE_REFUSED;
}

/* 500 and 501 are about what was sent; those behind them about the service. */
static enum df_err_class class_of(int status)
{
    return status == 500 || status == 501 ? DF_ERR_SYSTEM : DF_ERR_RETRY;
}

static enum df_state_answer fail_status(const struct df_http_response *r, const cJSON *answer,
                                        struct df_err *err)
{
    const char *name = df_json_str(answer, "code"), *message = df_json_str(answer, "message");
    const struct code *code = name ? find_code(name, 0) : NULL;
    (void)df_fail(err, class_of(r->status), "HTTP %d%s%.64s%s%.300s", r->status, name ? " " : "",
                  name ? name : "", message ? ": " : "", message ? message : "");
    if (err && r->retry_after_s > 0)
        err->retry_after_s = r->retry_after_s < LONGEST_WAIT_S ? r->retry_after_s : LONGEST_WAIT_S;
    return code ? code->means : by_status(r->status);
}

/* Put says in its answer whether it did what it was asked for. */
static enum df_state_answer judge_put(const cJSON *answer, struct df_err *err)
{
    int64_t number = df_json_int(answer, "status.code", 0);
    const char *message = df_json_str(answer, "status.message");
    if (!number)
        return DF_STATE_TAKEN;
    const struct code *code = find_code(NULL, number);
    bool is_busy = number == 4 || number == 8 || number == 14; /* late, exhausted, unavailable */
    (void)df_fail(err, is_busy ? DF_ERR_RETRY : DF_ERR_SYSTEM, "status %lld%s%.300s",
                  (long long)number, message ? ": " : "", message ? message : "");
    return code ? code->means : DF_STATE_LATER;
}

static enum df_state_answer judge(const struct df_state_service *s, struct df_http_response *r,
                                  struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    struct df_err why = {0};
    bool is_json = df_json_parse(df_buf_str(&r->body), r->body.len, &answer, &why) == 0 &&
                   cJSON_IsObject(answer);
    if (r->status < 200 || r->status > 299)
        return fail_status(r, answer, err);
    if (!is_json) { /* somebody else's page, whatever its status says */
        (void)df_fail(err, DF_ERR_RETRY, "its answer is not a JSON object");
        return DF_STATE_LATER;
    }
    return s->is_put ? judge_put(answer, err) : DF_STATE_TAKEN;
}

enum df_state_answer df_state_service_tell(struct df_state_service *s, const cJSON *task, int index,
                                           int n, struct df_err *err)
{
    DF_FREE char *body = NULL;
    DF_HTTP_RESPONSE struct df_http_response response = {0};
    if (build(s, task, index, n, &body, err) < 0 || send(s, body, &response, err) < 0)
        return DF_STATE_LATER;
    return judge(s, &response, err);
}
