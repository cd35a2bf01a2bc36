/* Terrakube's API: what is sent, held against the recorded exchanges of the executor 2.28.0, and
 * what is done about answers. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/crypto/jwt.h"
#include "common/http/http.h"
#include "common/terrakube/api.h"
#include "tests/unit/answering_server.h"
#include "tests/unit/json_words.h"

#define RECORDED "tests/fixtures/terrakube/"
#define ORGANIZATION "527930fd-b7d4-417f-b046-a35f3b5b1b7c"
#define WORKSPACE "ea627267-8bcf-4c6c-b9b1-9c1d5422deb3"
#define PLAN_STEP "46a547e6-8e25-4b0b-b680-4994649bd0c0"
#define APPLY_STEP "2fffe953-0e53-46a1-b8ef-c2c3fed7935b"
#define JOB "/api/v1/organization/" ORGANIZATION "/job/1"

struct world {
    struct answering_server server;
    struct df_terrakube_settings settings;
    struct df_terrakube_payload payload;
    struct df_terrakube_api *api;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    answering_open(&w->server);
    w->settings.api_url = df_strf("%s/", w->server.url);
    w->settings.public_url = strdup("http://10.89.0.1:8081");
    w->settings.internal_secret = strdup("dGVzdC1vbmx5LXRlc3Qtb25seS10ZXN0LW9ubHktMTI=");
    w->payload = (struct df_terrakube_payload){
        .organization = ORGANIZATION, .workspace = WORKSPACE, .job = "1", .step = PLAN_STEP};
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    df_terrakube_api_free(w->api);
    answering_close(&w->server);
    free(w->settings.api_url);
    free(w->settings.public_url);
    free(w->settings.internal_secret);
    free(w);
    return 0;
}

/* A client that repeats for so long. */
static void begin(struct world *w, int64_t retry_ms, const volatile bool *stop)
{
    struct df_err err = {0};
    df_terrakube_api_free(w->api);
    assert_int_equal(df_terrakube_api_new(&w->settings, &w->payload, retry_ms, stop, &w->api, &err),
                     0);
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct df_err err_ = {0};                                                                  \
        struct df_err *err = &err_;                                                                \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, err_.message);                                               \
    } while (0)

/* ---- what is sent ---- */

/* The recorded exchange with this method, path, and status in its body; the caller deletes. */
static cJSON *recorded(const char *file, const char *method, const char *path, const char *status)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_FREE char *name = df_fs_join(RECORDED, file);
    cJSON *found = NULL;
    MUST(df_fs_read(name, &text, err));
    char *rest = text.data;
    for (char *line = strsep(&rest, "\n"); line && *line && !found; line = strsep(&rest, "\n")) {
        DF_JSON cJSON *exchange = NULL, *body = NULL;
        MUST(df_json_parse(line, strlen(line), &exchange, err));
        const char *request = df_json_str(exchange, "request_body");
        if (!df_streq(df_json_str(exchange, "method"), method) ||
            !df_streq(df_json_str(exchange, "path"), path) ||
            df_json_int(exchange, "status", 0) >= 400)
            continue;
        if (request && *request)
            MUST(df_json_parse(request, strlen(request), &body, err));
        if (!status || df_streq(df_json_str(body, "data.attributes.status"), status))
            found = DF_TAKE(exchange);
    }
    if (!found)
        fail_msg("%s has no %s %s %s", file, method, path, status ? status : "");
    return found;
}

static const char *header(const cJSON *exchange, const char *name)
{
    const cJSON *list = df_json_at(exchange, "request_headers");
    for (const cJSON *j = list->child; j; j = j->next)
        if (df_streq(j->child->valuestring, name))
            return j->child->next->valuestring;
    return "";
}

/* The same document, but for attributes and relationships that say nothing new. */
static void must_say_no_more(const char *sent, const char *there)
{
    DF_JSON cJSON *ours = NULL, *theirs = NULL;
    MUST(df_json_parse(sent, strlen(sent), &ours, err));
    MUST(df_json_parse(there, strlen(there), &theirs, err));
    assert_string_equal(df_json_str(ours, "data.type"), df_json_str(theirs, "data.type"));
    if (df_json_str(theirs, "data.id"))
        assert_string_equal(df_json_str(ours, "data.id"), df_json_str(theirs, "data.id"));
    else
        assert_null(df_json_at(ours, "data.id"));
    const cJSON *attributes = df_json_at(ours, "data.attributes");
    assert_non_null(attributes->child);
    for (const cJSON *j = attributes->child; j; j = j->next) {
        const cJSON *same =
            cJSON_GetObjectItemCaseSensitive(df_json_at(theirs, "data.attributes"), j->string);
        if (!same || !df_json_equal(j, same))
            fail_msg("%s of %s is not as recorded: %s", j->string, sent, there);
    }
}

