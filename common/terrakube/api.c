/*
 * Terrakube's API: first one request and its repetition, then the calls by JSON:API, then the
 * others, and opening.
 */
#include "common/terrakube/api.h"

#include <poll.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/base/retry.h"
#include "common/http/download.h"
#include "common/terrakube/token.h"

enum {
    LIFE_S = 600,       /* of a token for JSON:API: clocks may differ by minutes */
    SHORT_LIFE_S = 60,  /* of one for context and uploaded configurations, as the executor's */
    TIMEOUT_MS = 30000, /* of one request */
    STEPS_TRIES = 5,    /* the steps of a new job may not be stored yet */
    STEPS_PAUSE_MS = 200
};

static const char json_api[] = "application/vnd.api+json", json[] = "application/json";

struct df_terrakube_api {
    const struct df_terrakube_settings *settings; /* borrowed, as is the next */
    const struct df_terrakube_payload *payload;
    int64_t retry_ms;
    const volatile bool *stop;
    struct df_http *http;
    const struct df_wait_listener *listener; /* borrowed; or NULL */
    bool is_admitted;                        /* the API took the token and knew the job */
};

/* ---- one request, and its repetition ---- */

struct call {
    const char *what; /* "read the job of Terrakube" */
    const char *method;
    char *url; /* taken; NULL: no memory */
    const char *content_type;
    const cJSON *body; /* or NULL */
    int64_t life_s;    /* of the token */
    bool by_json_api;  /* a route that every version has */
};

static int make_token(const struct df_terrakube_api *a, int64_t life_s, struct df_buf *out,
                      struct df_err *err)
{
    *out = DF_BUF_INIT(DF_LIMIT_TOKEN);
    return df_terrakube_token_make(a->settings->internal_secret, NULL, df_real_us(), life_s, out,
                                   err);
}

static int add_token(struct df_terrakube_api *a, int64_t life_s, struct df_err *err)
{
    struct df_buf token;
    int result = make_token(a, life_s, &token, err);
    if (result == 0)
        result = df_http_set_bearer(a->http, df_buf_str(&token), err);
    df_buf_wipe(&token);
    return result;
}

/* May the API answer otherwise in a moment? 423 is Elide's word for a transaction that the database
 * did not take. A 404 of the API itself says why; one without is of a gateway whose servers are
 * being replaced. Whoever was admitted before is not refused for good. */
static bool is_for_now(const struct df_terrakube_api *a, const struct call *c, int status,
                       const cJSON *answer)
{
    if (status >= 500 || status == 423)
        return true;
    if (!c->by_json_api)
        return false;
    if (status == 404)
        return !df_json_at(answer, "errors");
    return a->is_admitted && (status == 401 || status == 403 || status == 409);
}

/* The API says why in {"errors": [{"detail": ...}]}. */
static int fail_answer(const struct df_terrakube_api *a, const struct call *c,
                       const struct df_http_response *res, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    struct df_err why = {0};
    (void)!df_http_check(res, c->what, &why);
    (void)!df_json_parse(df_buf_str(&res->body), res->body.len, &answer, NULL);
    if (is_for_now(a, c, res->status, answer))
        why.cls = DF_ERR_RETRY;
    if (res->retry_after_s > 0)
        why.retry_after_s = res->retry_after_s;
    (void)df_err_pass(err, &why);
    const cJSON *first = cJSON_GetArrayItem(df_json_at(answer, "errors"), 0);
    const char *detail = df_json_str(first, "detail");
    size_t n = err ? strlen(err->message) : 0;
    if (err && detail && !df_has_control(detail))
        (void)snprintf(err->message + n, sizeof(err->message) - n, ": %s", detail);
    return -1;
}

static int send_once(struct df_terrakube_api *a, const struct call *c, const char *body,
                     struct df_http_response *ret, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_http_request req = DF_HTTP_REQUEST(c->method, c->url);
    req.content_type = c->content_type;
    req.body = body;
    req.body_len = body ? strlen(body) : 0;
    req.timeout_ms = TIMEOUT_MS;
    req.stop = a->stop;
    if (add_token(a, c->life_s, err) < 0)
        return -1;
    if (df_http_send(a->http, &req, &res, err) < 0)
        return df_err_wrap(err, "%s", c->what);
    /* It is none of the redirects that an API makes: some gateway's page to log in. */
    if (res.status >= 300 && res.status < 400)
        return df_fail(err, DF_ERR_USER,
                       "%s: %s is redirected (HTTP %d): AzBuilderApiUrl and TerrakubeApiUrl must "
                       "lead to the API itself",
                       c->what, c->url, res.status);
    if (res.status >= 400)
        return fail_answer(a, c, &res, err);
    a->is_admitted = a->is_admitted || c->by_json_api;
    *ret = res;
    res = (struct df_http_response){0};
    return 0;
}

