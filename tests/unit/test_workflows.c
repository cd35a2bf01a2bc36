/* Workflows in the control loop: a real store, and an engine that does what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/control/task_pass.h"
#include "tests/unit/workflow_world.h"

static void set_create_error(struct world *w, enum df_err_class cls, const char *reason)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    w->engine.create_error = (struct df_err){.cls = cls};
    (void)snprintf(w->engine.create_error.reason, sizeof(w->engine.create_error.reason), "%s",
                   reason);
    (void)snprintf(w->engine.create_error.message, sizeof(w->engine.create_error.message),
                   "the Job of other");
    (void)pthread_mutex_unlock(&w->engine.lock);
}

/* What the engine sees of a step that is not there. */
static void set_absent_reason(struct world *w, const char *name, const char *reason)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step *s = fake_find(&w->engine, name);
    (void)snprintf(s->seen.reason, sizeof(s->seen.reason), "%s", reason);
    (void)snprintf(s->seen.cause, sizeof(s->seen.cause), "the Job of other");
    (void)pthread_mutex_unlock(&w->engine.lock);
}

static void a_workflow_runs_without_run_and_runner(void **state)
{
    struct world *w = *state;
    start(w);
    ask(w, "restart", APP);
    (void)await_start(w, "restart");
    df_control_notify(w->s.control, "restart");
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, "restart")->result =
        strdup("{\"executionStatus\":{\"status\":\"True\",\"totalTasks\":1}}");
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.executionStatus.status", "True");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.exitCode", "0");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.creator", "tester");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "spec.pendingSeconds", "120");
    await_settled(w, "restart");
    assert_int_equal(entry(w, "restart").starts, 1);
    assert_int_equal(entry(w, "restart").cleanups, 0); /* kept, to be looked at */
}

static void one_target_has_one_workflow_at_a_time_in_their_order(void **state)
{
    struct world *w = *state;
    ask(w, "b-first", APP);
    ask(w, "a-second", APP);
    ask(w, "elsewhere", "default/deployment/other");
    start(w);
    (void)await_start(w, "b-first");
    (void)await_start(w, "elsewhere");
    await_value(w, DF_KIND_TASK_ACTION, "a-second", "status.lockedBy", "taskaction/b-first");
    assert_int_equal(entry(w, "a-second").creates, 0);
    end_processes(w, "b-first", 0, "");
    (void)await_start(w, "a-second");
    assert_value(w, DF_KIND_TASK_ACTION, "b-first", "status.reason", "Completed");
    assert_value(w, DF_KIND_TASK_ACTION, "a-second", "status.lockedBy", "");
}

static void one_target_has_one_workflow_at_a_time_whichever_engines_they_have(void **state)
{
    struct world *w = *state;
    open_other(w);
    ask(w, "b-first", APP);
    ask_of(w, "other", "a-second", APP);
    start(w);
    (void)await_start(w, "b-first");
    await_value(w, DF_KIND_TASK_ACTION, "a-second", "status.lockedBy", "taskaction/b-first");
    assert_int_equal(creates_of_other("a-second"), 0);
    end_processes(w, "b-first", 0, "");
    await_started_by_other(w, "a-second");
    assert_value(w, DF_KIND_TASK_ACTION, "b-first", "status.reason", "Completed");
}

/* A df_store_change. */
static int move_labels(cJSON *task, void *arg, struct df_err *err)
{
    cJSON **labels = arg, *metadata = df_json_object_at(task, "metadata");
    cJSON *before = cJSON_DetachItemFromObjectCaseSensitive(metadata, "labels");
    if (*labels && df_json_add(metadata, "labels", DF_TAKE(*labels), err) < 0)
        return -1;
    *labels = before;
    return 0;
}

/* In a cluster a document may be seen, or accepted, after others that were made later. Until the
 * test gives its labels back, nobody sees this one in the queue. */
static void leave_queue(struct world *w, const char *name, cJSON **ret_labels)
{
    *ret_labels = NULL;
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, name, move_labels, ret_labels, NULL, NULL),
        0);
}

static void come_into_queue(struct world *w, const char *name, cJSON *labels)
{
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, name, move_labels, &labels, NULL, NULL),
        0);
    cJSON_Delete(labels);
}

