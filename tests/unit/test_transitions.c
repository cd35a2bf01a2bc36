/* What a step tells of itself while the control loop moves it on. The test plays engine and runner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/metrics/metrics.h"
#include "spawner/control/loop.h"
#include "spawner/journal/reporter.h"
#include "tests/unit/control_loop.h"

#define STEP "net-1-plan"

static void await_phase(struct world *w, const char *run, const char *phase)
{
    await_value(w, DF_KIND_RUN, run, "status.phase", phase);
}

/* "Queued Initializing ..." */
static char *history_of(struct world *w, const char *name)
{
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, name);
    DF_STRS struct df_strs words = {0};
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(task, "status.phaseHistory"))
        (void)df_strs_add(&words, df_json_str(entry, "phase"));
    return df_strs_join(&words, " ");
}

#define assert_history(w, name, expected)                                                          \
    do {                                                                                           \
        char *history_ = history_of(w, name);                                                      \
        assert_string_equal(history_, expected);                                                   \
        free(history_);                                                                            \
    } while (0)

/* ---- metrics ---- */

/* Of one series; metrics are those of the whole process. */
static double metric(const char *series)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_metrics_write(&text, NULL), 0);
    DF_FREE char *line = df_strf("\n%s ", series);
    const char *at = strstr(df_buf_str(&text), line);
    return at ? strtod(at + strlen(line), NULL) : 0;
}

static void each_phase_is_counted_with_its_cause(void **state)
{
    struct world *w = *state;
#define COMPLETED "dayfly_step_transitions_total{phase=\"Completed\",reason=\"NoChanges\"}"
#define QUEUED "dayfly_step_transitions_total{phase=\"Queued\",reason=\"Queued\"}"
#define TOOK "dayfly_step_duration_seconds_count{action=\"plan\",result=\"success\"}"
    double completed = metric(COMPLETED), queued = metric(QUEUED), took = metric(TOOK);
    begin(w, AUTO);
    struct runner r = claim(w, STEP);
    report(&r, NOTHING_TO_DO);
    await_phase(w, "net-1", "Succeeded");
    assert_history(w, STEP, "Queued Initializing Completed");
    assert_true(metric(COMPLETED) == completed + 1);
    assert_true(metric(QUEUED) == queued + 1);
    assert_true(metric(TOOK) == took + 1);
}

static void a_failure_is_counted_by_its_reason_and_by_no_word_of_a_runners_own(void **state)
{
    struct world *w = *state;
#define FAILED "dayfly_step_transitions_total{phase=\"PermanentFailure\",reason=\"other\"}"
#define ERRORS "dayfly_steps_ended_total{action=\"plan\",result=\"failure\",reason=\"other\"}"
    double failed = metric(FAILED), errors = metric(ERRORS);
    begin(w, AUTO);
    struct runner r = claim(w, STEP);
    report(&r, "{'exitCode':1,'reason':'MadeUpByAModule','message':'m'}");
    await_phase(w, "net-1", "Failed");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.errorState.code", "MadeUpByAModule");
    assert_true(metric(FAILED) == failed + 1);
    assert_true(metric(ERRORS) == errors + 1);
}

/* The run is on its way with its first step. */
static void a_step_takes_its_run_and_its_executor_along(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    run(w, "net", AUTO);
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Pending");
    start(w);
    (void)await_start(w, STEP);
    await_phase(w, "net-1", "Running");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "in_progress");
}

/* ---- tries ---- */

/* The engine says that the runner it started is gone, some time ago. */
static void lose_try(struct world *w, int nth)
{
    await_creates(w, STEP, nth);
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step *s = fake_find(&w->engine, STEP);
    s->seen.since_us = df_real_us() - INT64_C(10000000);
    (void)pthread_mutex_unlock(&w->engine.lock);
    await_ref(w, STEP);
    end_processes(w, STEP, -1, "killed by signal 9");
}

