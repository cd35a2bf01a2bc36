#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/task_steps.h"

#define INTERRUPTED_S 60

struct ending {
    const char *what;
    const char *kept; /* status.disruption.reason, or NULL */
    enum df_engine_phase phase;
    const char *seen; /* reason, or "" */
    bool canceled;
    int64_t second;
    enum df_task_next next;
    const char *reason; /* of a FAIL */
};

static const struct ending endings[] = {
    {"the end of the pod is awaited", NULL, RUNNING, "PodDeleted", false, INTERRUPTED_S,
     DF_TASK_WAIT, NULL},
    {"and explains it", NULL, ENDED, "PodDeleted", false, INTERRUPTED_S, DF_TASK_FAIL,
     "PodDeleted"},
    {"what was seen while it lived is kept", "Evicted", ENDED, "PodDeleted", false, INTERRUPTED_S,
     DF_TASK_FAIL, "Evicted"},
    {"also when nothing is left to see", "Evicted", ABSENT, "", false, INTERRUPTED_S, DF_TASK_FAIL,
     "Evicted"},
    {"what is seen later is more exact", "PodDeleted", ENDED, "DeadlineExceeded", false,
     INTERRUPTED_S, DF_TASK_FAIL, "DeadlineExceeded"},
    {"the runner's exit code explains nothing", NULL, ENDED, "RunnerFailed", false, INTERRUPTED_S,
     DF_TASK_FAIL, "Canceled"},
    {"nor does it hide a cause", "JobDeleted", ENDED, "RunnerFailed", false, INTERRUPTED_S,
     DF_TASK_FAIL, "JobDeleted"},
    {"without a cause it was canceled", NULL, ENDED, "", false, INTERRUPTED_S, DF_TASK_FAIL,
     "Canceled"},
    {"a cancel that came meanwhile is the cause", "PodDeleted", ENDED, "PodDeleted", true,
     INTERRUPTED_S, DF_TASK_FAIL, "Canceled"},
    {"a pod that never ends is not awaited for ever", "Evicted", RUNNING, "PodDeleted", false,
     INTERRUPTED_S + MARGIN_S, DF_TASK_FAIL, "Evicted"},
};

static void who_ended_an_interrupted_step_is_told_with_its_runners_word(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(endings); i++) {
        const struct ending *e = &endings[i];
        const struct step s = {.claimed = true, .canceled = e->canceled};
        DF_JSON cJSON *task = make_step(&s);
        cJSON *status = df_json_object_at(task, "status");
        put_time(status, "interrupted", INTERRUPTED_S);
        (void)df_json_add_str(df_json_object_at(status, "interrupted"), "message", "half done",
                              NULL);
        cJSON *kept = e->kept ? df_json_object_at(status, "disruption") : NULL;
        (void)df_json_add_str(kept, "reason", e->kept, NULL);
        (void)df_json_add_str(kept, "message", "as kept", NULL);
        struct df_engine_observation seen = observed(e->phase, e->phase == ENDED);
        (void)snprintf(seen.reason, sizeof(seen.reason), "%s", e->seen);
        struct df_task_verdict v = df_task_next(task, &seen, EPOCH + e->second * SECOND);
        if (v.next != e->next || (e->reason && !df_streq(v.reason, e->reason)))
            fail_msg("%s: next %d, reason \"%s\"", e->what, v.next, v.reason);
        if (e->next == DF_TASK_FAIL)
            assert_non_null(strstr(v.message, "half done"));
        else
            assert_int_equal(v.wake_us, EPOCH + (INTERRUPTED_S + MARGIN_S) * SECOND);
    }
}

static void a_lost_runner_is_explained_by_what_was_seen_before(void **state)
{
    (void)state;
    const struct step s = {.claimed = true};
    DF_JSON cJSON *task = make_step(&s);
    cJSON *kept = df_json_object_at(df_json_object_at(task, "status"), "disruption");
    (void)df_json_add_str(kept, "reason", "Preempted", NULL);
    (void)df_json_add_str(kept, "message", "made room", NULL);
    struct df_engine_observation seen = observed(ENDED, false);
    (void)snprintf(seen.reason, sizeof(seen.reason), "JobDeleted");
    struct df_task_verdict v = df_task_next(task, &seen, EPOCH + CLAIM_S * SECOND);
    assert_string_equal(v.reason, "Preempted");
    assert_string_equal(v.message, "made room");
}

