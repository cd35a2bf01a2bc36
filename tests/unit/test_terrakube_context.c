#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/http/http.h"
#include "runner/terrakube/context.h"
#include "tests/unit/answering_server.h"
#include "tests/unit/json_words.h"
#include "tests/unit/terrakube_words.h"

enum { LONG_MS = 60000 };

#define STEP "33333333-3333-3333-3333-333333333333"

struct world {
    struct answering_server server;
    struct df_terrakube_settings settings;
    struct df_terrakube_payload payload;
    struct df_terrakube_context *context;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    answering_open(&w->server);
    w->settings.api_url = strdup(w->server.url);
    w->settings.public_url = strdup(w->server.url);
    w->settings.internal_secret = strdup(TERRAKUBE_SECRET);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    answering_close(&w->server);
    df_terrakube_payload_free(&w->payload);
    free(w->settings.api_url);
    free(w->settings.public_url);
    free(w->settings.internal_secret);
    free(w);
    return 0;
}

static void begin(struct world *w, const char *members)
{
    w->payload = terrakube_payload(members);
    assert_int_equal(df_terrakube_context_new(&w->settings, &w->payload, NULL, &w->context, NULL),
                     0);
}

static void events(struct world *w, const char *quoted)
{
    DF_FREE char *text = strdup(quoted);
    for (char *p = text; *p; p++)
        *p = (char)(*p == '\'' ? '"' : *p);
    /* One byte at a time: a pipe cuts anywhere. */
    for (const char *p = text; *p; p++)
        df_terrakube_context_events(w->context, p, 1);
}

/* The document that was posted last; the caller deletes. */
static cJSON *end(struct world *w)
{
    df_terrakube_context_free(w->context, LONG_MS);
    assert_true(w->server.n_asked >= 2);
    const struct asked *last = &w->server.asked[w->server.n_asked - 1];
    assert_string_equal(last->method, "POST");
    assert_string_equal(last->url, "/context/v1/7");
    assert_string_equal(last->type, "application/json");
    cJSON *document = NULL;
    assert_int_equal(df_json_parse(last->body, strlen(last->body), &document, NULL), 0);
    return document;
}

#define PLANNED "{'type':'planned_change','change':{'resource':{'addr':'a.b'},'action':'create'}}\n"

static void a_plan_is_added_to_what_the_api_has(void **state)
{
    struct world *w = *state;
    will_answer(
        &w->server, 200,
        "{\"custom\":{\"x\":1},\"planStructuredOutput\":{\"other\":[{\"address\":\"o\"}]}}");
    begin(w, "{}");
    events(w, PLANNED "this is no event\n"
                      "{'type':'diagnostic','diagnostic':{'severity':'warning','summary':'w'}}\n");
    DF_JSON cJSON *document = end(w);
    assert_json(
        document,
        "{'custom':{'x':1},'planStructuredOutput':{'other':[{'address':'o'}],'" STEP
        "':[{'address':'a.b','action':'create','status':'planned'}]},'jobDiagnostics':{'" STEP
        "':[{'severity':'warning','summary':'w'}]},'terrakubeUI':{'" STEP
        "':'<div data-terrakube-structured-plan=\\'true\\'></div>'}}",
        "the document");
}

static void an_apply_begins_with_the_rows_of_the_only_plan(void **state)
{
    struct world *w = *state;
    will_answer(&w->server, 200,
                "{\"planStructuredOutput\":{\"p\":[{\"address\":\"a.b\",\"action\":\"create\","
                "\"status\":\"planned\"}]}}");
    begin(w, "{\"type\":\"terraformApply\"}");
    events(w, "{'type':'apply_complete','hook':{'resource':{'addr':'a.b'},'elapsed_seconds':3}}\n");
    DF_JSON cJSON *outputs = json("{'o':{'type':'string','sensitive':true,'value':'s3cret'}}");
    df_terrakube_context_outputs(w->context, outputs);
    DF_JSON cJSON *document = end(w);
    assert_at(df_json_at(document, "applyStructuredOutput"), STEP,
              "[{'address':'a.b','action':'create','status':'applied','elapsedSeconds':3}]");
    assert_at(df_json_at(document, "terraformOutputs"), STEP,
              "[{'name':'o','type':'string','sensitive':true,'value':null}]");
    assert_null(df_json_at(document, "terrakubeUI"));
}

static void a_version_without_context_is_asked_once(void **state)
{
    struct world *w = *state;
    will_answer(&w->server, 404, "");
    begin(w, "{}");
    events(w, PLANNED);
    df_terrakube_context_free(w->context, LONG_MS);
    assert_int_equal(w->server.n_asked, 1);
}

static void a_job_that_takes_no_context_any_more_is_left_alone(void **state)
{
    struct world *w = *state;
    will_answer(&w->server, 200, "{}");
    will_answer(&w->server, 409, "");
    begin(w, "{}");
    events(w, PLANNED);
    df_terrakube_context_free(w->context, LONG_MS);
    assert_int_equal(w->server.n_asked, 2);
}

static void an_api_that_is_away_holds_nobody_up(void **state)
{
    struct world *w = *state;
    will_answer(&w->server, 0, "");
    begin(w, "{}");
    events(w, PLANNED);
    df_terrakube_context_free(w->context, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plan_is_added_to_what_the_api_has),
        TEST(an_apply_begins_with_the_rows_of_the_only_plan),
        TEST(a_version_without_context_is_asked_once),
        TEST(a_job_that_takes_no_context_any_more_is_left_alone),
        TEST(an_api_that_is_away_holds_nobody_up),
    };
    struct df_err err;
    if (df_http_global_init(&err) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
