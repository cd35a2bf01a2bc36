/* What is asked of AWX, and what is made of its answers. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/awx_client_world.h"

static void assert_body(const struct world *w, unsigned i, const char *expected)
{
    DF_JSON cJSON *body = json(w->server.asked[i].body);
    assert_json(body, expected, "body");
    assert_string_equal(w->server.asked[i].type, "application/json");
}

/* ---- opening ---- */

/* UT-WE-902-001, -002, -005 */
static void an_address_is_a_url_of_http_without_a_user(void **state)
{
    (void)state;
    static const struct {
        const char *url, *fault;
    } rows[] = {
        {"", "baseURL"},
        {NULL, "baseURL"},
        {"awx.example.com", "http or https"},
        {"ftp://awx.example.com", "http or https"},
        {"https://admin:geheim@awx.example.com", "without a user"},
        {"http://awx.example.com", NULL},
        {"https://awx.example.com/", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct df_awx_options options = {.url = rows[i].url, .token = give_token};
        DF_AWX struct df_awx *awx = NULL;
        struct df_err err = {0};
        int result = df_awx_new(&options, &awx, &err);
        if (!rows[i].fault)
            assert_int_equal(result, 0);
        else
            assert_fails(result, &err, DF_ERR_USER, rows[i].fault);
        assert_null(strstr(err.message, "geheim"));
    }
}

static void a_file_of_certificates_that_is_not_there_is_told(void **state)
{
    struct world *w = *state;
    DF_FREE char *url = df_strf("https%s", w->server.url + strlen("http"));
    const struct df_awx_options options = {
        .url = url, .ca_file = "/nowhere/ca.pem", .token = give_token, .arg = w};
    DF_AWX struct df_awx *awx = NULL;
    struct df_err err = {0};
    int64_t id;
    assert_int_equal(df_awx_new(&options, &awx, &err), 0);
    assert_fails(find_template(awx, "a", &id, &err), &err, DF_ERR_USER, "/nowhere/ca.pem");
}

/* ---- a request ---- */

static void a_launch_that_is_not_answered_is_sent_once(void **state)
{
    struct world *w = *state;
    struct df_awx_launched launched;
    struct df_err err = {0};
    will_answer(&w->server, 204, "");
    will_answer(&w->server, 0, "");
    assert_int_equal(df_awx_delete_credential(w->awx, 42, NULL), 0); /* a connection is kept */
    assert_fails(df_awx_launch(w->awx, 10, NULL, NULL, &launched, &err), &err, DF_ERR_RETRY,
                 "AWX launch");
    assert_int_equal(answering_count(&w->server), 2);
    assert_true(df_awx_may_have_done(w->awx));
}

static void what_awx_refused_or_never_got_it_has_not_done(void **state)
{
    static const struct {
        unsigned status;
        bool may;
    } rows[] = {{400, false}, {403, false}, {404, false}, {429, false}, {302, false}, {408, true},
                {425, true},  {499, true},  {500, true},  {504, true},  {200, true},  {0, true}};
    struct world *w = *state;
    struct df_awx_launched launched;
    const struct df_awx_options nowhere = {
        .url = "http://127.0.0.1:1", .token = give_token, .arg = w};
    DF_AWX struct df_awx *awx = NULL;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        answering_forget(&w->server);
        will_answer(&w->server, rows[i].status, "{}");
        assert_int_equal(df_awx_launch(w->awx, 10, NULL, NULL, &launched, NULL), -1);
        assert_int_equal(df_awx_may_have_done(w->awx), rows[i].may);
    }
    assert_int_equal(df_awx_new(&nowhere, &awx, NULL), 0);
    assert_int_equal(df_awx_launch(awx, 10, NULL, NULL, &launched, NULL), -1);
    assert_false(df_awx_may_have_done(awx));
}

/* ---- the token ---- */

static void white_space_around_the_token_is_dropped(void **state)
{
    struct world *w = *state;
    w->tokens[0] = "\n test-token \r\n";
    will_answer(&w->server, 204, "");
    assert_int_equal(df_awx_delete_credential(w->awx, 42, NULL), 0);
    assert_asked(w, 0, "DELETE", "/api/v2/credentials/42/", "");
    assert_string_equal(w->server.asked[0].body, "");
}