static void a_node_that_never_tells_the_end_of_its_pod_is_named_when_time_is_up(void **state)
{
    (void)state;
    static const struct {
        const char *kept, *reason;
    } rows[] = {{"NodeLost", "NodeLost"}, {"JobDeleted", "TimedOut"}, {NULL, "TimedOut"}};
    const struct step s = {.claimed = true};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = make_step(&s);
        cJSON *status = df_json_object_at(task, "status");
        if (rows[i].kept)
            (void)df_json_add_str(df_json_object_at(status, "disruption"), "reason", rows[i].kept,
                                  NULL);
        struct df_engine_observation seen = observed(RUNNING, false);
        (void)snprintf(seen.reason, sizeof(seen.reason), "JobDeleted");
        struct df_task_verdict v = df_task_next(task, &seen, EPOCH + GIVEN_UP * SECOND);
        assert_int_equal(v.next, DF_TASK_FAIL);
        assert_string_equal(v.reason, rows[i].reason);
    }
}

static void a_disruption_is_one_of_a_claimed_step_that_lives(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct step step;
        enum df_engine_phase phase;
        const char *seen, *kept;
        bool is_one;
    } rows[] = {
        {"an eviction", {.claimed = true}, RUNNING, "Evicted", NULL, true},
        {"the same again", {.claimed = true}, RUNNING, "Evicted", "Evicted", false},
        {"the deletion that follows it",
         {.claimed = true},
         RUNNING,
         "PodDeleted",
         "Evicted",
         false},
        {"a better word", {.claimed = true}, RUNNING, "DeadlineExceeded", "PodDeleted", true},
        {"nothing", {.claimed = true}, RUNNING, "", NULL, false},
        {"what keeps it from its start", {0}, RUNNING, "Unschedulable", NULL, false},
        {"our own cancel", {.claimed = true, .canceled = true}, RUNNING, "JobDeleted", NULL, false},
        {"an end", {.claimed = true}, ENDED, "PodDeleted", NULL, false},
        {"what comes after the end",
         {.claimed = true, .end = DF_OUTCOME_FAILED},
         RUNNING,
         "PodDeleted",
         NULL,
         false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = make_step(&rows[i].step);
        cJSON *status = df_json_object_at(task, "status");
        if (rows[i].kept)
            (void)df_json_add_str(df_json_object_at(status, "disruption"), "reason", rows[i].kept,
                                  NULL);
        struct df_engine_observation seen = observed(rows[i].phase, false);
        (void)snprintf(seen.reason, sizeof(seen.reason), "%s", rows[i].seen);
        if (df_task_is_disruption(task, &seen) != rows[i].is_one)
            fail_msg("%s", rows[i].what);
    }
}

static void a_runner_in_a_pod_that_was_told_to_end_does_not_know_by_whom(void **state)
{
    (void)state;
    static const struct {
        bool is_remote;
        const char *reason;
        bool canceled, is_so;
    } rows[] = {
        {true, "Canceled", false, true},     {true, "Canceled", true, false},
        {true, "ApplyFailed", false, false}, {true, "TimedOut", false, false},
        {false, "Canceled", false, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct step s = {.claimed = true, .canceled = rows[i].canceled};
        DF_JSON cJSON *task = make_step(&s), *result = cJSON_CreateObject();
        (void)df_json_add_str(result, "reason", rows[i].reason, NULL);
        assert_int_equal(df_task_was_interrupted(task, result, rows[i].is_remote), rows[i].is_so);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_ended_an_interrupted_step_is_told_with_its_runners_word),
        cmocka_unit_test(a_lost_runner_is_explained_by_what_was_seen_before),
        cmocka_unit_test(a_node_that_never_tells_the_end_of_its_pod_is_named_when_time_is_up),
        cmocka_unit_test(a_disruption_is_one_of_a_claimed_step_that_lives),
        cmocka_unit_test(a_runner_in_a_pod_that_was_told_to_end_does_not_know_by_whom),
    };
    return cmocka_run_group_tests_name("model_task_causes", tests, NULL, NULL);
}
