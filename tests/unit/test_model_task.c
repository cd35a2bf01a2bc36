#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/task_parts.h"
#include "spawner/model/waiting.h"
#include "tests/unit/task_steps.h"

static struct df_task_verdict decide(const struct step *s, enum df_engine_phase phase,
                                     bool has_result, int64_t second)
{
    DF_JSON cJSON *task = make_step(s);
    struct df_engine_observation seen = observed(phase, has_result);
    seen.is_unrecorded = s->unrecorded;
    return df_task_next(task, &seen, EPOCH + second * SECOND);
}

/* ---- one by one ---- */

struct expectation {
    const char *what;
    struct step step;
    enum df_engine_phase phase;
    bool has_result;
    int64_t second; /* after EPOCH */
    enum df_task_next next;
    const char *reason;
    int64_t wake; /* second after EPOCH, or 0 */
};

static const struct expectation expectations[] = {
    {"a new step is created", {.never_created = true}, ABSENT, false, 0, .next = DF_TASK_CREATE},
    {"also when it had to wait for long until it was its turn",
     {.never_created = true},
     ABSENT,
     false,
     99999,
     .next = DF_TASK_CREATE},
    {"a step whose creation was cut short is created again",
     {0},
     ABSENT,
     false,
     1,
     .next = DF_TASK_CREATE},
    {"but not for ever",
     {0},
     ABSENT,
     false,
     PENDING_S,
     .next = DF_TASK_FAIL,
     .reason = "NeverClaimed"},
    {"a starting runner has until its deadline to claim",
     {0},
     STARTING,
     false,
     1,
     .next = DF_TASK_WAIT,
     .wake = PENDING_S},
    {"a running one, too",
     {0},
     RUNNING,
     false,
     PENDING_S - 1,
     .next = DF_TASK_WAIT,
     .wake = PENDING_S},
    {"and then it was never claimed",
     {0},
     RUNNING,
     false,
     PENDING_S,
     .next = DF_TASK_FAIL,
     .reason = "NeverClaimed"},
    {"a starting one that stays so as well",
     {0},
     STARTING,
     false,
     PENDING_S,
     .next = DF_TASK_FAIL,
     .reason = "NeverClaimed"},
    {"a runner that died before its claim is started again after a pause",
     {0},
     ENDED,
     false,
     1,
     .next = DF_TASK_WAIT,
     .wake = 2},
    {"after that pause", {0}, ENDED, false, 2, .next = DF_TASK_CREATE},
    {"but not past the deadline",
     {0},
     ENDED,
     false,
     PENDING_S,
     .next = DF_TASK_FAIL,
     .reason = "NeverClaimed"},
    {"a runner that reported its failure before a claim is heard",
     {0},
     ENDED,
     true,
     PENDING_S,
     .next = DF_TASK_COLLECT},
    {"a cancel before anything lives ends it at once",
     {.canceled = true, .never_created = true},
     ABSENT,
     false,
     CANCEL_S,
     .next = DF_TASK_FAIL,
     .reason = "Canceled"},
    {"a cancel ends an unclaimed runner first",
     {.canceled = true},
     RUNNING,
     false,
     CANCEL_S,
     .next = DF_TASK_CANCEL,
     .wake = CANCEL_S + 5},
    {"a starting one, too",
     {.canceled = true},
     STARTING,
     false,
     CANCEL_S,
     .next = DF_TASK_CANCEL,
     .wake = CANCEL_S + 5},
    {"and then the step",
     {.canceled = true},
     ENDED,
     false,
     CANCEL_S,
     .next = DF_TASK_FAIL,
     .reason = "Canceled"},
    {"a claimed step works until its time is up",
     {.claimed = true},
     RUNNING,
     false,
     CLAIM_S,
     .next = DF_TASK_WAIT,
     .wake = RAN_OUT},
    {"it may use its time and grace",
     {.claimed = true},
     RUNNING,
     false,
     RAN_OUT - 1,
     .next = DF_TASK_WAIT,
     .wake = RAN_OUT},
    {"then it is ended",
     {.claimed = true},
     RUNNING,
     false,
     RAN_OUT,
     .next = DF_TASK_CANCEL,
     .wake = RAN_OUT + 5},
    {"and if that has no effect given up",
     {.claimed = true},
     RUNNING,
     false,
     GIVEN_UP,
     .next = DF_TASK_FAIL,
     .reason = "TimedOut"},
    {"an end that is too late is a timeout",
     {.claimed = true},
     ENDED,
     false,
     RAN_OUT,
     .next = DF_TASK_FAIL,
     .reason = "TimedOut"},
    {"a claimed step whose runner is gone is lost",
     {.claimed = true},
     ENDED,
     false,
     CLAIM_S,
     .next = DF_TASK_FAIL,
     .reason = "RunnerLost"},
    {"also when the engine knows nothing of it",
     {.claimed = true},
     ABSENT,
     false,
     CLAIM_S,
     .next = DF_TASK_FAIL,
     .reason = "RunnerLost"},
    {"a result that was left behind is collected",
     {.claimed = true},
     ENDED,
     true,
     CLAIM_S,
     .next = DF_TASK_COLLECT},
    {"also after a cancel",
     {.claimed = true, .canceled = true},
     ENDED,
     true,
     CANCEL_S,
     .next = DF_TASK_COLLECT},
    {"also when it is late", {.claimed = true}, ENDED, true, GIVEN_UP, .next = DF_TASK_COLLECT},
    {"a cancel is passed to the engine",
     {.claimed = true, .canceled = true},
     RUNNING,
     false,
     CANCEL_S,
     .next = DF_TASK_CANCEL,
     .wake = CANCEL_S + 5},
    {"an end after it is a cancel",
     {.claimed = true, .canceled = true},
     ENDED,
     false,
     CANCEL_S,
     .next = DF_TASK_FAIL,
     .reason = "Canceled"},
    {"one that has no effect ends after the grace period",
     {.claimed = true, .canceled = true},
     RUNNING,
     false,
     CANCEL_OUT,
     .next = DF_TASK_FAIL,
     .reason = "Canceled"},
    {"a Job that is not recorded yet is found again",
     {.unrecorded = true},
     STARTING,
     false,
     1,
     .next = DF_TASK_CREATE},
    {"a final step with nothing left is at rest",
     {.end = DF_OUTCOME_SUCCEEDED, .claimed = true},
     ABSENT,
     false,
     FINAL_S,
     .next = DF_TASK_WAIT},
    {"what is left of it is cleaned up",
     {.end = DF_OUTCOME_SUCCEEDED, .claimed = true},
     ENDED,
     true,
     FINAL_S,
     .next = DF_TASK_CLEAN},
    {"a runner that has reported may leave",
     {.end = DF_OUTCOME_SUCCEEDED, .claimed = true},
     RUNNING,
     false,
     FINAL_S,
     .next = DF_TASK_WAIT,
     .wake = FINAL_S + MARGIN_S},
    {"but not stay",
     {.end = DF_OUTCOME_SUCCEEDED, .claimed = true},
     RUNNING,
     false,
     FINAL_S + MARGIN_S,
     .next = DF_TASK_CANCEL,
     .wake = FINAL_S + MARGIN_S + 5},
    {"a runner that never claimed a final step is ended at once",
     {.end = DF_OUTCOME_FAILED},
     RUNNING,
     false,
     FINAL_S,
     .next = DF_TASK_CANCEL,
     .wake = FINAL_S + 5},
    {"a failed step is cleaned up as well",
     {.end = DF_OUTCOME_FAILED, .claimed = true, .canceled = true},
     ENDED,
     false,
     FINAL_S,
     .next = DF_TASK_CLEAN},
};

