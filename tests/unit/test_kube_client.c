#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/scratch.h"

static const struct df_kube_at a_job = {&df_kube_jobs, "build", "net-1-plan", NULL, NULL};

static cJSON *json(const char *text)
{
    cJSON *j = NULL;
    struct df_err err = {0};
    if (df_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return j;
}

/* ---- what goes out ----------------------------------------------------------------------------
 */

struct sent {
    char method[8], target[256], type[96], body[512];
    bool authorized;
};

static void write_down(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    struct sent *to = s->arg;
    *to = (struct sent){0};
    (void)snprintf(to->method, sizeof(to->method), "%s", r->method);
    (void)snprintf(to->target, sizeof(to->target), "%s", r->target);
    (void)snprintf(to->body, sizeof(to->body), "%s", r->body);
    const char *type = strstr(r->head, "\r\nContent-Type: ");
    if (type)
        (void)snprintf(to->type, sizeof(to->type), "%.*s", (int)strcspn(type + 16, "\r"),
                       type + 16);
    to->authorized = strstr(r->head, "\r\nAuthorization: Bearer t0ken\r\n") != NULL;
    kube_say(a, 200, "", "{\"kind\":\"Job\",\"metadata\":{\"name\":\"x\"}}");
}

enum verb { CREATE, DRY_RUN, GET, UPDATE, PATCH, APPLY, DELETE, BARE_DELETE };

static int call(struct df_kube *k, enum verb verb, const struct df_kube_at *at, struct df_err *err)
{
    DF_JSON cJSON *object = json("{\"metadata\":{\"name\":\"x\"}}");
    DF_JSON cJSON *answer = NULL;
    struct df_kube_delete_options o = {"u-1", "7", "Foreground", 30}, bare = DF_KUBE_DELETE_OPTIONS;
    struct df_kube_patch patch;
    switch (verb) {
    case CREATE:
        return df_kube_create(k, at, object, &answer, err);
    case DRY_RUN:
        return df_kube_dry_run(k, at, object, err);
    case GET:
        return df_kube_get(k, at, &answer, err);
    case UPDATE:
        return df_kube_update(k, at, object, &answer, err);
    case PATCH:
        patch = (struct df_kube_patch){DF_KUBE_PATCH_MERGE, object, NULL, true};
        return df_kube_patch(k, at, &patch, &answer, err);
    case APPLY:
        patch = (struct df_kube_patch){DF_KUBE_PATCH_APPLY, object, "day fly", true};
        return df_kube_patch(k, at, &patch, &answer, err);
    case DELETE:
        return df_kube_delete(k, at, &o, err);
    case BARE_DELETE:
        return df_kube_delete(k, at, &bare, err);
    }
    return -1;
}

#define JOBS "/apis/batch/v1/namespaces/build/jobs"
#define STRICT "?fieldValidation=Strict"
#define BODY "{\"metadata\":{\"name\":\"x\"}}"

static void every_verb_goes_out_as_the_api_has_it(void **state)
{
    (void)state;
    static const struct df_kube_at jobs = {&df_kube_jobs, "build", NULL, NULL, NULL};
    static const struct df_kube_at status = {&df_kube_jobs, "build", "net", "status", NULL};
    static const struct df_kube_at pod = {&df_kube_pods, "a/b", "p q", NULL, NULL};
    static const struct df_kube_resource nodes = {"", "v1", "nodes"};
    static const struct df_kube_at node = {&nodes, NULL, "node1", NULL, NULL};
    static const struct {
        enum verb verb;
        const struct df_kube_at *at;
        const char *method, *target, *type, *body;
    } cases[] = {
        {CREATE, &jobs, "POST", JOBS STRICT, "application/json", BODY},
        {CREATE, &a_job, "POST", JOBS STRICT, "application/json", BODY},
        {CREATE, &status, "POST", JOBS "/net/status" STRICT, "application/json", BODY},
        {DRY_RUN, &jobs, "POST", JOBS STRICT "&dryRun=All", "application/json", BODY},
        {GET, &a_job, "GET", JOBS "/net-1-plan", "", ""},
        {GET, &pod, "GET", "/api/v1/namespaces/a%2Fb/pods/p%20q", "", ""},
        {GET, &node, "GET", "/api/v1/nodes/node1", "", ""},
        {UPDATE, &status, "PUT", JOBS "/net/status", "application/json", BODY},
        {PATCH, &a_job, "PATCH", JOBS "/net-1-plan", "application/merge-patch+json", BODY},
        {APPLY, &a_job, "PATCH", JOBS "/net-1-plan?fieldManager=day%20fly&force=true",
         "application/apply-patch+yaml", BODY},
        {DELETE, &a_job, "DELETE", JOBS "/net-1-plan", "application/json",
         "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u-1\","
         "\"resourceVersion\":\"7\"},\"propagationPolicy\":\"Foreground\","
         "\"gracePeriodSeconds\":30}"},
        {BARE_DELETE, &a_job, "DELETE", JOBS "/net-1-plan", "application/json",
         "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"}"},
    };
    struct kube_server s;
    struct sent sent;
    kube_start(&s, write_down, &sent);
    DF_KUBE struct df_kube *k = kube_client(&s);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        if (call(k, cases[i].verb, cases[i].at, &err) < 0)
            fail_msg("%s", err.message);
        assert_string_equal(sent.method, cases[i].method);
        assert_string_equal(sent.target, cases[i].target);
        assert_string_equal(sent.type, cases[i].type);
        assert_string_equal(sent.body, cases[i].body);
        assert_true(sent.authorized);
    }
    kube_stop(&s);
    assert_int_equal(s.connections, 1);
}

