/* The spawner's side of the step protocol: tokens, the document, reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "spawner/steps/step_auth.h"
#include "tests/unit/database.h"
#include "tests/unit/step_world.h"

/* ---- claim ---- */

static void a_step_is_claimed_once_and_the_same_claim_may_ask_again(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *first = NULL, *again = NULL, *other = NULL;
    struct df_err err;
    assert_int_equal(try_claim(w, s, CLAIM_A, &first, NULL), 0);
    assert_fails(try_claim(w, s, CLAIM_B, &other, &err), err, DF_ERR_CONFLICT, "AlreadyClaimed");
    assert_int_equal(try_claim(w, s, CLAIM_A, &again, NULL), 0);
    /* Each is a write, which a spawner that does not lead cannot make. */
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    assert_non_null(df_json_str(task, "status.claimedBy.repeatedAt"));
    /* An answer that comes late has taken nothing from the one before. */
    assert_string_equal(df_json_str(first, "stepToken"), df_json_str(again, "stepToken"));
    struct runner r = runner_of(w, s, first);
    int64_t end;
    assert_int_equal(df_step_stream_end(&w->s, s->uid, r.step_token, DF_STREAM_LOG, &end, NULL), 0);
    df_json_wipe(first);
    df_json_wipe(again);
}

static void what_people_read_of_a_claim_does_not_repeat_it(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *first = NULL, *other = NULL;
    struct df_err err;
    assert_int_equal(try_claim(w, s, CLAIM_A, &first, NULL), 0);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    const char *shown = df_json_str(task, "status.claimedBy.claimId");
    assert_int_equal(strlen(shown), 64);
    assert_null(strstr(CLAIM_A, shown));
    DF_FREE char *whole = df_strf("{'claimId':'%s'}", shown);
    assert_fails(try_claim(w, s, whole, &other, &err), err, DF_ERR_USER, "InvalidDocument");
    DF_FREE char *part = df_strf("{'claimId':'%.32s'}", shown);
    assert_fails(try_claim(w, s, part, &other, &err), err, DF_ERR_CONFLICT, "AlreadyClaimed");
    df_json_wipe(first);
}

static void what_is_no_claim_opens_nothing(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, "net-1-plan");
    struct fake_step wrong = *s, absent = *s;
    cJSON *doc = NULL;
    struct df_err err;
    wrong.token[0] = wrong.token[0] == 'a' ? 'b' : 'a';
    (void)snprintf(absent.uid, sizeof(absent.uid), "00000000-0000-4000-8000-000000000000");
    assert_fails(try_claim(w, &wrong, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "");
    assert_fails(try_claim(w, &absent, CLAIM_A, &doc, &err), err, DF_ERR_NOT_FOUND, "");
    static const char *const bodies[] = {"{}", "{'claimId':7}", "{'claimId':'short'}",
                                         "{'claimId':'0000000000000000000000000000ZZZZ'}", "[]"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bodies); i++)
        assert_fails(try_claim(w, s, bodies[i], &doc, &err), err, DF_ERR_USER, "InvalidDocument");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.claimedBy", "");
}

static void tokens_are_kept_as_hashes_alone(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, "net-1-plan");
    struct runner r = claim(w, "net-1-plan");
    DF_JSON cJSON *doc = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    DF_FREE char *text = df_json_print(doc);
    assert_null(strstr(text, s->token));
    assert_null(strstr(text, r.step_token));
    assert_null(strstr(text, r.state_password));
}

static void each_claim_of_each_step_has_tokens_of_its_own(void **state)
{
    struct world *w = *state;
    static const char *const claims[][3] = {
        {"uid-a", "claim-1", "step"},      {"uid-a", "claim-1", "state"},
        {"uid-a", "claim-1", "providers"}, {"uid-a", "claim-2", "step"},
        {"uid-b", "claim-1", "step"},      {"uid-a", "claim-1", "step"}};
    char tokens[DF_ARRAY_SIZE(claims)][DF_SHA256_HEX], hash[DF_SHA256_HEX];
    for (size_t i = 0; i < DF_ARRAY_SIZE(claims); i++) {
        assert_int_equal(df_step_make_token(&w->s, claims[i][0], claims[i][1], claims[i][2],
                                            tokens[i], hash, NULL),
                         0);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(strcmp(tokens[i], tokens[k]) == 0, i == 5 && k == 0);
    }
}

