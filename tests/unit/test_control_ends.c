/* The control loop: what is canceled, dies, is stopped or deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "spawner/model/labels.h"
#include "spawner/requests/purge.h"
#include "spawner/steps/errored.h"
#include "spawner/steps/lock_holder.h"
#include "tests/unit/control_loop.h"

/* ---- cancel and death ---- */

/* The only entry about the end of this run. */
static cJSON *noted_end(struct world *w, const char *run)
{
    struct df_audit_filter f = {.words = {[DF_AUDIT_NAME] = run, [DF_AUDIT_ACTION] = "end"}};
    DF_JSON cJSON *found = NULL;
    assert_int_equal(df_store_audit_list(w->s.store, &f, NULL, 10, &found, NULL, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(found), 1);
    return cJSON_DetachItemFromArray(found, 0);
}

static void a_cancel_reaches_the_engine_and_the_run_ends_canceled(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    assert_int_equal(
        df_request_cancel_run(&w->s, "net-1", DF_VERBS_WRITE, "ann", "wrong branch", NULL, NULL),
        0);
    assert_int_equal(df_request_cancel_run(&w->s, "net-1", DF_VERBS_WRITE, "bob", NULL, NULL, NULL),
                     0);
    await_cancel(w, "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.message",
                "is canceled: waits for the end of step net-1-plan, whose grace period is 900s");
    report(&r, "{'exitCode':1,'reason':'Canceled','message':'interrupted'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", "canceled by ann: wrong branch");
    DF_JSON cJSON *end = noted_end(w, "net-1");
    assert_string_equal(df_json_str(end, "outcome"), "canceled");
    assert_string_equal(df_json_str(end, "detail"), "canceled by ann: wrong branch");
    await_settled(w);
    struct df_err err = {0};
    assert_int_equal(df_request_cancel_run(&w->s, "net-1", DF_VERBS_WRITE, "t", NULL, NULL, &err),
                     0);
}

static void the_end_of_a_run_is_in_the_audit_trail_with_what_it_changed(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    put_plan(&r, "net-1");
    report(&r, PLANNED);
    r = claim(w, "net-1-apply");
    report(&r, "{'exitCode':0,'reason':'Applied','planSummary':{'add':2,'change':1}}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    DF_JSON cJSON *end = noted_end(w, "net-1");
    DF_FREE char *uid = value_of(w, DF_KIND_RUN, "net-1", "metadata.uid");
    assert_string_equal(df_json_str(end, "outcome"), "done");
    assert_string_equal(df_json_str(end, "executor"), "net");
    assert_string_equal(df_json_str(end, "runAction"), "provision");
    assert_string_equal(df_json_str(end, "runUid"), uid);
    assert_int_equal(df_json_int(end, "exitCode", -1), 0);
    assert_int_equal(df_json_int(end, "changes.add", 0), 2);
}

static void the_end_of_a_run_that_failed_is_noted_once_although_it_was_noted_before(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    DF_FREE char *uid = value_of(w, DF_KIND_RUN, "net-1", "metadata.uid");
    DF_JSON cJSON *before = df_json_object(
        DF_TIME("at", df_real_us()), DF_STR("action", "end"), DF_STR("name", "net-1"),
        DF_STR("runUid", uid), DF_STR("detail", "of a pass that did not write the run"));
    assert_int_equal(df_store_audit(w->s.store, before, NULL), 0);
    struct runner r = claim(w, "net-1-plan");
    report(&r, "{'exitCode':1,'reason':'Failed','message':'no'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    DF_JSON cJSON *end = noted_end(w, "net-1");
    assert_string_equal(df_json_str(end, "detail"), "of a pass that did not write the run");
}

static void a_queued_run_is_canceled_without_a_step(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    assert_int_equal(df_request_cancel_run(&w->s, "net-2", DF_VERBS_WRITE, "ann", NULL, NULL, NULL),
                     0);
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
    begin(w, AUTO);
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
    begin(w, AUTO);
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

/* An apply of net-1 in whose directory an errored state is; meanwhile net-2 waits for its turn. */
static void begin_errored(struct world *w, struct runner *ret)
{
    begin(w, AUTO);
    run(w, "net", AUTO);
    play_plan(w, "net-1", "net-1-plan");
    *ret = claim(w, "net-1-apply");
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, "net-1-apply")->state =
        write_leftover(w, "errored", "{\"version\":4,\"serial\":7}");
    (void)pthread_mutex_unlock(&w->engine.lock);
}

/* The same when its runner has died. */
static void leave_errored(struct world *w, struct runner *ret)
{
    begin_errored(w, ret);
    end_processes(w, "net-1-apply", -1, "killed by signal 9, SIGKILL");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
}

static int request_run(struct world *w, struct df_err *err)
{
    DF_JSON cJSON *body = json(AUTO);
    return df_request_create_run(
        &w->s, "net",
        &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "tester"}, NULL, err);
}

static void behind_a_salvaged_state_no_run_starts_that_waited_or_is_new(void **state)
{
    struct world *w = *state;
    struct runner r;
    struct df_err err = {0};
    leave_errored(w, &r);
    await_value(w, DF_KIND_RUN, "net-2", "status.reason", "ErroredStatePending");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-2-plan"));
    DF_JSON cJSON *executor = get(w, DF_KIND_EXECUTOR, "net");
    const cJSON *noted = cJSON_GetArrayItem(df_json_at(executor, "status.erroredStates"), 0);
    assert_string_equal(df_json_str(noted, "run"), "net-1");
    assert_string_equal(df_json_str(noted, "step"), r.uid);
    DF_FREE char *message = value_of(w, DF_KIND_RUN, "net-1", "status.message");
    assert_non_null(strstr(message, "; its state could not be stored"));
    assert_int_equal(request_run(w, &err), -1);
    assert_string_equal(err.reason, "ErroredStatePending");
    await_settled(w);
}

static void a_run_goes_on_until_the_state_that_its_runner_left_is_kept(void **state)
{
    struct world *w = *state;
    struct runner r;
    begin_errored(w, &r);
    assert_int_equal(
        try_result(&r, "{'exitCode':1,'reason':'ApplyFailed','leavesState':true}", NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.message",
                "keeps the state that its step has left");
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    end_processes(w, "net-1-apply", 1, "exited with code 1");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    await_value(w, DF_KIND_RUN, "net-2", "status.reason", "ErroredStatePending");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-2-plan"));
    await_settled(w);
}

/* It cannot be read at first: its place is taken by a directory. */
static void a_step_goes_on_until_the_state_that_its_dead_runner_left_is_kept(void **state)
{
    struct world *w = *state;
    struct runner r;
    begin_errored(w, &r);
    DF_FREE char *path = df_fs_join(w->dir, "errored");
    DF_FREE char *aside = df_fs_join(w->dir, "aside");
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    end_processes(w, "net-1-apply", -1, "killed by signal 9, SIGKILL");
    (void)pthread_mutex_lock(&w->engine.lock);
    while (fake_find(&w->engine, "net-1-apply")->state_looks < 2)
        (void)pthread_cond_wait(&w->engine.changed, &w->engine.lock);
    (void)pthread_mutex_unlock(&w->engine.lock);
    DF_JSON cJSON *step = get(w, DF_KIND_TASK_ACTION, "net-1-apply");
    assert_false(df_task_is_final(step));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(aside, path), 0);
    await_value(w, DF_KIND_RUN, "net-2", "status.reason", "ErroredStatePending");
}

static void a_plan_leaves_no_errored_state(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    DF_FREE char *path = write_leftover(w, "errored", "{}");
    assert_int_equal(df_step_put_errored_state(&w->s, r.uid, r.step_token, path, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, "net-1-plan")->state = write_leftover(w, "errored", "{}");
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, "net-1-plan", -1, "killed by signal 9, SIGKILL");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    await_settled(w);
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.erroredStates", "");
}

static void the_lock_of_a_dead_step_goes_to_the_next_and_that_of_a_living_one_stays(void **state)
{
    static const char id[] = "11111111-2222-3333-4444-555555555555";
    struct world *w = *state;
    bool released = true;
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    take_lock(w, &r);
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    assert_int_equal(df_lock_holder_release(&w->s, executor, id, &released, NULL), 0);
    assert_false(released);
    end_processes(w, "net-1-plan", -1, "killed by signal 9, SIGKILL");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    await_settled(w);
    /* As if the storage had been away when its pass released it. */
    DF_JSON cJSON *info = json("{'ID':'11111111-2222-3333-4444-555555555555','Who':'t'}");
    assert_int_equal(df_state_lock(w->s.states, executor, info, r.uid, NULL, NULL), 0);
    assert_int_equal(df_lock_holder_release(&w->s, executor, id, &released, NULL), 0);
    assert_true(released);
}

/* What is said of a lock of another storage that somebody on host h took now; "": no step is
 * blamed. */
static void assert_blamed(struct world *w, const char *words)
{
    char now[DF_TIME_LEN];
    DF_JSON cJSON *step = get(w, DF_KIND_TASK_ACTION, "net-1-plan"), *told = NULL;
    DF_FREE char *text = df_strf("{'message':'m','lock':{'who':'tom@h','created':'%s'}}",
                                 df_time_format(df_real_us(), now));
    DF_JSON cJSON *result = json(text);
    assert_int_equal(df_json_set_str(df_json_object_at(step, "metadata"), "uid", "another", NULL),
                     0);
    assert_int_equal(df_lock_holder_explain(&w->s, step, result, &told, NULL), 0);
    const char *message = df_json_str(told, "message");
    if (*words ? !message || !strstr(message, words) : message != NULL)
        fail_msg("%s", message ? message : "nothing");
}

static void only_a_step_that_failed_can_have_left_a_lock_in_another_storage(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "'storage':{'type':'local','path':'/nowhere/net.tfstate'}");
    run(w, "net", AUTO);
    start(w);
    struct runner r = claim(w, "net-1-plan");
    assert_blamed(w, "Step net-1-plan of run net-1 holds this lock");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_blamed(w, "");
    run(w, "net", AUTO);
    r = claim(w, "net-2-plan");
    report(&r, "{'exitCode':1,'reason':'PlanFailed','message':'m'}");
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "Failed");
    assert_blamed(w, "Step net-2-plan of run net-2 left this lock behind (PlanFailed)");
}