static void say_the_time(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)r;
    kube_say(a, 200, s->arg, "{}");
}

static void the_servers_clock_is_read_and_its_absence_told(void **state)
{
    (void)state;
    struct kube_server s;
    int64_t at_us = 0;
    char date[] = "Date: Sat, 21 Nov 2026 08:50:01 GMT\r\n", none[] = "";
    kube_start(&s, say_the_time, date);
    DF_KUBE struct df_kube *k = kube_client(&s);
    assert_int_equal(df_kube_time(k, &at_us, NULL), 0);
    assert_int_equal(at_us, INT64_C(1795251001000000));
    s.arg = none;
    struct df_err err = {0};
    assert_int_equal(df_kube_time(k, &at_us, &err), -1);
    assert_non_null(strstr(err.message, "does not tell its time"));
    kube_stop(&s);
}

static bool as_told(void *arg)
{
    return *(const bool *)arg;
}

static void a_fenced_client_reads_but_changes_nothing(void **state)
{
    (void)state;
    bool may_write = false;
    struct kube_server s;
    struct sent sent = {.method = ""};
    kube_start(&s, write_down, &sent);
    DF_KUBE struct df_kube *k = kube_client(&s);
    df_kube_fence(k, as_told, &may_write);
    for (enum verb v = CREATE; v <= BARE_DELETE; v++) {
        struct df_err err = {0};
        assert_int_equal(call(k, v, &a_job, &err), v == GET ? 0 : -1);
        assert_true(v == GET || (err.cls == DF_ERR_RETRY && df_streq(err.reason, "NotLeader")));
    }
    assert_string_equal(sent.method, "GET");
    may_write = true;
    assert_int_equal(call(k, DELETE, &a_job, NULL), 0);
    kube_stop(&s);
}

static void a_name_never_leads_to_the_collection_or_elsewhere(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", "..", NULL};
    static const enum verb verbs[] = {GET, UPDATE, PATCH, DELETE};
    struct kube_server s;
    struct sent sent = {0};
    kube_start(&s, write_down, &sent);
    DF_KUBE struct df_kube *k = kube_client(&s);
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        for (size_t v = 0; v < DF_ARRAY_SIZE(verbs); v++) {
            struct df_kube_at at = {&df_kube_jobs, "build", names[i], NULL, NULL};
            struct df_err err = {0};
            assert_int_equal(call(k, verbs[v], &at, &err), -1);
            assert_int_equal(err.cls, DF_ERR_USER);
        }
    }
    kube_stop(&s);
    assert_int_equal(s.connections, 0);
}

/* ---- failures ---------------------------------------------------------------------------------
 */

struct said {
    int status;
    const char *headers, *body;
};

static void say(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)r;
    const struct said *said = s->arg;
    kube_say(a, said->status, said->headers, said->body);
}

#define STATUS(code, reason, message, rest)                                                        \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":" #code ",\"reason\":\"" reason           \
    "\",\"message\":\"" message "\"" rest "}"