static void a_step_whose_runners_are_lost_before_the_claim_fails_with_the_fourth(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    for (int i = 1; i <= 4; i++)
        lose_try(w, i);
    await_phase(w, "net-1", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "MaxSystemFailuresExceeded");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.systemFailures", "4");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.attempts", "1");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.errorState.kind", "SYSTEM");
    assert_history(w, STEP,
                   "Queued Initializing RetryableFailure Initializing RetryableFailure "
                   "Initializing RetryableFailure Initializing RetryableFailure PermanentFailure");
    assert_int_equal(fake_look(w, STEP).creates, 4);
}

/* The engine is asked for a new runner, and nothing of the lost one counts any more. */
static void another_try_keeps_nothing_of_the_one_before(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    const struct fake_step lost = *await_start(w, STEP);
    lose_try(w, 1);
    struct runner r = claim(w, STEP);
    assert_int_equal(fake_look(w, STEP).creates, 2);
    await_ref(w, STEP); /* after the start */
    DF_JSON cJSON *document = NULL;
    struct df_err err = {0};
    assert_int_equal(try_claim(w, &lost, CLAIM_B, &document, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    report(&r, NOTHING_TO_DO);
    await_phase(w, "net-1", "Succeeded");
}

static void a_claim_sets_the_count_of_lost_tries_back(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    lose_try(w, 1);
    await_creates(w, STEP, 2);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.systemFailures", "1");
    struct runner r = claim(w, STEP);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.systemFailures", "0");
    report(&r, NOTHING_TO_DO);
    await_phase(w, "net-1", "Succeeded");
}

/* Nothing was lost by what somebody asked for. */
static void a_step_that_is_canceled_before_its_claim_is_aborted_and_no_more(void **state)
{
    struct world *w = *state;
#define CANCELS "dayfly_step_duration_seconds_count{action=\"plan\",result=\"canceled\"}"
#define CANCEL_ERRORS                                                                              \
    "dayfly_steps_ended_total{action=\"plan\",result=\"failure\",reason=\"Canceled\"}"
    double cancels = metric(CANCELS), errors = metric(CANCEL_ERRORS);
    begin(w, AUTO);
    (void)await_start(w, STEP);
    await_ref(w, STEP);
    assert_int_equal(
        df_request_cancel_run(&w->s, "net-1", DF_VERBS_ADMIN, "ann", "enough", NULL, NULL), 0);
    await_value(w, DF_KIND_TASK_ACTION, STEP, "spec.cancel.by", "ann");
    end_processes(w, STEP, 143, "killed by signal 15");
    await_phase(w, "net-1", "Canceled");
    assert_history(w, STEP, "Queued Initializing Aborted");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.systemFailures", "");
    assert_true(metric(CANCELS) == cancels + 1);
    assert_true(metric(CANCEL_ERRORS) == errors); /* nobody is to be woken */
}

/* ---- deletion ---- */

static int set_deleted(cJSON *task, void *arg, struct df_err *err)
{
    char at[DF_TIME_LEN];
    (void)arg;
    return df_json_set_str(df_json_object_at(task, "metadata"), "deletionTimestamp",
                           df_time_format(df_real_us(), at), err);
}

/* As the API server marks what somebody deletes while there is a finalizer. */
static void delete_document(struct world *w, const char *name)
{
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, name, set_deleted, NULL, NULL, NULL), 0);
}

static void await_gone(struct world *w, const char *name)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, name);
        if (!task)
            return;
        wait_for_change(w, mark);
    }
}

/* Aborted first, then gone; and not before nothing of it is left. */
static void a_deleted_step_is_aborted_and_its_document_goes_after_its_processes(void **state)
{
    struct world *w = *state;
#define ABORTED "dayfly_step_transitions_total{phase=\"Aborted\",reason=\"Aborted\"}"
    double aborted = metric(ABORTED);
    begin(w, AUTO);
    struct runner r = claim(w, STEP);
    delete_document(w, STEP);
    await_cancel(w, STEP);
    report(&r, "{'exitCode':1,'reason':'Canceled','message':'interrupted'}");
    await_phase(w, "net-1", "Canceled");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.reason", "Aborted");
    assert_true(metric(ABORTED) == aborted + 1);
    await_settled(w);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    assert_non_null(task);
    set_gone(w, STEP);
    await_gone(w, STEP);
}