static void an_errored_state_that_is_gone_unnoted_keeps_no_run_from_starting(void **state)
{
    struct world *w = *state;
    struct runner r;
    struct df_err err = {0};
    leave_errored(w, &r);
    await_value(w, DF_KIND_RUN, "net-2", "status.reason", "ErroredStatePending");
    await_settled(w); /* the clean-up of the step may note the state once more */
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    assert_int_equal(df_state_drop_errored(w->s.states, executor, r.uid, NULL), 0);
    assert_int_equal(request_run(w, &err), 0);
    (void)await_start(w, "net-3-plan");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.erroredStates", "");
}

static void a_state_may_be_written_as_long_as_a_process_of_the_step_lives(void **state)
{
    struct world *w = *state;
    struct df_step_state_access a;
    begin(w, AUTO);
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
    begin(w, AUTO);
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
    begin(w, AUTO);
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
    begin(w, AUTO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "EngineFailed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", "no such program");
}

static void an_engine_that_is_short_of_something_is_asked_again_after_a_pause(void **state)
{
    struct world *w = *state;
    int64_t begin_ms = df_mono_ms();
    (void)df_fail(&w->engine.create_error, DF_ERR_LIMIT, "no space left");
    begin(w, AUTO);
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
    begin(w, AUTO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "unsupported execution engine: \"tekton\" (registered: [local]); write engines: "
                 "[local, tekton] into the service's configuration (docs/configuration.md)");
    await_settled(w);
}