static void a_step_that_was_canceled_before_its_claim_is_over(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    struct df_err err;
    assert_int_equal(df_request_cancel_run(&w->s, "net-1", DF_VERBS_ADMIN, "t", NULL, NULL, NULL),
                     0);
    await_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.cancel.by", "t");
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
}

static void *claim_thread(void *arg)
{
    struct runner *r = arg;
    struct fake_step *s = await_start(r->w, "net-1-plan");
    cJSON *doc = NULL;
    int result = try_claim(r->w, s, r->name, &doc, NULL);
    df_json_wipe(doc);
    return result == 0 ? r : NULL;
}

static void of_many_runners_at_once_one_gets_the_step(void **state)
{
    struct world *w = *state;
    enum { CROWD = 8 };
    pthread_t threads[CROWD];
    struct runner runners[CROWD];
    int winners = 0;
    for (unsigned i = 0; i < CROWD; i++) {
        runners[i].w = w;
        (void)snprintf(runners[i].name, sizeof(runners[i].name), "{'claimId':'%032x'}", i);
        assert_int_equal(pthread_create(&threads[i], NULL, claim_thread, &runners[i]), 0);
    }
    for (size_t i = 0; i < CROWD; i++) {
        void *won;
        (void)pthread_join(threads[i], &won);
        winners += won != NULL;
    }
    assert_int_equal(winners, 1);
}

/* ---- the document ---- */

static int setup_rich(void **state)
{
    return setup_with(
        state,
        "'runtime':{'name':'opentofu','version':'>= 1.8'},"
        "'environment':[{'name':'STAGE','value':'test'}],"
        "'secrets':[{'name':'app','keys':['password']}],"
        "'integrations':[{'provider':'gcp','secretRef':{'name':'cloud'}}],"
        "'storage':{'type':'managed'},'variables':{'region':'eu'},'arguments':['-parallelism=5']");
}

static void set_secret(struct world *w, const char *name, const char *key, const char *value)
{
    struct df_err err = {0};
    const struct df_vault_entry entry = {.key = key, .value = value, .n = strlen(value)};
    if (df_vault_put(w->s.vault, name, &entry, &err) < 0)
        fail_msg("%s", err.message);
}

static bool is_masked(const cJSON *doc, const char *value)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(doc, "mask")) {
        if (df_streq(item->valuestring, value))
            return true;
    }
    return false;
}

static void a_runner_is_told_everything_it_needs_and_every_secret_is_masked(void **state)
{
    struct world *w = *state;
    set_secret(w, "app", "password", "pa55word");
    set_secret(w, "app", "unused", "not-for-you");
    set_secret(w, "cloud", "service_account_key", "{\"private\":\"key\"}");
    set_secret(w, "cloud", "gcp_project_id", "project-7");
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    struct df_err err = {0};
    if (try_claim(w, s, CLAIM_A, &doc, &err) < 0)
        fail_msg("%s", err.message);
    static const struct {
        const char *path, *value;
    } texts[] = {
        {"name", "net-1-plan"},
        {"run", "net-1"},
        {"executor", "net"},
        {"action", "plan"},
        {"runtime.version", ">= 1.8"},
        {"variables.region", "eu"},
        {"environment.STAGE", "test"},
        {"secretEnvironment.TF_VAR_password", "pa55word"},
        {"secretEnvironment.GOOGLE_PROJECT", "project-7"},
        {"environment.GOOGLE_APPLICATION_CREDENTIALS", "@files/gcp_service_account_key.json"},
        {"source.url", "file:///nowhere"},
        {"state.type", "managed"}};
    assert_true(cJSON_IsFalse(df_json_at(doc, "state.exists")));
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++)
        assert_string_equal(df_json_str(doc, texts[i].path), texts[i].value);
    assert_null(df_json_at(doc, "secretEnvironment.TF_VAR_unused"));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
                            df_json_at(doc, "files"), "gcp_service_account_key.json")),
                        "{\"private\":\"key\"}");
    assert_null(df_json_at(doc, "expected"));
    assert_non_null(strstr(df_json_str(doc, "state.address"), s->uid));
    assert_true(is_masked(doc, "pa55word") && is_masked(doc, "{\"private\":\"key\"}"));
    assert_true(is_masked(doc, s->token) && is_masked(doc, df_json_str(doc, "stepToken")));
    assert_true(is_masked(doc, df_json_str(doc, "state.password")));
    assert_int_equal(df_json_int(doc, "timeoutSeconds", 0), 3600);
    df_json_wipe(doc);
}