/* A 401 may be a token that expired on its way: it is repeated once. */
static int send_text(struct df_terrakube_api *a, const struct call *c, const char *body,
                     struct df_http_response *ret, struct df_err *err)
{
    struct df_retry retry = df_retry_begin(a->retry_ms, a->stop);
    struct df_err why = {0};
    bool refused = false, again = false;
    retry.listener = a->listener;
    retry.what = "Terrakube's API";
    do {
        if (send_once(a, c, body, ret, &why) == 0) {
            df_retry_succeeded(&retry);
            return 0;
        }
        again = why.cls == DF_ERR_DENIED && !refused; /* of one that was never admitted */
        refused = refused || again;
    } while (again || df_retry_again(&retry, &why));
    return df_err_pass(err, &why);
}

static int send_call(struct df_terrakube_api *a, const struct call *c, struct df_http_response *ret,
                     struct df_err *err)
{
    DF_FREE char *url = c->url;
    char *body = c->body ? df_json_print(c->body) : NULL;
    if (!url || (c->body && !body)) {
        free(body);
        return df_fail_oom(err);
    }
    int result = send_text(a, c, body, ret, err);
    df_str_wipe(&body); /* log and context may have secrets */
    return result;
}

static int send_plain(struct df_terrakube_api *a, const struct call *c, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return send_call(a, c, &res, err);
}

static int read_answer(const struct call *c, const struct df_http_response *res, cJSON **ret,
                       struct df_err *err)
{
    return df_json_parse(df_buf_str(&res->body), res->body.len, ret, err) < 0
               ? df_err_wrap(err, "%s: the answer of the API", c->what)
               : 0;
}

static int read_call(struct df_terrakube_api *a, const struct call *c, cJSON **ret,
                     struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return send_call(a, c, &res, err) < 0 ? -1 : read_answer(c, &res, ret, err);
}

/* The length without a slash at the end. */
static int base_length(const char *url)
{
    size_t n = strlen(url);
    return (int)(n && url[n - 1] == '/' ? n - 1 : n);
}

/* ---- JSON:API ---- */

static char *job_url(const struct df_terrakube_api *a, const char *more, const char *id)
{
    const char *base = a->settings->api_url;
    const struct df_terrakube_payload *p = a->payload;
    return df_strf("%.*s/api/v1/organization/%s/job/%s%s%s", base_length(base), base,
                   p->organization, p->job, more, id);
}

static char *workspace_url(const struct df_terrakube_api *a, const char *more)
{
    const char *base = a->settings->api_url;
    const struct df_terrakube_payload *p = a->payload;
    return df_strf("%.*s/api/v1/organization/%s/workspace/%s%s", base_length(base), base,
                   p->organization, p->workspace, more);
}

/* The API takes a null for a value to be stored. */
static int add_without_nulls(cJSON *object, const cJSON *attributes, struct df_err *err)
{
    cJSON *to = df_json_object_at(object, "attributes");
    if (!to)
        return df_fail_oom(err);
    for (const cJSON *j = attributes->child; j; j = j->next)
        if (!cJSON_IsNull(j) && df_json_add(to, j->string, cJSON_Duplicate(j, true), err) < 0)
            return -1;
    return 0;
}

/* {"data": {"type", "id", "attributes"}}; id NULL: a new one. */
static int make_document(const char *type, const char *id, const cJSON *attributes, cJSON **ret,
                         struct df_err *err)
{
    DF_JSON cJSON *document = cJSON_CreateObject();
    cJSON *data = df_json_object_at(document, "data");
    if (df_json_put(data, err, DF_STR("type", type), DF_STR("id", id)) < 0 ||
        add_without_nulls(data, attributes, err) < 0)
        return -1;
    *ret = DF_TAKE(document);
    return 0;
}

static const struct {
    const char *name;
    enum df_terrakube_status status;
} statuses[] = {
    {"pending", DF_TERRAKUBE_PENDING},
    {"waitingApproval", DF_TERRAKUBE_WAITING_APPROVAL},
    {"approved", DF_TERRAKUBE_APPROVED},
    {"queue", DF_TERRAKUBE_QUEUE},
    {"running", DF_TERRAKUBE_RUNNING},
    {"completed", DF_TERRAKUBE_COMPLETED},
    {"noChanges", DF_TERRAKUBE_NO_CHANGES},
    {"notExecuted", DF_TERRAKUBE_NOT_EXECUTED},
    {"rejected", DF_TERRAKUBE_REJECTED_STATUS},
    {"cancelled", DF_TERRAKUBE_CANCELLED},
    {"failed", DF_TERRAKUBE_FAILED},
};

