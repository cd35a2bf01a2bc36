#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/cli/reasons.h"
#include "tests/unit/task_steps.h"

/* ---- conditions and timeline ---- */

static void conditions_are_written_together_and_keep_the_time_of_their_change(void **state)
{
    (void)state;
    DF_JSON cJSON *task = cJSON_CreateObject();
    (void)df_json_add_num(df_json_object_at(task, "metadata"), "generation", 3, NULL);
    assert_string_equal(df_task_reason(task), "Queued");
    assert_false(df_task_is_final(task));
    assert_int_equal(
        df_task_set_conditions(task, DF_OUTCOME_NONE, "Initializing", NULL, 1 * SECOND, NULL), 0);
    assert_int_equal(
        df_task_set_conditions(task, DF_OUTCOME_NONE, "Executing", "now", 2 * SECOND, NULL), 0);
    assert_string_equal(df_task_reason(task), "Executing");
    assert_false(df_task_is_final(task));
    assert_int_equal(
        df_task_set_conditions(task, DF_OUTCOME_SUCCEEDED, "Applied", "done", 3 * SECOND, NULL), 0);
    assert_true(df_task_is_final(task));
    assert_true(df_task_succeeded(task));
    DF_FREE char *text = df_json_print(df_json_at(task, "status.conditions"));
    assert_string_equal(
        text, "[{\"type\":\"Progressing\",\"status\":\"False\","
              "\"lastTransitionTime\":\"1970-01-01T00:00:03.000000Z\",\"reason\":\"Applied\","
              "\"message\":\"done\",\"observedGeneration\":3},"
              "{\"type\":\"Succeeded\",\"status\":\"True\","
              "\"lastTransitionTime\":\"1970-01-01T00:00:03.000000Z\",\"reason\":\"Applied\","
              "\"message\":\"done\",\"observedGeneration\":3},"
              "{\"type\":\"Failed\",\"status\":\"False\","
              "\"lastTransitionTime\":\"1970-01-01T00:00:01.000000Z\",\"reason\":\"Applied\","
              "\"message\":\"done\",\"observedGeneration\":3}]");
}

static void a_failed_step_is_final_and_did_not_succeed(void **state)
{
    (void)state;
    struct step s = {.end = DF_OUTCOME_FAILED};
    DF_JSON cJSON *task = make_step(&s);
    assert_true(df_task_is_final(task));
    assert_false(df_task_succeeded(task));
}

static void a_moment_of_the_timeline_is_written_once(void **state)
{
    (void)state;
    DF_JSON cJSON *task = cJSON_CreateObject();
    assert_int_equal(df_task_add_time(task, "created", 1 * SECOND, NULL), 0);
    assert_int_equal(df_task_add_time(task, "started", 2 * SECOND, NULL), 0);
    assert_int_equal(df_task_add_time(task, "created", 3 * SECOND, NULL), 0);
    DF_FREE char *text = df_json_print(df_json_at(task, "status.timeline"));
    assert_string_equal(text, "[{\"name\":\"created\",\"at\":\"1970-01-01T00:00:01.000000Z\"},"
                              "{\"name\":\"started\",\"at\":\"1970-01-01T00:00:02.000000Z\"}]");
}

/* ---- the outward phase ---- */

static cJSON *with_condition(const char *type, const char *reason)
{
    DF_FREE char *text =
        df_strf("{\"status\":{\"conditions\":[{\"type\":\"%s\",\"status\":\"True\","
                "\"reason\":\"%s\"}]}}",
                type, reason);
    cJSON *doc = NULL;
    assert_int_equal(df_json_parse(text, strlen(text), &doc, NULL), 0);
    return doc;
}

/* Flyte derives a phase from conditions that are there only when they are True: its inputs and
 * values, and behind them the words that are ours. */