/* UT-WE-902-003 */
static void an_empty_token_is_refused_before_anything_is_sent(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    w->tokens[0] = " \n";
    assert_fails(df_awx_delete_credential(w->awx, 42, &err), &err, DF_ERR_USER, "token");
    assert_int_equal(w->server.n_asked, 0);
}

static void a_token_that_is_refused_is_read_again_once(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    w->tokens[0] = "old-token", w->tokens[1] = "test-token";
    will_answer(&w->server, 401, "{}");
    will_answer(&w->server, 204, "");
    assert_int_equal(df_awx_delete_credential(w->awx, 42, &err), 0);
    assert_string_equal(w->server.asked[0].token, "Bearer old-token");
    assert_string_equal(w->server.asked[1].token, "Bearer test-token");
    answering_forget(&w->server);
    will_answer(&w->server, 401, "{\"detail\":\"no test-token\"}");
    assert_fails(df_awx_delete_credential(w->awx, 42, &err), &err, DF_ERR_USER,
                 "AWX delete credential returned 401: AWX refuses the token of "
                 "ansible.tokenSecretRef; {\"detail\":\"no ***\"}");
    assert_int_equal(w->server.n_asked, 2);
}

/* ---- failures ---- */

static void what_may_be_repeated_is_told_from_what_may_not(void **state)
{
    struct world *w = *state;
    static const struct {
        unsigned status;
        enum df_err_class cls;
    } rows[] = {{429, DF_ERR_RETRY},  {500, DF_ERR_RETRY}, {503, DF_ERR_RETRY},
                {0, DF_ERR_RETRY},    {400, DF_ERR_USER},  {403, DF_ERR_USER},
                {405, DF_ERR_USER},   {302, DF_ERR_USER},  {404, DF_ERR_NOT_FOUND},
                {408, DF_ERR_RETRY},  {425, DF_ERR_RETRY}, {499, DF_ERR_RETRY},
                {201, DF_ERR_SYSTEM}, {202, DF_ERR_SYSTEM}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *job = NULL;
        struct df_err err = {0};
        int64_t ahead_us;
        answering_forget(&w->server);
        will_answer(&w->server, rows[i].status, "{\"detail\":\"so\\nit is\"}");
        DF_FREE char *text = df_strf("AWX status returned %u: ", rows[i].status);
        assert_fails(df_awx_job(w->awx, 7, &job, &ahead_us, &err), &err, rows[i].cls,
                     rows[i].status ? text : "AWX status: ");
        assert_null(job);
        if (rows[i].status == 302)
            assert_non_null(strstr(err.message, "ansible.apiUrl"));
    }
}

/* An ingress has no backend while AWX is upgraded. */
static void only_awx_itself_says_that_something_does_not_exist(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *body;
        enum df_err_class cls;
    } rows[] = {
        {"{\"detail\":\"Not found.\"}", DF_ERR_NOT_FOUND},
        {"{\"detail\":\"No Job matches the given query.\"}", DF_ERR_NOT_FOUND},
        {"{'detail': ErrorDetail(string='Not found.', code='not_found')}", DF_ERR_NOT_FOUND},
        {"<html>default backend - 404</html>", DF_ERR_RETRY},
        {"{\"message\":\"no Route matched with those values\"}", DF_ERR_RETRY},
        {"{\"detail\":{}}", DF_ERR_RETRY},
        {"[\"detail\"]", DF_ERR_RETRY},
        {"", DF_ERR_RETRY}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *job = NULL;
        struct df_err err = {0};
        int64_t ahead_us;
        answering_forget(&w->server);
        will_answer(&w->server, 404, rows[i].body);
        assert_fails(df_awx_job(w->awx, 7, &job, &ahead_us, &err), &err, rows[i].cls,
                     "AWX status returned 404: ");
        bool is_foreign = strstr(err.message, "this is not AWX's answer");
        assert_int_equal(is_foreign, rows[i].cls == DF_ERR_RETRY);
    }
}

static void say_slow_down(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)s;
    if (strstr(r->target, "maintenance"))
        kube_say(a, 503, "Retry-After: 86400\r\n", "");
    else
        kube_say(a, 429, "Retry-After: 17\r\n", "slow down\r\nplease");
}