static enum df_terrakube_status status_of(const cJSON *resource)
{
    const char *s = df_json_str(resource, "attributes.status");
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++)
        if (df_streq(statuses[i].name, s))
            return statuses[i].status;
    return DF_TERRAKUBE_UNKNOWN;
}

void df_terrakube_job_free(struct df_terrakube_job *j)
{
    free(j->plan);
    free(j->override_source);
    free(j->output);
    *j = (struct df_terrakube_job){0};
}

static int read_job(const cJSON *answer, const char *step, struct df_terrakube_job *ret,
                    struct df_err *err)
{
    const cJSON *data = df_json_at(answer, "data"), *included = df_json_at(answer, "included");
    struct df_terrakube_job j = {.status = status_of(data)};
    j.steps = cJSON_GetArraySize(df_json_at(data, "relationships.step.data"));
    for (const cJSON *i = included ? included->child : NULL; i; i = i->next)
        if (df_streq(df_json_str(i, "type"), "step") && df_streq(df_json_str(i, "id"), step))
            j.step_status = status_of(i);
    if (df_str_set(&j.plan, df_json_str(data, "attributes.terraformPlan"), err) < 0 ||
        df_str_set(&j.override_source, df_json_str(data, "attributes.overrideSource"), err) < 0 ||
        df_str_set(&j.output, df_json_str(data, "attributes.output"), err) < 0) {
        df_terrakube_job_free(&j);
        return -1;
    }
    *ret = j;
    return 0;
}

static int get_job(struct df_terrakube_api *a, struct df_terrakube_job *ret, struct df_err *err)
{
    const struct call c = {.what = "read the job of Terrakube",
                           .method = "GET",
                           .url = job_url(a, "?include=step", ""),
                           .life_s = LIFE_S,
                           .by_json_api = true};
    DF_JSON cJSON *answer = NULL;
    if (read_call(a, &c, &answer, err) < 0)
        return -1;
    return read_job(answer, a->payload->step, ret, err);
}

int df_terrakube_api_job(struct df_terrakube_api *a, struct df_terrakube_job *ret,
                         struct df_err *err)
{
    for (int i = 1;; i++) {
        if (get_job(a, ret, err) < 0)
            return -1;
        if (ret->steps || i == STEPS_TRIES || df_stopped(a->stop))
            return 0;
        df_terrakube_job_free(ret);
        (void)poll(NULL, 0, STEPS_PAUSE_MS);
    }
}

int df_terrakube_api_patch_job(struct df_terrakube_api *a, const cJSON *attributes,
                               struct df_err *err)
{
    DF_JSON cJSON *document = NULL;
    if (make_document("job", a->payload->job, attributes, &document, err) < 0)
        return -1;
    const struct call c = {"report the job to Terrakube",
                           "PATCH",
                           job_url(a, "", ""),
                           json_api,
                           document,
                           LIFE_S,
                           true};
    return send_plain(a, &c, err);
}

int df_terrakube_api_patch_step(struct df_terrakube_api *a, const char *status, struct df_err *err)
{
    const char *step = a->payload->step;
    DF_FREE char *output = df_terrakube_output_url(a->settings, a->payload);
    DF_JSON cJSON *attributes = cJSON_CreateObject(), *document = NULL;
    if (df_json_put(attributes, err, DF_STR_ALLOC("output", output), DF_STR("status", status)) <
            0 ||
        make_document("step", step, attributes, &document, err) < 0)
        return -1;
    const struct call c = {"report the step to Terrakube",
                           "PATCH",
                           job_url(a, "/step/", step),
                           json_api,
                           document,
                           LIFE_S,
                           true};
    return send_plain(a, &c, err);
}