static void a_phase_is_read_from_the_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *type, *reason;
        enum df_task_phase phase;
    } rows[] = {
        {"Succeeded", "Completed", DF_TASK_PHASE_SUCCEEDED},
        {"Succeeded", "Signaled", DF_TASK_PHASE_SUCCEEDED},
        {"Failed", "PermanentFailure", DF_TASK_PHASE_FAILED},
        {"Failed", "InvalidSpec", DF_TASK_PHASE_FAILED},
        {"Failed", "PluginNotFound", DF_TASK_PHASE_FAILED},
        {"Failed", "TimedOut", DF_TASK_PHASE_TIMED_OUT},
        {"Progressing", "Queued", DF_TASK_PHASE_QUEUED},
        {"Progressing", "Initializing", DF_TASK_PHASE_INITIALIZING},
        {"Progressing", "Executing", DF_TASK_PHASE_RUNNING},
        {"Progressing", "Paused", DF_TASK_PHASE_PAUSED},
        {"Progressing", "SomethingElse", DF_TASK_PHASE_UNSPECIFIED},
        {"Other", "Queued", DF_TASK_PHASE_UNSPECIFIED},
        {"Succeeded", "Applied", DF_TASK_PHASE_SUCCEEDED},
        {"Failed", "ApplyFailed", DF_TASK_PHASE_FAILED},
        {"Failed", "Canceled", DF_TASK_PHASE_ABORTED},
        {"Failed", "Aborted", DF_TASK_PHASE_ABORTED},
        {"Failed", "Discarded", DF_TASK_PHASE_ABORTED},
        {"Progressing", "Pending", DF_TASK_PHASE_QUEUED},
        {"Progressing", "Running", DF_TASK_PHASE_RUNNING},
        {"Progressing", "WaitingApproval", DF_TASK_PHASE_PAUSED},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *doc = with_condition(rows[i].type, rows[i].reason);
        enum df_task_phase phase = df_task_phase(doc);
        if (phase != rows[i].phase)
            fail_msg("%s=True/%s: phase %d", rows[i].type, rows[i].reason, (int)phase);
    }
    DF_JSON cJSON *empty = cJSON_CreateObject();
    assert_int_equal(df_task_phase(empty), DF_TASK_PHASE_UNSPECIFIED);
}

/* The numbers of flyteidl2's ActionPhase. */
static void a_phase_has_the_number_that_others_know(void **state)
{
    (void)state;
    static const struct {
        const char *type, *reason;
        int number;
    } rows[] = {{"Progressing", "Queued", 1},    {"Progressing", "Initializing", 3},
                {"Progressing", "Executing", 4}, {"Succeeded", "Completed", 5},
                {"Failed", "PlanFailed", 6},     {"Failed", "Aborted", 7},
                {"Failed", "TimedOut", 8},       {"Progressing", "Paused", 9}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *doc = with_condition(rows[i].type, rows[i].reason);
        assert_int_equal(df_task_phase(doc), rows[i].number);
    }
}

/* ---- history ---- */

static void come_to(cJSON *task, enum df_outcome outcome, const char *reason, const char *message,
                    int64_t second)
{
    assert_int_equal(df_task_set_conditions(task, outcome, reason, message, second * SECOND, NULL),
                     0);
}

static int history_size(const cJSON *task)
{
    return cJSON_GetArraySize(df_json_at(task, "status.phaseHistory"));
}

static const char *in_history(const cJSON *task, int entry, const char *member)
{
    return df_json_str(cJSON_GetArrayItem(df_json_at(task, "status.phaseHistory"), entry), member);
}

/* An entry has the time of its writer, and only a change makes another entry. */
static void the_history_grows_by_a_phase_that_is_not_the_last_one(void **state)
{
    (void)state;
    DF_JSON cJSON *task = cJSON_CreateObject();
    come_to(task, DF_OUTCOME_NONE, "Queued", NULL, 1);
    assert_int_equal(history_size(task), 1);
    come_to(task, DF_OUTCOME_NONE, "Queued", "still", 2);
    assert_int_equal(history_size(task), 1);
    assert_string_equal(in_history(task, 0, "occurredAt"), "1970-01-01T00:00:01.000000Z");
    assert_null(in_history(task, 0, "message"));
    come_to(task, DF_OUTCOME_NONE, "Initializing", "no node", 3);
    come_to(task, DF_OUTCOME_NONE, "Queued", "its target is held", 4);
    assert_int_equal(history_size(task), 3);
    assert_string_equal(in_history(task, 1, "phase"), "Initializing");
    assert_string_equal(in_history(task, 1, "message"), "no node");
    assert_string_equal(in_history(task, 2, "phase"), "Queued");
    assert_string_equal(in_history(task, 2, "occurredAt"), "1970-01-01T00:00:04.000000Z");
}