static void a_step_is_decided_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(expectations); i++) {
        const struct expectation *e = &expectations[i];
        struct df_task_verdict v = decide(&e->step, e->phase, e->has_result, e->second);
        int64_t wake = v.wake_us ? (v.wake_us - EPOCH) / SECOND : 0;
        if (v.next != e->next || wake != e->wake || (e->reason && !df_streq(v.reason, e->reason)))
            fail_msg("%s: next %d, reason \"%s\", wake %lld", e->what, v.next, v.reason,
                     (long long)wake);
    }
}

static void a_loss_names_its_cause(void **state)
{
    (void)state;
    struct step claimed = {.claimed = true}, fresh = {0};
    struct df_task_verdict v = decide(&claimed, ENDED, false, CLAIM_S);
    assert_non_null(strstr(v.message, "killed by signal 9"));
    v = decide(&fresh, ENDED, false, PENDING_S);
    assert_non_null(strstr(v.message, "killed by signal 9"));
}

/* ---- while nobody listened ---- */

#define BACK_S 100000 /* the service is back, long after all deadlines */

static const struct absence {
    const char *what;
    bool claimed;
    enum df_engine_phase phase;
    int64_t second, back;
    enum df_task_next next;
    int64_t wake;
} absences[] = {
    {"a runner that lives has a moment to report", true, RUNNING, BACK_S, BACK_S, DF_TASK_WAIT,
     BACK_S + MARGIN_S},
    {"then it is ended", true, RUNNING, BACK_S + MARGIN_S, BACK_S, DF_TASK_CANCEL,
     BACK_S + MARGIN_S + 5},
    {"and given up after its grace", true, RUNNING, BACK_S + GRACE_S + 2 * MARGIN_S, BACK_S,
     DF_TASK_FAIL, 0},
    {"one that has gone does not", true, ENDED, BACK_S, BACK_S, DF_TASK_FAIL, 0},
    {"a pod has a moment to claim", false, RUNNING, BACK_S, BACK_S, DF_TASK_WAIT,
     BACK_S + MARGIN_S},
    {"then it has failed", false, RUNNING, BACK_S + MARGIN_S, BACK_S, DF_TASK_FAIL, 0},
    {"a deadline that is still to come stays", true, RUNNING, CLAIM_S + 2, CLAIM_S + 1,
     DF_TASK_WAIT, RAN_OUT},
    {"what began after the start has no moment more", true, RUNNING, RAN_OUT, CLAIM_S - 1,
     DF_TASK_CANCEL, RAN_OUT + 5},
    {"nor has a claim", false, RUNNING, PENDING_S, 0, DF_TASK_FAIL, 0},
};

