/* What a run is given that no document holds: put, handed out, gone at the end, swept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/steps/sealed.h"
#include "tests/unit/database.h"
#include "tests/unit/step_world.h"

#define VALUE "correct-horse"
#define SECRETS                                                                                    \
    "'secrets':{'environment':{'AWS_REGION':'eu-west-1','AWS_SECRET_ACCESS_KEY':'" VALUE "'},"     \
    "'variables':{'password':'" VALUE "','ports':[1,2]},'files':{'a.tfvars':'x = 1'},"             \
    "'plain':['AWS_REGION']}"
#define GIVEN "{'action':'provision'," SECRETS "}"
#define MINUTE INT64_C(60000000)

static int entries(struct world *w)
{
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_vault_run_list(w->s.vault, &list, NULL), 0);
    return cJSON_GetArraySize(list);
}

static void assert_nowhere(struct world *w, enum df_kind kind)
{
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_store_list(w->s.store, kind, NULL, &list, NULL, NULL), 0);
    DF_FREE char *text = df_json_print(list);
    if (strstr(text, VALUE))
        fail_msg("%s", text);
}

static void the_step_gets_the_values_and_documents_get_names(void **state)
{
    struct world *w = *state;
    make_executor(w, "db", "");
    DF_JSON cJSON *run = make_run(w, "db", GIVEN);
    struct fake_step *s = await_start(w, "db-1-plan");
    DF_SECRET_JSON cJSON *doc = NULL;
    assert_int_equal(try_claim(w, s, CLAIM_A, &doc, NULL), 0);
    assert_string_equal(df_json_str(doc, "sealed.variables.password"), VALUE);
    assert_string_equal(df_json_str(doc, "sealed.environment.AWS_SECRET_ACCESS_KEY"), VALUE);
    DF_FREE char *plain = df_json_print(df_json_at(doc, "sealed.plain"));
    assert_string_equal(plain, "[\"AWS_REGION\"]");
    assert_value(w, DF_KIND_RUN, "db-1", "spec.sealed.variables", "[\"password\",\"ports\"]");
    assert_value(w, DF_KIND_RUN, "db-1", "spec.sealed.files", "[\"a.tfvars\"]");
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        assert_nowhere(w, (enum df_kind)kind);
}

static void a_variable_of_a_run_does_not_lead_the_state_elsewhere(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *body =
        json("{'action':'provision','secrets':{'environment':{'AWS_ENDPOINT_URL':'http://x'}}}");
    const struct df_run_request request = {
        .body = body, .rights = {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, .actor = "tester"};
    struct df_err err = {0};
    make_executor(w, "db", "'storage':{'type':'s3','config':{'bucket':'b','region':'r'}}");
    assert_fails(df_request_create_run(&w->s, "db", &request, NULL, &err), err, DF_ERR_USER,
                 "InvalidDocument");
    assert_non_null(strstr(err.message, "set spec.storage.config.endpoints.s3"));
    assert_int_equal(entries(w), 0);
}

static void they_are_gone_when_the_run_is_over(void **state)
{
    struct world *w = *state;
    make_executor(w, "db", "");
    cJSON_Delete(make_run(w, "db", GIVEN));
    (void)await_start(w, "db-1-plan");
    assert_int_equal(entries(w), 1);
    assert_int_equal(df_request_cancel_run(&w->s, "db-1", DF_VERBS_ADMIN, "t", NULL, NULL, NULL),
                     0);
    end_processes(w, "db-1-plan", 1, "");
    await_value(w, DF_KIND_RUN, "db-1", "status.phase", "Canceled");
    assert_int_equal(entries(w), 0);
}

static void a_step_whose_secrets_are_lost_fails_and_says_so(void **state)
{
    struct world *w = *state;
    struct df_err err;
    cJSON *doc = NULL;
    make_executor(w, "db", "");
    DF_JSON cJSON *run = make_run(w, "db", GIVEN);
    struct fake_step *s = await_start(w, "db-1-plan");
    assert_int_equal(df_sealed_drop(&w->s, run, NULL), 0);
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    await_value(w, DF_KIND_RUN, "db-1", "status.reason", "InvalidStep");
}

static void a_step_whose_secrets_do_not_open_fails_and_its_run_ends(void **state)
{
    struct world *w = *state;
    struct df_err err;
    cJSON *doc = NULL;
    make_executor(w, "db", "");
    cJSON_Delete(make_run(w, "db", GIVEN));
    struct fake_step *s = await_start(w, "db-1-plan");
    execute(w->dir, "UPDATE secrets SET sealed = x'00'");
    assert_fails(try_claim(w, s, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    await_value(w, DF_KIND_RUN, "db-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "db-1", "status.reason", "SecretUnreadable");
    assert_value(w, DF_KIND_RUN, "db-1", "status.message",
                 "the secrets that run db-1 was given cannot be read: their sealed values do not "
                 "open; start a new run");
    /* Nobody can know whose values these were: they go when no run can need them any more. */
    int64_t later = df_real_us() + DF_RUN_SECRETS_GRACE_SECONDS * INT64_C(1000000) + MINUTE;
    assert_int_equal(df_sealed_sweep(&w->s, later, NULL), 0);
    assert_int_equal(entries(w), 0);
}