static void must_be_as_recorded(struct world *w, const char *file, const char *status)
{
    const struct asked *a = &w->server.asked[w->server.n_asked - 1];
    DF_JSON cJSON *there = recorded(file, a->method, a->url, status);
    assert_string_equal(a->type, header(there, "Content-Type"));
    if (*a->body)
        must_say_no_more(a->body, df_json_str(there, "request_body"));
    else
        assert_string_equal(df_json_str(there, "request_body"), "");
}

static void requests_of_a_plan_are_those_of_the_recorded_executor(void **state)
{
    struct world *w = *state;
    struct df_terrakube_job job = {0};
    DF_JSON cJSON *answer = recorded("http-plan.jsonl", "GET", JOB "?include=step", NULL);
    DF_JSON cJSON *running = json("{'status': 'running', 'overrideSource': null, 'commitId': "
                                  "'13aaf574433c256ca5833728b120c5393f7039c4'}");
    DF_JSON cJSON *over =
        json("{'status': 'pending', 'output': '', 'planChanges': true, "
             "'terraformPlan': '/home/cnb/.terraform-spring-boot/local/state/"
             "" ORGANIZATION "/" WORKSPACE "/1/" PLAN_STEP "/terraformLibrary.tfPlan'}");
    begin(w, 0, NULL);
    will_answer(&w->server, 200, df_json_str(answer, "response_body"));
    will_answer(&w->server, 204, "");
    MUST(df_terrakube_api_job(w->api, &job, err));
    must_be_as_recorded(w, "http-plan.jsonl", NULL);
    assert_int_equal(job.status, DF_TERRAKUBE_PENDING);
    assert_int_equal(job.step_status, DF_TERRAKUBE_PENDING);
    assert_int_equal(job.steps, 2);
    assert_true(!job.plan && !job.override_source && !job.output);
    MUST(df_terrakube_api_patch_job(w->api, running, err));
    must_be_as_recorded(w, "http-plan.jsonl", "running");
    assert_null(strstr(w->server.asked[1].body, "null"));
    MUST(df_terrakube_api_patch_step(w->api, "running", err));
    must_be_as_recorded(w, "http-plan.jsonl", "running");
    MUST(df_terrakube_api_patch_step(w->api, "completed", err));
    must_be_as_recorded(w, "http-plan.jsonl", "completed");
    MUST(df_terrakube_api_patch_job(w->api, over, err));
    must_be_as_recorded(w, "http-plan.jsonl", "pending");
    df_terrakube_job_free(&job);
}

static void the_history_of_an_apply_is_that_of_the_recorded_executor(void **state)
{
    struct world *w = *state;
    w->payload.step = APPLY_STEP;
    begin(w, 0, NULL);
    will_answer(&w->server, 201, "{}");
    MUST(df_terrakube_api_add_history(w->api, "8d1ce93f-e0ea-45cb-b436-f35c6cbfac1f", err));
    must_be_as_recorded(w, "http-apply.jsonl", NULL);
    DF_JSON cJSON *body = NULL;
    MUST(df_json_parse(w->server.asked[0].body, strlen(w->server.asked[0].body), &body, err));
    assert_int_equal(cJSON_GetArraySize(df_json_at(body, "data.attributes")), 5);
}

static void the_job_says_where_its_plan_is(void **state)
{
    struct world *w = *state;
    struct df_terrakube_job job = {0};
    begin(w, 0, NULL);
    will_answer(&w->server, 200,
                "{\"data\": {\"attributes\": {\"status\": \"cancelled\", \"terraformPlan\": \"/p\","
                " \"overrideSource\": \"https://x/y\", \"output\": \"o\"}, \"relationships\": "
                "{\"step\": {\"data\": [{\"type\": \"step\", \"id\": \"a\"}]}}}, \"included\": "
                "[{\"type\": \"step\", \"id\": \"a\", \"attributes\": {\"status\": \"failed\"}}]}");
    MUST(df_terrakube_api_job(w->api, &job, err));
    assert_int_equal(job.status, DF_TERRAKUBE_CANCELLED);
    assert_int_equal(job.step_status, DF_TERRAKUBE_UNKNOWN);
    assert_int_equal(job.steps, 1);
    assert_string_equal(job.plan, "/p");
    assert_string_equal(job.override_source, "https://x/y");
    assert_string_equal(job.output, "o");
    df_terrakube_job_free(&job);
}