/* The same data with these engines: as many as count says. */
static void restart_with_engines(struct world *w, size_t count)
{
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    w->s.engines.count = count;
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    start(w);
}

static void a_started_step_outlives_a_service_without_its_engine(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    make_executor(w, "dns", "");
    struct runner r = claim(w, "net-1-plan");
    restart_with_engines(w, 0);
    run(w, "dns", AUTO);
    await_value(w, DF_KIND_RUN, "dns-1", "status.phase", "Failed"); /* nothing of it was started */
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    restart_with_engines(w, 1);
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
}

/* ---- stop ---- */

static void *stop_canceling(void *arg)
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
    assert_int_equal(pthread_create(&stopper, NULL, stop_canceling, w), 0);
    await_cancel(w, "net-1-plan");
    report(&r, "{'exitCode':1,'reason':'Canceled'}");
    (void)pthread_join(stopper, NULL);
    assert_value(w, DF_KIND_RUN, "net-1", "spec.cancel.reason", "the spawner was stopped");
    assert_int_equal(fake_look(w, "dns-1-plan").creates, 0);
}

/* More live steps of another engine than the store lists at once. */
static void make_remote_steps(struct world *w, int count)
{
    for (int i = 0; i < count; i++) {
        DF_FREE char *text = df_strf("{'apiVersion':'dayfly.dev/v1alpha1','kind':'TaskAction',"
                                     "'metadata':{'name':'a-%04d-plan','labels':{'%s':'true'}},"
                                     "'spec':{'engine':'job','action':'plan'},'status':{}}",
                                     i, DF_LABEL_LIVE);
        DF_JSON cJSON *step = json(text);
        assert_int_equal(df_store_create(w->s.store, DF_KIND_TASK_ACTION, step, NULL, NULL), 0);
    }
}

