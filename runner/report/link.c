/*
 * Requests to the spawner with retries. df_link_try() at the end is the loop: send, decide whether
 * the failure is temporary, pause with back-off, read the address again.
 */
#include "runner/report/link.h"

#include <poll.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"

enum { PAUSE_FIRST_MS = 25, PAUSE_MAX_MS = 2000, STOP_POLL_MS = 50, URL_MAX = 2048 };
/* A frozen replica keeps its connections open. After a timeout the next attempt may reach another
 * replica. */
enum { CONNECT_MS = 5000, IDLE_MS = 15000 };
/* So much costs a leader whose address the network keeps from pods, once for each link. */
enum { LEADER_CONNECT_MS = 1000 };

struct df_link {
    struct df_http *http; /* to the leader, or to the server */
    char *leader;         /* URL; NULL: the server is asked */
    char *server;         /* without a slash at its end */
    char *endpoint_file;
    char *ca_file;
    char *token;      /* the bearer; NULL with token_file */
    char *token_file; /* NULL: the bearer is fixed */
    char *uid;        /* of the step */
    char *runner;     /* NULL: it has a step */
    int failures;     /* in a row */
    bool has_left;    /* the last attempt left the leader */
};

void df_link_free(struct df_link *l)
{
    if (!l)
        return;
    df_http_free(l->http);
    df_str_wipe(&l->token);
    free(l->leader);
    free(l->server);
    free(l->endpoint_file);
    free(l->ca_file);
    free(l->token_file);
    free(l->uid);
    free(l->runner);
    free(l);
}

static char *copy_url(const char *url, size_t n)
{
    while (n && url[n - 1] == '/')
        n--;
    return strndup(url, n);
}

/* Replaces the connection. server_name: as of df_http_options. */
static int open_http(struct df_link *l, const char *server_name, int64_t connect_ms,
                     struct df_err *err)
{
    const struct df_http_options o = {.ca_file = l->ca_file,
                                      .bearer = l->token,
                                      .server_name = server_name,
                                      .connect_ms = connect_ms,
                                      .proxy = ""};
    struct df_http *http;
    if (df_http_new(&o, &http, err) < 0)
        return -1;
    df_http_free(l->http);
    l->http = http;
    return 0;
}

int df_link_new(const struct df_link_options *o, struct df_link **ret, struct df_err *err)
{
    DF_LINK struct df_link *l = calloc(1, sizeof *l);
    if (!l)
        return df_fail_oom(err);
    l->server = copy_url(o->server, strlen(o->server));
    if (df_check_alloc(l->server, err) < 0 || df_str_set(&l->uid, o->uid, err) < 0 ||
        df_str_set(&l->runner, o->runner, err) < 0 ||
        df_str_set(&l->endpoint_file, o->endpoint_file, err) < 0 ||
        df_str_set(&l->ca_file, o->ca_file, err) < 0 || df_str_set(&l->token, o->token, err) < 0 ||
        df_str_set(&l->token_file, o->token_file, err) < 0 ||
        open_http(l, NULL, CONNECT_MS, err) < 0)
        return -1;
    *ret = DF_TAKE(l);
    return 0;
}

int df_link_copy(const struct df_link *l, struct df_link **ret, struct df_err *err)
{
    const struct df_link_options o = {.server = l->server,
                                      .endpoint_file = l->endpoint_file,
                                      .ca_file = l->ca_file,
                                      .uid = l->uid,
                                      .runner = l->runner,
                                      .token = l->token,
                                      .token_file = l->token_file};
    return df_link_new(&o, ret, err);
}

int df_link_set_step(struct df_link *l, const char *uid, const char *token, struct df_err *err)
{
    DF_FREE char *own_uid = strdup(uid);
    char *own_token = strdup(token);
    if (!own_uid || !own_token) {
        df_str_wipe(&own_token);
        return df_fail_oom(err);
    }
    free(l->uid);
    l->uid = DF_TAKE(own_uid);
    df_str_wipe(&l->token);
    l->token = own_token;
    free(DF_TAKE(l->runner));
    free(DF_TAKE(l->token_file));
    return df_http_set_bearer(l->http, token, err);
}

/* ---- the leader ---- */

void df_link_set_leader(struct df_link *l, const char *url)
{
    DF_FREE char *leader = copy_url(url, strlen(url)), *name = df_url_host(l->server);
    bool has_tls = df_starts_with(url, "https://");
    struct df_err why = {0};
    if (!leader || !name || (!has_tls && df_starts_with(l->server, "https://")) ||
        open_http(l, has_tls ? name : NULL, LEADER_CONNECT_MS, &why) < 0)
        return;
    free(l->leader);
    l->leader = DF_TAKE(leader);
}

/* Back to the server, which knows who leads: whatever went wrong, the next attempt goes there.
 * Without memory for that, the next failure does it. */