static void each_request_has_a_token_of_the_instance(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *context = json("{'a': 1}"), *claims = NULL;
    begin(w, 0, NULL);
    will_answer(&w->server, 204, "");
    MUST(df_terrakube_api_put_context(w->api, context, err));
    assert_true(df_starts_with(w->server.asked[0].token, "Bearer "));
    MUST(df_jwt_peek(w->server.asked[0].token + 7, &claims, err));
    assert_string_equal(df_json_str(claims, "iss"), "TerrakubeInternal");
    assert_string_equal(df_json_str(claims, "email"), "no-reply@terrakube.io");
    assert_int_equal(df_json_int(claims, "exp", 0) - df_json_int(claims, "iat", 0), 60);
}

static void context_and_log_have_their_own_routes(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *context = NULL;
    DF_JSON cJSON *lines =
        json("[{'jobId': 1, 'stepId': 's', 'lineNumber': 1, 'output': 'hello'}]");
    begin(w, 0, NULL);
    will_answer(&w->server, 200, "{\"terrakubeUI\": {}}");
    MUST(df_terrakube_api_context(w->api, &context, err));
    assert_json(context, "{'terrakubeUI': {}}", "context");
    MUST(df_terrakube_api_put_context(w->api, context, err));
    MUST(df_terrakube_api_log_setup(w->api, err));
    MUST(df_terrakube_api_log(w->api, lines, err));
    static const struct {
        const char *method, *url, *type;
    } expected[] = {{"GET", "/context/v1/1", ""},
                    {"POST", "/context/v1/1", "application/json"},
                    {"POST", "/logs/1/setup-consumer-groups", ""},
                    {"POST", "/logs", "application/vnd.api+json"}};
    assert_int_equal(w->server.n_asked, DF_ARRAY_SIZE(expected));
    for (size_t i = 0; i < DF_ARRAY_SIZE(expected); i++) {
        assert_string_equal(w->server.asked[i].method, expected[i].method);
        assert_string_equal(w->server.asked[i].url, expected[i].url);
        assert_string_equal(w->server.asked[i].type, expected[i].type);
    }
    DF_JSON cJSON *sent = NULL;
    MUST(df_json_parse(w->server.asked[3].body, strlen(w->server.asked[3].body), &sent, err));
    assert_json(sent, "{'data': [{'jobId': 1, 'stepId': 's', 'lineNumber': 1, 'output': 'hello'}]}",
                "log");
    assert_int_equal(cJSON_GetArraySize(lines), 1);
}

static void the_folder_is_the_one_that_the_api_has(void **state)
{
    struct world *w = *state;
    DF_FREE char *folder = NULL, *none = NULL;
    begin(w, 0, NULL);
    will_answer(&w->server, 200, "{\"data\": {\"attributes\": {\"folder\": \"/stack,/other\"}}}");
    will_answer(&w->server, 200, "{\"data\": {\"attributes\": {\"folder\": null}}}");
    MUST(df_terrakube_api_folder(w->api, &folder, err));
    assert_string_equal(folder, "/stack");
    assert_string_equal(w->server.asked[0].url,
                        "/api/v1/organization/" ORGANIZATION "/workspace/" WORKSPACE);
    MUST(df_terrakube_api_folder(w->api, &none, err));
    assert_string_equal(none, "");
}

/* ---- what is done about answers ---- */

static void what_may_pass_is_repeated(void **state)
{
    struct world *w = *state;
    begin(w, 60000, NULL);
    will_answer(&w->server, 500, "");
    will_answer(&w->server, 0, "");
    will_answer(&w->server, 204, "");
    MUST(df_terrakube_api_patch_step(w->api, "running", err));
    assert_int_equal(w->server.n_asked, 3);
    assert_string_equal(w->server.asked[0].body, w->server.asked[2].body);
}

static void steps_that_are_not_stored_yet_are_waited_for(void **state)
{
    static const char none[] = "{\"data\": {\"attributes\": {\"status\": \"queue\"}}}";
    struct world *w = *state;
    struct df_terrakube_job job = {0};
    DF_JSON cJSON *answer = recorded("http-plan.jsonl", "GET", JOB "?include=step", NULL);
    begin(w, 0, NULL);
    will_answer(&w->server, 200, none);
    will_answer(&w->server, 200, df_json_str(answer, "response_body"));
    MUST(df_terrakube_api_job(w->api, &job, err));
    assert_int_equal(job.steps, 2);
    assert_int_equal(w->server.n_asked, 2);
    df_terrakube_job_free(&job);
}