static void a_missing_secret_ends_the_step_and_is_named(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    assert_non_null(strstr(err.message, "\"app\""));
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "InvalidStep");
    assert_value(
        w, DF_KIND_RUN, "net-1", "status.message",
        "spec.secrets: there is no secret \"app\"; create it with: dayfly secret set app KEY");
}

static void a_secret_that_does_not_open_ends_the_step_at_once_and_is_named(void **state)
{
    struct world *w = *state;
    set_secret(w, "app", "password", "pa55word");
    set_secret(w, "app", "other", "an0ther");
    /* Somebody swaps two sealed values: the seal of each is bound to its name and key. */
    execute(w->dir, "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE key = 'other') "
                    "WHERE key = 'password'");
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "SecretUnreadable");
    assert_value(
        w, DF_KIND_RUN, "net-1", "status.message",
        "spec.secrets: secret \"app\" key password cannot be read: its sealed value does not "
        "open; set it again with: dayfly secret set app password");
}

static void a_secret_that_its_executor_may_not_use_any_more_ends_the_step(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *use = json("{'executors':['net-prod'],'owner':'ann'}");
    const struct df_vault_entry narrowed = {.use = use};
    set_secret(w, "app", "password", "pa55word");
    assert_int_equal(df_vault_put(w->s.vault, "app", &narrowed, NULL), 0);
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "SecretNotAllowed");
    assert_value(
        w, DF_KIND_RUN, "net-1", "status.message",
        "spec.secrets: executor net may not use the secret \"app\", which is for net-prod; "
        "its owner or an admin allows it with: dayfly secret allow app --executor net");
}

static void a_missing_key_ends_the_step_and_is_named(void **state)
{
    struct world *w = *state;
    set_secret(w, "app", "other", "x");
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    assert_non_null(strstr(err.message, "secret app has no key \"password\""));
}

static int setup_bucket(void **state)
{
    return setup_with(state, "'secrets':[{'name':'app','as':'env'}],'storage':{'type':'s3',"
                             "'path':'p','config':{'bucket':'b','region':'r'}}");
}

static void a_key_that_leads_the_state_elsewhere_ends_the_step_and_is_named(void **state)
{
    struct world *w = *state;
    set_secret(w, "app", "AWS_ENDPOINT_URL_S3", "http://elsewhere");
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    await_value(w, DF_KIND_RUN, "net-1", "status.reason", "InvalidStep");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "environment: AWS_ENDPOINT_URL_S3 would lead the state to another place than the "
                 "executor's spec.storage says: set spec.storage.config.endpoints.s3, which comes "
                 "first");
}

static int setup_source(void **state)
{
    if (world_setup(state) < 0)
        return -1;
    struct world *w = *state;
    DF_JSON cJSON *doc =
        json("{'metadata':{'name':'net'},'spec':{'source':{'url':'https://x/y.git',"
             "'kind':'git','branch':'main','secretRef':{'name':'forge'}},"
             "'storage':{'type':'s3','path':'net/state','config':{'bucket':'b'}}}}");
    assert_int_equal(df_new_executor_status(doc, "tester", NULL), 0);
    assert_int_equal(df_store_create(w->s.store, DF_KIND_EXECUTOR, doc, NULL, NULL), 0);
    cJSON_Delete(make_run(w, "net", "{'action':'dry-run'}"));
    return df_control_start(w->s.control, NULL);
}