static void leave_leader(struct df_link *l, int sent, const struct df_http_response *answer,
                         struct df_err *err)
{
    struct df_err why = {0};
    if (sent == 0)
        df_warn("the replica that led, at %s, answers with status %d", l->leader, answer->status);
    else
        df_warn("the replica that leads cannot be asked directly: %s", err->message);
    if (sent < 0)
        err->cls = DF_ERR_RETRY;
    if (open_http(l, NULL, CONNECT_MS, &why) < 0)
        return;
    free(DF_TAKE(l->leader));
    l->has_left = true;
}

bool df_link_has_left_leader(struct df_link *l)
{
    bool has_left = l->has_left;
    l->has_left = false;
    return has_left;
}

/* A file that is missing now, say while Kubernetes renews it, may exist at the next attempt. */
static int reread_token(struct df_link *l, struct df_err *err)
{
    struct df_buf b = DF_BUF_INIT(DF_LIMIT_TOKEN);
    int result = df_fs_read(l->token_file, &b, err);
    if (result < 0 && err->cls == DF_ERR_NOT_FOUND)
        err->cls = DF_ERR_RETRY;
    if (result == 0 && b.len)
        b.data[strcspn(b.data, " \t\r\n")] = '\0';
    if (result == 0)
        result = df_http_set_bearer(l->http, df_buf_str(&b), err);
    df_buf_wipe(&b);
    return result;
}

int df_link_send(struct df_link *l, struct df_http_request *req, const char *path,
                 struct df_http_response *ret, struct df_err *err)
{
    DF_FREE char *url =
        df_strf("%s/v1/%s/%s%s", l->leader ? l->leader : l->server, l->runner ? "runners" : "steps",
                l->runner ? l->runner : l->uid, path);
    if (df_check_alloc(url, err) < 0 || (l->token_file && reread_token(l, err) < 0))
        return -1;
    req->url = url;
    l->has_left = false;
    if (!req->idle_timeout_ms)
        req->idle_timeout_ms = IDLE_MS;
    int sent = df_http_send(l->http, req, ret, err);
    req->url = NULL;
    bool has_failed = sent < 0 || ret->status >= 500;
    if (!has_failed)
        l->failures = 0;
    else if (l->leader && !df_stopped(req->stop)) /* else the caller gave up, not the leader */
        leave_leader(l, sent, ret, err);
    return sent;
}

/* True if the spawner has a new address. A missing or half-written file changes nothing: the next
 * pause reads it again. */
static bool reread_endpoint(struct df_link *l)
{
    if (!l->endpoint_file)
        return false;
    DF_BUF struct df_buf b = DF_BUF_INIT(URL_MAX);
    if (df_fs_read(l->endpoint_file, &b, NULL) < 0)
        return false;
    const char *text = df_buf_str(&b);
    if (!df_starts_with(text, "http://") && !df_starts_with(text, "https://"))
        return false;
    char *server = copy_url(text, strcspn(text, " \t\r\n"));
    if (!server || df_streq(server, l->server)) {
        free(server);
        return false;
    }
    free(l->server);
    l->server = server;
    return true;
}

bool df_link_is_fixed(const struct df_link *l)
{
    return !l->endpoint_file;
}

int64_t df_link_next_pause_ms(struct df_link *l)
{
    (void)reread_endpoint(l);
    return df_backoff_pause(PAUSE_FIRST_MS, PAUSE_MAX_MS, ++l->failures);
}

bool df_link_is_passing(int sent, const struct df_http_response *answer, const struct df_err *err)
{
    if (sent < 0)
        return err->cls == DF_ERR_RETRY;
    int s = answer->status;
    return s >= 500 || s == 408 || s == 425 || s == 429;
}

bool df_link_pause(struct df_link *l, const struct df_retry *p)
{
    int64_t until = df_mono_ms() + df_link_next_pause_ms(l);
    for (;;) {
        int64_t now = df_mono_ms();
        if (df_stopped(p->stop) || now >= p->deadline_ms)
            return false;
        if (now >= until)
            return true;
        int64_t end = until < p->deadline_ms ? until : p->deadline_ms;
        (void)poll(NULL, 0, (int)(end - now < STOP_POLL_MS ? end - now : STOP_POLL_MS));
    }
}

/* Another service may listen on the spawner's old port: 401, 403 and 404 count only if the address
 * is still current. */
static bool reached_another_service(struct df_link *l, int sent,
                                    const struct df_http_response *answer)
{
    int s = sent < 0 ? 0 : answer->status;
    return (s == 401 || s == 403 || s == 404) && reread_endpoint(l);
}

int df_link_try(struct df_link *l, struct df_http_request *req, const char *path,
                const struct df_retry *p, struct df_http_response *ret, struct df_err *err)
{
    req->stop = req->stop ? req->stop : p->stop;
    for (;;) {
        struct df_err why = {0};
        DF_HTTP_RESPONSE struct df_http_response answer = {0};
        int sent = df_link_send(l, req, path, &answer, &why);
        if (df_link_has_left_leader(l))
            continue;
        if ((df_link_is_passing(sent, &answer, &why) ||
             reached_another_service(l, sent, &answer)) &&
            df_link_pause(l, p))
            continue;
        if (sent < 0)
            return df_err_pass(err, &why);
        *ret = answer;
        answer = (struct df_http_response){0};
        return 0;
    }
}
