/* The control loop over a real store, with an engine and runners that the test plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/control_loop.h"

#define ASKING "{'action':'provision'}"

static void play_apply(struct world *w, const char *step)
{
    struct runner r = claim(w, step);
    DF_CLOSE int fd = -1;
    int64_t size;
    struct df_err err = {0};
    if (df_step_get_plan(&w->s, r.uid, r.step_token, &fd, &size, &err) < 0)
        fail_msg("get plan: %s", err.message);
    report(&r, APPLIED);
}

/* ---- a run from its beginning to its end ---- */

static void an_approved_run_is_planned_and_applied_in_two_steps(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    play_plan(w, "net-1", "net-1-plan");
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "Applied");
    assert_value(w, DF_KIND_RUN, "net-1", "status.planSummary.add", "1");
    assert_value(w, DF_KIND_RUN, "net-1", "status.hasChanges", "true");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.state", "provisioned");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "done");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.lastRun.phase", "Succeeded");
    await_settled(w);
    assert_value(w, DF_KIND_RUN, "net-1", "metadata.labels", "{\"dayfly.dev/executor\":\"net\"}");
}

static void a_run_that_needs_approval_waits_for_it(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "pending");
    DF_JSON cJSON *doc = NULL;
    assert_int_equal(df_control_decide(&w->s, "net-1", true, DF_ROLE_WRITE, "ann", &doc, NULL), 0);
    assert_int_equal(df_control_decide(&w->s, "net-1", true, DF_ROLE_WRITE, "ann", NULL, NULL), 0);
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.approvedBy", "ann");
}

static void a_discarded_run_is_not_applied_and_its_plan_is_gone(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    DF_FREE char *uid = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.uid");
    DF_FREE char *key = df_strf("plans/%s", uid);
    int64_t size = 0;
    assert_int_equal(df_blob_size(w->s.blobs, key, &size, NULL), 0);
    assert_true(size > 0);
    assert_int_equal(df_control_decide(&w->s, "net-1", false, DF_ROLE_WRITE, "bob", NULL, NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Discarded");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
    assert_int_equal(df_blob_size(w->s.blobs, key, &size, NULL), 0);
    assert_int_equal(size, 0);
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "ready");
}

static void a_plan_without_changes_ends_the_run(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "NoChanges");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
}

static void a_dry_run_plans_alone_and_a_destroy_plans_the_destruction(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", "{'action':'dry-run'}");
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "Planned");
    run(w, "net", AUTO);
    play_plan(w, "net-2", "net-2-plan");
    play_apply(w, "net-2-apply");
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "Succeeded");
    run(w, "net", "{'action':'destroy','autoApprove':true}");
    await_value(w, DF_KIND_TASK_ACTION, "net-3-plan", "spec.action", "plan-destroy");
}

static void a_failed_plan_fails_the_run_with_its_reason(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    report(&r, "{'exitCode':1,'reason':'PlanFailed','message':'no such thing'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "PlanFailed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", "no such thing");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "error");
}

/* ---- what a run is made of ---- */

static void a_later_edit_of_the_executor_does_not_reach_a_run_under_way(void **state)
{
    struct world *w = *state;
    make_executor(w, "net",
                  "'variables':{'a':1,'b':2},'arguments':['-parallelism=2'],"
                  "'placement':{'image':'i','nodeSelector':{'disk':'ssd'}}");
    run(w, "net",
        "{'action':'provision','autoApprove':true,'variables':{'b':3},"
        "'arguments':['-target=x'],'placement':{'nodeSelector':{'zone':'a'}}}");
    DF_JSON cJSON *executor = get(w, DF_KIND_EXECUTOR, "net");
    cJSON *spec = df_json_object_at(executor, "spec");
    assert_int_equal(df_json_set(spec, "variables", json("{'a':9}"), NULL), 0);
    assert_int_equal(df_store_update(w->s.store, DF_KIND_EXECUTOR, executor, NULL, NULL), 0);
    start(w);
    (void)await_start(w, "net-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.variables", "{\"a\":1,\"b\":3}");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.arguments",
                 "[\"-parallelism=2\",\"-target=x\"]");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.placement",
                 "{\"image\":\"i\",\"nodeSelector\":{\"disk\":\"ssd\",\"zone\":\"a\"}}");
}

