#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/platform/checks.h"
#include "runner/platform/workload.h"
#include "tests/unit/json_words.h"

/* ---- Applications ---- */

static struct df_verdict judged(const char *sync, const char *health, bool allowed, bool critical)
{
    const struct df_application_view v = {.sync = sync,
                                          .health = health,
                                          .health_message = "web exceeded its deadline",
                                          .is_current = true,
                                          .condition = "",
                                          .condition_type = ""};
    return df_check_judge(&v, NULL, allowed, critical);
}

static void assert_verdict(const char *sync, const char *health, bool critical,
                           enum df_component_state state, const char *cause)
{
    struct df_verdict seen = judged(sync, health, df_streq(health, "Healthy"), critical);
    if (seen.state != state || strcmp(seen.cause, cause) != 0)
        fail_msg("%s and %s%s: %d %s", sync, health, critical ? ", critical" : "", seen.state,
                 seen.cause);
}

static void words_of_argo_cd_say_how_a_component_is(void **unused)
{
    (void)unused;
    assert_verdict("Synced", "Healthy", false, DF_COMPONENT_DONE, "");
    assert_verdict("OutOfSync", "Healthy", false, DF_COMPONENT_DEGRADED, "OutOfSync");
    assert_verdict("Unknown", "Healthy", false, DF_COMPONENT_DEGRADED, "Unknown");
    assert_verdict("Synced", "Progressing", false, DF_COMPONENT_DEGRADED, "Progressing");
    assert_verdict("Synced", "Suspended", false, DF_COMPONENT_DEGRADED, "Suspended");
    assert_verdict("Synced", "Degraded", false, DF_COMPONENT_DEGRADED, "Degraded");
    assert_verdict("OutOfSync", "Missing", false, DF_COMPONENT_DEGRADED, "Missing");
}

static void a_critical_component_that_does_not_work_is_a_failure(void **unused)
{
    (void)unused;
    assert_verdict("Synced", "Degraded", true, DF_COMPONENT_FAILED, "Degraded");
    assert_verdict("OutOfSync", "Missing", true, DF_COMPONENT_FAILED, "Missing");
    assert_verdict("OutOfSync", "Healthy", true, DF_COMPONENT_DEGRADED, "OutOfSync");
    assert_verdict("Synced", "Progressing", true, DF_COMPONENT_DEGRADED, "Progressing");
    assert_string_equal(judged("Synced", "Degraded", false, true).message,
                        "resources of it do not work: web exceeded its deadline");
}

static void criteria_of_health_yaml_make_a_component_healthy(void **unused)
{
    (void)unused;
    assert_int_equal(judged("Synced", "Suspended", true, true).state, DF_COMPONENT_DONE);
    assert_int_equal(judged("Synced", "Degraded", true, true).state, DF_COMPONENT_DONE);
    assert_string_equal(judged("OutOfSync", "Suspended", true, true).cause, "OutOfSync");
}

static void a_status_about_an_earlier_source_is_not_trusted(void **unused)
{
    (void)unused;
    const struct df_application_view v = {.sync = "Synced", .health = "Healthy", .condition = ""};
    struct df_verdict seen = df_check_judge(&v, NULL, true, false);
    assert_int_equal(seen.state, DF_COMPONENT_DEGRADED);
    assert_string_equal(seen.cause, "Unknown");
}

static void a_comparison_that_fails_is_named_by_argo_cds_condition(void **unused)
{
    (void)unused;
    const struct df_application_view v = {.sync = "Unknown",
                                          .health = "Healthy",
                                          .is_current = true,
                                          .condition = "app path does not exist",
                                          .condition_type = "ComparisonError"};
    struct df_verdict seen = df_check_judge(&v, NULL, true, true);
    assert_string_equal(seen.cause, "ComparisonError");
    assert_string_equal(seen.message,
                        "Argo CD cannot compare it with the repository: app path does not exist");
}

/* ---- workloads ---- */

static void assert_ready(bool expected, int64_t min, const char *workload)
{
    DF_JSON cJSON *object = json(workload);
    char why[256] = "";
    if (df_workload_is_ready(object, min, why, sizeof why) != expected)
        fail_msg("%s: %s", workload, why);
}

