#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/task_steps.h"

/* ---- tries that the system lost ---- */

/* What is counted, when there is another try, and when it is over. The ceilings are Flyte's. */
static void tries_are_counted_and_end_when_there_were_too_many(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct step step;
        struct df_engine_observation seen;
        enum df_task_next next;
        const char *reason;
        int counted;
    } rows[] = {
        {"a first start is no other try", {0}, {.phase = ABSENT}, DF_TASK_CREATE, NULL, 0},
        {"one that was lost is counted, and there is another",
         {.tried = true},
         {.phase = ENDED, .max_system_failures = 3},
         DF_TASK_CREATE,
         NULL,
         1},
        {"the third, too",
         {.tried = true, .failures = 2},
         {.phase = ENDED, .max_system_failures = 3},
         DF_TASK_CREATE,
         NULL,
         3},
        {"the fourth ends it",
         {.tried = true, .failures = 3},
         {.phase = ENDED, .max_system_failures = 3},
         DF_TASK_FAIL,
         "MaxSystemFailuresExceeded",
         4},
        {"a lower ceiling is reached earlier",
         {.tried = true, .failures = 2},
         {.phase = ENDED, .max_system_failures = 2},
         DF_TASK_FAIL,
         "MaxSystemFailuresExceeded",
         3},
        {"without a ceiling it is three",
         {.tried = true, .failures = 3},
         {.phase = ENDED},
         DF_TASK_FAIL,
         "MaxSystemFailuresExceeded",
         4},
        {"seven are seven",
         {.tried = true, .failures = 3},
         {.phase = ENDED, .max_system_failures = 7},
         DF_TASK_CREATE,
         NULL,
         4},
        {"what is gone without a trace was lost as well",
         {.tried = true, .failures = 3},
         {.phase = ABSENT, .reason = "JobDeleted"},
         DF_TASK_FAIL,
         "MaxSystemFailuresExceeded",
         4},
        {"one that was counted is not counted again by the next pass",
         {.tried = true, .counted = true, .failures = 3},
         {.phase = ENDED},
         DF_TASK_CREATE,
         NULL,
         3},
        {"what would end so again is no lost try",
         {.tried = true},
         {.phase = ENDED, .gives_up = true, .reason = "RunnerFailed"},
         DF_TASK_FAIL,
         "RunnerFailed",
         0},
        {"nor is what we ended",
         {.tried = true, .canceled = true},
         {.phase = ABSENT, .reason = "JobDeleted"},
         DF_TASK_FAIL,
         "Canceled",
         0},
        {"what lives is not lost",
         {.tried = true, .failures = 3},
         {.phase = STARTING},
         DF_TASK_WAIT,
         NULL,
         3},
        {"one that is not recorded is not, either",
         {.tried = true, .failures = 3},
         {.phase = STARTING, .is_unrecorded = true},
         DF_TASK_CREATE,
         NULL,
         3},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = make_step(&rows[i].step);
        int64_t now = EPOCH + 5 * SECOND;
        struct df_engine_observation seen = rows[i].seen;
        seen.since_us = EPOCH;
        struct df_task_verdict v = df_task_next(task, &seen, now);
        if (v.next != rows[i].next || (rows[i].reason && !df_streq(v.reason, rows[i].reason)))
            fail_msg("%s: next %d, reason %s", rows[i].what, v.next, v.reason);
        assert_int_equal(df_task_count_lost_attempt(task, &seen, now, NULL), 0);
        if (df_json_int(task, "status.systemFailures", 0) != rows[i].counted)
            fail_msg("%s: counted otherwise", rows[i].what);
    }
}

/* What would end again as it did is not tried again and counts nothing. */
static void what_is_the_users_own_ends_at_once(void **state)
{
    (void)state;
    const struct step s = {.tried = true};
    DF_JSON cJSON *task = make_step(&s);
    struct df_engine_observation seen = {.phase = STARTING,
                                         .gives_up = true,
                                         .fault = DF_FAULT_USER,
                                         .reason = "ImageNameInvalid",
                                         .cause = "no such name"};
    struct df_task_verdict v = df_task_next(task, &seen, EPOCH + SECOND);
    assert_int_equal(v.next, DF_TASK_FAIL);
    assert_int_equal(v.fault, DF_FAULT_USER);
    assert_string_equal(v.reason, "ImageNameInvalid");
    assert_int_equal(df_task_count_lost_attempt(task, &seen, EPOCH + SECOND, NULL), 0);
    assert_int_equal(df_json_int(task, "status.systemFailures", 0), 0);
}

/* An image that cannot be pulled is the user's fault, unless the registry is too busy. */
static void the_fault_that_the_engine_saw_goes_with_its_reason(void **state)
{
    (void)state;
    const struct step s = {.tried = true};
    DF_JSON cJSON *task = make_step(&s);
    struct df_engine_observation seen = {
        .phase = STARTING, .gives_up = true, .fault = DF_FAULT_SYSTEM, .reason = "ImagePullFailed"};
    assert_int_equal(df_task_next(task, &seen, EPOCH + SECOND).fault, DF_FAULT_SYSTEM);
}

/* The message contains the cause. */
static void the_last_cause_is_told_when_there_were_too_many(void **state)
{
    (void)state;
    const struct step s = {.tried = true, .failures = 3};
    DF_JSON cJSON *task = make_step(&s);
    struct df_engine_observation seen = {.phase = ENDED, .reason = "NodeFailed"};
    (void)snprintf(seen.cause, sizeof(seen.cause), "the node has no room");
    struct df_task_verdict v = df_task_next(task, &seen, EPOCH + SECOND);
    assert_non_null(strstr(v.message, "the node has no room"));
}