static void what_the_server_refuses_has_class_reason_and_words(void **state)
{
    (void)state;
    static const struct {
        struct said said;
        enum df_err_class cls;
        const char *reason, *message;
        int retry_after_s;
    } cases[] = {
        {{400, "", STATUS(400, "BadRequest", "no", "")},
         DF_ERR_USER,
         "BadRequest",
         "get jobs.batch build/net-1-plan: no (HTTP 400 BadRequest)",
         0},
        {{401, "", STATUS(401, "Unauthorized", "Unauthorized", "")},
         DF_ERR_DENIED,
         "Unauthorized",
         "get jobs.batch build/net-1-plan: Unauthorized (HTTP 401 Unauthorized)",
         0},
        {{403, "", STATUS(403, "Forbidden", "jobs is forbidden", "")},
         DF_ERR_DENIED,
         "Forbidden",
         "get jobs.batch build/net-1-plan: jobs is forbidden (HTTP 403 Forbidden)",
         0},
        {{404, "", STATUS(404, "NotFound", "not found", "")},
         DF_ERR_NOT_FOUND,
         "NotFound",
         "get jobs.batch build/net-1-plan: not found (HTTP 404 NotFound)",
         0},
        {{409, "", STATUS(409, "AlreadyExists", "is there", "")},
         DF_ERR_CONFLICT,
         "AlreadyExists",
         "get jobs.batch build/net-1-plan: is there (HTTP 409 AlreadyExists)",
         0},
        {{409, "", STATUS(409, "Conflict", "was modified", "")},
         DF_ERR_CONFLICT,
         "Conflict",
         "get jobs.batch build/net-1-plan: was modified (HTTP 409 Conflict)",
         0},
        {{410, "", STATUS(410, "Gone", "too old", "")},
         DF_ERR_CONFLICT,
         "Expired",
         "get jobs.batch build/net-1-plan: too old (HTTP 410 Expired)",
         0},
        {{413, "", STATUS(413, "RequestEntityTooLarge", "too large", "")},
         DF_ERR_LIMIT,
         "RequestEntityTooLarge",
         "get jobs.batch build/net-1-plan: too large (HTTP 413 RequestEntityTooLarge)",
         0},
        {{422, "",
          STATUS(422, "Invalid", "Job is invalid: spec.a: Required value",
                 ",\"details\":{\"causes\":[{\"field\":\"spec.a\",\"message\":\"Required value\"},"
                 "{\"field\":\"spec.b\",\"message\":\"must be positive\"}]}")},
         DF_ERR_USER,
         "Invalid",
         "get jobs.batch build/net-1-plan: Job is invalid: spec.a: Required value; spec.b: must be "
         "positive (HTTP 422 Invalid)",
         0},
        {{429, "Retry-After: 7\r\n", STATUS(429, "TooManyRequests", "slow down", "")},
         DF_ERR_RETRY,
         "TooManyRequests",
         "get jobs.batch build/net-1-plan: slow down (HTTP 429 TooManyRequests)",
         7},
        {{500, "", STATUS(500, "ServerTimeout", "again", ",\"details\":{\"retryAfterSeconds\":3}")},
         DF_ERR_RETRY,
         "ServerTimeout",
         "get jobs.batch build/net-1-plan: again (HTTP 500 ServerTimeout)",
         3},
        {{500, "", STATUS(500, "InternalError", "etcd", "")},
         DF_ERR_RETRY,
         "InternalError",
         "get jobs.batch build/net-1-plan: etcd (HTTP 500 InternalError)",
         0},
        {{503, "Retry-After: 86400\r\n", STATUS(503, "ServiceUnavailable", "down", "")},
         DF_ERR_RETRY,
         "ServiceUnavailable",
         "get jobs.batch build/net-1-plan: down (HTTP 503 ServiceUnavailable)",
         300},
        {{504, "", STATUS(504, "Timeout", "slow", "")},
         DF_ERR_RETRY,
         "Timeout",
         "get jobs.batch build/net-1-plan: slow (HTTP 504 Timeout)",
         0},
        /* Nobody but the API server may say that an object does not exist. */
        {{404, "", "404 page not found"},
         DF_ERR_RETRY,
         "NotServed",
         "get jobs.batch build/net-1-plan: the server: HTTP 404",
         0},
        {{502, "", "<html>"},
         DF_ERR_RETRY,
         "",
         "get jobs.batch build/net-1-plan: the server: HTTP 502",
         0},
        {{302, "Location: https://login.example/\r\n", ""},
         DF_ERR_USER,
         "",
         "get jobs.batch build/net-1-plan: the server redirects to https://login.example/: is this "
         "the API server?",
         0},
        {{200, "", "{\"kind\":"}, DF_ERR_RETRY, "", NULL, 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct kube_server s;
        struct said said = cases[i].said;
        kube_start(&s, say, &said);
        DF_KUBE struct df_kube *k = kube_client(&s);
        struct df_err err = {0};
        assert_int_equal(call(k, GET, &a_job, &err), -1);
        assert_int_equal(err.cls, cases[i].cls);
        assert_string_equal(err.reason, cases[i].reason);
        if (cases[i].message)
            assert_string_equal(err.message, cases[i].message);
        assert_int_equal(err.retry_after_s, cases[i].retry_after_s);
        assert_null(strstr(err.message, "t0ken"));
        kube_stop(&s);
    }
}

static void what_is_wrong_with_a_secret_is_told_without_its_value(void **state)
{
    (void)state;
    struct said said = {422, "",
                        STATUS(422, "Invalid", "Secret is invalid: data[k]: hunter2",
                               ",\"details\":{\"causes\":[{\"field\":\"data[k]\",\"message\":"
                               "\"Invalid value: hunter2\"}]}")};
    struct kube_server s;
    kube_start(&s, say, &said);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_at at = {&df_kube_secrets, "build", "s", NULL, NULL};
    struct df_err err = {0};
    assert_int_equal(call(k, UPDATE, &at, &err), -1);
    assert_string_equal(err.message, "update secrets build/s: the server refused it; data[k] "
                                     "(HTTP 422 Invalid)");
    kube_stop(&s);
}

static void an_answer_over_the_cap_is_refused(void **state)
{
    (void)state;
    DF_BUF struct df_buf body = DF_BUF_INIT(64 * DF_MIB);
    char *fill = df_buf_reserve(&body, DF_LIMIT_KUBE_OBJECT + 1);
    memset(fill, ' ', DF_LIMIT_KUBE_OBJECT + 1);
    body.len = DF_LIMIT_KUBE_OBJECT + 1;
    body.data[body.len] = '\0';
    struct said said = {200, "", body.data};
    struct kube_server s;
    kube_start(&s, say, &said);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_err err = {0};
    assert_int_equal(call(k, GET, &a_job, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    kube_stop(&s);
}

static void nobody_there_is_a_passing_fault(void **state)
{
    (void)state;
    struct kube_server s;
    kube_start(&s, say, NULL);
    kube_stop(&s);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_err err = {0};
    assert_int_equal(call(k, GET, &a_job, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_true(df_starts_with(err.message, "get jobs.batch build/net-1-plan: "));
}

/* ---- credentials ------------------------------------------------------------------------------
 */

static void only_the_second(struct kube_server *s, const struct kube_request *r,
                            struct kube_reply *a)
{
    unsigned *asked = s->arg;
    ++*asked;
    if (strstr(r->head, "\r\nAuthorization: Bearer second\r\n"))
        kube_say(a, 200, "", "{}");
    else
        kube_status(a, 401, "Unauthorized", "Unauthorized");
}

static struct df_kube *client_of_file(const struct kube_server *s, const char *path)
{
    struct df_kube_config c = {.source = strdup("a test"),
                               .server = df_strf("http://127.0.0.1:%u", s->port),
                               .name_space = strdup("build"),
                               .token_file = strdup(path)};
    struct df_kube *k = NULL;
    struct df_err err = {0};
    if (df_kube_new(&c, &k, &err) < 0)
        fail_msg("%s", err.message);
    return k;
}

static void write_file(const char *path, const char *text)
{
    struct df_err err = {0};
    if (df_fs_write(path, text, strlen(text), 0600, &err) < 0)
        fail_msg("%s", err.message);
}

static void a_401_reads_the_token_once_more(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "token");
    struct kube_server s;
    unsigned asked = 0;
    kube_start(&s, only_the_second, &asked);
    write_file(path, "first\n");
    DF_KUBE struct df_kube *k = client_of_file(&s, path);
    struct df_err err = {0};
    /* Still the first: asked twice, then told. */
    assert_int_equal(call(k, GET, &a_job, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(asked, 2);
    assert_null(strstr(err.message, "first"));
    write_file(path, "  second\n");
    assert_int_equal(call(k, GET, &a_job, &err), 0);
    assert_int_equal(asked, 4);
    /* And it is kept. */
    assert_int_equal(call(k, GET, &a_job, &err), 0);
    assert_int_equal(asked, 5);
    kube_stop(&s);
}

static void a_token_that_cannot_be_read_is_not_taken_for_an_absent_object(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "no-token");
    struct kube_server s;
    unsigned asked = 0;
    kube_start(&s, only_the_second, &asked);
    DF_KUBE struct df_kube *k = client_of_file(&s, path);
    struct df_err err = {0};
    assert_int_equal(call(k, GET, &a_job, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_non_null(strstr(err.message, "credentials of a test: "));
    assert_non_null(strstr(err.message, "no-token"));
    assert_int_equal(asked, 0);
    kube_stop(&s);
}

static void the_proxy_of_the_kubeconfig_is_asked_for_every_host(void **state)
{
    (void)state;
    struct kube_server s;
    struct sent sent;
    kube_start(&s, write_down, &sent);
    struct df_kube_config c = {.source = strdup("a test"),
                               .server = strdup("http://api.invalid:8080"),
                               .name_space = strdup("build"),
                               .proxy_url = df_strf("http://127.0.0.1:%u", s.port)};
    DF_KUBE struct df_kube *k = NULL;
    struct df_err err = {0};
    assert_int_equal(df_kube_new(&c, &k, &err), 0);
    if (call(k, GET, &a_job, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(sent.target, "http://api.invalid:8080" JOBS "/net-1-plan");
    kube_stop(&s);
}

/* ---- lists ------------------------------------------------------------------------------------
 */

struct pages {
    bool forget; /* the second page is forgotten, once */
    size_t fat;  /* pages of more objects than this are too large */
    unsigned forgotten;
};

enum { OBJECTS = 7 };

/* Objects o0 to o6, by continue=<index>. */
static void tell_pages(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    struct pages *p = s->arg;
    long limit = kube_parameter(r->target, "limit"), from = kube_parameter(r->target, "continue");
    if (from > 0 && p->forget && !p->forgotten++) {
        kube_status(a, 410, "Expired", "The provided continue parameter is too old");
        return;
    }
    from = from < 0 ? 0 : from;
    long to = from + limit < OBJECTS ? from + limit : OBJECTS;
    DF_BUF struct df_buf body = DF_BUF_INIT(64 * DF_MIB);
    (void)df_buf_addf(&body, "{\"metadata\":{\"resourceVersion\":\"9\"");
    if (to < OBJECTS)
        (void)df_buf_addf(&body, ",\"continue\":\"%ld\"", to);
    (void)df_buf_adds(&body, "},\"items\":[");
    for (long i = from; i < to; i++)
        (void)df_buf_addf(&body, "%s{\"metadata\":{\"name\":\"o%ld\"}}", i > from ? "," : "", i);
    (void)df_buf_adds(&body, "]}");
    for (size_t i = 0; p->fat && (size_t)limit > p->fat && i < DF_LIMIT_HTTP_RESPONSE; i++)
        (void)df_buf_addc(&body, ' ');
    kube_say(a, 200, "", df_buf_str(&body));
}

static int note_begin(void *arg, const char *version, struct df_err *err)
{
    (void)err;
    return df_buf_addf(arg, "[%s]", version);
}

static int note_item(void *arg, const cJSON *object, struct df_err *err)
{
    (void)err;
    return df_buf_addf(arg, "%s", df_kube_name(object));
}

static void a_list_comes_in_pages_whatever_happens_between_them(void **state)
{
    (void)state;
    static const struct {
        struct pages pages;
        unsigned page;
        const char *told;
        unsigned requests;
    } cases[] = {
        {{0}, 0, "[9]o0o1o2o3o4o5o6", 1},
        {{0}, 7, "[9]o0o1o2o3o4o5o6", 1},
        {{0}, 3, "[9]o0o1o2o3o4o5o6", 3},
        {{0}, 1, "[9]o0o1o2o3o4o5o6", 7},
        {{.forget = true}, 4, "[9]o0o1o2o3[9]o0o1o2o3o4o5o6", 4},
        {{.fat = 3}, 8, "[9]o0o1o2o3o4o5o6", 6}, /* 8, 4, then 2, 2, 2, 1 */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct kube_server s;
        struct pages pages = cases[i].pages;
        kube_start(&s, tell_pages, &pages);
        DF_KUBE struct df_kube *k = kube_client(&s);
        DF_BUF struct df_buf told = DF_BUF_INIT(DF_KIB);
        struct df_kube_sink sink = {note_begin, note_item, &told};
        struct df_kube_at at = {&df_kube_jobs, "build", NULL, NULL, NULL};
        struct df_err err = {0};
        if (df_kube_list(k, &at, NULL, cases[i].page, &sink, &err) < 0)
            fail_msg("%s", err.message);
        assert_string_equal(df_buf_str(&told), cases[i].told);
        kube_stop(&s);
        assert_int_equal(s.lists, cases[i].requests);
    }
}

static int refuse_item(void *arg, const cJSON *object, struct df_err *err)
{
    (void)arg, (void)object;
    return df_fail(err, DF_ERR_LIMIT, "enough");
}

static void a_list_ends_when_its_taker_says_so(void **state)
{
    (void)state;
    struct kube_server s;
    struct pages pages = {0};
    kube_start(&s, tell_pages, &pages);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_sink sink = {NULL, refuse_item, NULL};
    struct df_kube_at at = {&df_kube_jobs, NULL, NULL, NULL, NULL};
    struct df_err err = {0};
    assert_int_equal(df_kube_list(k, &at, NULL, 2, &sink, &err), -1);
    assert_string_equal(err.message, "enough");
    assert_non_null(strstr(df_buf_str(&s.seen), "GET /apis/batch/v1/jobs?limit=2\n"));
    kube_stop(&s);
    assert_int_equal(s.lists, 1);
}

/* ---- threads ---------------------------------------------------------------------------------
 */

static void *many_calls(void *arg)
{
    for (int i = 0; i < 50; i++)
        if (call(arg, GET, &a_job, NULL) < 0)
            return arg;
    return NULL;
}

static void threads_share_a_client_and_its_connections(void **state)
{
    (void)state;
    struct said said = {200, "", "{}"};
    struct kube_server s;
    kube_start(&s, say, &said);
    DF_KUBE struct df_kube *k = kube_client(&s);
    pthread_t threads[8];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_calls, k), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        void *failed = NULL;
        (void)pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    kube_stop(&s);
    assert_true(s.connections <= DF_ARRAY_SIZE(threads));
}

/* One more call at once than connections are kept. */
static void wait_for_all(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)r;
    unsigned *waiting = s->arg;
    ++*waiting;
    (void)pthread_cond_broadcast(&s->changed);
    while (*waiting <= DF_LIMIT_KUBE_IDLE)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    kube_say(a, 200, "", "{}");
}

static void *one_call(void *arg)
{
    return call(arg, GET, &a_job, NULL) < 0 ? arg : NULL;
}

static void no_more_connections_are_kept_than_the_cap(void **state)
{
    (void)state;
    struct kube_server s;
    unsigned waiting = 0;
    kube_start(&s, wait_for_all, &waiting);
    DF_KUBE struct df_kube *k = kube_client(&s);
    pthread_t threads[DF_LIMIT_KUBE_IDLE + 1];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, one_call, k), 0);
        for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
            (void)pthread_join(threads[i], NULL);
        waiting = 0;
    }
    kube_stop(&s);
    assert_int_equal(s.connections, DF_LIMIT_KUBE_IDLE + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_goes_out_as_the_api_has_it),
        cmocka_unit_test(the_servers_clock_is_read_and_its_absence_told),
        cmocka_unit_test(a_fenced_client_reads_but_changes_nothing),
        cmocka_unit_test(a_name_never_leads_to_the_collection_or_elsewhere),
        cmocka_unit_test(what_the_server_refuses_has_class_reason_and_words),
        cmocka_unit_test(what_is_wrong_with_a_secret_is_told_without_its_value),
        cmocka_unit_test(an_answer_over_the_cap_is_refused),
        cmocka_unit_test(nobody_there_is_a_passing_fault),
        cmocka_unit_test_setup_teardown(a_401_reads_the_token_once_more, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(
            a_token_that_cannot_be_read_is_not_taken_for_an_absent_object, enter_scratch,
            leave_scratch),
        cmocka_unit_test(the_proxy_of_the_kubeconfig_is_asked_for_every_host),
        cmocka_unit_test(a_list_comes_in_pages_whatever_happens_between_them),
        cmocka_unit_test(a_list_ends_when_its_taker_says_so),
        cmocka_unit_test(threads_share_a_client_and_its_connections),
        cmocka_unit_test(no_more_connections_are_kept_than_the_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