static void a_sources_secret_becomes_its_credentials_and_storage_a_backend(void **state)
{
    struct world *w = *state;
    set_secret(w, "forge", "token", "t0ken");
    set_secret(w, "forge", "ca.crt", "PEM");
    struct fake_step *s = await_start(w, "net-1-plan");
    cJSON *doc = NULL;
    assert_int_equal(try_claim(w, s, CLAIM_A, &doc, NULL), 0);
    assert_string_equal(df_json_str(doc, "source.credentials.password"), "t0ken");
    assert_non_null(df_json_str(doc, "source.credentials.username"));
    assert_string_equal(df_json_str(doc, "source.credentials.caCertificate"), "PEM");
    assert_null(df_json_at(doc, "source.secretRef"));
    assert_true(is_masked(doc, "t0ken"));
    assert_string_equal(df_json_str(doc, "state.type"), "s3");
    assert_string_equal(df_json_str(doc, "state.config.key"), "net/state");
    assert_string_equal(df_json_str(doc, "state.config.bucket"), "b");
    df_json_wipe(doc);
}

/* ---- reports ---- */

static int progress(const struct runner *r, const char *body, struct df_err *err)
{
    DF_JSON cJSON *j = json(body);
    return df_step_progress(&r->w->s, r->uid, r->step_token, j, err);
}

static void progress_is_merged_into_the_status(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    assert_int_equal(progress(&r,
                              "{'timeline':[{'name':'sourced','at':'2026-11-21T12:00:00Z'},"
                              "{'name':'claimed','at':'1999-01-01T00:00:00Z'},"
                              "{'name':'made-up','at':'x'}],'source':{'commit':'c1'}}",
                              NULL),
                     0);
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.source.commit", "c1");
    DF_FREE char *timeline = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.timeline");
    assert_non_null(strstr(timeline, "sourced"));
    assert_null(strstr(timeline, "1999"));
    assert_null(strstr(timeline, "made-up"));
}

static void the_reason_of_progress_follows_the_timeline(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    DF_JSON cJSON *before = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    assert_string_equal(df_task_reason(before), "Initializing");
    assert_int_equal(
        progress(&r, "{'timeline':[{'name':'initialized','at':'2026-11-21T12:00:00Z'}]}", NULL), 0);
    DF_JSON cJSON *after = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    assert_string_equal(df_task_reason(after), "Executing");
}

static void malformed_reports_change_nothing(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    struct df_err err;
    DF_FREE char *long_text = df_strf("{'source':{'commit':'%0100d'}}", 7);
    const char *const bad[] = {"{'source':{'commit':7}}",
                               "{'tool':{'version':[]}}",
                               "{'planSummary':{'add':-1}}",
                               "{'planSummary':{'add':1e300}}",
                               "{'timeline':[{'name':'sourced','at':'soon'}]}",
                               "{'timeline':[{'name':'sourced'}]}",
                               long_text};
    static const char *const bad_results[] = {"{}",
                                              "{'exitCode':0}",
                                              "{'exitCode':'0','reason':'Planned'}",
                                              "{'exitCode':-1,'reason':'Planned'}",
                                              "{'exitCode':256,'reason':'Planned'}",
                                              "{'exitCode':0,'reason':'not a word'}",
                                              "{'exitCode':0,'reason':''}",
                                              "{'exitCode':0,'reason':'lower'}",
                                              "[1]",
                                              "null"};
    /* The control loop's own last word about a step that was just created. */
    await_ref(w, "net-1-plan");
    DF_FREE char *before = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "status");
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++)
        assert_fails(progress(&r, bad[i], &err), err, DF_ERR_USER, "InvalidDocument");
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad_results); i++)
        assert_fails(try_result(&r, bad_results[i], &err), err, DF_ERR_USER, "InvalidDocument");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status", before);
}