static void who_comes_into_the_queue_before_the_holder_waits_for_its_end(void **state)
{
    struct world *w = *state;
    cJSON *labels;
    open_other(w);
    ask_of(w, "other", "early", APP);
    leave_queue(w, "early", &labels);
    ask(w, "late", APP);
    start(w);
    (void)await_start(w, "late");
    come_into_queue(w, "early", labels);
    await_value(w, DF_KIND_TASK_ACTION, "early", "status.lockedBy", "taskaction/late");
    assert_int_equal(creates_of_other("early"), 0);
    end_processes(w, "late", 0, "");
    await_started_by_other(w, "early");
    assert_value(w, DF_KIND_TASK_ACTION, "late", "status.reason", "Completed");
}

/* The answer of its engine may have been lost: nobody knows that it runs, and it keeps its
 * target. */
static void a_holder_is_not_sent_back_by_who_comes_into_the_queue_before_it(void **state)
{
    struct world *w = *state;
    cJSON *labels;
    open_other(w);
    ask_of(w, "other", "early", APP);
    leave_queue(w, "early", &labels);
    ask(w, "late", APP);
    set_create_error(w, DF_ERR_RETRY, "");
    start(w);
    await_creates(w, "late", 1);
    come_into_queue(w, "early", labels);
    await_value(w, DF_KIND_TASK_ACTION, "early", "status.lockedBy", "taskaction/late");
    await_creates(w, "late", entry(w, "late").creates + 2);
    assert_value(w, DF_KIND_TASK_ACTION, "late", "status.lockedBy", "");
    assert_int_equal(creates_of_other("early"), 0);
    set_create_error(w, DF_ERR_NONE, "");
    (void)await_start(w, "late");
}

/* Between the two writes nothing in the store says who has begun. */
static void a_target_is_held_before_its_holder_is_written(void **state)
{
    struct world *w = *state;
    struct df_slots *slots = &w->s.control->slots;
    struct df_slot first = {0}, second = {0};
    ask(w, "first", APP);
    ask(w, "second", APP);
    DF_JSON cJSON *a = get(w, DF_KIND_TASK_ACTION, "first");
    DF_JSON cJSON *b = get(w, DF_KIND_TASK_ACTION, "second");
    assert_int_equal(df_slots_acquire(slots, b, &second, NULL), 0);
    assert_non_null(second.entry);
    assert_int_equal(df_slots_acquire(slots, a, &first, NULL), 0);
    assert_null(first.entry);
    assert_string_equal(first.holder, "second");
    df_slots_unreserve(slots, &second);
    assert_int_equal(df_slots_acquire(slots, a, &first, NULL), 0);
    assert_non_null(first.entry);
    df_slots_unreserve(slots, &first);
}

/* Otherwise those who wait for one target would keep everybody else from running. */
static void who_waits_for_a_target_holds_no_place(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    set_create_error(w, DF_ERR_CONFLICT, "TargetLocked");
    set_absent_reason(w, "waits", "TargetLocked");
    start(w);
    ask(w, "waits", APP);
    await_value(w, DF_KIND_TASK_ACTION, "waits", "status.lockedBy", "the Job of other");
    DF_FREE char *timeline = value_of(w, DF_KIND_TASK_ACTION, "waits", "status.timeline");
    assert_null(strstr(timeline, "created"));
    set_create_error(w, DF_ERR_NONE, "");
    ask(w, "runs", "default/deployment/other");
    (void)await_start(w, "runs");
    assert_int_equal(entry(w, "waits").creates, 1); /* what is locked is looked at, not asked for */
    end_processes(w, "runs", 0, "");
    await_settled(w, "runs");
    set_absent_reason(w, "waits", "");
    df_control_notify(w->s.control, "waits");
    (void)await_start(w, "waits");
    assert_value(w, DF_KIND_TASK_ACTION, "waits", "status.lockedBy", "");
}

static void a_refusal_that_may_pass_is_told_and_tried_again(void **state)
{
    struct world *w = *state;
    int64_t begin_ms = df_mono_ms();
    set_create_error(w, DF_ERR_RETRY, "QuotaExceeded");
    start(w);
    ask(w, "restart", APP);
    for (bool told = false; !told;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *conditions = value_of(w, DF_KIND_TASK_ACTION, "restart", "status.conditions");
        told = strstr(conditions, "the Job of other") && strstr(conditions, "Initializing");
        if (!told)
            wait_for_change(w, mark);
    }
    await_creates(w, "restart", 3);
    assert_true(df_mono_ms() - begin_ms >= 2 * 250); /* with pauses, though each try is written */
    set_create_error(w, DF_ERR_NONE, "");
    (void)await_start(w, "restart");
}