static void a_401_is_repeated_once(void **state)
{
    struct world *w = *state;
    struct df_err why = {0};
    begin(w, 60000, NULL);
    will_answer(&w->server, 401, "");
    will_answer(&w->server, 204, "");
    MUST(df_terrakube_api_patch_step(w->api, "running", err));
    assert_int_equal(w->server.n_asked, 2);
    begin(w, 60000, NULL);
    answering_forget(&w->server);
    will_answer(&w->server, 401, "");
    assert_int_equal(df_terrakube_api_patch_step(w->api, "running", &why), -1);
    assert_int_equal(why.cls, DF_ERR_DENIED);
    assert_int_equal(w->server.n_asked, 2);
}

static void a_refusal_is_told_with_its_detail_and_not_repeated(void **state)
{
    struct world *w = *state;
    static const struct {
        unsigned status;
        enum df_err_class cls;
    } cases[] = {
        {400, DF_ERR_USER}, {404, DF_ERR_NOT_FOUND}, {409, DF_ERR_CONFLICT}, {302, DF_ERR_USER}};
    begin(w, 60000, NULL);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        answering_forget(&w->server);
        will_answer(&w->server, cases[i].status,
                    "{\"errors\": [{\"detail\": \"because of this\"}]}");
        assert_int_equal(df_terrakube_api_patch_step(w->api, "running", &err), -1);
        assert_int_equal(err.cls, cases[i].cls);
        assert_int_equal(w->server.n_asked, 1);
        assert_non_null(
            strstr(err.message, cases[i].status == 302 ? "AzBuilderApiUrl" : ": because of this"));
    }
}

#define REASON "{\"errors\": [{\"detail\": \"The request could not be completed.\"}]}"

static void what_the_api_cannot_do_now_is_asked_again(void **state)
{
    struct world *w = *state;
    static const struct {
        unsigned status;
        const char *body;
    } cases[] = {{423, REASON}, {404, ""}, {404, "<h1>default backend</h1>"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        begin(w, 60000, NULL);
        answering_forget(&w->server);
        will_answer(&w->server, cases[i].status, cases[i].body);
        will_answer(&w->server, cases[i].status, cases[i].body);
        will_answer(&w->server, 204, "");
        MUST(df_terrakube_api_patch_step(w->api, "completed", err));
        assert_int_equal(w->server.n_asked, 3);
    }
}

static void whoever_was_admitted_is_not_refused_for_good(void **state)
{
    struct world *w = *state;
    static const unsigned statuses[] = {401, 403, 409};
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++) {
        begin(w, 60000, NULL);
        answering_forget(&w->server);
        will_answer(&w->server, 204, "");
        will_answer(&w->server, statuses[i], REASON);
        will_answer(&w->server, statuses[i], REASON);
        will_answer(&w->server, 201, "{}");
        MUST(df_terrakube_api_patch_step(w->api, "running", err));
        MUST(df_terrakube_api_add_history(w->api, "8d1ce93f-e0ea-45cb-b436-f35c6cbfac1f", err));
        assert_int_equal(w->server.n_asked, 4);
    }
}