static void a_stop_finds_a_step_behind_a_thousand_others(void **state)
{
    struct world *w = *state;
    pthread_t stopper;
    w->config.limit_steps = 2000;
    make_remote_steps(w, 1001);
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    assert_int_equal(pthread_create(&stopper, NULL, stop_canceling, w), 0);
    await_value(w, DF_KIND_RUN, "net-1", "spec.cancel.reason", "the spawner was stopped");
    report(&r, "{'exitCode':1,'reason':'Canceled'}");
    (void)pthread_join(stopper, NULL);
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
    assert_int_equal(df_request_delete_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "t", &err), -1);
    assert_string_equal(err.reason, "WrongState");
    report(&r, NOTHING_TO_DO);
    report(&other, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_settled(w);
    DF_STRS struct df_strs blobs = {0};
    assert_int_equal(df_blob_list(w->s.blobs, "", &blobs, NULL), 0);
    assert_int_equal(blobs.len, 1);
    assert_int_equal(df_request_delete_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "t", NULL), 0);
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

/* The loop and the request both remove it: the slower one may come when the name is in use
 * again. */
static void a_late_deletion_does_not_touch_a_new_executor_of_the_same_name(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    DF_JSON cJSON *old = get(w, DF_KIND_EXECUTOR, "net");
    assert_int_equal(df_request_delete_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "t", NULL), 0);
    make_executor(w, "net", "");
    run(w, "net", AUTO);
    assert_int_equal(df_purge_executor(&w->s, old, NULL, NULL), -1);
    DF_JSON cJSON *executor = get(w, DF_KIND_EXECUTOR, "net"), *run = get(w, DF_KIND_RUN, "net-1");
    assert_true(executor && run);
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
    assert_int_equal(df_request_create_run(
                         &w->s, "net",
                         &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "t"},
                         &made, &err),
                     -1);
    assert_string_equal(err.reason, "WrongState");
    start(w);
    for (cJSON *left; (left = get(w, DF_KIND_EXECUTOR, "net"));) {
        cJSON_Delete(left);
        (void)usleep(1000);
    }
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_cancel_reaches_the_engine_and_the_run_ends_canceled),
        TEST(the_end_of_a_run_is_in_the_audit_trail_with_what_it_changed),
        TEST(the_end_of_a_run_that_failed_is_noted_once_although_it_was_noted_before),
        TEST(a_queued_run_is_canceled_without_a_step),
        TEST(a_runner_that_died_fails_its_step_with_the_cause_and_its_lock_is_released),
        TEST(what_a_dead_runner_did_not_hand_over_is_salvaged),
        TEST(behind_a_salvaged_state_no_run_starts_that_waited_or_is_new),
        TEST(a_run_goes_on_until_the_state_that_its_runner_left_is_kept),
        TEST(a_step_goes_on_until_the_state_that_its_dead_runner_left_is_kept),
        TEST(a_plan_leaves_no_errored_state),
        TEST(the_lock_of_a_dead_step_goes_to_the_next_and_that_of_a_living_one_stays),
        TEST(only_a_step_that_failed_can_have_left_a_lock_in_another_storage),
        TEST(an_errored_state_that_is_gone_unnoted_keeps_no_run_from_starting),
        TEST(a_state_may_be_written_as_long_as_a_process_of_the_step_lives),
        TEST(a_result_that_only_the_engine_has_is_collected),
        TEST(a_result_that_makes_no_sense_is_a_failure_of_the_runner),
        TEST(an_engine_that_cannot_start_the_runner_fails_the_step_with_its_words),
        TEST(an_engine_that_is_short_of_something_is_asked_again_after_a_pause),
        TEST(an_unknown_engine_fails_the_step_and_names_the_known_ones),
        TEST(a_started_step_outlives_a_service_without_its_engine),
        TEST(a_stop_finds_a_step_behind_a_thousand_others),
        TEST(stopping_with_cancel_ends_what_runs_and_starts_nothing),
        TEST(deleting_an_executor_leaves_nothing_of_it_and_nothing_of_others_is_touched),
        TEST(a_late_deletion_does_not_touch_a_new_executor_of_the_same_name),
        TEST(a_deletion_that_was_cut_off_is_finished_after_a_restart),
    };
    return cmocka_run_group_tests_name("control_ends", tests, NULL, NULL);
}