static void a_refusal_for_good_is_the_end(void **state)
{
    struct world *w = *state;
    set_create_error(w, DF_ERR_USER, "ObjectRefused");
    start(w);
    ask(w, "restart", APP);
    await_reason(w, "restart", "ObjectRefused");
    await_settled(w, "restart");
}

static void what_an_engine_cannot_take_now_is_not_asked_for_and_holds_no_place(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    set_absent_reason(w, "waits", "EngineFailed");
    fake_find(&w->engine, "waits")->seen.takes_none = true; /* the loop has not begun */
    start(w);
    ask(w, "waits", APP);
    await_text(w, "waits", "status.conditions", "the Job of other");
    ask(w, "runs", "default/deployment/other");
    (void)await_start(w, "runs");
    cancel(w, "waits");
    await_reason(w, "waits", "Canceled");
    assert_int_equal(entry(w, "waits").creates, 0);
}

/* It would be begun as one for which no engine was asked. */
static void what_another_pass_has_begun_is_not_begun_by_one_that_has_not_seen_it(void **state)
{
    struct df_task_pass pass = {0};
    struct df_err err = {0};
    DF_JSON cJSON *task = json("{'metadata':{'labels':{'" DF_LABEL_LIVE "':'true'}}}");
    (void)state;
    assert_int_equal(df_workflow_hooks.set_begun(task, &pass, &err), -1);
    assert_string_equal(err.reason, "Conflict");
    pass.step.was_created = true;
    assert_int_equal(df_workflow_hooks.set_begun(task, &pass, NULL), 0);
}

/* ---- engines ---- */

static int ask_ansible_for_little(struct world *w, struct df_err *err)
{
    DF_JSON cJSON *doc = json("{'metadata':{'name':'a'},'spec':{'action':'workflow','engine':"
                              "'ansible','targetResource':'" APP "','workflow':{}}}");
    return df_request_create_workflow(
        &w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, "tester"}, NULL, err);
}

static void an_engine_that_runs_no_workflows_is_refused_at_once(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    assert_int_equal(try_ask(w, "a", "tekton", APP, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "\"tekton\" (registered: [local])"));
    err = (struct df_err){0};
    assert_int_equal(ask_ansible_for_little(w, &err), -1); /* before its own fields are missed */
    assert_non_null(strstr(err.message, "\"ansible\" (registered: [local])"));
    w->engine.engine.ops = &fake_ops;
    err = (struct df_err){0};
    assert_int_equal(try_ask(w, "a", "local", APP, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "runs no workflows"));
}

static void who_opens_an_engine_for_a_workflow_is_not_sent_to_one_that_runs_none(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    open_other(w);
    w->s.engines.engines[0] = w->s.engines.engines[1]; /* `other` alone */
    w->s.engines.count = 1;
    assert_int_equal(try_ask(w, "a", "local", APP, &err), -1);
    assert_string_equal(err.message, "spec.engine: the engine local runs no workflows");
    w->s.engines.engines[0] = &w->engine.engine;
}

/* The configuration may have changed since it was asked for. */
static void a_workflow_whose_engine_runs_none_fails_and_says_so(void **state)
{
    struct world *w = *state;
    ask(w, "restart", APP);
    w->engine.engine.ops = &fake_ops;
    start(w);
    await_reason(w, "restart", "InvalidStep");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.message",
                 "the engine local runs no workflows");
    assert_int_equal(entry(w, "restart").creates, 0);
}

static void a_step_whose_engine_runs_workflows_alone_fails_and_says_so(void **state)
{
    static const struct df_engine_ops workflow_only = {.close = fake_close,
                                                       .workflow = &fake_workflow};
    struct world *w = *state;
    w->engine.engine.ops = &workflow_only;
    make_executor(w, "net", "");
    cJSON_Delete(make_run(w, "net", "{'action':'dry-run'}"));
    start(w);
    await_reason(w, "net-1-plan", "InvalidStep");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.message",
                 "the engine local runs no plans and applies");
    assert_int_equal(entry(w, "net-1-plan").creates, 0);
}