static void a_runner_that_could_not_be_heard_is_not_judged_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(absences); i++) {
        const struct absence *a = &absences[i];
        const struct step step = {.claimed = a->claimed};
        DF_JSON cJSON *task = make_step(&step);
        struct df_engine_observation seen = observed(a->phase, false);
        seen.reachable_since_us = EPOCH + a->back * SECOND;
        struct df_task_verdict v = df_task_next(task, &seen, EPOCH + a->second * SECOND);
        int64_t wake = v.wake_us ? (v.wake_us - EPOCH) / SECOND : 0;
        if (v.next != a->next || wake != a->wake)
            fail_msg("%s: next %d, wake %lld", a->what, v.next, (long long)wake);
    }
}

static void a_refused_create_is_tried_again_in_growing_pauses_until_the_deadline(void **state)
{
    (void)state;
    const struct step s = {0};
    DF_JSON cJSON *task = make_step(&s);
    assert_int_equal(df_task_retry_at(task, EPOCH, 0), EPOCH + SECOND / 4);
    assert_int_equal(df_task_retry_at(task, EPOCH + 8 * SECOND, 0), EPOCH + 10 * SECOND);
    assert_int_equal(df_task_retry_at(task, EPOCH + 100 * SECOND, 0), EPOCH + 115 * SECOND);
    assert_int_equal(df_task_retry_at(task, EPOCH + 119 * SECOND, 0), EPOCH + PENDING_S * SECOND);
    assert_int_equal(df_task_retry_at(task, EPOCH, 20 * SECOND), EPOCH + 20 * SECOND);
    assert_int_equal(df_task_retry_at(task, EPOCH, 86400 * SECOND), EPOCH + PENDING_S * SECOND);
    assert_true(df_task_retry_at(task, EPOCH + PENDING_S * SECOND, 0) > EPOCH + PENDING_S * SECOND);
}

/* What an engine that sees more than processes can say. */
static const struct {
    const char *what;
    struct step step;
    struct df_engine_observation seen;
    int64_t second;
    enum df_task_next next;
    const char *reason;
} seen_cases[] = {
    {"what will never start ends at once, with the engine's reason",
     {0},
     {.phase = STARTING, .gives_up = true, .reason = "ImageMissing"},
     1,
     DF_TASK_FAIL,
     "ImageMissing"},
    {"what may start yet is waited for",
     {0},
     {.phase = STARTING, .reason = "Unschedulable"},
     PENDING_S - 1,
     DF_TASK_WAIT,
     NULL},
    {"a start that takes too long ends with what kept it",
     {0},
     {.phase = STARTING, .reason = "Unschedulable"},
     PENDING_S,
     DF_TASK_FAIL,
     "Unschedulable"},
    {"one that was refused all the time, too",
     {0},
     {.phase = ABSENT, .reason = "QuotaExceeded"},
     PENDING_S,
     DF_TASK_FAIL,
     "QuotaExceeded"},
    {"the end of a claimed step has the engine's reason",
     {.claimed = true},
     {.phase = ENDED, .reason = "OOMKilled"},
     CLAIM_S,
     DF_TASK_FAIL,
     "OOMKilled"},
    {"but not when it was we who ended it",
     {.claimed = true, .canceled = true},
     {.phase = ENDED, .reason = "JobDeleted"},
     CANCEL_S,
     DF_TASK_FAIL,
     "Canceled"},
    {"nor when it is told by the runner itself",
     {.claimed = true},
     {.phase = ENDED, .reason = "OOMKilled", .has_result = true},
     CLAIM_S,
     DF_TASK_COLLECT,
     NULL},
};