static void an_end_stands_in_the_history_with_its_reason(void **state)
{
    (void)state;
    static const struct {
        enum df_outcome outcome;
        const char *reason, *message, *phase, *text;
    } rows[] = {
        {DF_OUTCOME_SUCCEEDED, "Applied", "3 added", "Completed", "Applied: 3 added"},
        {DF_OUTCOME_SUCCEEDED, "Completed", "", "Completed", "Completed"},
        {DF_OUTCOME_FAILED, "PlanFailed", "exit code 1", "PermanentFailure",
         "PlanFailed: exit code 1"},
        {DF_OUTCOME_FAILED, "TimedOut", NULL, "TimedOut", "TimedOut"},
        {DF_OUTCOME_FAILED, "Canceled", "by ann", "Aborted", "Canceled: by ann"},
        {DF_OUTCOME_FAILED, "Aborted", "by ann", "Aborted", "Aborted: by ann"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = cJSON_CreateObject();
        come_to(task, rows[i].outcome, rows[i].reason, rows[i].message, 1);
        assert_string_equal(in_history(task, 0, "phase"), rows[i].phase);
        assert_string_equal(in_history(task, 0, "message"), rows[i].text);
    }
}

static void a_history_that_is_full_keeps_what_it_has_and_a_place_for_the_end(void **state)
{
    (void)state;
    DF_JSON cJSON *task = cJSON_CreateObject();
    for (int i = 0; i < 2 * DF_LIMIT_PHASE_HISTORY; i++)
        come_to(task, DF_OUTCOME_NONE, i & 1 ? "Initializing" : "Queued", NULL, i);
    assert_int_equal(history_size(task), DF_LIMIT_PHASE_HISTORY - 1);
    assert_string_equal(in_history(task, 0, "occurredAt"), "1970-01-01T00:00:00.000000Z");
    come_to(task, DF_OUTCOME_FAILED, "TargetLocked", NULL, 1000);
    assert_int_equal(history_size(task), DF_LIMIT_PHASE_HISTORY);
    assert_string_equal(in_history(task, DF_LIMIT_PHASE_HISTORY - 1, "phase"), "PermanentFailure");
    assert_string_equal(df_task_reason(task), "TargetLocked");
}

static void the_conditions_of_a_run_have_no_history(void **state)
{
    (void)state;
    DF_JSON cJSON *run = cJSON_CreateObject();
    assert_int_equal(df_set_conditions(run, DF_OUTCOME_FAILED, "PlanFailed", "", SECOND, NULL), 0);
    assert_true(df_task_is_final(run));
    assert_null(df_json_at(run, "status.phaseHistory"));
    assert_null(df_json_at(run, "status.errorState"));
}

/* ---- the error ---- */

/* Code, kind and message of a failure; a kind that nobody knows is empty. */
static void a_failure_has_a_code_a_kind_and_a_message(void **state)
{
    (void)state;
    static const struct {
        const char *reason, *kind;
    } rows[] = {{"OOMKilled", "USER"},
                {"PlanFailed", "USER"},
                {"NodeLost", "SYSTEM"},
                {"RunnerLost", "SYSTEM"},
                {"NeverHeardOf", ""}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = cJSON_CreateObject();
        come_to(task, DF_OUTCOME_NONE, "Executing", NULL, 1);
        assert_null(df_json_at(task, "status.errorState"));
        come_to(task, DF_OUTCOME_FAILED, rows[i].reason, "in words", 2);
        const cJSON *error = df_json_at(task, "status.errorState");
        assert_string_equal(df_json_str(error, "code"), rows[i].reason);
        assert_string_equal(df_json_str(error, "kind"), rows[i].kind);
        assert_string_equal(df_json_str(error, "message"), "in words");
    }
}

static void a_success_has_no_error(void **state)
{
    (void)state;
    DF_JSON cJSON *task = cJSON_CreateObject();
    come_to(task, DF_OUTCOME_SUCCEEDED, "Applied", "", 1);
    assert_null(df_json_at(task, "status.errorState"));
}

/* What the program can explain it can also blame, and count. */
static void every_reason_has_its_fault(void **state)
{
    (void)state;
    static const char *const good[] = {"Applied",      "NoChanges",  "Planned",   "Destroyed",
                                       "StateChanged", "StateMoved", "Completed", "Accepted",
                                       "Deleting",     "Validated"};
    for (const struct df_reason *r = df_reasons; r->word; r++) {
        bool is_good = false;
        for (size_t i = 0; i < DF_ARRAY_SIZE(good); i++)
            is_good = is_good || df_streq(r->word, good[i]);
        if (!df_reason_is_known(r->word) || is_good != (df_reason_fault(r->word) == DF_FAULT_NONE))
            fail_msg("%s", r->word);
    }
    assert_false(df_reason_is_known("NeverHeardOf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_written_together_and_keep_the_time_of_their_change),
        cmocka_unit_test(a_failed_step_is_final_and_did_not_succeed),
        cmocka_unit_test(a_moment_of_the_timeline_is_written_once),
        cmocka_unit_test(a_phase_is_read_from_the_conditions),
        cmocka_unit_test(a_phase_has_the_number_that_others_know),
        cmocka_unit_test(the_history_grows_by_a_phase_that_is_not_the_last_one),
        cmocka_unit_test(an_end_stands_in_the_history_with_its_reason),
        cmocka_unit_test(a_history_that_is_full_keeps_what_it_has_and_a_place_for_the_end),
        cmocka_unit_test(the_conditions_of_a_run_have_no_history),
        cmocka_unit_test(a_failure_has_a_code_a_kind_and_a_message),
        cmocka_unit_test(a_success_has_no_error),
        cmocka_unit_test(every_reason_has_its_fault),
    };
    return cmocka_run_group_tests_name("model_task_status", tests, NULL, NULL);
}