static void a_workload_is_ready_with_all_replicas_of_the_newest_generation(void **unused)
{
    (void)unused;
    assert_ready(true, -1,
                 "{'kind': 'Deployment', 'spec': {'replicas': 2}, 'status': {'readyReplicas': 2, "
                 "'updatedReplicas': 2}}");
    assert_ready(false, -1,
                 "{'kind': 'Deployment', 'spec': {'replicas': 2}, 'status': {'readyReplicas': 1, "
                 "'updatedReplicas': 2}}");
    assert_ready(false, -1,
                 "{'kind': 'StatefulSet', 'spec': {'replicas': 2}, 'status': {'readyReplicas': 2, "
                 "'updatedReplicas': 1}}");
    assert_ready(false, -1,
                 "{'kind': 'Deployment', 'metadata': {'generation': 3}, 'spec': {'replicas': 1}, "
                 "'status': {'observedGeneration': 2, 'readyReplicas': 1, 'updatedReplicas': 1}}");
    assert_ready(true, -1, "{'kind': 'Deployment', 'spec': {'replicas': 0}, 'status': {}}");
    assert_ready(true, -1,
                 "{'kind': 'DaemonSet', 'status': {'desiredNumberScheduled': 3, 'numberReady': 3, "
                 "'updatedNumberScheduled': 3}}");
    assert_ready(false, -1,
                 "{'kind': 'DaemonSet', 'status': {'desiredNumberScheduled': 3, 'numberReady': 2, "
                 "'updatedNumberScheduled': 3, 'numberUnavailable': 1}}");
}

static void a_new_pod_that_does_not_start_shows_although_the_old_one_is_ready(void **unused)
{
    (void)unused;
    assert_ready(false, -1,
                 "{'kind': 'Deployment', 'spec': {'replicas': 1}, 'status': {'readyReplicas': 1, "
                 "'updatedReplicas': 1, 'replicas': 2, 'unavailableReplicas': 1}}");
}

static void replicas_that_a_person_holds_back_are_no_fault(void **unused)
{
    (void)unused;
    assert_ready(true, -1,
                 "{'kind': 'StatefulSet', 'spec': {'replicas': 3, 'updateStrategy': "
                 "{'rollingUpdate': {'partition': 2}}}, 'status': {'readyReplicas': 3, "
                 "'updatedReplicas': 1}}");
    assert_ready(true, -1,
                 "{'kind': 'DaemonSet', 'spec': {'updateStrategy': {'type': 'OnDelete'}}, "
                 "'status': {'desiredNumberScheduled': 3, 'numberReady': 3}}");
}

static void fewer_ready_replicas_do_where_health_yaml_says_so(void **unused)
{
    (void)unused;
#define ONE_OF_TWO                                                                                 \
    "{'kind': 'Deployment', 'spec': {'replicas': 2}, 'status': {'readyReplicas': 1, "              \
    "'updatedReplicas': 2, 'unavailableReplicas': 1}}"
    assert_ready(false, -1, ONE_OF_TWO);
    assert_ready(true, 1, ONE_OF_TWO);
    assert_ready(false, 2, ONE_OF_TWO);
}

static void a_job_is_ready_when_it_has_succeeded(void **unused)
{
    (void)unused;
    assert_ready(true, -1, "{'kind': 'Job', 'spec': {}, 'status': {'succeeded': 1}}");
    assert_ready(false, -1,
                 "{'kind': 'Job', 'spec': {'completions': 2}, 'status': {'succeeded': 1}}");
    assert_ready(false, 0, "{'kind': 'Job', 'spec': {}, 'status': {'failed': 6}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_argo_cd_say_how_a_component_is),
        cmocka_unit_test(a_critical_component_that_does_not_work_is_a_failure),
        cmocka_unit_test(criteria_of_health_yaml_make_a_component_healthy),
        cmocka_unit_test(a_status_about_an_earlier_source_is_not_trusted),
        cmocka_unit_test(a_comparison_that_fails_is_named_by_argo_cds_condition),
        cmocka_unit_test(a_workload_is_ready_with_all_replicas_of_the_newest_generation),
        cmocka_unit_test(a_new_pod_that_does_not_start_shows_although_the_old_one_is_ready),
        cmocka_unit_test(replicas_that_a_person_holds_back_are_no_fault),
        cmocka_unit_test(fewer_ready_replicas_do_where_health_yaml_says_so),
        cmocka_unit_test(a_job_is_ready_when_it_has_succeeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