static void assert_conflict(int result, const struct df_err *err)
{
    assert_int_equal(result, -1);
    assert_int_equal(err->cls, DF_ERR_CONFLICT);
    assert_string_equal(err->reason, "WrongState");
}

static void a_workflow_that_ended_is_deleted_with_what_its_engine_keeps(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    start(w);
    ask(w, "restart", APP);
    (void)await_start(w, "restart");
    assert_conflict(df_request_delete_workflow(&w->s, "restart", &err), &err);
    assert_int_equal(df_request_cancel_workflow(&w->s, "restart", "a", "why", NULL, NULL), 0);
    assert_int_equal(df_request_cancel_workflow(&w->s, "restart", "b", NULL, NULL, NULL), 0);
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "spec.cancel.by", "a");
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "spec.cancel.reason", "why");
    await_cancel(w, "restart");
    end_processes(w, "restart", 143, "");
    await_reason(w, "restart", "Canceled");
    await_settled(w, "restart");
    assert_int_equal(df_request_delete_workflow(&w->s, "restart", NULL), 0);
    assert_int_equal(entry(w, "restart").cleanups, 1);
    assert_true(entry(w, "restart").is_deleted);
    assert_null(get(w, DF_KIND_TASK_ACTION, "restart"));
}

static void a_step_of_a_run_is_not_canceled_or_deleted_alone(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    make_executor(w, "net", "");
    start(w);
    cJSON_Delete(make_run(w, "net", "{'action':'dry-run'}"));
    (void)await_start(w, "net-1-plan");
    assert_conflict(df_request_cancel_workflow(&w->s, "net-1-plan", "a", NULL, NULL, &err), &err);
    err = (struct df_err){0};
    assert_conflict(df_request_delete_workflow(&w->s, "net-1-plan", &err), &err);
}

static void nobody_claims_a_workflow(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    cJSON *document = NULL;
    start(w);
    ask(w, "restart", APP);
    struct fake_step s = *await_start(w, "restart");
    assert_int_equal(try_claim(w, &s, CLAIM_A, &document, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.claimedBy", "");
}

/* The news of an engine is about the lock, which none of those is called who use it. */
static void news_of_a_lock_wake_all_who_use_it(void **state)
{
    struct world *w = *state;
    start(w);
    ask(w, "restart", APP);
    (void)await_start(w, "restart");
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, "restart"); /* whoever ended has no lock */
    const char *lock = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(df_json_at(task, "metadata.labels"), DF_LABEL_QUEUE));
    assert_true(lock && df_starts_with(lock, "wfe-"));
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, "restart")->seen.phase = DF_ENGINE_ENDED;
    (void)pthread_mutex_unlock(&w->engine.lock);
    df_control_notify(w->s.control, lock);
    await_value(w, DF_KIND_TASK_ACTION, "restart", "status.reason", "WorkflowFailed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_workflow_runs_without_run_and_runner),
        TEST(one_target_has_one_workflow_at_a_time_in_their_order),
        TEST(one_target_has_one_workflow_at_a_time_whichever_engines_they_have),
        TEST(who_comes_into_the_queue_before_the_holder_waits_for_its_end),
        TEST(a_holder_is_not_sent_back_by_who_comes_into_the_queue_before_it),
        TEST(a_target_is_held_before_its_holder_is_written),
        TEST(who_waits_for_a_target_holds_no_place),
        TEST(a_refusal_that_may_pass_is_told_and_tried_again),
        TEST(a_refusal_for_good_is_the_end),
        TEST(what_an_engine_cannot_take_now_is_not_asked_for_and_holds_no_place),
        cmocka_unit_test(what_another_pass_has_begun_is_not_begun_by_one_that_has_not_seen_it),
        TEST(an_engine_that_runs_no_workflows_is_refused_at_once),
        TEST(who_opens_an_engine_for_a_workflow_is_not_sent_to_one_that_runs_none),
        TEST(a_workflow_whose_engine_runs_none_fails_and_says_so),
        TEST(a_step_whose_engine_runs_workflows_alone_fails_and_says_so),
        TEST(a_workflow_that_ended_is_deleted_with_what_its_engine_keeps),
        TEST(a_step_of_a_run_is_not_canceled_or_deleted_alone),
        TEST(nobody_claims_a_workflow),
        TEST(news_of_a_lock_wake_all_who_use_it),
    };
    return cmocka_run_group_tests_name("workflows", tests, NULL, NULL);
}
