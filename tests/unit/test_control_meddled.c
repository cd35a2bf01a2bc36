/* The control loop: documents that somebody edited, or deleted in spite of their finalizers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <unistd.h>

#include "spawner/model/labels.h"
#include "spawner/model/waiting.h"
#include "tests/unit/control_loop.h"

static void take_away(struct world *w, enum df_kind kind, const char *name)
{
    struct df_err err = {0};
    if (df_store_remove(w->s.store, kind, name, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static struct runner begin_apply(struct world *w)
{
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    return claim(w, "net-1-apply");
}

static void assert_not_deletable(struct world *w)
{
    struct df_err err = {0};
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.mayHoldResources", "true");
    assert_int_equal(df_request_delete_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "t", &err), -1);
    assert_string_equal(err.reason, "WrongState");
}

/* ---- a TaskAction ---- */

static void take_lock(struct world *w, const struct runner *r)
{
    DF_JSON cJSON *info = json("{'ID':'11111111-2222-3333-4444-555555555555','Who':'t'}");
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    assert_int_equal(df_state_lock(w->s.states, executor, info, r->uid, NULL, NULL), 0);
}

static bool is_locked(struct world *w)
{
    DF_FREE char *uid = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    DF_JSON cJSON *info = NULL;
    assert_int_equal(df_state_lock_info(w->s.states, uid, &info, NULL), 0);
    return info != NULL;
}

static void an_apply_whose_document_is_taken_away_is_ended_and_its_run_fails_then(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    take_lock(w, &r);
    take_away(w, DF_KIND_TASK_ACTION, "net-1-apply");
    await_cancel(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.message",
                "the TaskAction of the apply step was deleted: its processes are being ended");
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    assert_true(is_locked(w));
    end_processes(w, "net-1-apply", 0, "exited with code 0");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "StepDeleted");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "error");
    assert_false(is_locked(w));
    assert_not_deletable(w);
    assert_int_equal(fake_look(w, "net-1-apply").starts, 1);
}

static void the_end_names_what_a_lost_apply_created_and_no_state_has(void **state)
{
    static const char event[] =
        "{\"type\":\"apply_start\",\"hook\":{\"resource\":{\"addr\":\"aws_vpc.main\","
        "\"module\":\"\",\"resource_type\":\"aws_vpc\",\"resource_name\":\"main\","
        "\"resource_key\":null},\"action\":\"create\"}}\n";
    struct world *w = *state;
    struct runner r = begin_apply(w);
    const struct df_frame frame = {DF_STREAM_EVENTS, 0, event, strlen(event)};
    int64_t end = 0;
    take_lock(w, &r);
    assert_int_equal(df_step_append(&w->s, r.uid, r.step_token, &frame, &end, NULL), 0);
    take_away(w, DF_KIND_TASK_ACTION, "net-1-apply");
    end_processes(w, "net-1-apply", 0, "exited with code 0");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    DF_FREE char *message = value_of(w, DF_KIND_RUN, "net-1", "status.message");
    assert_non_null(strstr(message, "1 object may exist that no state records: aws_vpc.main"));
}

