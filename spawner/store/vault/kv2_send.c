/* One exchange with a server of Vault's API. */
#include "common/base/limits.h"
#include "spawner/store/vault/kv2_token.h"
#include "spawner/store/vault/sources.h"

/* Makes one line of it, with single blanks. */
static void fold(char *text)
{
    char *to = text;
    for (const char *c = text; *c; c++) {
        bool is_blank = *c == ' ' || *c == '\n' || *c == '\t';
        if (!is_blank)
            *to++ = *c;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    }
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

/* "errors" of the answer as one line of text; the caller frees. NULL if out of memory. */
static char *errors_of(const struct df_buf *body)
{
    DF_JSON cJSON *answer = NULL;
    DF_BUF struct df_buf text = DF_BUF_INIT(300);
    const cJSON *item;
    if (df_json_parse(df_buf_str(body), body->len, &answer, NULL) < 0)
        return strdup("");
    cJSON_ArrayForEach (item, df_json_at(answer, "errors")) {
        const char *one = cJSON_GetStringValue(item);
        (void)df_buf_addf(&text, ": %.200s", one ? one : "");
    }
    char *line = strdup(df_buf_str(&text));
    if (line)
        fold(line);
    return line;
}

/* 503: sealed, or a standby without a leader; 412: this standby has not seen the write yet; 472,
 * 473: standbys. */
static bool may_pass(int status)
{
    return status >= 500 || status == 429 || status == 412 || status == 472 || status == 473;
}

static int fail_status(const struct df_kv2_server *server, const struct df_kv2_request *request,
                       const struct df_http_response *res, struct df_err *err)
{
    DF_FREE char *errors = errors_of(&res->body);
    return df_source_fail(err, may_pass(res->status) ? DF_ERR_RETRY : DF_ERR_DENIED,
                          "%s %s/v1/%s: status %d%s", request->method, server->url, request->path,
                          res->status, errors ? errors : "");
}

static int exchange(const struct df_kv2_server *server, const struct df_http_request *request,
                    struct df_http_response *ret, struct df_err *err)
{
    struct df_http *h = NULL;
    struct df_err why = {0};
    if (df_http_pool_take(server->pool, &h, &why) < 0)
        return df_source_failed(err, &why);
    int result = df_http_send(h, request, ret, &why);
    df_http_pool_give(server->pool, h);
    return result < 0 ? df_source_failed(err, &why) : 0;
}

static int take_answer(const struct df_kv2_server *server, const struct df_kv2_request *request,
                       struct df_http_response *res, int *ret_status, cJSON **ret,
                       struct df_err *err)
{
    struct df_err why = {0};
    if (res->status != 200 && res->status != 404)
        return fail_status(server, request, res, err);
    if (df_json_parse(df_buf_str(&res->body), res->body.len, ret, &why) < 0) {
        if (res->status == 200)
            return df_source_fail(err, DF_ERR_DENIED, "%s/v1/%s: the answer is not JSON: %s",
                                  server->url, request->path, why.message);
        *ret = NULL;
    }
    *ret_status = res->status;
    return 0;
}

int df_kv2_send(const struct df_kv2_server *server, const struct df_kv2_request *request,
                int *ret_status, cJSON **ret, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs headers = {0};
    struct df_http_response res = {0};
    DF_FREE char *url = df_strf("%s/v1/%s", server->url, request->path);
    (void)df_strs_add(&headers, "X-Vault-Request: true");
    if (server->name_space)
        (void)df_strs_addf(&headers, "X-Vault-Namespace: %s", server->name_space);
    if (request->token)
        (void)df_strs_addf(&headers, "X-Vault-Token: %s", request->token);
    if (df_check_alloc(url, err) < 0 || df_strs_check(&headers, err) < 0)
        return -1;
    struct df_http_request req = DF_HTTP_REQUEST(request->method, url);
    req.headers = &headers;
    req.body = request->body;
    req.body_len = request->body ? strlen(request->body) : 0;
    req.timeout_ms = DF_TIMEOUT_SOURCE_MS;
    req.max_response = DF_LIMIT_SOURCE_ANSWER;
    int result = exchange(server, &req, &res, err);
    if (result == 0)
        result = take_answer(server, request, &res, ret_status, ret, err);
    df_buf_wipe(&res.body);
    df_http_response_free(&res);
    return result;
}
