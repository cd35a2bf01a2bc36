/* How workflows end, and what they hold, while their engine does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workflow_world.h"

/* ---- what only a running workflow needs ---- */

static atomic_int refusals, releases;

static int release_later(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    (void)e;
    assert_string_equal(step->name, "restart");
    (void)atomic_fetch_add(&releases, 1);
    return atomic_fetch_sub(&refusals, 1) > 0 ? df_fail(err, DF_ERR_RETRY, "AWX is away") : 0;
}

static const struct df_workflow_ops releasing = {
    .step = FAKE_STEP_OPS, .output = fake_output, .release = release_later};
static const struct df_engine_ops releasing_ops = {.close = fake_close, .workflow = &releasing};

static void what_a_workflow_used_is_removed_later_if_it_cannot_be_at_its_end(void **state)
{
    struct world *w = *state;
    w->engine.engine.ops = &releasing_ops;
    open_other(w);
    atomic_store(&refusals, 3);
    start(w);
    ask(w, "restart", APP);
    (void)await_start(w, "restart");
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
    ask_of(w, "other", "next", APP); /* it has the target meanwhile */
    await_ref(w, "next");
    await_settled(w, "restart");
    assert_int_equal(atomic_load(&releases), 4);
}

/* What was asked for may run, and nobody can look: two workflows on a target would be the end. */
static void what_may_have_been_started_holds_its_target_until_its_engine_tells(void **state)
{
    struct world *w = *state;
    w->engine.engine.ops = &releasing_ops;
    open_other(w);
    atomic_store(&refusals, INT32_MAX);
    lock(w);
    w->engine.create_error = (struct df_err){.cls = DF_ERR_RETRY, .message = "no answer"};
    unlock(w);
    start(w);
    ask(w, "restart", APP);
    await_creates(w, "restart", 2);
    cancel(w, "restart");
    await_reason(w, "restart", "Canceled");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.message",
                 "canceled; whether it runs was not known then: AWX is away");
    ask_of(w, "other", "next", APP);
    await_value(w, DF_KIND_TASK_ACTION, "next", "status.lockedBy", "taskaction/restart");
    assert_int_equal(creates_of_other("next"), 0);
    atomic_store(&refusals, 0);
    df_control_notify(w->s.control, "restart");
    await_settled(w, "restart");
    await_started_by_other(w, "next");
}

/* ---- an engine that does not answer ---- */

/* A df_store_change: the step was made so many seconds ago, and canceled then if it is canceled. */
static int set_old(cJSON *task, void *arg, struct df_err *err)
{
    int64_t *seconds = arg, then_us = df_real_us() - *seconds * 1000000;
    cJSON *cancel = cJSON_GetObjectItemCaseSensitive(df_json_object_at(task, "spec"), "cancel");
    cJSON *entry, *timeline = df_json_array_at(df_json_object_at(task, "status"), "timeline");
    char at[DF_TIME_LEN];
    cJSON_ArrayForEach (entry, timeline)
        if (df_json_set_str(entry, "at", df_time_format(then_us, at), err) < 0)
            return -1;
    return cancel ? df_json_set_str(cancel, "at", df_time_format(then_us, at), err) : 0;
}

static void make_old(struct world *w, const char *name, int64_t seconds)
{
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, name, set_old, &seconds, NULL, NULL), 0);
    df_control_notify(w->s.control, name);
}

static void set_status_error(struct world *w, enum df_err_class cls)
{
    lock(w);
    w->engine.status_error =
        (struct df_err){.cls = cls, .message = "AWX is away", .retry_after_s = 86400};
    unlock(w);
}

/* A workflow that executes, of a service that works for an hour. Its engine does not answer any
 * more. */
static void begin_unanswered(struct world *w, const char *name)
{
    open_other(w);
    start(w);
    w->s.control->reachable_since_us -= INT64_C(3600000000);
    ask(w, name, APP);
    (void)await_start(w, name);
    lock(w);
    fake_find(&w->engine, name)->result = strdup("{}");
    unlock(w);
    df_control_notify(w->s.control, name);
    await_text(w, name, "status.phaseHistory", "Executing");
    set_status_error(w, DF_ERR_RETRY);
}

static void assert_holds_target(struct world *w, const char *name)
{
    DF_FREE char *holder = df_strf("taskaction/%s", name);
    ask_of(w, "other", "next", APP);
    await_value(w, DF_KIND_TASK_ACTION, "next", "status.lockedBy", holder);
    assert_int_equal(creates_of_other("next"), 0);
}

static void a_workflow_whose_engine_does_not_answer_says_so_and_goes_on(void **state)
{
    struct world *w = *state;
    begin_unanswered(w, "restart");
    make_old(w, "restart", 600);
    await_text(w, "restart", "status.conditions", "AWX is away");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.reason", "");
    DF_FREE char *history = value_of(w, DF_KIND_TASK_ACTION, "restart", "status.phaseHistory");
    assert_null(strstr(strstr(history, "Executing"), "Initializing"));
}