static void a_plan_that_is_taken_away_while_its_apply_runs_changes_nothing(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    take_away(w, DF_KIND_TASK_ACTION, "net-1-plan");
    report(&r, APPLIED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
}

struct first_sight {
    struct world *w;
    atomic_int holds; /* -1: not seen */
    atomic_int count; /* how often */
    pthread_t writers[2];
};

/* A df_store_watcher. */
static void note_first_sight(void *arg, const struct df_store_event *event)
{
    struct first_sight *seen = arg;
    if (event->kind != DF_KIND_TASK_ACTION || event->change != DF_CHANGE_ADDED ||
        !df_streq(event->name, "net-1-apply"))
        return;
    DF_JSON cJSON *executor = get(seen->w, DF_KIND_EXECUTOR, "net");
    atomic_store(&seen->holds, df_json_bool(executor, "status.mayHoldResources", false));
}

static void that_an_executor_may_hold_resources_is_durable_before_its_apply_exists(void **state)
{
    struct world *w = *state;
    struct first_sight seen = {.w = w, .holds = -1};
    assert_int_equal(df_store_watch(w->s.store, note_first_sight, &seen, NULL), 0);
    begin(w, AUTO);
    (void)await_start(w, "net-1-plan");
    DF_FREE char *before = value_of(w, DF_KIND_EXECUTOR, "net", "status.mayHoldResources");
    assert_string_not_equal(before, "true");
    play_plan(w, "net-1", "net-1-plan");
    (void)await_start(w, "net-1-apply");
    df_store_unwatch(w->s.store, note_first_sight, &seen);
    assert_int_equal(atomic_load(&seen.holds), 1);
}

static int annotate(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    cJSON *annotations = df_json_object_at(df_json_object_at(doc, "metadata"), "annotations");
    return df_json_set_str(annotations, "example.com/note", "1", err);
}

static void *annotate_run(void *arg)
{
    struct world *w = arg;
    (void)!df_store_modify(w->s.store, DF_KIND_RUN, "net-1", annotate, NULL, NULL, NULL);
    return NULL;
}

static void *take_apply(void *arg)
{
    take_away(arg, DF_KIND_TASK_ACTION, "net-1-apply");
    return NULL;
}

static bool is_done(struct world *w)
{
    DF_JSON cJSON *run = get(w, DF_KIND_RUN, "net-1");
    DF_JSON cJSON *step = get(w, DF_KIND_TASK_ACTION, "net-1-apply");
    return df_json_at(run, "metadata.annotations") && !step;
}

/* A df_store_watcher. While it runs, nobody is told of a change: the pass that has created the step
 * goes on when the step is gone, and its write of the run meets a conflict. */
static void take_away_at_first_sight(void *arg, const struct df_store_event *event)
{
    struct first_sight *seen = arg;
    if (event->kind != DF_KIND_TASK_ACTION || event->change != DF_CHANGE_ADDED ||
        !df_streq(event->name, "net-1-apply") || atomic_fetch_add(&seen->count, 1) > 0)
        return;
    assert_int_equal(pthread_create(&seen->writers[0], NULL, annotate_run, seen->w), 0);
    assert_int_equal(pthread_create(&seen->writers[1], NULL, take_apply, seen->w), 0);
    while (!is_done(seen->w))
        (void)poll(NULL, 0, 1);
}

static void a_step_that_is_taken_away_before_its_run_names_it_is_not_created_again(void **state)
{
    struct world *w = *state;
    struct first_sight seen = {.w = w};
    assert_int_equal(df_store_watch(w->s.store, take_away_at_first_sight, &seen, NULL), 0);
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    for (bool ended = false; !ended;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *reason = value_of(w, DF_KIND_RUN, "net-1", "status.reason");
        ended = df_streq(reason, "StepDeleted");
        assert_true(atomic_load(&seen.count) <= 1);
        if (fake_look(w, "net-1-apply").seen.phase == DF_ENGINE_RUNNING)
            end_processes(w, "net-1-apply", 0, "exited with code 0");
        if (!ended)
            wait_for_change(w, mark);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(seen.writers); i++)
        (void)pthread_join(seen.writers[i], NULL);
    df_store_unwatch(w->s.store, take_away_at_first_sight, &seen);
    assert_int_equal(atomic_load(&seen.count), 1);
    assert_true(fake_look(w, "net-1-apply").starts <= 1);
}

/* ---- a Run ---- */

static void a_run_that_is_taken_away_ends_its_apply_before_the_next_run_begins(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    run(w, "net", AUTO);
    take_away(w, DF_KIND_RUN, "net-1");
    await_cancel(w, "net-1-apply");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-apply", "spec.cancel.reason",
                 "its run was deleted");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-2-plan"));
    report(&r, "{'exitCode':1,'reason':'Canceled','message':'interrupted'}");
    (void)claim(w, "net-2-plan");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
    await_value(w, DF_KIND_EXECUTOR, "net", "status.activeRun", "net-2"); /* behind its plan */
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.mayHoldResources", "true");
}

static void an_executor_whose_run_is_taken_away_is_in_error_and_free(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    take_away(w, DF_KIND_RUN, "net-1");
    await_cancel(w, "net-1-apply");
    report(&r, "{'exitCode':1,'reason':'Canceled','message':'interrupted'}");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "error");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.activeRun", "");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.lastRun.phase", "Failed");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-plan"));
    assert_not_deletable(w);
}

static void a_run_that_was_taken_away_while_nobody_worked_is_missed_after_the_start(void **state)
{
    struct world *w = *state;
    begin_planned(w);
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "pending");
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    take_away(w, DF_KIND_RUN, "net-1");
    take_away(w, DF_KIND_TASK_ACTION, "net-1-plan");
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    start(w);
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "error");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.state", "provision");
    assert_int_equal(df_request_delete_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "t", NULL), 0);
}

/* ---- a state ---- */