int df_terrakube_api_add_history(struct df_terrakube_api *a, const char *uuid, struct df_err *err)
{
    const struct df_terrakube_payload *p = a->payload;
    const char *base = a->settings->public_url;
    DF_FREE char *output = df_strf("%.*s/tfstate/v1/organization/%s/workspace/%s/state/%s.json",
                                   base_length(base), base, p->organization, p->workspace, uuid);
    DF_JSON cJSON *attributes = cJSON_CreateObject(), *document = NULL;
    /* The last three are the same for every state of the executor, too. */
    if (df_json_put(attributes, err, DF_STR_ALLOC("output", output), DF_STR("jobReference", p->job),
                    DF_NUM("serial", 1), DF_STR("md5", "0"), DF_STR("lineage", "0")) < 0 ||
        make_document("history", NULL, attributes, &document, err) < 0)
        return -1;
    const struct call c = {"add the state to Terrakube's history",
                           "POST",
                           workspace_url(a, "/history"),
                           json_api,
                           document,
                           LIFE_S,
                           true};
    return send_plain(a, &c, err);
}

int df_terrakube_api_has_history(struct df_terrakube_api *a, const char *uuid, bool *ret,
                                 struct df_err *err)
{
    const struct call c = {.what = "read the history of Terrakube's workspace",
                           .method = "GET",
                           .url = workspace_url(a, "/history"),
                           .life_s = LIFE_S,
                           .by_json_api = true};
    DF_FREE char *file = df_strf("/%s.json", uuid);
    DF_JSON cJSON *answer = NULL;
    const cJSON *entry;
    if (df_check_alloc(file, err) < 0 || read_call(a, &c, &answer, err) < 0)
        return -1;
    *ret = false;
    cJSON_ArrayForEach (entry, df_json_at(answer, "data")) {
        const char *output = df_json_str(entry, "attributes.output");
        *ret = *ret || (output && df_ends_with(output, file));
    }
    return 0;
}

int df_terrakube_api_folder(struct df_terrakube_api *a, char **ret, struct df_err *err)
{
    const struct call c = {.what = "read the workspace of Terrakube",
                           .method = "GET",
                           .url = workspace_url(a, ""),
                           .life_s = LIFE_S,
                           .by_json_api = true};
    DF_JSON cJSON *answer = NULL;
    if (read_call(a, &c, &answer, err) < 0)
        return -1;
    const char *folder = df_json_str(answer, "data.attributes.folder");
    char *first = folder ? strndup(folder, strcspn(folder, ",")) : strdup("");
    if (!first)
        return df_fail_oom(err);
    *ret = first;
    return 0;
}

/* ---- context, log, files ---- */

/* Where the API is for pods: its public name may lead nowhere from in there. */
static char *context_url(const struct df_terrakube_api *a)
{
    const char *base = a->settings->api_url;
    return df_strf("%.*s/context/v1/%s", base_length(base), base, a->payload->job);
}

int df_terrakube_api_context(struct df_terrakube_api *a, cJSON **ret, struct df_err *err)
{
    const struct call c = {.what = "read the context of the job of Terrakube",
                           .method = "GET",
                           .url = context_url(a),
                           .life_s = SHORT_LIFE_S};
    return read_call(a, &c, ret, err);
}

int df_terrakube_api_put_context(struct df_terrakube_api *a, const cJSON *context,
                                 struct df_err *err)
{
    const struct call c = {"write the context of the job of Terrakube",
                           "POST",
                           context_url(a),
                           json,
                           context,
                           SHORT_LIFE_S,
                           false};
    return send_plain(a, &c, err);
}

int df_terrakube_api_log_setup(struct df_terrakube_api *a, struct df_err *err)
{
    const char *base = a->settings->api_url;
    const struct call c = {.what = "prepare the log of the job of Terrakube",
                           .method = "POST",
                           .url = df_strf("%.*s/logs/%s/setup-consumer-groups", base_length(base),
                                          base, a->payload->job),
                           .life_s = LIFE_S};
    return send_plain(a, &c, err);
}

int df_terrakube_api_log(struct df_terrakube_api *a, const cJSON *lines, struct df_err *err)
{
    const char *base = a->settings->api_url;
    DF_JSON cJSON *body = cJSON_CreateObject();
    /* A reference: the lines stay the caller's. */
    if (!body || !cJSON_AddItemReferenceToObject(body, "data", (cJSON *)(uintptr_t)lines))
        return df_fail_oom(err);
    const struct call c = {"send the log to Terrakube",
                           "POST",
                           df_strf("%.*s/logs", base_length(base), base),
                           json_api,
                           body,
                           LIFE_S,
                           false};
    return send_plain(a, &c, err);
}

#define UPLOADS "/remote/tfe/v2/configuration-versions/"

/* What is behind host and port of a URL; "" if there is no path. */
static const char *path_of(const char *url)
{
    const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
    const char *path = host + strcspn(host, "/?#\\");
    return *path == '/' ? path : "";
}