static void the_secrets_of_another_run_are_not_handed_out_or_dropped(void **state)
{
    struct world *w = *state;
    struct df_err err;
    cJSON *found = NULL;
    make_executor(w, "db", "");
    DF_JSON cJSON *run = make_run(w, "db", GIVEN), *thief = cJSON_Duplicate(run, true);
    assert_int_equal(
        df_json_set_str(cJSON_GetObjectItem(thief, "metadata"), "name", "thief-1", NULL), 0);
    assert_fails(df_sealed_get(&w->s, thief, &found, &err), err, DF_ERR_USER, "InvalidStep");
    assert_int_equal(df_sealed_drop(&w->s, thief, NULL), 0);
    assert_int_equal(entries(w), 1);
}

static void what_a_crash_left_behind_is_swept(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *unborn = json("{'metadata':{'name':'db-7'},'spec':{}}");
    DF_JSON cJSON *secrets = json("{'variables':{'a':'" VALUE "'}}");
    make_executor(w, "db", "");
    DF_JSON cJSON *run = make_run(w, "db", GIVEN);
    assert_int_equal(df_sealed_put(&w->s, unborn, secrets, NULL), 0);
    /* It may be about to be stored by another replica. */
    assert_int_equal(df_sealed_sweep(&w->s, df_real_us(), NULL), 0);
    assert_int_equal(entries(w), 2);
    int64_t later = df_real_us() + DF_RUN_SECRETS_GRACE_SECONDS * INT64_C(1000000) + MINUTE;
    assert_int_equal(df_sealed_sweep(&w->s, later, NULL), 0);
    assert_int_equal(entries(w), 1);
    DF_SECRET_JSON cJSON *kept = NULL;
    assert_int_equal(df_sealed_get(&w->s, run, &kept, NULL), 0);
}

static void bad_secrets_are_refused_without_their_values(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *secrets, *names;
    } bad[] = {{"[]", "secrets"},
               {"'" VALUE "'", "secrets"},
               {"{'environment':{'PATH':'" VALUE "'}}", "PATH"},
               {"{'environment':{'TF_HTTP_PASSWORD':'" VALUE "'}}", "TF_HTTP_PASSWORD"},
               {"{'environment':{'a b':'" VALUE "'}}", "a b"},
               {"{'environment':{'A':['" VALUE "']}}", "secrets.environment.A"},
               {"{'variables':{'a b':'" VALUE "'}}", "a b"},
               {"{'files':{'../a.tfvars':'" VALUE "'}}", "../a.tfvars"},
               {"{'files':{'a.tf':'" VALUE "'}}", "a.tf"},
               {"{'plain':'" VALUE "'}", "secrets.plain"},
               {"{'values':{'a':'" VALUE "'}}", "secrets.values"}};
    make_executor(w, "db", "");
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_FREE char *text = df_strf("{'action':'provision','secrets':%s}", bad[i].secrets);
        DF_JSON cJSON *body = json(text), *made = NULL;
        struct df_err err = {0};
        assert_int_equal(
            df_request_create_run(
                &w->s, "db",
                &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "t"}, &made,
                &err),
            -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, bad[i].names) || strstr(err.message, VALUE))
            fail_msg("%s: %s", bad[i].secrets, err.message);
    }
    assert_int_equal(entries(w), 0);
}

static void more_than_the_cap_is_refused(void **state)
{
    struct world *w = *state;
    DF_FREE char *large = malloc(DF_LIMIT_RUN_SECRETS + 1);
    memset(large, 'x', DF_LIMIT_RUN_SECRETS);
    large[DF_LIMIT_RUN_SECRETS] = '\0';
    DF_FREE char *text =
        df_strf("{'action':'provision','secrets':{'variables':{'a':'%s'}}}", large);
    make_executor(w, "db", "");
    DF_JSON cJSON *body = json(text), *made = NULL;
    struct df_err err = {0};
    assert_int_equal(df_request_create_run(
                         &w->s, "db",
                         &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "t"},
                         &made, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(entries(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_step_gets_the_values_and_documents_get_names),
        TEST(a_variable_of_a_run_does_not_lead_the_state_elsewhere),
        TEST(they_are_gone_when_the_run_is_over),
        TEST(a_step_whose_secrets_are_lost_fails_and_says_so),
        TEST(a_step_whose_secrets_do_not_open_fails_and_its_run_ends),
        TEST(the_secrets_of_another_run_are_not_handed_out_or_dropped),
        TEST(what_a_crash_left_behind_is_swept),
        TEST(bad_secrets_are_refused_without_their_values),
        TEST(more_than_the_cap_is_refused),
    };
    return cmocka_run_group_tests_name("sealed", tests, NULL, NULL);
}