static void awx_says_when_to_ask_again_and_names_travel_escaped(void **state)
{
    struct world *w = *state;
    struct kube_server raw;
    struct df_err err = {0};
    int64_t id;
    kube_start(&raw, say_slow_down, NULL);
    DF_FREE char *url = df_strf("http://127.0.0.1:%u", raw.port);
    const struct df_awx_options options = {.url = url, .token = give_token, .arg = w};
    struct df_awx *awx = NULL;
    assert_int_equal(df_awx_new(&options, &awx, NULL), 0);
    assert_fails(find_template(awx, "a b&c#d%e/é", &id, &err), &err, DF_ERR_RETRY,
                 "AWX job template search returned 429: slow down  please");
    assert_int_equal(err.retry_after_s, 17);
    assert_non_null(strstr(df_buf_str(&raw.seen),
                           "GET /api/v2/job_templates/?name=a%20b%26c%23d%25e%2F%C3%A9\n"));
    assert_fails(find_template(awx, "maintenance", &id, &err), &err, DF_ERR_RETRY, "503");
    assert_int_equal(err.retry_after_s, DF_AWX_WAIT_S); /* a day would be too long */
    df_awx_free(awx);
    kube_stop(&raw);
}

static void an_answer_that_is_not_of_awx_is_a_failure(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *answer = NULL;
    int64_t id;
    will_answer(&w->server, 200, "<html>");
    assert_fails(df_awx_job(w->awx, 7, &answer, &id, &err), &err, DF_ERR_SYSTEM, "AWX status");
    assert_fails(find_template(w->awx, "a", &id, &err), &err, DF_ERR_SYSTEM,
                 "AWX job template search");
    answering_forget(&w->server);
    will_answer(&w->server, 200, "{\"count\":1}");
    assert_fails(find_template(w->awx, "a", &id, &err), &err, DF_ERR_SYSTEM, "no results");
    answering_forget(&w->server);
    will_answer(&w->server, 200, "{\"count\":1,\"results\":[{\"name\":\"a\"}]}");
    assert_fails(find_template(w->awx, "a", &id, &err), &err, DF_ERR_SYSTEM, "no id");
}

static void no_secret_that_was_sent_comes_back_in_a_message(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    int64_t id;
    DF_JSON cJSON *inputs = json("{'username':'adminuser','password':'s3cret \\\"word'}");
    DF_FREE char *long_one = df_strf("{\"x\":\"%0480d secret123\"}", 0);
    DF_JSON cJSON *cut = json("{'password':'secret123'}");
    will_answer(&w->server, 400, "{\"inputs\":[\"adminuser and s3cret \\\"word of test-token\"]}");
    assert_fails(df_awx_create_credential(w->awx, "c", 15, inputs, &id, &err), &err, DF_ERR_USER,
                 "AWX create credential returned 400: {\"inputs\":[\"*** and *** of ***\"]}");
    answering_forget(&w->server);
    will_answer(&w->server, 400, long_one);
    assert_fails(df_awx_create_credential(w->awx, "c", 15, cut, &id, &err), &err, DF_ERR_USER,
                 "00 ***");
    assert_null(strstr(err.message, "secret"));
    assert_true(strlen(err.message) < DF_AWX_BODY + 64);
}

/* ---- job templates ---- */

/* 668-b */
static void a_template_is_found_by_its_name(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    int64_t id = 0;
    will_answer(&w->server, 200,
                "{\"count\":1,\"next\":null,\"results\":[{\"id\":501,\"organization\":9}]}");
    assert_int_equal(find_template(w->awx, "restart-api", &id, &err), 0);
    assert_int_equal(id, 501);
    assert_asked(w, 0, "GET", "/api/v2/job_templates/", "name=restart-api");
    assert_fails(find_template(w->awx, "", &id, &err), &err, DF_ERR_USER,
                 "jobTemplateName is required in ansible engineConfig for v1.0");
    assert_int_equal(w->server.n_asked, 1);
}

static void of_several_templates_that_of_our_organization_is_taken(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    int64_t id = 0;
    will_answer(&w->server, 200,
                "{\"results\":[{\"id\":1,\"organization\":2},{\"id\":2,\"organization\":1},"
                "{\"id\":3,\"organization\":3}]}");
    assert_int_equal(find_template(w->awx, "restart", &id, &err), 0);
    assert_int_equal(id, 2);
    answering_forget(&w->server);
    will_answer(&w->server, 200,
                "{\"results\":[{\"id\":1,\"organization\":2},{\"id\":3,\"organization\":3}]}");
    assert_fails(find_template(w->awx, "restart", &id, &err), &err, DF_ERR_USER,
                 "several job templates \"restart\", and none in the organization 1");
}