static void what_the_engine_saw_decides_and_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(seen_cases); i++) {
        DF_JSON cJSON *task = make_step(&seen_cases[i].step);
        struct df_engine_observation seen = seen_cases[i].seen;
        seen.since_us = EPOCH;
        (void)snprintf(seen.cause, sizeof(seen.cause), "in its own words");
        struct df_task_verdict v = df_task_next(task, &seen, EPOCH + seen_cases[i].second * SECOND);
        const char *reason = seen_cases[i].reason;
        if (v.next != seen_cases[i].next || (reason && !df_streq(v.reason, reason)) ||
            (reason && !seen_cases[i].step.canceled && !strstr(v.message, "in its own words")))
            fail_msg("%s: next %d, reason %s, message %s", seen_cases[i].what, v.next, v.reason,
                     v.message);
    }
}

/* ---- every combination ---- */

static const int64_t moments[] = {
    0,         1,          2,       CANCEL_S,    FINAL_S,  FINAL_S + MARGIN_S,
    PENDING_S, CANCEL_OUT, RAN_OUT, RAN_OUT + 1, GIVEN_UP, GIVEN_UP + 99999};

static void check_invariants(const struct step *s, enum df_engine_phase phase, bool has_result,
                             int64_t second, const struct df_task_verdict *v)
{
    bool alive = phase == STARTING || phase == RUNNING;
    switch (v->next) {
    case DF_TASK_CREATE:
        /* Never once it was claimed, never beside something that lives. */
        assert_true(!s->claimed && s->end == DF_OUTCOME_NONE && !s->canceled && !alive);
        assert_true(s->never_created || second < PENDING_S);
        break;
    case DF_TASK_REMOVE:
        fail_msg("nobody deleted it");
        break;
    case DF_TASK_SUCCEED: /* of workflows alone */
        fail_msg("a runner reports it");
        break;
    case DF_TASK_COLLECT:
        assert_true(s->end == DF_OUTCOME_NONE && phase == ENDED && has_result);
        break;
    case DF_TASK_CLEAN:
        assert_true(s->end != DF_OUTCOME_NONE && phase == ENDED);
        break;
    case DF_TASK_CANCEL:
        assert_true(alive && v->wake_us > EPOCH + second * SECOND);
        assert_true(s->end != DF_OUTCOME_NONE || s->canceled || (s->claimed && second >= RAN_OUT));
        break;
    case DF_TASK_FAIL:
        assert_true(s->end == DF_OUTCOME_NONE && v->reason[0] && v->message[0]);
        assert_true(!(phase == ENDED && has_result));
        assert_true(!s->claimed || !alive || second >= CANCEL_OUT);
        break;
    case DF_TASK_WAIT:
        /* At rest, or with a deadline ahead. */
        if (v->wake_us == 0)
            assert_true(s->end != DF_OUTCOME_NONE && phase == ABSENT);
        else
            assert_true(v->wake_us > EPOCH + second * SECOND);
        break;
    }
}

static void every_combination_keeps_the_promises(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 3 * 2 * 2 * 2 * 4 * 2; bits++) {
        unsigned rest = bits;
        struct step s = {.end = (enum df_outcome)(rest % 3)};
        rest /= 3;
        s.claimed = rest & 1;
        s.canceled = rest & 2;
        s.never_created = rest & 4;
        enum df_engine_phase phase = (enum df_engine_phase)(rest >> 3 & 3);
        bool has_result = phase == ENDED && (rest >> 5 & 1);
        for (size_t i = 0; i < DF_ARRAY_SIZE(moments); i++) {
            struct df_task_verdict v = decide(&s, phase, has_result, moments[i]);
            check_invariants(&s, phase, has_result, moments[i], &v);
        }
    }
}

/* An engine that obeys, and one that does not: both ways the step ends, and in bounded time. */
static void every_step_ends_whatever_the_engine_does(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        struct step s = {.claimed = bits & 1,
                         .canceled = bits & 2,
                         .never_created = bits & 4,
                         .interrupted = (bits & 1) && (bits & 32)};
        bool obedient = bits & 8;
        enum df_engine_phase phase = bits & 16 ? RUNNING : ABSENT;
        int64_t now = CANCEL_S;
        int passes = 0;
        struct df_task_verdict v = {0};
        while (v.next != DF_TASK_FAIL && ++passes < 10000) {
            v = decide(&s, phase, false, now);
            if (v.next == DF_TASK_CREATE) {
                s.never_created = false;
                phase = obedient ? RUNNING : ABSENT;
                now++;
            } else if (v.next == DF_TASK_CANCEL) {
                phase = obedient ? ENDED : phase;
            }
            if (v.wake_us)
                now = (v.wake_us - EPOCH) / SECOND;
        }
        assert_int_equal(v.next, DF_TASK_FAIL);
        assert_true(now <= GIVEN_UP);
    }
}