/* Whatever a server or a proxy might read otherwise than we do is no upload: dots that lead
 * upwards, encoded characters, backslashes, a query. */
static bool is_upload(const char *path)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    return df_starts_with(path, UPLOADS) && path[strlen(UPLOADS)] && !path[strspn(path, safe)] &&
           !strstr(path, "..") && !strstr(path, "/.") && !strstr(path, "//");
}

static bool is_upload_at(const char *base, const char *url)
{
    const char *at = path_of(base), *path = path_of(url);
    size_t n = (size_t)base_length(at);
    return df_url_same_origin(base, url) && strncmp(path, at, n) == 0 && is_upload(path + n);
}

int df_terrakube_api_upload(const struct df_terrakube_settings *s, const char *url, char **ret,
                            struct df_err *err)
{
    const char *path = path_of(url);
    *ret = NULL;
    if (is_upload_at(s->api_url, url))
        *ret = strdup(url);
    else if (is_upload_at(s->public_url, url))
        path += base_length(path_of(s->public_url));
    else if (!is_upload(path))
        return 0;
    if (!*ret)
        *ret = df_strf("%.*s%s", base_length(s->api_url), s->api_url, path);
    return df_check_alloc(*ret, err);
}

/* The token opens the whole instance: no URL that somebody wrote into a job may get it, and at the
 * API itself no other path, which may lead elsewhere. */
static int check_place(const struct df_terrakube_settings *s, const char *url, struct df_err *err)
{
    if (is_upload_at(s->api_url, url) || is_upload_at(s->public_url, url))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "ForeignHost",
                          "%s is no upload of Terrakube's API: the token is sent to " UPLOADS
                          " of AzBuilderApiUrl (%s) and TerrakubeApiUrl (%s) only",
                          url, s->api_url, s->public_url);
}

/* It may be answered from elsewhere, where the token is not sent. */
static int download_once(struct df_terrakube_api *a, const struct df_download *d, bool with_token,
                         struct df_err *err)
{
    DF_HTTP struct df_http *http = NULL;
    struct df_buf token = DF_BUF_INIT(0);
    int result = with_token ? make_token(a, SHORT_LIFE_S, &token, err) : 0;
    const struct df_http_options o = {
        .ca_pem = a->settings->ca_pem, .bearer = token.data, .follow_redirects = true};
    if (result == 0)
        result = df_http_new(&o, &http, err);
    df_buf_wipe(&token);
    return result < 0 ? -1 : df_download(http, d, NULL, err);
}

int df_terrakube_api_download(struct df_terrakube_api *a, const char *url, bool with_token,
                              size_t max, int fd, struct df_err *err)
{
    const struct df_download d = {url, fd, (int64_t)max, a->stop};
    struct df_retry retry = df_retry_begin(a->retry_ms, a->stop);
    struct df_err why = {0};
    if (with_token && check_place(a->settings, url, err) < 0)
        return -1;
    do {
        if (download_once(a, &d, with_token, &why) == 0)
            return 0;
        if (why.cls == DF_ERR_SYSTEM) /* a 500: as with the other calls */
            why.cls = DF_ERR_RETRY;
    } while (df_retry_again(&retry, &why));
    return df_err_pass(err, &why);
}

/* ---- opening ---- */

char *df_terrakube_output_url(const struct df_terrakube_settings *s,
                              const struct df_terrakube_payload *p)
{
    return df_strf("%.*s/tfoutput/v1/organization/%s/job/%s/step/%s", base_length(s->public_url),
                   s->public_url, p->organization, p->job, p->step);
}

int df_terrakube_api_new(const struct df_terrakube_settings *s,
                         const struct df_terrakube_payload *p, int64_t retry_ms,
                         const volatile bool *stop, struct df_terrakube_api **ret,
                         struct df_err *err)
{
    const struct df_http_options o = {.ca_pem = s->ca_pem};
    struct df_terrakube_api *a = calloc(1, sizeof(*a));
    if (!a)
        return df_fail_oom(err);
    *a = (struct df_terrakube_api){.settings = s, .payload = p, .retry_ms = retry_ms, .stop = stop};
    if (df_http_new(&o, &a->http, err) < 0) {
        df_terrakube_api_free(a);
        return -1;
    }
    *ret = a;
    return 0;
}

void df_terrakube_api_listen(struct df_terrakube_api *a, const struct df_wait_listener *listener)
{
    a->listener = listener;
}

void df_terrakube_api_free(struct df_terrakube_api *a)
{
    if (!a)
        return;
    df_http_free(a->http);
    free(a);
}