static void a_workflow_whose_engine_does_not_answer_has_its_time_limit(void **state)
{
    struct world *w = *state;
    begin_unanswered(w, "restart");
    make_old(w, "restart", 3600);
    await_reason(w, "restart", "TimedOut");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.message",
                 "it ran out of time; whether it has ended is not known: AWX is away");
    assert_holds_target(w, "restart");
    set_status_error(w, DF_ERR_NONE);
    df_control_notify(w->s.control, "restart");
    await_cancel(w, "restart"); /* it lives, and is ended now */
    assert_int_equal(creates_of_other("next"), 0);
    end_processes(w, "restart", 143, "");
    await_settled(w, "restart");
    await_started_by_other(w, "next");
}

static void a_workflow_whose_engine_does_not_answer_is_canceled(void **state)
{
    struct world *w = *state;
    begin_unanswered(w, "restart");
    cancel(w, "restart");
    await_cancel(w, "restart");
    make_old(w, "restart", 3600);
    await_reason(w, "restart", "Canceled");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.message",
                 "canceled, and it did not end in time; whether it has ended is not known: AWX is "
                 "away");
    assert_holds_target(w, "restart");
}

static void what_may_have_been_started_is_canceled_when_its_engine_can_tell(void **state)
{
    struct world *w = *state;
    begin_workflow(w, "restart");
    set_status_error(w, DF_ERR_RETRY);
    cancel(w, "restart");
    await_text(w, "restart", "status.conditions",
               "canceled; whether it has ended is not known: AWX is away");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.reason", "");
    set_status_error(w, DF_ERR_NONE);
    df_control_notify(w->s.control, "restart");
    await_cancel(w, "restart");
    end_processes(w, "restart", 143, "");
    await_reason(w, "restart", "Canceled");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.message", "canceled");
}

static void what_was_never_asked_for_is_canceled_though_its_engine_is_silent(void **state)
{
    struct world *w = *state;
    set_status_error(w, DF_ERR_RETRY);
    start(w);
    ask(w, "restart", APP);
    await_true(w, w->engine.unanswered > 1); /* and not started meanwhile */
    cancel(w, "restart");
    await_reason(w, "restart", "Canceled");
    await_settled(w, "restart"); /* nothing exists that could live */
    assert_int_equal(entry(w, "restart").creates, 0);
    assert_int_equal(df_request_delete_workflow(&w->s, "restart", NULL), 0);
    assert_int_equal(entry(w, "restart").cleanups, 0); /* which would need the engine */
}

/* A df_store_change. */
static int set_other_engine(cJSON *task, void *arg, struct df_err *err)
{
    return df_json_set_str(df_json_object_at(task, "spec"), "engine", arg, err);
}

/* Its engine is not configured any more, and the service works for an hour. */
static void begin_and_lose_engine(struct world *w, const char *name)
{
    open_other(w);
    start(w);
    w->s.control->reachable_since_us -= INT64_C(3600000000);
    ask_of(w, "other", name, APP);
    await_started_by_other(w, name);
    char gone[] = "gone"; /* the engines themselves are read by other threads */
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, name, set_other_engine, gone, NULL, NULL),
        0);
}

/* Whoever removes an engine from the configuration says that nothing of it lives. */
static void a_workflow_whose_engine_is_gone_has_its_time_limit_and_leaves_its_target(void **state)
{
    struct world *w = *state;
    begin_and_lose_engine(w, "restart");
    make_old(w, "restart", 3600);
    await_reason(w, "restart", "TimedOut");
    await_settled(w, "restart");
    ask(w, "next", APP);
    (void)await_start(w, "next");
}

/* A df_store_change */
static int set_deleted(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    return df_json_set_str(df_json_object_at(task, "metadata"), "deletionTimestamp",
                           "2020-11-21T20:17:40Z", err);
}

/* With kubectl, whose deletion waits for the service. */
static void a_workflow_whose_engine_is_gone_can_be_deleted(void **state)
{
    struct world *w = *state;
    begin_and_lose_engine(w, "restart");
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, "restart", set_deleted, NULL, NULL, NULL),
        0);
    for (bool is_there = true; is_there;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, "restart");
        is_there = task;
        if (is_there)
            wait_for_change(w, mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_workflow_used_is_removed_later_if_it_cannot_be_at_its_end),
        TEST(what_may_have_been_started_holds_its_target_until_its_engine_tells),
        TEST(a_workflow_whose_engine_does_not_answer_says_so_and_goes_on),
        TEST(a_workflow_whose_engine_does_not_answer_has_its_time_limit),
        TEST(a_workflow_whose_engine_does_not_answer_is_canceled),
        TEST(what_may_have_been_started_is_canceled_when_its_engine_can_tell),
        TEST(what_was_never_asked_for_is_canceled_though_its_engine_is_silent),
        TEST(a_workflow_whose_engine_is_gone_has_its_time_limit_and_leaves_its_target),
        TEST(a_workflow_whose_engine_is_gone_can_be_deleted),
    };
    return cmocka_run_group_tests_name("workflow_ends", tests, NULL, NULL);
}