static void timeouts_are_the_executors_else_the_configured_ones(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "'timeouts':{'plan':'90s','grace':'1ms'}");
    run(w, "net", AUTO);
    start(w);
    (void)await_start(w, "net-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.timeoutSeconds", "90");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.graceSeconds", "1");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.pendingSeconds", "120");
}

static void a_request_for_a_run_is_checked(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *body;
        const char *names;
    } bad[] = {{"{}", "action"},
               {"{'action':'fly'}", "action"},
               {"{'action':'provision','number':7}", "number"},
               {"{'action':'provision','snapshot':{}}", "snapshot"},
               {"{'action':'provision','variables':[]}", "variables"},
               {"{'action':'provision','arguments':['-lock=false']}", "-lock"},
               {"{'action':'provision','autoApprove':'yes'}", "autoApprove"},
               {"{'action':'provision','placement':{'image':'A'}}", "spec.placement.image"},
               {"{'action':'provision','placement':{'resources':{'requests':{'cpu':'2'}}}}",
                "more than the limit"},
               {"[]", "object"}};
    make_executor(w, "net", "'placement':{'resources':{'limits':{'cpu':'1'}}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_JSON cJSON *body = json(bad[i].body), *made = NULL;
        struct df_err err = {0};
        assert_int_equal(df_control_create_run(&w->s, "net", body, DF_ROLE_ADMIN, "t", &made, &err),
                         -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, bad[i].names))
            fail_msg("%s: %s", bad[i].body, err.message);
    }
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.runCounter", "0");
}

