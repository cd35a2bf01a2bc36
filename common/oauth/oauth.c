#include "common/oauth/oauth.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/http/http.h"

enum { LIFE_S = 3600, SOURCE_MS = 10000 };

int df_oauth_ask(const struct df_oauth_question *q, cJSON **ret, struct df_err *err)
{
    const struct df_http_options options = {.connect_ms = SOURCE_MS,
                                            .proxy = q->direct ? "" : NULL};
    DF_HTTP struct df_http *h = NULL;
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    DF_CLEANUP(df_strs_wipe) struct df_strs headers = {0};
    if (!q->url)
        return df_fail_oom(err);
    struct df_http_request req = DF_HTTP_REQUEST(q->body ? "POST" : "GET", q->url);
    if (q->header && df_strs_add(&headers, q->header) < 0)
        return df_strs_check(&headers, err);
    req.headers = &headers;
    req.content_type = q->type;
    req.body = q->body;
    req.body_len = q->body ? strlen(q->body) : 0;
    req.timeout_ms = SOURCE_MS;
    req.max_response = DF_LIMIT_OAUTH_ANSWER;
    if (df_http_new(&options, &h, err) < 0 || df_http_send(h, &req, &res, err) < 0 ||
        df_http_check(&res, q->what, err) < 0)
        return -1;
    int result = df_json_parse(df_buf_str(&res.body), res.body.len, ret, err);
    if (res.body.data)
        explicit_bzero(res.body.data, res.body.len);
    return result;
}

int df_oauth_take(const cJSON *answer, const char *what, struct df_token *t, struct df_err *err)
{
    const char *text = df_json_str(answer, "access_token");
    const char *life = df_json_str(answer, "expires_in");
    int64_t life_s = df_json_int(answer, "expires_in", LIFE_S);
    if (!text)
        return df_fail(err, DF_ERR_SYSTEM, "%s: no access_token", what);
    if (life && df_parse_i64(life, 0, INT32_MAX, &life_s, err) < 0)
        return df_err_wrap(err, "%s: expires_in", what);
    df_token_ends(t, df_real_us() + df_seconds_us(life_s));
    return df_str_set(&t->text, text, err);
}
