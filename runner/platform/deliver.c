#include "runner/platform/deliver.h"

int df_deliver(struct df_http *http, const struct df_delivery *d, struct df_err *err)
{
    if (!d->path || !d->body)
        return df_fail_oom(err);
    size_t n = strlen(d->base);
    while (n && d->base[n - 1] == '/')
        n--;
    DF_FREE char *url = df_strf("%.*s%s", (int)n, d->base, d->path);
    DF_HTTP_RESPONSE struct df_http_response answer = {.status = 0};
    struct df_http_request req = DF_HTTP_REQUEST(d->method, url);
    req.content_type = d->type;
    req.body = d->body;
    req.body_len = strlen(d->body);
    req.timeout_ms = DF_TIMEOUT_TELEMETRY_MS;
    if (df_http_send(http, &req, &answer, err) < 0)
        return df_err_wrap(err, "send %s", d->what);
    if (answer.status >= 300 && answer.status < 400)
        return df_fail(err, DF_ERR_USER, "%s: HTTP %d: it is to be sent to another URL: write that",
                       d->what, answer.status);
    return df_http_check(&answer, d->what, err);
}
