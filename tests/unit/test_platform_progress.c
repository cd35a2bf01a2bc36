/* What is next for a component of a deploy, from what Argo CD says of its Application. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/parse.h"
#include "runner/platform/progress.h"

#define OURS "00000000000000aa"
#define NOW 100000

static const struct df_progress_rules rules = {.commit = "c2", .max_attempts = 3};

/* As Argo CD has it after a synchronization to the commit that is wanted. */
static struct df_application_view synced(void)
{
    return (struct df_application_view){.sync = "Synced",
                                        .health = "Healthy",
                                        .health_message = "",
                                        .revision = "c2",
                                        .is_current = true,
                                        .condition = "",
                                        .condition_type = "",
                                        .phase = "Succeeded",
                                        .message = "",
                                        .span = ""};
}

static struct df_progress at(enum df_stage stage)
{
    return (struct df_progress){
        .stage = stage, .span = OURS, .syncs = 1, .until_ms = NOW + 1000, .wake_at_ms = NOW + 500};
}

static void assert_next(const struct df_progress *p, const struct df_application_view *v,
                        enum df_todo todo, const char *cause)
{
    struct df_progress_rules of_view = rules;
    of_view.is_healthy = df_streq(v->health, "Healthy");
    struct df_next n = df_progress_next(p, &of_view, v, NOW);
    assert_int_equal(n.todo, todo);
    if (cause)
        assert_string_equal(n.cause, cause);
}

/* ---- comparing ---- */

static void what_is_synced_and_healthy_needs_no_write(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    assert_next(&p, &v, DF_TODO_HEALTH, NULL);
    p.stage = DF_STAGE_HEALTH;
    assert_next(&p, &v, DF_TODO_DONE, NULL);
}

static void what_is_out_of_sync_is_synchronized(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.sync = "OutOfSync";
    assert_next(&p, &v, DF_TODO_SYNC, NULL);
}

static void a_commit_that_nobody_expected_is_not_deployed(void **state)
{
    (void)state;
    const struct df_progress_rules bound = {
        .commit = "c2", .is_bound = true, .max_attempts = 3, .is_healthy = true};
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    assert_int_equal(df_progress_next(&p, &bound, &v, NOW).todo, DF_TODO_HEALTH);
    v.revision = "c3";
    assert_int_equal(df_progress_next(&p, &bound, &v, NOW).todo, DF_TODO_REFRESH);
    p.refreshes = 2;
    struct df_next n = df_progress_next(&p, &bound, &v, NOW);
    assert_int_equal(n.todo, DF_TODO_FAIL);
    assert_string_equal(n.cause, "CommitChanged");
    assert_next(&p, &v, DF_TODO_HEALTH, NULL); /* a branch without a word about a commit */
    p.stage = DF_STAGE_HEALTH;
    assert_int_equal(df_progress_next(&p, &bound, &v, NOW).todo, DF_TODO_DONE);
    v.sync = "OutOfSync";
    p.until_ms = NOW;
    n = df_progress_next(&p, &bound, &v, NOW);
    assert_int_equal(n.todo, DF_TODO_FAIL);
    assert_string_equal(n.cause, "CommitChanged");
}

static void a_comparison_with_another_source_is_waited_out(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.is_current = false;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    p.wake_at_ms = NOW;
    assert_next(&p, &v, DF_TODO_REFRESH, NULL);
    v.is_refreshing = true;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
}

static void another_commit_is_looked_for_twice_and_then_taken(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.revision = "c1";
    assert_next(&p, &v, DF_TODO_REFRESH, NULL);
    p.refreshes = 1;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    p.wake_at_ms = NOW;
    assert_next(&p, &v, DF_TODO_REFRESH, NULL);
    p.refreshes = 2;
    assert_next(&p, &v, DF_TODO_HEALTH, NULL);
}

static void out_of_sync_from_before_the_end_of_an_operation_asks_for_no_second_one(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.sync = "OutOfSync";
    v.is_before_end = true;
    assert_next(&p, &v, DF_TODO_REFRESH, NULL);
    p.refreshes = 1;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
}

static void an_operation_of_an_earlier_deploy_is_waited_for(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.sync = "OutOfSync";
    v.phase = "Running";
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    v.is_requested = true;
    p.wake_at_ms = NOW;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    v.phase = "";
    p.wake_at_ms = NOW + 1;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    p.wake_at_ms = NOW; /* Argo CD overlooks it */
    assert_next(&p, &v, DF_TODO_REFRESH, NULL);
    v.is_refreshing = true;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
}