static void a_template_that_is_not_there_names_the_nearest_ones(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    int64_t id;
    will_answer(&w->server, 200, "{\"count\":0,\"results\":[]}");
    will_answer(&w->server, 200,
                "{\"results\":[{\"name\":\"backup\"},{\"name\":\"restart-nodes\"},"
                "{\"name\":\"restart-pod\"},{\"name\":\"zz\"},{\"name\":\"restart\"},"
                "{\"name\":\"bad\\u0007\"},{\"name\":\"reboot-everything-now-please\"}]}");
    assert_fails(find_template(w->awx, "restart-pods", &id, &err), &err, DF_ERR_USER,
                 "AWX job template \"restart-pods\" not found; its nearest are \"restart-pod\", "
                 "\"restart-nodes\", \"restart\", \"backup\", \"zz\"");
    assert_asked(w, 1, "GET", "/api/v2/job_templates/", "page_size=200");
    answering_forget(&w->server);
    will_answer(&w->server, 200, "{\"results\":[]}");
    assert_fails(find_template(w->awx, "a", &id, &err), &err, DF_ERR_USER,
                 "\"a\" not found; its token may see no job template at all");
    answering_forget(&w->server);
    will_answer(&w->server, 200, "{\"results\":[]}");
    will_answer(&w->server, 500, "");
    assert_fails(find_template(w->awx, "a", &id, &err), &err, DF_ERR_USER,
                 "AWX job template \"a\" not found");
}

/* ---- launch ---- */

/* UT-WE-015-018 */
static void a_launch_carries_variables_and_credentials(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    struct df_awx_launched launched = {0};
    DF_JSON cJSON *vars = json("{'TARGET_NAMESPACE':'demo-ns'}"), *ids = json("[42,55]");
    assert_int_equal(df_json_add(vars, "BIG", cJSON_CreateRaw("1e+21"), NULL), 0);
    will_answer(&w->server, 201, "{\"id\":77,\"ignored_fields\":{}}");
    assert_int_equal(df_awx_launch(w->awx, 10, vars, ids, &launched, &err), 0);
    assert_int_equal(launched.job, 77);
    assert_string_equal(launched.ignored, "");
    assert_asked(w, 0, "POST", "/api/v2/job_templates/10/launch/", "");
    assert_string_equal(w->server.asked[0].body,
                        "{\"extra_vars\":{\"TARGET_NAMESPACE\":\"demo-ns\",\"BIG\":1e+21},"
                        "\"credentials\":[42,55]}");
}

/* UT-WE-015-019 */
static void what_is_empty_is_not_sent(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    struct df_awx_launched launched = {0};
    DF_JSON cJSON *none = cJSON_CreateObject(), *no_ids = cJSON_CreateArray();
    will_answer(&w->server, 201, "{\"id\":78}");
    assert_int_equal(df_awx_launch(w->awx, 10, NULL, NULL, &launched, &err), 0);
    assert_int_equal(df_awx_launch(w->awx, 10, none, no_ids, &launched, &err), 0);
    assert_int_equal(launched.job, 78);
    assert_string_equal(w->server.asked[0].body, "{}");
    assert_string_equal(w->server.asked[1].body, "{}");
}

static void what_awx_ignored_is_named(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    struct df_awx_launched launched = {0};
    will_answer(&w->server, 201,
                "{\"id\":79,\"ignored_fields\":{\"extra_vars\":{\"A\":\"b\"},"
                "\"credentials\":[4]}}");
    assert_int_equal(df_awx_launch(w->awx, 10, NULL, NULL, &launched, &err), 0);
    assert_int_equal(launched.job, 79);
    assert_string_equal(launched.ignored, "extra_vars, credentials");
}

/* UT-WE-015-020 */
static void a_launch_that_lacks_something_says_what(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *answer, *said;
    } rows[] = {
        {"{\"detail\":\"bad\"}", "AWX launch returned 400: {\"detail\":\"bad\"}"},
        {"{\"passwords_needed_to_start\":[\"ssh_password\",\"become_password\"]}",
         "must store the passwords that it needs to start: ssh_password, become_password; {"},
        {"{\"variables_needed_to_start\":[\"'region' value missing\"]}",
         "the survey of the job template needs to start: 'region' value missing; {"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        struct df_awx_launched launched = {0};
        answering_forget(&w->server);
        will_answer(&w->server, 400, rows[i].answer);
        assert_fails(df_awx_launch(w->awx, 10, NULL, NULL, &launched, &err), &err, DF_ERR_USER,
                     rows[i].said);
        assert_non_null(strstr(err.message, "AWX launch returned 400: "));
    }
}

