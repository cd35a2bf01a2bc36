/* Documents that people delete with kubectl, as the control loop finds them in the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/control/loop.h"
#include "tests/unit/applied_words.h"

static void a_deleted_run_is_canceled_and_then_goes_with_its_steps(void **state)
{
    struct world *w = *state;
    begin(w, ASKING);
    (void)await_start(w, "net-1-plan");
    delete (w, DF_KIND_RUN, "net-1");
    await_value(w, DF_KIND_RUN, "net-1", "spec.cancel.reason", "it was deleted");
    end_processes(w, "net-1-plan", -1, "killed by signal 2");
    await_gone(w, DF_KIND_RUN, "net-1");
    await_gone(w, DF_KIND_TASK_ACTION, "net-1-plan");
}

static void what_nobody_took_in_goes_at_once(void **state)
{
    struct world *w = *state;
    apply_executor(w, "net");
    apply(w, DF_KIND_RUN, "first", RUN_NET);
    start(w); /* which does not queue what was never accepted */
    delete (w, DF_KIND_EXECUTOR, "net");
    delete (w, DF_KIND_RUN, "first");
    await_gone(w, DF_KIND_EXECUTOR, "net");
    await_gone(w, DF_KIND_RUN, "first");
}

static void a_deleted_executor_says_what_it_waits_for(void **state)
{
    struct world *w = *state;
    begin_planned(w);
    delete (w, DF_KIND_EXECUTOR, "net");
    await_condition(w, DF_KIND_EXECUTOR, "net", "Progressing", "True", "Deleting");
    patch(w, DF_KIND_RUN, "net-1", "spec", "decision", "{'verdict':'discarded'}");
    await_gone(w, DF_KIND_EXECUTOR, "net");
    await_gone(w, DF_KIND_RUN, "net-1");
}

/* A new loop that is not started: its queue has what the passes of this thread wake. */
static struct df_queue *reopen_loop(struct world *w)
{
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    return w->s.control->queue;
}

static void must_take(struct df_queue *q, enum df_kind kind, const char *name)
{
    struct df_queue_key key;
    assert_false(df_queue_is_idle(q));
    assert_true(df_queue_get(q, &key));
    assert_int_equal(key.kind, kind);
    assert_string_equal(key.name, name);
    df_queue_done(q, &key, 0);
}

static void a_deleted_step_is_woken_by_the_end_of_its_run(void **state)
{
    struct world *w = *state;
    int64_t wake_us = 0;
    begin_planned(w);
    struct df_queue *q = reopen_loop(w);
    set_gone(w, "net-1-plan");
    delete (w, DF_KIND_TASK_ACTION, "net-1-plan");
    while (df_reconcile_task(w->s.control, "net-1-plan", &wake_us, NULL) != DF_PASS_PAUSE)
        ; /* it may have to be finalized first */
    must_take(q, DF_KIND_RUN, "net-1");
    patch(w, DF_KIND_RUN, "net-1", "spec", "decision", "{'verdict':'discarded','at':'now'}");
    assert_int_equal(df_reconcile_run(w->s.control, "net-1", &wake_us, NULL), 0);
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Discarded");
    must_take(q, DF_KIND_TASK_ACTION, "net-1-plan");
    assert_int_equal(df_reconcile_task(w->s.control, "net-1-plan", &wake_us, NULL), 0);
    await_gone(w, DF_KIND_TASK_ACTION, "net-1-plan");
}

/* One pass of the loop over an executor, in this thread. */
static int pass_over(struct world *w, const char *name, struct df_err *err)
{
    int64_t wake_us = 0;
    return df_reconcile_executor(w->s.control, name, &wake_us, err);
}

static void must_pass_over(struct world *w, const char *name)
{
    struct df_err err = {0};
    if (pass_over(w, name, &err) < 0)
        fail_msg("%s", err.message);
}

/* The pass must fail, because the loop repeats only a pass that failed. */
static void a_deletion_that_fails_is_tried_again(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    apply_executor(w, "net");
    must_pass_over(w, "net");
    DF_FREE char *uid = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    DF_FREE char *version = df_strf("state/%s/00000001.state", uid);
    assert_int_equal(df_blob_put(w->s.blobs, version, "{", 1, NULL), 0);
    delete (w, DF_KIND_EXECUTOR, "net");
    assert_int_equal(pass_over(w, "net", &err), -1);
    assert_non_null(strstr(err.message, "is damaged"));
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.deleting", "");
    assert_int_equal(df_blob_delete(w->s.blobs, version, NULL), 0);
    must_pass_over(w, "net");
    await_gone(w, DF_KIND_EXECUTOR, "net");
}

/* ---- the audit trail ---- */

struct witness {
    struct df_store *store;
    int gone, noted; /* deletions that were seen, and those of which the audit trail knew then */
};

/* A df_store_watch. Only what kubectl was asked to delete has an entry, and not what goes with
 * it. */
static void on_removal(void *arg, const struct df_store_event *event)
{
    struct witness *v = arg;
    DF_JSON cJSON *trail = NULL;
    const cJSON *entry;
    if (event->change != DF_CHANGE_DELETED)
        return;
    v->gone++;
    assert_int_equal(df_store_audit_list(v->store, NULL, NULL, 0, &trail, NULL, NULL), 0);
    cJSON_ArrayForEach (entry, trail)
        if (df_streq(df_json_str(entry, "action"), "delete") &&
            df_streq(df_json_str(entry, "name"), event->name))
            v->noted++;
}

/* First the step, then its run, which has no other, then their executor. */
static void the_audit_trail_has_a_deletion_before_anybody_sees_its_end(void **state)
{
    struct world *w = *state;
    struct witness v = {.store = w->s.store};
    begin_planned(w);
    patch(w, DF_KIND_RUN, "net-1", "spec", "decision", "{'verdict':'discarded'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Discarded");
    await_settled(w);
    assert_int_equal(df_store_watch(w->s.store, on_removal, &v, NULL), 0);
    set_gone(w, "net-1-plan");
    delete (w, DF_KIND_TASK_ACTION, "net-1-plan");
    await_gone(w, DF_KIND_TASK_ACTION, "net-1-plan");
    delete (w, DF_KIND_RUN, "net-1");
    await_gone(w, DF_KIND_RUN, "net-1");
    delete (w, DF_KIND_EXECUTOR, "net");
    await_gone(w, DF_KIND_EXECUTOR, "net");
    df_store_unwatch(w->s.store, on_removal, &v);
    assert_int_equal(v.gone, 4); /* with the revision of the executor */
    assert_int_equal(v.noted, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_deleted_run_is_canceled_and_then_goes_with_its_steps),
        TEST(what_nobody_took_in_goes_at_once),
        TEST(a_deleted_executor_says_what_it_waits_for),
        TEST(a_deleted_step_is_woken_by_the_end_of_its_run),
        TEST(a_deletion_that_fails_is_tried_again),
        TEST(the_audit_trail_has_a_deletion_before_anybody_sees_its_end),
    };
    return cmocka_run_group_tests_name("deleted_documents", tests, NULL, NULL);
}