/* ---- waits ---- */

/* A claimed step that waits since its claim; reason: how that ends, or NULL. */
static struct df_task_verdict decide_waiting(const char *action, const char *reason,
                                             enum df_engine_phase phase, int64_t second)
{
    const struct step claimed = {.claimed = true};
    DF_JSON cJSON *task = make_step(&claimed);
    struct df_engine_observation seen = observed(phase, false);
    (void)df_json_add_str(df_json_object_at(task, "spec"), "action", action, NULL);
    assert_int_equal(df_waiting_set(task, EPOCH + CLAIM_S * SECOND, reason, "the bucket", NULL), 0);
    return df_task_next(task, &seen, EPOCH + (CLAIM_S + second) * SECOND);
}

static void a_plan_that_waits_in_vain_fails_and_says_for_what(void **state)
{
    (void)state;
    const int64_t least = DF_TIMEOUT_STORAGE_SECONDS;
    struct df_task_verdict v = decide_waiting("plan", "StorageUnavailable", RUNNING, least - 1);
    assert_int_equal(v.next, DF_TASK_WAIT);
    assert_int_equal(v.wake_us, EPOCH + (CLAIM_S + least) * SECOND);
    v = decide_waiting("plan", "StorageUnavailable", RUNNING, least);
    assert_int_equal(v.next, DF_TASK_FAIL);
    assert_string_equal(v.reason, "StorageUnavailable");
    assert_non_null(strstr(v.message, "the bucket"));
}

static void a_step_that_writes_or_goes_on_meanwhile_is_not_ended_by_its_wait(void **state)
{
    (void)state;
    const int64_t least = DF_TIMEOUT_STORAGE_SECONDS;
    assert_int_equal(decide_waiting("apply", "StorageUnavailable", RUNNING, least).next,
                     DF_TASK_WAIT);
    assert_int_equal(decide_waiting("state", "StorageUnavailable", RUNNING, least).next,
                     DF_TASK_WAIT);
    assert_int_equal(decide_waiting("plan", NULL, RUNNING, least).next, DF_TASK_WAIT);
}

static void a_runner_that_gave_up_before_it_began_is_not_lost(void **state)
{
    (void)state;
    assert_string_equal(decide_waiting("apply", "StorageUnavailable", ENDED, 1).reason,
                        "StorageUnavailable");
    assert_string_equal(decide_waiting("apply", NULL, ENDED, 1).reason, "RunnerLost");
}

static int64_t gives_up_after_s(const struct step *s)
{
    DF_JSON cJSON *task = make_step(s);
    int64_t at = df_task_gives_up_at(task);
    return at == INT64_MAX ? -1 : (at - EPOCH) / SECOND;
}

static void a_tool_that_was_told_to_stop_gives_up_within_its_grace_period(void **state)
{
    (void)state;
    assert_int_equal(gives_up_after_s(&(struct step){0}), -1);
    assert_int_equal(gives_up_after_s(&(struct step){.canceled = true}), -1);
    assert_int_equal(gives_up_after_s(&(struct step){.claimed = true}),
                     CLAIM_S + TIMEOUT_S + GRACE_S / 4);
    assert_int_equal(gives_up_after_s(&(struct step){.claimed = true, .canceled = true}),
                     CANCEL_S + GRACE_S / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_decided_as_the_table_says),
        cmocka_unit_test(a_loss_names_its_cause),
        cmocka_unit_test(a_runner_that_could_not_be_heard_is_not_judged_at_once),
        cmocka_unit_test(a_refused_create_is_tried_again_in_growing_pauses_until_the_deadline),
        cmocka_unit_test(what_the_engine_saw_decides_and_is_told),
        cmocka_unit_test(every_combination_keeps_the_promises),
        cmocka_unit_test(every_step_ends_whatever_the_engine_does),
        cmocka_unit_test(a_plan_that_waits_in_vain_fails_and_says_for_what),
        cmocka_unit_test(a_step_that_writes_or_goes_on_meanwhile_is_not_ended_by_its_wait),
        cmocka_unit_test(a_runner_that_gave_up_before_it_began_is_not_lost),
        cmocka_unit_test(a_tool_that_was_told_to_stop_gives_up_within_its_grace_period),
    };
    return cmocka_run_group_tests_name("model_task", tests, NULL, NULL);
}