static void a_lasting_fault_ends_it_at_once_and_any_other_at_the_end_of_its_time(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    p.is_new = true;
    v.sync = "Unknown";
    v.condition = "rpc error: app path does not exist";
    assert_next(&p, &v, DF_TODO_FAIL, "PathNotFound");
    v.condition = "connection refused";
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    p.until_ms = NOW;
    assert_next(&p, &v, DF_TODO_FAIL, "RepositoryUnavailable");
    v.condition = "error running server side apply in dryrun mode for resource Pod/a: timeout";
    assert_next(&p, &v, DF_TODO_FAIL, "SyncFailed");
    v.condition = "";
    assert_next(&p, &v, DF_TODO_FAIL, "SyncTimeout");
}

static void a_fault_from_before_this_deploy_is_looked_at_anew_before_it_counts(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.sync = "Unknown";
    v.condition = "rpc error: app path does not exist";
    assert_next(&p, &v, DF_TODO_RENDER, NULL);
    p.refreshes = 1;
    v.is_refreshing = true;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    v.is_refreshing = false;
    assert_next(&p, &v, DF_TODO_FAIL, "PathNotFound");
}

static void a_fault_that_may_pass_is_looked_at_again_and_again(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.sync = "Unknown";
    v.condition = "connection refused";
    p.refreshes = 1;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    p.wake_at_ms = NOW;
    assert_next(&p, &v, DF_TODO_RENDER, NULL);
    p.stage = DF_STAGE_HEALTH;
    assert_next(&p, &v, DF_TODO_RENDER, NULL);
}

#define DESC                                                                                       \
    "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code " \
    "= Unknown desc = "

static void each_fault_of_a_comparison_has_its_own_cause(void **state)
{
    static const struct {
        const char *message;
        enum df_todo todo;
        const char *cause;
    } cases[] = {
        {DESC "failed to execute helm template command: `helm template .` failed exit status 1: "
              "Error: execution error at (c/templates/a.yaml:4:13): say a",
         DF_TODO_FAIL, "ComparisonError"},
        {DESC "`kustomize build /kus` failed exit status 1: Error: accumulating resources: "
              "lstat /kus/missing.yaml: no such file or directory",
         DF_TODO_FAIL, "ComparisonError"},
        {DESC "`kustomize build /kus` failed exit status 1: Error: accumulating resources: Get "
              "\"https://a/b\": dial tcp 127.0.0.1:9: connect: connection refused",
         DF_TODO_WAIT, NULL},
        {DESC "invalid revision: version matching constraint not found in 1 tags", DF_TODO_FAIL,
         "RevisionNotFound"},
        {DESC "error fetching chart: `helm pull --repo https://a web` failed exit status 1: Error: "
              "chart \"web\" version \"2.0.0\" not found in https://a repository",
         DF_TODO_FAIL, "RevisionNotFound"},
        {DESC "error fetching chart: `helm pull --repo https://a web` failed exit status 1: Error: "
              "failed to fetch https://a/index.yaml : 404 File not found",
         DF_TODO_WAIT, NULL},
        {"Failed to compare desired state to live state: error running server side apply in dryrun "
         "mode for resource Pod/a: admission webhook \"p\" denied the request: it is privileged",
         DF_TODO_FAIL, "SyncFailed"},
    };
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    p.is_new = true;
    v.sync = "Unknown";
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        v.condition = cases[i].message;
        assert_next(&p, &v, cases[i].todo, cases[i].cause);
    }
}

static void a_long_message_keeps_its_end(void **state)
{
    (void)state;
    char why[1200], told[128];
    memset(why, 'a', sizeof why);
    (void)snprintf(why + 1000, sizeof why - 1000, ": no such file");
    df_application_explain(told, sizeof told, "it failed", why);
    assert_int_equal(strlen(told), sizeof told - 1);
    assert_non_null(strstr(told, "it failed: aaa"));
    assert_string_equal(told + strlen(told) - 14, ": no such file");
    for (size_t i = 0; i < 600; i++)
        memcpy(why + 2 * i, "\xc3\xa4", 2); /* a letter of two bytes is never cut in two */
    why[1199] = why[1198] = '\0';
    for (size_t size = 40; size < 60; size++) {
        df_application_explain(told, size, "it failed", why);
        assert_true(df_is_utf8(told, strlen(told)));
    }
}

/* ---- synchronizing ---- */

static void only_the_end_of_our_own_operation_counts(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_SYNC);
    struct df_application_view v = synced();
    v.span = "00000000000000bb";
    v.is_requested = true;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    v.span = OURS;
    assert_next(&p, &v, DF_TODO_WAIT, NULL); /* Argo CD takes the request away at its end */
    v.is_requested = false;
    assert_next(&p, &v, DF_TODO_HEALTH, NULL);
}