static void who_may_not_is_denied(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *body = json(ASKING), *destroy = json("{'action':'destroy'}"), *made = NULL;
    make_executor(w, "net", "");
    assert_int_equal(df_control_create_run(&w->s, "net", body, DF_ROLE_READ, "t", &made, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(df_control_create_run(&w->s, "net", destroy, DF_ROLE_WRITE, "t", &made, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    run(w, "net", ASKING);
    assert_int_equal(df_control_cancel(&w->s, "net-1", DF_ROLE_READ, "t", NULL, NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(df_control_decide(&w->s, "net-1", true, DF_ROLE_READ, "t", NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(df_control_create_run(&w->s, "nil", body, DF_ROLE_ADMIN, "t", &made, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

static void a_decision_is_taken_once_and_only_when_asked_for(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    make_executor(w, "net", "");
    run(w, "net", ASKING);
    assert_int_equal(df_control_decide(&w->s, "net-1", true, DF_ROLE_WRITE, "t", NULL, &err), -1);
    assert_string_equal(err.reason, "WrongState");
    start(w);
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_int_equal(df_control_decide(&w->s, "net-1", true, DF_ROLE_WRITE, "t", NULL, NULL), 0);
    assert_int_equal(df_control_decide(&w->s, "net-1", false, DF_ROLE_WRITE, "t", NULL, &err), -1);
    assert_string_equal(err.reason, "WrongState");
}

/* ---- order and limits ---- */

static void runs_of_one_executor_go_one_after_the_other_in_their_order(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    for (int i = 0; i < 3; i++)
        run(w, "net", AUTO);
    start(w);
    for (int i = 1; i <= 3; i++) {
        char name[16], step[32];
        (void)snprintf(name, sizeof(name), "net-%d", i);
        (void)snprintf(step, sizeof(step), "net-%d-plan", i);
        struct runner r = claim(w, step);
        for (int later = i + 1; later <= 3; later++) {
            (void)snprintf(name, sizeof(name), "net-%d", later);
            assert_value(w, DF_KIND_RUN, name, "status.phase", "Pending");
        }
        report(&r, NOTHING_TO_DO);
    }
    await_value(w, DF_KIND_RUN, "net-3", "status.phase", "Succeeded");
}

/* ---- cancel and death ---- */

static void a_cancel_reaches_the_engine_and_the_run_ends_canceled(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    assert_int_equal(
        df_control_cancel(&w->s, "net-1", DF_ROLE_WRITE, "ann", "wrong branch", NULL, NULL), 0);
    assert_int_equal(df_control_cancel(&w->s, "net-1", DF_ROLE_WRITE, "bob", NULL, NULL, NULL), 0);
    (void)pthread_mutex_lock(&w->engine.lock);
    while (!fake_find(&w->engine, "net-1-plan")->cancels)
        (void)pthread_cond_wait(&w->engine.changed, &w->engine.lock);
    (void)pthread_mutex_unlock(&w->engine.lock);
    report(&r, "{'exitCode':1,'reason':'Canceled','message':'interrupted'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", "canceled by ann: wrong branch");
    await_settled(w);
    struct df_err err = {0};
    assert_int_equal(df_control_cancel(&w->s, "net-1", DF_ROLE_WRITE, "t", NULL, NULL, &err), 0);
}

static void a_queued_run_is_canceled_without_a_step(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    assert_int_equal(df_control_cancel(&w->s, "net-2", DF_ROLE_WRITE, "ann", NULL, NULL, NULL), 0);
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "Canceled");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-2-plan"));
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "in_progress");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "done");
}

static void take_lock(struct world *w, const struct runner *r)
{
    DF_JSON cJSON *info = json("{'ID':'11111111-2222-3333-4444-555555555555','Who':'t'}");
    struct df_step_state_access a;
    assert_int_equal(df_step_state_access(&w->s, r->uid, r->state_password, &a, NULL), 0);
    assert_int_equal(df_state_lock(w->s.states, a.executor_uid, info, r->uid, NULL, NULL), 0);
}

static bool is_locked(struct world *w, const char *executor)
{
    DF_FREE char *uid = value_of(w, DF_KIND_EXECUTOR, executor, "metadata.uid");
    DF_JSON cJSON *info = NULL;
    assert_int_equal(df_state_lock_info(w->s.states, uid, &info, NULL), 0);
    return info != NULL;
}

static void a_runner_that_died_fails_its_step_with_the_cause_and_its_lock_is_released(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    take_lock(w, &r);
    end_processes(w, "net-1-plan", -1, "killed by signal 9, SIGKILL");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_false(is_locked(w, "net"));
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "RunnerLost");
    DF_FREE char *message = value_of(w, DF_KIND_RUN, "net-1", "status.message");
    assert_non_null(strstr(message, "killed by signal 9, SIGKILL"));
    await_settled(w);
    struct df_step_state_access a;
    struct df_err err = {0};
    assert_int_equal(df_step_state_access(&w->s, r.uid, r.state_password, &a, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
}

static char *write_leftover(struct world *w, const char *name, const char *text)
{
    char *path = df_fs_join(w->dir, name);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

static void what_a_dead_runner_did_not_hand_over_is_salvaged(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    play_plan(w, "net-1", "net-1-plan");
    struct runner r = claim(w, "net-1-apply");
    int64_t end;
    assert_int_equal(df_step_append(&w->s, r.uid, r.step_token,
                                    &(struct df_frame){DF_STREAM_LOG, 0, "said, ", 6}, &end, NULL),
                     0);
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step *s = fake_find(&w->engine, "net-1-apply");
    s->log = write_leftover(w, "spool", "said, and not heard");
    s->state = write_leftover(w, "errored", "{\"version\":4,\"serial\":7}");
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, "net-1-apply", -1, "killed by signal 9, SIGKILL");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    DF_BUF struct df_buf log = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_step_read(&w->s, r.uid, DF_STREAM_LOG, 0, &log, &end, NULL), 0);
    assert_string_equal(df_buf_str(&log), "said, and not heard");
    await_settled(w);
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    DF_JSON cJSON *errored = NULL;
    assert_int_equal(df_state_errored(w->s.states, executor, &errored, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(errored), 1);
}

static void a_state_may_be_written_as_long_as_a_process_of_the_step_lives(void **state)
{
    struct world *w = *state;
    struct df_step_state_access a;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    play_plan(w, "net-1", "net-1-plan");
    struct runner r = claim(w, "net-1-apply");
    take_lock(w, &r);
    assert_int_equal(try_result(&r, APPLIED, NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_true(is_locked(w, "net"));
    assert_int_equal(df_step_state_access(&w->s, r.uid, r.state_password, &a, NULL), 0);
    assert_true(a.may_write);
    end_processes(w, "net-1-apply", 0, "exited with code 0");
    await_settled(w);
    assert_false(is_locked(w, "net"));
    assert_int_equal(df_step_state_access(&w->s, r.uid, r.state_password, &a, NULL), -1);
}

static void a_result_that_only_the_engine_has_is_collected(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    (void)r;
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, "net-1-plan")->result =
        strdup("{\"exitCode\":0,\"reason\":\"NoChanges\",\"hasChanges\":false}");
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, "net-1-plan", 0, "exited with code 0");
    await_value(w, DF_KIND_RUN, "net-1", "status.reason", "NoChanges");
}

static void a_result_that_makes_no_sense_is_a_failure_of_the_runner(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    (void)r;
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, "net-1-plan")->result = strdup("{\"exitCode\":\"fine\"}");
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, "net-1-plan", 0, "exited with code 0");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "RunnerFailed");
}

static void an_engine_that_cannot_start_the_runner_fails_the_step_with_its_words(void **state)
{
    struct world *w = *state;
    (void)df_fail(&w->engine.create_error, DF_ERR_NOT_FOUND, "no such program");
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "EngineFailed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", "no such program");
}

static void an_engine_that_is_short_of_something_is_asked_again_after_a_pause(void **state)
{
    struct world *w = *state;
    int64_t begin_ms = df_mono_ms();
    (void)df_fail(&w->engine.create_error, DF_ERR_LIMIT, "no space left");
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    await_creates(w, "net-1-plan", 3);
    assert_true(df_mono_ms() - begin_ms >= 2 * 250); /* though each try is written */
    (void)pthread_mutex_lock(&w->engine.lock);
    w->engine.create_error = (struct df_err){0};
    (void)pthread_mutex_unlock(&w->engine.lock);
    DF_JSON cJSON *waiting = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    assert_string_equal(df_task_message(waiting), "no space left");
    struct runner r = claim(w, "net-1-plan");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
}

static void an_unknown_engine_fails_the_step_and_names_the_known_ones(void **state)
{
    struct world *w = *state;
    static char other[] = "tekton";
    w->config.engine = other;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", AUTO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "unsupported execution engine: \"tekton\" (registered: [local])");
    await_settled(w);
}

/* ---- stop ---- */

static void *stop_cancelling(void *arg)
{
    struct world *w = arg;
    df_control_stop(w->s.control, true);
    return w;
}

static void stopping_with_cancel_ends_what_runs_and_starts_nothing(void **state)
{
    struct world *w = *state;
    pthread_t stopper;
    make_executor(w, "net", "");
    make_executor(w, "dns", "");
    w->config.limit_steps = 1;
    start(w);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    run(w, "dns", AUTO);
    assert_int_equal(pthread_create(&stopper, NULL, stop_cancelling, w), 0);
    (void)pthread_mutex_lock(&w->engine.lock);
    while (!fake_find(&w->engine, "net-1-plan")->cancels)
        (void)pthread_cond_wait(&w->engine.changed, &w->engine.lock);
    (void)pthread_mutex_unlock(&w->engine.lock);
    report(&r, "{'exitCode':1,'reason':'Canceled'}");
    (void)pthread_join(stopper, NULL);
    assert_value(w, DF_KIND_RUN, "net-1", "spec.cancel.reason", "the spawner was stopped");
    assert_int_equal(fake_find(&w->engine, "dns-1-plan")->creates, 0);
}

/* ---- deletion ---- */

static size_t count(struct world *w, enum df_kind kind)
{
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_store_list(w->s.store, kind, NULL, &list, NULL, NULL), 0);
    return (size_t)cJSON_GetArraySize(list);
}

static void deleting_an_executor_leaves_nothing_of_it_and_nothing_of_others_is_touched(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    make_executor(w, "net", "");
    make_executor(w, "dns", "");
    start(w);
    run(w, "net", "{'action':'dry-run'}");
    run(w, "dns", "{'action':'dry-run'}");
    struct runner r = claim(w, "net-1-plan"), other = claim(w, "dns-1-plan");
    int64_t end;
    assert_int_equal(df_step_append(&w->s, r.uid, r.step_token,
                                    &(struct df_frame){DF_STREAM_LOG, 0, "hello", 5}, &end, NULL),
                     0);
    assert_int_equal(df_control_delete_executor(&w->s, "net", DF_ROLE_ADMIN, "t", &err), -1);
    assert_string_equal(err.reason, "WrongState");
    report(&r, NOTHING_TO_DO);
    report(&other, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_settled(w);
    DF_STRS struct df_strs blobs = {0};
    assert_int_equal(df_blob_list(w->s.blobs, "", &blobs, NULL), 0);
    assert_int_equal(blobs.len, 1);
    assert_int_equal(df_control_delete_executor(&w->s, "net", DF_ROLE_ADMIN, "t", NULL), 0);
    assert_null(get(w, DF_KIND_EXECUTOR, "net"));
    assert_int_equal(count(w, DF_KIND_RUN), 1);
    assert_int_equal(count(w, DF_KIND_TASK_ACTION), 1);
    df_strs_free(&blobs);
    assert_int_equal(df_blob_list(w->s.blobs, "", &blobs, NULL), 0);
    assert_int_equal(blobs.len, 0);
    /* The name is free, and its numbers begin anew. */
    make_executor(w, "net", "");
    run(w, "net", "{'action':'dry-run'}");
    (void)await_start(w, "net-1-plan");
}

static void a_deletion_that_was_cut_off_is_finished_after_a_restart(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    DF_JSON cJSON *executor = get(w, DF_KIND_EXECUTOR, "net");
    assert_int_equal(df_json_set(executor, "status", json("{'deleting':{'by':'t'}}"), NULL), 0);
    cJSON *metadata = df_json_object_at(executor, "metadata");
    assert_int_equal(
        df_json_set(metadata, "labels", json("{'dayfly.dev/unfinished':'true'}"), NULL), 0);
    assert_int_equal(df_store_update(w->s.store, DF_KIND_EXECUTOR, executor, NULL, NULL), 0);
    DF_JSON cJSON *body = json(ASKING), *made = NULL;
    struct df_err err = {0};
    assert_int_equal(df_control_create_run(&w->s, "net", body, DF_ROLE_ADMIN, "t", &made, &err),
                     -1);
    assert_string_equal(err.reason, "WrongState");
    start(w);
    for (cJSON *left; (left = get(w, DF_KIND_EXECUTOR, "net"));) {
        cJSON_Delete(left);
        (void)usleep(1000);
    }
}

/* ---- a spawner that dies at every write ---- */

enum { ALIVE = INT32_MAX };

/* A store that stops answering before or after the n-th write, as a killed process does. */
struct mortal {
    struct df_store base;
    struct df_store *real;
    pthread_mutex_t lock;
    int writes_left;
    bool before; /* dies before the write, or after it */
    bool dead;
};

static struct mortal *mortal_of(struct df_store *s)
{
    return (struct mortal *)(void *)s;
}

static int dead(struct df_err *err)
{
    return df_fail(err, DF_ERR_SYSTEM, "the spawner is dead");
}

/* 0: go on; 1: die after the write; -1: dead. */
static int fate(struct mortal *m)
{
    (void)pthread_mutex_lock(&m->lock);
    bool last = !m->dead && m->writes_left != ALIVE && m->writes_left-- == 0;
    bool was_dead = m->dead;
    m->dead = m->dead || last;
    (void)pthread_mutex_unlock(&m->lock);
    if (was_dead || (last && m->before))
        return -1;
    return last;
}

static bool is_dead(struct mortal *m)
{
    (void)pthread_mutex_lock(&m->lock);
    bool d = m->dead;
    (void)pthread_mutex_unlock(&m->lock);
    return d;
}

static int mortal_create(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                         struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    int f = fate(m);
    if (f < 0)
        return dead(err);
    if (f == 0)
        return df_store_create(m->real, kind, doc, ret, err);
    (void)df_store_create(m->real, kind, doc, NULL, NULL);
    return dead(err);
}

static int mortal_update(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                         struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    int f = fate(m);
    if (f < 0)
        return dead(err);
    if (f == 0)
        return df_store_update(m->real, kind, doc, ret, err);
    (void)df_store_update(m->real, kind, doc, NULL, NULL);
    return dead(err);
}

static int mortal_get(struct df_store *s, enum df_kind kind, const char *name, cJSON **ret,
                      struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_get(m->real, kind, name, ret, err);
}

static int mortal_get_by_uid(struct df_store *s, enum df_kind kind, const char *uid, cJSON **ret,
                             struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_get_by_uid(m->real, kind, uid, ret, err);
}

static int mortal_list(struct df_store *s, enum df_kind kind, const struct df_store_list_options *o,
                       cJSON **ret, char **ret_cursor, struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_list(m->real, kind, o, ret, ret_cursor, err);
}

static int mortal_count(struct df_store *s, enum df_kind kind, const char *label, int64_t *ret,
                        struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_count(m->real, kind, label, ret, err);
}

static int mortal_names(struct df_store *s, enum df_kind kind, const char *label,
                        struct df_strs *to, struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_names(m->real, kind, label, to, err);
}

static int mortal_watch(struct df_store *s, df_store_watcher fn, void *arg, struct df_err *err)
{
    return df_store_watch(mortal_of(s)->real, fn, arg, err);
}

static void mortal_unwatch(struct df_store *s, df_store_watcher fn, void *arg)
{
    df_store_unwatch(mortal_of(s)->real, fn, arg);
}

static const struct df_store_ops mortal_ops = {.create = mortal_create,
                                               .update = mortal_update,
                                               .get = mortal_get,
                                               .get_by_uid = mortal_get_by_uid,
                                               .list = mortal_list,
                                               .count = mortal_count,
                                               .names = mortal_names,
                                               .watch = mortal_watch,
                                               .unwatch = mortal_unwatch};

/* A new spawner over what the dead one left. */
static void restart(struct world *w, struct mortal *m)
{
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    m->dead = false;
    m->writes_left = ALIVE;
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    start(w);
}

/* What a runner does until it works: its spawner may be dead for a while. */
typedef int (*attempt)(struct world *w, struct runner *r, struct df_err *err);

static void persist(struct world *w, struct mortal *m, attempt what, struct runner *r)
{
    for (;;) {
        struct df_err err = {0};
        if (is_dead(m))
            restart(w, m);
        if (what(w, r, &err) == 0)
            return;
        if (!is_dead(m) && err.cls != DF_ERR_RETRY)
            fail_msg("%s: %s", r->name, err.message);
    }
}

static int attempt_claim(struct world *w, struct runner *r, struct df_err *err)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step s = *fake_find(&w->engine, r->name);
    (void)pthread_mutex_unlock(&w->engine.lock);
    if (s.seen.phase != DF_ENGINE_RUNNING) {
        (void)usleep(500);
        return df_fail(err, DF_ERR_RETRY, "not started yet");
    }
    cJSON *doc = NULL;
    if (try_claim(w, &s, CLAIM_A, &doc, err) < 0)
        return -1;
    *r = runner_of(w, &s, doc);
    df_json_wipe(doc);
    return 0;
}

static int attempt_put(struct world *w, struct runner *r, struct df_err *err)
{
    DF_FREE char *path = make_bundle(r, "net-1", "the plan");
    return df_step_put_plan(&w->s, r->uid, r->step_token, path, err);
}

static int attempt_get(struct world *w, struct runner *r, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size;
    return df_step_get_plan(&w->s, r->uid, r->step_token, &fd, &size, err);
}

static int attempt_planned(struct world *w, struct runner *r, struct df_err *err)
{
    (void)w;
    return try_result(r, PLANNED, err);
}

static int attempt_applied(struct world *w, struct runner *r, struct df_err *err)
{
    (void)w;
    return try_result(r, APPLIED, err);
}

static int attempt_settled(struct world *w, struct runner *r, struct df_err *err)
{
    (void)r;
    DF_JSON cJSON *run_doc = NULL, *step = NULL;
    if (df_store_get(w->s.store, DF_KIND_RUN, "net-1", &run_doc, err) < 0)
        return -1;
    if (df_run_is_final(run_doc) &&
        df_store_get(w->s.store, DF_KIND_TASK_ACTION, "net-1-apply", &step, err) == 0 &&
        !cJSON_GetObjectItemCaseSensitive(df_json_at(step, "metadata.labels"),
                                          "dayfly.dev/unfinished"))
        return 0;
    (void)usleep(500);
    return df_fail(err, DF_ERR_RETRY, "not settled yet");
}

static void play_step(struct world *w, struct mortal *m, const char *name, attempt artifact,
                      attempt result)
{
    struct runner r = {.w = w};
    (void)snprintf(r.name, sizeof(r.name), "%s", name);
    persist(w, m, attempt_claim, &r);
    persist(w, m, artifact, &r);
    persist(w, m, result, &r);
    end_processes(w, name, 0, "exited with code 0");
}

/* A whole provision with one death. False: it did not come to the n-th write any more. */
static bool provision_with_death(const char *dir, int n, bool before)
{
    struct world w;
    world_open(&w, dir);
    struct mortal m = {.base = {&mortal_ops}, .real = w.s.store, .writes_left = ALIVE};
    (void)pthread_mutex_init(&m.lock, NULL);
    make_executor(&w, "net", "");
    run(&w, "net", AUTO);
    df_control_free(w.s.control);
    w.s.store = &m.base;
    assert_int_equal(df_control_new(&w.s, &w.s.control, NULL), 0);
    m.writes_left = n;
    m.before = before;
    start(&w);
    play_step(&w, &m, "net-1-plan", attempt_put, attempt_planned);
    play_step(&w, &m, "net-1-apply", attempt_get, attempt_applied);
    struct runner none = {.w = &w};
    persist(&w, &m, attempt_settled, &none);
    bool died = m.writes_left == ALIVE;
    assert_value(&w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.state", "provisioned");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.status", "done");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.activeRun", "");
    /* Its runners were started once each. */
    for (size_t i = 0; i < w.engine.count; i++)
        assert_int_equal(w.engine.steps[i].starts, 1);
    df_control_stop(w.s.control, false);
    df_control_free(w.s.control);
    w.s.store = m.real;
    assert_int_equal(df_control_new(&w.s, &w.s.control, NULL), 0);
    world_close(&w);
    (void)pthread_mutex_destroy(&m.lock);
    return died;
}

static void a_spawner_that_dies_at_any_write_comes_to_the_same_end(void **state)
{
    int n = 0;
    for (int before = 0; before < 2; before++) {
        bool died = true;
        for (n = 0; died; n++) {
            DF_FREE char *dir = df_strf("%s/%d-%d", (const char *)*state, before, n);
            assert_int_equal(df_fs_mkdirs(dir, 0700, NULL), 0);
            died = provision_with_death(dir, n, before);
        }
    }
    assert_true(n > 12); /* or nothing was tried */
}

int main(void)
{
    (void)alarm(300); /* what is awaited and never comes */
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(an_approved_run_is_planned_and_applied_in_two_steps),
        TEST(a_run_that_needs_approval_waits_for_it),
        TEST(a_discarded_run_is_not_applied_and_its_plan_is_gone),
        TEST(a_plan_without_changes_ends_the_run),
        TEST(a_dry_run_plans_alone_and_a_destroy_plans_the_destruction),
        TEST(a_failed_plan_fails_the_run_with_its_reason),
        TEST(a_later_edit_of_the_executor_does_not_reach_a_run_under_way),
        TEST(timeouts_are_the_executors_else_the_configured_ones),
        TEST(a_request_for_a_run_is_checked),
        TEST(who_may_not_is_denied),
        TEST(a_decision_is_taken_once_and_only_when_asked_for),
        TEST(runs_of_one_executor_go_one_after_the_other_in_their_order),
        TEST(a_cancel_reaches_the_engine_and_the_run_ends_canceled),
        TEST(a_queued_run_is_canceled_without_a_step),
        TEST(a_runner_that_died_fails_its_step_with_the_cause_and_its_lock_is_released),
        TEST(what_a_dead_runner_did_not_hand_over_is_salvaged),
        TEST(a_state_may_be_written_as_long_as_a_process_of_the_step_lives),
        TEST(a_result_that_only_the_engine_has_is_collected),
        TEST(a_result_that_makes_no_sense_is_a_failure_of_the_runner),
        TEST(an_engine_that_cannot_start_the_runner_fails_the_step_with_its_words),
        TEST(an_engine_that_is_short_of_something_is_asked_again_after_a_pause),
        TEST(an_unknown_engine_fails_the_step_and_names_the_known_ones),
        TEST(stopping_with_cancel_ends_what_runs_and_starts_nothing),
        TEST(deleting_an_executor_leaves_nothing_of_it_and_nothing_of_others_is_touched),
        TEST(a_deletion_that_was_cut_off_is_finished_after_a_restart),
        scratch_test(a_spawner_that_dies_at_any_write_comes_to_the_same_end),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