static void a_result_may_be_repeated_but_not_changed(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    struct df_err err;
    static const char failed[] = "{'exitCode':1,'reason':'PlanFailed','message':'m'}";
    assert_int_equal(try_result(&r, failed, NULL), 0);
    assert_int_equal(try_result(&r, failed, NULL), 0);
    assert_fails(try_result(&r, NOTHING_TO_DO, &err), err, DF_ERR_CONFLICT, "StepOver");
    assert_fails(progress(&r, "{}", &err), err, DF_ERR_CONFLICT, "StepOver");
    r.step_token[0] ^= 1;
    assert_fails(try_result(&r, failed, &err), err, DF_ERR_DENIED, "");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.exitCode", "1");
}

static void a_long_message_is_cut(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    DF_FREE char *body = df_strf("{'exitCode':1,'reason':'PlanFailed','message':'%0100000d'}", 7);
    assert_int_equal(try_result(&r, body, NULL), 0);
    DF_FREE char *message = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.message");
    assert_true(strlen(message) < 2048);
}

/* ---- state ---- */

static void a_plan_may_read_the_state_and_an_apply_may_write_it(void **state)
{
    struct world *w = *state;
    struct df_step_state_access a;
    struct df_err err;
    struct runner r = claim(w, "net-1-plan");
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    assert_int_equal(df_step_state_access(&w->s, r.uid, r.state_password, &a, NULL), 0);
    assert_true(a.may_lock && !a.may_write);
    assert_string_equal(a.executor_uid, executor);
    assert_string_equal(a.run, "net-1");
    assert_fails(df_step_state_access(&w->s, r.uid, r.step_token, &a, &err), err, DF_ERR_DENIED,
                 "");
    put_plan(&r, "net-1");
    report(&r, PLANNED);
    struct runner b = claim(w, "net-1-apply");
    assert_int_equal(df_step_state_access(&w->s, b.uid, b.state_password, &a, NULL), 0);
    assert_true(a.may_write);
    assert_fails(df_step_state_access(&w->s, b.uid, r.state_password, &a, &err), err, DF_ERR_DENIED,
                 "");
}

#define TEST_RICH(fn) cmocka_unit_test_setup_teardown(fn, setup_rich, world_teardown)
#define TEST_BUCKET(fn) cmocka_unit_test_setup_teardown(fn, setup_bucket, world_teardown)

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_claimed_once_and_the_same_claim_may_ask_again),
        TEST(what_people_read_of_a_claim_does_not_repeat_it),
        TEST(what_is_no_claim_opens_nothing),
        TEST(tokens_are_kept_as_hashes_alone),
        TEST(each_claim_of_each_step_has_tokens_of_its_own),
        TEST(a_step_that_was_canceled_before_its_claim_is_over),
        TEST(of_many_runners_at_once_one_gets_the_step),
        TEST_RICH(a_runner_is_told_everything_it_needs_and_every_secret_is_masked),
        TEST_RICH(a_missing_secret_ends_the_step_and_is_named),
        TEST_RICH(a_secret_that_its_executor_may_not_use_any_more_ends_the_step),
        TEST_RICH(a_secret_that_does_not_open_ends_the_step_at_once_and_is_named),
        TEST_RICH(a_missing_key_ends_the_step_and_is_named),
        TEST_BUCKET(a_key_that_leads_the_state_elsewhere_ends_the_step_and_is_named),
        cmocka_unit_test_setup_teardown(
            a_sources_secret_becomes_its_credentials_and_storage_a_backend, setup_source,
            world_teardown),
        TEST(progress_is_merged_into_the_status),
        TEST(the_reason_of_progress_follows_the_timeline),
        TEST(malformed_reports_change_nothing),
        TEST(a_result_may_be_repeated_but_not_changed),
        TEST(a_long_message_is_cut),
        TEST(a_plan_may_read_the_state_and_an_apply_may_write_it),
    };
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