/* ---- jobs ---- */

static void a_job_tells_its_status(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *job = NULL;
    int64_t ahead_us;
    will_answer(&w->server, 200, "{\"id\":42,\"status\":\"running\",\"failed\":false}");
    assert_int_equal(df_awx_job(w->awx, 42, &job, &ahead_us, &err), 0);
    assert_string_equal(df_json_str(job, "status"), "running");
    assert_asked(w, 0, "GET", "/api/v2/jobs/42/", "");
}

/* 668-a */
static void canceling_a_job_that_has_ended_is_a_success(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    will_answer(&w->server, 202, "");
    will_answer(&w->server, 200, "{}");
    will_answer(&w->server, 405, "{\"detail\":\"Method not allowed\"}");
    will_answer(&w->server, 403, "{\"detail\":\"405\"}");
    for (int i = 0; i < 3; i++)
        assert_int_equal(df_awx_cancel(w->awx, 77, &err), 0);
    assert_asked(w, 0, "POST", "/api/v2/jobs/77/cancel/", "");
    assert_string_equal(w->server.asked[0].body, "");
    assert_fails(df_awx_cancel(w->awx, 77, &err), &err, DF_ERR_USER, "AWX cancel returned 403");
    assert_string_equal(err.reason, "NotAllowed");
}

static void what_a_job_printed_is_read_up_to_a_limit(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_FREE char *long_one = df_strf("%081d", 0);
    DF_BUF struct df_buf text = DF_BUF_INIT(80);
    will_answer(&w->server, 200, "PLAY [all]\n");
    will_answer(&w->server, 200, long_one);
    will_answer(&w->server, 404, "{'detail': ErrorDetail(string='Not found.', code='not_found')}");
    assert_int_equal(df_awx_stdout(w->awx, 42, &text, &err), 0);
    assert_string_equal(df_buf_str(&text), "PLAY [all]\n");
    assert_asked(w, 0, "GET", "/api/v2/jobs/42/stdout/", "format=txt_download");
    df_buf_clear(&text);
    assert_fails(df_awx_stdout(w->awx, 42, &text, &err), &err, DF_ERR_LIMIT, "AWX stdout");
    assert_fails(df_awx_stdout(w->awx, 42, &text, &err), &err, DF_ERR_NOT_FOUND,
                 "AWX stdout returned 404");
}

/* ---- credential types ---- */

/* UT-WE-015-012, -013 */
static void a_type_is_found_by_its_name_with_its_inputs(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *type = NULL, *none = NULL;
    will_answer(
        &w->server, 200,
        "{\"count\":1,\"results\":[{\"id\":15,\"kind\":\"cloud\",\"inputs\":{\"fields\":[]},"
        "\"injectors\":{},\"related\":{}}]}");
    will_answer(&w->server, 200, "{\"count\":0,\"results\":[]}");
    assert_int_equal(df_awx_find_type(w->awx, "kubernaut-secret-a", &type, &err), 0);
    assert_json(type, "{'id':15,'kind':'cloud','inputs':{'fields':[]},'injectors':{}}", "type");
    assert_asked(w, 0, "GET", "/api/v2/credential_types/", "name=kubernaut-secret-a");
    assert_fails(df_awx_find_type(w->awx, "a", &none, &err), &err, DF_ERR_NOT_FOUND,
                 "AWX credential type \"a\" not found");
}

/* UT-WE-015-010, -011 */
static void a_type_is_created_as_one_of_the_cloud(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    int64_t id = 0;
    DF_JSON cJSON *inputs = json("{'fields':[{'id':'username'}]}");
    DF_JSON cJSON *injectors = json("{'env':{'A':'{{username}}'}}");
    will_answer(&w->server, 201, "{\"id\":15}");
    will_answer(&w->server, 400, "{\"name\":[\"is taken\"]}");
    assert_int_equal(df_awx_create_type(w->awx, "kubernaut-secret-gitea-repo-creds", inputs,
                                        injectors, &id, &err),
                     0);
    assert_int_equal(id, 15);
    assert_asked(w, 0, "POST", "/api/v2/credential_types/", "");
    assert_body(
        w, 0,
        "{'name':'kubernaut-secret-gitea-repo-creds','kind':'cloud',"
        "'inputs':{'fields':[{'id':'username'}]},'injectors':{'env':{'A':'{{username}}'}}}");
    assert_fails(df_awx_create_type(w->awx, "a", inputs, injectors, &id, &err), &err, DF_ERR_USER,
                 "AWX create credential type returned 400: {\"name\":[\"is taken\"]}");
}