static void an_operation_that_argo_cd_overlooks_wakes_it(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_SYNC);
    struct df_application_view v = synced();
    v.is_requested = true;
    p.wake_at_ms = NOW;
    assert_next(&p, &v, DF_TODO_REFRESH, NULL);
    v.is_refreshing = true;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
}

static void an_operation_that_was_replaced_is_asked_for_again(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_SYNC);
    struct df_application_view v = synced();
    v.span = "00000000000000bb";
    assert_next(&p, &v, DF_TODO_RETRY, NULL);
}

static void a_failed_synchronization_is_tried_again_unless_that_cannot_help(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_SYNC);
    struct df_application_view v = synced();
    v.span = OURS;
    v.phase = "Failed";
    v.message = "something timed out";
    assert_next(&p, &v, DF_TODO_RETRY, NULL);
    p.syncs = 3;
    assert_next(&p, &v, DF_TODO_FAIL, "SyncFailed");
    p.syncs = 1;
    v.message = "pods \"a\" is forbidden: exceeded quota: q";
    assert_next(&p, &v, DF_TODO_FAIL, "QuotaExceeded");
}

static void a_pause_before_the_next_try_is_kept(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_COMPARE);
    struct df_application_view v = synced();
    v.sync = "OutOfSync";
    p.retry_at_ms = NOW + 1;
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
}

/* ---- health ---- */

static void a_component_that_is_degraded_has_until_its_time_is_over(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_HEALTH);
    struct df_application_view v = synced();
    v.health = "Degraded";
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    p.until_ms = NOW;
    assert_next(&p, &v, DF_TODO_FAIL, "Degraded");
    v.health = "Progressing";
    assert_next(&p, &v, DF_TODO_FAIL, "HealthTimeout");
    v.sync = "OutOfSync";
    assert_next(&p, &v, DF_TODO_FAIL, "OutOfSync");
}

static void health_from_before_the_comparison_does_not_count(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_HEALTH);
    struct df_application_view v = synced();
    v.sync = "OutOfSync";
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    p.wake_at_ms = NOW;
    assert_next(&p, &v, DF_TODO_REFRESH, NULL);
}

static void a_component_that_is_not_healthy_is_done_only_where_that_is_allowed(void **state)
{
    (void)state;
    struct df_progress p = at(DF_STAGE_HEALTH);
    struct df_application_view v = synced();
    v.health = "Progressing";
    assert_next(&p, &v, DF_TODO_WAIT, NULL);
    const struct df_progress_rules lenient = {.commit = "c2", .is_healthy = true};
    assert_int_equal(df_progress_next(&p, &lenient, &v, NOW).todo, DF_TODO_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_synced_and_healthy_needs_no_write),
        cmocka_unit_test(what_is_out_of_sync_is_synchronized),
        cmocka_unit_test(a_commit_that_nobody_expected_is_not_deployed),
        cmocka_unit_test(a_comparison_with_another_source_is_waited_out),
        cmocka_unit_test(another_commit_is_looked_for_twice_and_then_taken),
        cmocka_unit_test(out_of_sync_from_before_the_end_of_an_operation_asks_for_no_second_one),
        cmocka_unit_test(an_operation_of_an_earlier_deploy_is_waited_for),
        cmocka_unit_test(a_lasting_fault_ends_it_at_once_and_any_other_at_the_end_of_its_time),
        cmocka_unit_test(a_fault_from_before_this_deploy_is_looked_at_anew_before_it_counts),
        cmocka_unit_test(a_fault_that_may_pass_is_looked_at_again_and_again),
        cmocka_unit_test(each_fault_of_a_comparison_has_its_own_cause),
        cmocka_unit_test(a_long_message_keeps_its_end),
        cmocka_unit_test(only_the_end_of_our_own_operation_counts),
        cmocka_unit_test(an_operation_that_argo_cd_overlooks_wakes_it),
        cmocka_unit_test(an_operation_that_was_replaced_is_asked_for_again),
        cmocka_unit_test(a_failed_synchronization_is_tried_again_unless_that_cannot_help),
        cmocka_unit_test(a_pause_before_the_next_try_is_kept),
        cmocka_unit_test(a_component_that_is_degraded_has_until_its_time_is_over),
        cmocka_unit_test(health_from_before_the_comparison_does_not_count),
        cmocka_unit_test(a_component_that_is_not_healthy_is_done_only_where_that_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