static void put_state(struct world *w)
{
    static const char text[] = "{\"version\":4,\"serial\":1,\"lineage\":\"l\",\"resources\":[]}";
    DF_FREE char *uid = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    DF_FREE char *path = df_fs_join(df_blob_tmp_dir(w->s.blobs), "uploaded");
    const struct df_state_writer by = {.actor = "tester"};
    struct df_err err = {0};
    if (df_fs_replace(path, text, strlen(text), 0600, &err) < 0 ||
        df_state_put(w->s.states, uid, path, NULL, &by, &err) < 0)
        fail_msg("%s", err.message);
}

/* The path of the file with the state; the caller frees. */
static char *state_file(struct world *w)
{
    DF_STRS struct df_strs keys = {0};
    char *found = NULL;
    assert_int_equal(df_blob_list(w->s.blobs, "", &keys, NULL), 0);
    for (size_t i = 0; i < keys.len; i++)
        if (strstr(keys.items[i], ".state") && !found)
            found = df_strf("%s/blobs/data/%s", w->dir, keys.items[i]);
    assert_non_null(found);
    return found;
}

static void a_run_says_what_its_runner_waits_for_and_goes_on_when_it_is_back(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    make_executor(w, "net", "");
    put_state(w);
    DF_FREE char *file = state_file(w), *aside = df_strf("%s.aside", file);
    assert_int_equal(rename(file, aside), 0);
    assert_int_equal(symlink(file, file), 0); /* ELOOP: it may pass */
    start(w);
    run(w, "net", AUTO);
    struct fake_step *s = await_start(w, "net-1-plan");
    DF_JSON cJSON *doc = NULL;
    do {
        cJSON_Delete(DF_TAKE(doc));
        assert_int_equal(try_claim(w, s, CLAIM_A, &doc, &err), -1);
        (void)poll(NULL, 0, 50);
        doc = get(w, DF_KIND_RUN, "net-1");
    } while (!df_waiting_of(doc));
    assert_non_null(strstr(err.message, "executor net"));
    assert_string_equal(df_json_str(doc, "status.waiting.message"), err.message);
    assert_non_null(strstr(df_json_str(doc, "status.message"), err.message));
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rename(aside, file), 0);
    (void)claim(w, "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.message", "");
}

/* ---- a status ---- */

static void write_phase(struct world *w, const char *name, const char *phase)
{
    struct df_err err = {0};
    do {
        DF_JSON cJSON *doc = get(w, DF_KIND_RUN, name);
        err = (struct df_err){0};
        assert_int_equal(df_json_set_str(df_json_object_at(doc, "status"), "phase", phase, NULL),
                         0);
        (void)!df_store_update(w->s.store, DF_KIND_RUN, doc, NULL, &err);
    } while (df_streq(err.reason, "Conflict"));
    assert_int_equal(err.cls, DF_ERR_NONE);
}

static void
a_final_phase_that_somebody_wrote_is_undone_and_the_next_run_waits_for_the_true_end(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    run(w, "net", AUTO);
    write_phase(w, "net-1", "Succeeded");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-2-plan"));
    report(&r, "{'exitCode':1,'reason':'ApplyFailed','message':'no'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "ApplyFailed");
    (void)await_start(w, "net-2-plan");
}

static void a_final_phase_that_somebody_wrote_into_a_waiting_run_is_undone(void **state)
{
    struct world *w = *state;
    begin_planned(w);
    write_phase(w, "net-1", "Canceled");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(an_apply_whose_document_is_taken_away_is_ended_and_its_run_fails_then),
        TEST(the_end_names_what_a_lost_apply_created_and_no_state_has),
        TEST(a_plan_that_is_taken_away_while_its_apply_runs_changes_nothing),
        TEST(a_step_that_is_taken_away_before_its_run_names_it_is_not_created_again),
        TEST(that_an_executor_may_hold_resources_is_durable_before_its_apply_exists),
        TEST(a_run_that_is_taken_away_ends_its_apply_before_the_next_run_begins),
        TEST(an_executor_whose_run_is_taken_away_is_in_error_and_free),
        TEST(a_run_that_was_taken_away_while_nobody_worked_is_missed_after_the_start),
        TEST(a_run_says_what_its_runner_waits_for_and_goes_on_when_it_is_back),
        TEST(a_final_phase_that_somebody_wrote_is_undone_and_the_next_run_waits_for_the_true_end),
        TEST(a_final_phase_that_somebody_wrote_into_a_waiting_run_is_undone),
    };
    return cmocka_run_group_tests_name("control_meddled", tests, NULL, NULL);
}