/* ---- credentials ---- */

/* UT-WE-015-014, -015 */
static void a_credential_is_created_in_our_organization(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    int64_t id = 0;
    DF_JSON cJSON *inputs = json("{'username':'admin','password':'secret123'}");
    will_answer(&w->server, 201, "{\"id\":42}");
    will_answer(&w->server, 403, "{}");
    assert_int_equal(df_awx_create_credential(w->awx, "kubernaut-ephemeral-gitea-repo-creds", 15,
                                              inputs, &id, &err),
                     0);
    assert_int_equal(id, 42);
    assert_asked(w, 0, "POST", "/api/v2/credentials/", "");
    assert_body(w, 0,
                "{'name':'kubernaut-ephemeral-gitea-repo-creds','credential_type':15,"
                "'organization':1,'inputs':{'username':'admin','password':'secret123'}}");
    assert_fails(df_awx_create_credential(w->awx, "a", 15, inputs, &id, &err), &err, DF_ERR_USER,
                 "AWX create credential returned 403");
}

/* UT-WE-015-016, -017 */
static void a_credential_that_is_gone_cannot_be_deleted(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    will_answer(&w->server, 404, "{\"detail\":\"Not found.\"}");
    assert_fails(df_awx_delete_credential(w->awx, 99, &err), &err, DF_ERR_NOT_FOUND,
                 "AWX delete credential returned 404");
    assert_asked(w, 0, "DELETE", "/api/v2/credentials/99/", "");
}

static void a_credential_of_another_organization_is_not_ours(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *ids = NULL, *none = NULL;
    will_answer(&w->server, 200,
                "{\"results\":[{\"id\":1,\"credential_type\":15,\"organization\":2},"
                "{\"id\":2,\"credential_type\":16,\"organization\":1},"
                "{\"id\":3,\"credential_type\":15,\"organization\":1}]}");
    will_answer(&w->server, 200, "{\"results\":[]}");
    assert_int_equal(df_awx_find_credentials(w->awx, "c", &ids, NULL), 0);
    assert_json(ids, "[2,3]", "ids");
    assert_asked(w, 0, "GET", "/api/v2/credentials/", "name=c");
    assert_int_equal(df_awx_find_credentials(w->awx, "c", &none, NULL), 0);
    assert_json(none, "[]", "ids");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_a_url_of_http_without_a_user),
        TEST(a_file_of_certificates_that_is_not_there_is_told),
        TEST(a_launch_that_is_not_answered_is_sent_once),
        TEST(what_awx_refused_or_never_got_it_has_not_done),
        TEST(white_space_around_the_token_is_dropped),
        TEST(an_empty_token_is_refused_before_anything_is_sent),
        TEST(a_token_that_is_refused_is_read_again_once),
        TEST(what_may_be_repeated_is_told_from_what_may_not),
        TEST(only_awx_itself_says_that_something_does_not_exist),
        TEST(awx_says_when_to_ask_again_and_names_travel_escaped),
        TEST(an_answer_that_is_not_of_awx_is_a_failure),
        TEST(no_secret_that_was_sent_comes_back_in_a_message),
        TEST(a_template_is_found_by_its_name),
        TEST(of_several_templates_that_of_our_organization_is_taken),
        TEST(a_template_that_is_not_there_names_the_nearest_ones),
        TEST(a_launch_carries_variables_and_credentials),
        TEST(what_is_empty_is_not_sent),
        TEST(what_awx_ignored_is_named),
        TEST(a_launch_that_lacks_something_says_what),
        TEST(a_job_tells_its_status),
        TEST(canceling_a_job_that_has_ended_is_a_success),
        TEST(what_a_job_printed_is_read_up_to_a_limit),
        TEST(a_type_is_found_by_its_name_with_its_inputs),
        TEST(a_type_is_created_as_one_of_the_cloud),
        TEST(a_credential_is_created_in_our_organization),
        TEST(a_credential_that_is_gone_cannot_be_deleted),
        TEST(a_credential_of_another_organization_is_not_ours),
    };
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