/* A deletion behind the end does not change the end. */
static void an_ended_step_that_is_deleted_keeps_its_end(void **state)
{
    struct world *w = *state;
    double aborted = metric(ABORTED);
    begin(w, AUTO);
    struct runner r = claim(w, STEP);
    report(&r, NOTHING_TO_DO);
    await_phase(w, "net-1", "Succeeded");
    delete_document(w, STEP);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.reason", "NoChanges");
    set_gone(w, STEP);
    await_gone(w, STEP);
    assert_true(metric(ABORTED) == aborted);
}

/* The run may still want the plan. */
static void a_deleted_plan_stays_until_its_run_is_over(void **state)
{
    struct world *w = *state;
    begin(w, "{'action':'provision'}");
    play_plan(w, "net-1", STEP);
    await_phase(w, "net-1", "WaitingApproval");
    set_gone(w, STEP);
    delete_document(w, STEP);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_ADMIN, "tester", NULL), 0);
    struct runner r = claim(w, "net-1-apply");
    DF_CLOSE int fd = -1;
    int64_t size;
    assert_int_equal(df_step_get_plan(&w->s, r.uid, r.step_token, &fd, &size, NULL), 0);
    report(&r, APPLIED);
    await_phase(w, "net-1", "Succeeded");
    await_gone(w, STEP);
}

/* What is gone can be told of no more; but a service that is away does not keep it for ever. */
static void a_deleted_step_waits_a_while_for_the_state_service(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *what, *url;
        bool is_told;
        int end_s; /* seconds ago */
        enum df_err_class cls;
    } rows[] = {
        {"it is yet to be told", "http://s", false, 1, DF_ERR_RETRY},
        {"it was told", "http://s", true, 1, DF_ERR_NONE},
        {"it was away for too long", "http://s", false, DF_TIMEOUT_FORGET_SECONDS, DF_ERR_NONE},
        {"nobody is told any more", NULL, false, 1, DF_ERR_NONE},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = json("{'metadata':{'name':'net-1-plan'}}");
        struct df_err err = {0};
        struct df_config config = w->config;
        DF_FREE char *url = rows[i].url ? strdup(rows[i].url) : NULL;
        config.state_service_url = url;
        int64_t end_us = df_real_us() - rows[i].end_s * INT64_C(1000000);
        assert_int_equal(
            df_task_set_conditions(task, DF_OUTCOME_SUCCEEDED, "Planned", NULL, end_us, NULL), 0);
        if (!rows[i].is_told)
            assert_int_equal(df_label_set(task, DF_LABEL_UNREPORTED, "true", NULL), 0);
        int result = df_reporter_release(&config, task, &err);
        if (result != (rows[i].cls ? -1 : 0) || err.cls != rows[i].cls)
            fail_msg("%s: %s", rows[i].what, err.message);
    }
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(each_phase_is_counted_with_its_cause),
        TEST(a_failure_is_counted_by_its_reason_and_by_no_word_of_a_runners_own),
        TEST(a_step_takes_its_run_and_its_executor_along),
        TEST(a_step_whose_runners_are_lost_before_the_claim_fails_with_the_fourth),
        TEST(another_try_keeps_nothing_of_the_one_before),
        TEST(a_claim_sets_the_count_of_lost_tries_back),
        TEST(a_step_that_is_canceled_before_its_claim_is_aborted_and_no_more),
        TEST(a_deleted_step_is_aborted_and_its_document_goes_after_its_processes),
        TEST(an_ended_step_that_is_deleted_keeps_its_end),
        TEST(a_deleted_plan_stays_until_its_run_is_over),
        TEST(a_deleted_step_waits_a_while_for_the_state_service),
    };
    return cmocka_run_group_tests_name("transitions", tests, NULL, NULL);
}