/* With its code and its message. */
static void a_lost_try_stands_in_the_history(void **state)
{
    (void)state;
    const struct step s = {.tried = true};
    DF_JSON cJSON *task = make_step(&s);
    struct df_engine_observation seen = {.phase = ENDED, .reason = "NodeFailed"};
    (void)snprintf(seen.cause, sizeof(seen.cause), "the node has no room");
    assert_int_equal(df_task_count_lost_attempt(task, &seen, EPOCH, NULL), 0);
    assert_int_equal(
        df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing", NULL, EPOCH, NULL), 0);
    const cJSON *history = df_json_at(task, "status.phaseHistory");
    int n = cJSON_GetArraySize(history);
    const cJSON *lost = cJSON_GetArrayItem(history, n - 2);
    assert_string_equal(df_json_str(lost, "phase"), "RetryableFailure");
    assert_string_equal(df_json_str(lost, "message"), "NodeFailed: the node has no room");
    assert_string_equal(df_json_str(cJSON_GetArrayItem(history, n - 1), "phase"), "Initializing");
}

static void a_claim_forgives_what_was_lost_before(void **state)
{
    (void)state;
    const struct step s = {.tried = true, .failures = 2};
    DF_JSON cJSON *task = make_step(&s);
    assert_int_equal(df_task_reset_failures(task, NULL), 0);
    assert_int_equal(df_json_int(task, "status.systemFailures", -1), 0);
}

/* Whatever was counted. */
static void a_claimed_step_has_no_other_try(void **state)
{
    (void)state;
    static const struct step step = {.tried = true, .claimed = true};
    DF_JSON cJSON *task = make_step(&step);
    struct df_engine_observation seen = {
        .phase = ENDED, .since_us = EPOCH, .max_system_failures = 100};
    struct df_task_verdict v = df_task_next(task, &seen, EPOCH + (CLAIM_S + 5) * SECOND);
    assert_int_equal(v.next, DF_TASK_FAIL);
    assert_string_not_equal(v.reason, "MaxSystemFailuresExceeded");
    assert_int_equal(df_task_count_lost_attempt(task, &seen, EPOCH, NULL), 0);
    assert_null(df_json_at(task, "status.systemFailures"));
}

/* ---- deletion ---- */

static void a_deleted_step_is_canceled_and_goes_when_nothing_is_left(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct step step;
        enum df_engine_phase phase;
        bool is_gone;
        enum df_task_next next;
    } rows[] = {
        {"before its start it just ends",
         {.deleted = true, .never_created = true},
         ABSENT,
         true,
         DF_TASK_FAIL},
        {"a runner is ended first",
         {.deleted = true, .claimed = true},
         RUNNING,
         false,
         DF_TASK_CANCEL},
        {"one that is yet to start, too", {.deleted = true}, STARTING, false, DF_TASK_CANCEL},
        {"then the step", {.deleted = true, .claimed = true}, ENDED, false, DF_TASK_FAIL},
        {"an ended one waits for a pod that lives",
         {.deleted = true, .claimed = true, .end = DF_OUTCOME_FAILED},
         RUNNING,
         false,
         DF_TASK_WAIT},
        {"has the engine clear up",
         {.deleted = true, .claimed = true, .end = DF_OUTCOME_FAILED},
         ENDED,
         false,
         DF_TASK_CLEAN},
        {"also when only a Job is left",
         {.deleted = true, .claimed = true, .end = DF_OUTCOME_SUCCEEDED},
         ABSENT,
         false,
         DF_TASK_CLEAN},
        {"and goes",
         {.deleted = true, .claimed = true, .end = DF_OUTCOME_SUCCEEDED},
         ABSENT,
         true,
         DF_TASK_REMOVE},
        {"however the engine calls it",
         {.deleted = true, .claimed = true, .end = DF_OUTCOME_SUCCEEDED},
         ENDED,
         true,
         DF_TASK_REMOVE},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = make_step(&rows[i].step);
        struct df_engine_observation seen = observed(rows[i].phase, false);
        seen.is_gone = rows[i].is_gone;
        int64_t now = EPOCH + (rows[i].step.end ? FINAL_S : CANCEL_S) * SECOND;
        struct df_task_verdict v = df_task_next(task, &seen, now);
        if (v.next != rows[i].next)
            fail_msg("%s: next %d", rows[i].what, v.next);
    }
}

/* Not an unknown hand in the cluster: we know who ended it. */
static void a_deletion_is_no_interruption(void **state)
{
    (void)state;
    const struct step s = {.claimed = true, .deleted = true};
    DF_JSON cJSON *task = make_step(&s), *result = cJSON_CreateObject();
    (void)df_json_add_str(result, "reason", "Canceled", NULL);
    assert_false(df_task_was_interrupted(task, result, true));
    struct df_engine_observation seen = {.phase = RUNNING, .reason = "JobDeleted"};
    assert_false(df_task_is_disruption(task, &seen));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tries_are_counted_and_end_when_there_were_too_many),
        cmocka_unit_test(what_is_the_users_own_ends_at_once),
        cmocka_unit_test(the_fault_that_the_engine_saw_goes_with_its_reason),
        cmocka_unit_test(the_last_cause_is_told_when_there_were_too_many),
        cmocka_unit_test(a_lost_try_stands_in_the_history),
        cmocka_unit_test(a_claim_forgives_what_was_lost_before),
        cmocka_unit_test(a_claimed_step_has_no_other_try),
        cmocka_unit_test(a_deleted_step_is_canceled_and_goes_when_nothing_is_left),
        cmocka_unit_test(a_deletion_is_no_interruption),
    };
    return cmocka_run_group_tests_name("model_task_tries", tests, NULL, NULL);
}