static void the_time_for_tries_has_an_end(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    begin(w, 0, NULL);
    will_answer(&w->server, 503, "");
    assert_int_equal(df_terrakube_api_patch_step(w->api, "running", &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_int_equal(w->server.n_asked, 1);
}

static void whoever_stops_does_not_wait(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    volatile bool stop = true;
    begin(w, 3600 * 1000, &stop);
    will_answer(&w->server, 503, "");
    assert_int_equal(df_terrakube_api_patch_step(w->api, "running", &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
}

/* ---- downloads ---- */

static int download(struct world *w, const char *path, bool with_token, size_t max,
                    struct df_buf *ret, struct df_err *err)
{
    DF_CLOSE int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    DF_FREE char *url = df_strf("%s%s", w->server.url, path);
    assert_true(fd >= 0);
    if (df_terrakube_api_download(w->api, url, with_token, max, fd, err) < 0)
        return -1;
    return df_fs_read_at(fd, 0, INT64_MAX, ret, err);
}

static void an_index_is_downloaded_without_the_token_and_through_a_redirect(void **state)
{
    struct world *w = *state;
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_KIB);
    begin(w, 60000, NULL);
    will_answer(&w->server, 500, "not yet");
    will_answer(&w->server, 302, "");
    will_answer(&w->server, 200, "[]");
    MUST(download(w, "/tofu/index.json", false, DF_KIB, &content, err));
    assert_string_equal(df_buf_str(&content), "[]");
    assert_int_equal(w->server.n_asked, 3);
    for (unsigned i = 0; i < w->server.n_asked; i++)
        assert_string_equal(w->server.asked[i].token, "");
}

static void a_download_has_a_limit(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_KIB);
    begin(w, 60000, NULL);
    will_answer(&w->server, 200, "[1, 2, 3]");
    assert_int_equal(download(w, "/tofu/index.json", false, 4, &content, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

#define UPLOAD "/remote/tfe/v2/configuration-versions/1/terraformContent.tar.gz"

static void the_token_is_sent_to_uploads_of_the_api_only(void **state)
{
    struct world *w = *state;
    struct df_err why = {0};
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_KIB);
    begin(w, 60000, NULL);
    will_answer(&w->server, 200, "tar");
    MUST(download(w, UPLOAD, true, DF_KIB, &content, err));
    assert_true(df_starts_with(w->server.asked[0].token, "Bearer ey"));
    DF_FREE char *elsewhere = df_strf("%s/api/v1/organization", w->server.url);
    const char *const urls[] = {"http://127.0.0.2" UPLOAD, elsewhere};
    for (size_t i = 0; i < DF_ARRAY_SIZE(urls); i++) {
        assert_int_equal(df_terrakube_api_download(w->api, urls[i], true, 10, -1, &why), -1);
        assert_int_equal(why.cls, DF_ERR_DENIED);
        assert_string_equal(why.reason, "ForeignHost");
    }
    assert_int_equal(w->server.n_asked, 1);
}

/* No URL of a job chooses the port, the scheme or the path that the token goes to. */
static void an_upload_is_asked_for_at_the_api_and_nothing_else_is_one(void **state)
{
    (void)state;
    char api[] = "http://api:8080/in", public[] = "https://Api.example";
    const struct df_terrakube_settings s = {.api_url = api, .public_url = public};
    static const char ours[] = "http://api:8080/in" UPLOAD;
    static const struct {
        const char *url, *expected; /* NULL: no upload */
    } cases[] = {
        {"http://api:8080/in" UPLOAD, ours},
        {"https://api.example" UPLOAD, ours},
        {"https://API.example:443" UPLOAD, ours},
        {"http://api.example" UPLOAD, ours}, /* not as http, and not at another port */
        {"https://api.example:8443" UPLOAD, ours},
        {"https://other.example" UPLOAD, ours},
        {"https://api.example/api/v1/organization", NULL},
        {"https://api.example/remote/tfe/v2/configuration-versions/", NULL},
        {"https://api.example/remote/tfe/v2/configuration-versions/../x", NULL},
        {"https://api.example/remote/tfe/v2/configuration-versions/a/../../x", NULL},
        {"https://api.example/remote/tfe/v2/configuration-versions/%2e%2e/x", NULL},
        {"https://api.example/remote/tfe/v2/configuration-versions/..%2fx", NULL},
        {"https://api.example/remote/tfe/v2/configuration-versions/a\\..\\x", NULL},
        {"https://api.example/remote/tfe/v2/configuration-versions//x", NULL},
        {"https://api.example/x?y=/remote/tfe/v2/configuration-versions/a", NULL},
        {"https://api.example?" UPLOAD, NULL},
        {"https://api.example/x" UPLOAD, NULL},
        {"https://api.example" UPLOAD "?x", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *at = NULL;
        MUST(df_terrakube_api_upload(&s, cases[i].url, &at, err));
        if (!df_streq(at ? at : "", cases[i].expected ? cases[i].expected : ""))
            fail_msg("%s: %s", cases[i].url, at ? at : "no upload");
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_of_a_plan_are_those_of_the_recorded_executor),
        TEST(the_history_of_an_apply_is_that_of_the_recorded_executor),
        TEST(the_job_says_where_its_plan_is),
        TEST(each_request_has_a_token_of_the_instance),
        TEST(context_and_log_have_their_own_routes),
        TEST(the_folder_is_the_one_that_the_api_has),
        TEST(what_may_pass_is_repeated),
        TEST(steps_that_are_not_stored_yet_are_waited_for),
        TEST(a_401_is_repeated_once),
        TEST(a_refusal_is_told_with_its_detail_and_not_repeated),
        TEST(what_the_api_cannot_do_now_is_asked_again),
        TEST(whoever_was_admitted_is_not_refused_for_good),
        TEST(the_time_for_tries_has_an_end),
        TEST(whoever_stops_does_not_wait),
        TEST(an_index_is_downloaded_without_the_token_and_through_a_redirect),
        TEST(a_download_has_a_limit),
        TEST(the_token_is_sent_to_uploads_of_the_api_only),
        TEST(an_upload_is_asked_for_at_the_api_and_nothing_else_is_one),
    };
    return df_http_global_init(NULL) < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
