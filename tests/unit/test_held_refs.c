/* References to what an engine made, between its making and the write of the step that brings them. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pod_tokens.h"

#define STEP "net-1-plan"

/* ---- one entry ---- */

#define HASH "'status':{'auth':{'claim':'h'}"
#define OF(uid) "'metadata':{'name':'s','uid':'" uid "'}"

static const struct {
    const char *what, *task;
    bool is_held;
} tasks[] = {
    {"this attempt", "{" OF("u") "," HASH "}}", true},
    {"one with the reference of a lost one",
     "{" OF("u") "," HASH ",'engineRef':{'name':'s','lost':true}}}", true},
    {"a later one", "{" OF("u") ",'status':{'auth':{'claim':'i'}}}", false},
    {"an offer to a pod that is there",
     "{" OF("u") "," HASH ",'engineRef':{'name':'p','hostUid':'p'}}}", false},
    {"another document of the name", "{" OF("v") "," HASH "}}", false},
    {"another step", "{'metadata':{'name':'t','uid':'u'}," HASH "}}", false},
};

static void a_reference_is_held_for_the_attempt_that_made_it_and_no_other(void **state)
{
    struct df_spawner s = {0};
    DF_JSON cJSON *made = json("{" OF("u") "}");
    DF_JSON cJSON *ref = json("{'name':'s','uid':'j'}");
    (void)state;
    assert_int_equal(df_held_ref_put(&s, made, "h", ref, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(tasks); i++) {
        DF_JSON cJSON *task = json(tasks[i].task);
        int64_t due_us = -1;
        assert_int_equal(df_held_ref_add(&s, task, &due_us, NULL), 0);
        if ((due_us != 0) != tasks[i].is_held)
            fail_msg("%s", tasks[i].what);
        assert_int_equal(df_json_equal(df_json_at(task, "status.engineRef"), ref),
                         tasks[i].is_held);
        if (!tasks[i].is_held)
            df_held_ref_drop(&s, task);
    }
    assert_non_null(s.held_refs.first);
    DF_JSON cJSON *written = json(tasks[0].task);
    df_held_ref_drop(&s, written);
    assert_null(s.held_refs.first);
}

static void a_later_attempt_replaces_what_was_held_of_an_earlier_one(void **state)
{
    struct df_spawner s = {0};
    DF_JSON cJSON *task = json("{" OF("u") ",'status':{'auth':{'claim':'i'}}}");
    DF_JSON cJSON *first = json("{'uid':'j'}");
    DF_JSON cJSON *second = json("{'uid':'k'}");
    int64_t due_us = 0;
    (void)state;
    assert_int_equal(df_held_ref_put(&s, task, "h", first, NULL), 0);
    assert_int_equal(df_held_ref_put(&s, task, "i", second, NULL), 0);
    assert_int_equal(df_held_ref_add(&s, task, &due_us, NULL), 0);
    assert_string_equal(df_json_str(task, "status.engineRef.uid"), "k");
    df_held_ref_forget(&s, "s");
    assert_null(s.held_refs.first);
}

/* ---- in the control loop ---- */

static int setup(void **state)
{
    return pods_setup(state, "'variables':{'region':'eu'}",
                      "{'action':'provision','autoApprove':true}");
}

static bool holds(struct world *w)
{
    (void)pthread_mutex_lock(&w->s.held_refs.lock);
    bool is_held = w->s.held_refs.first != NULL;
    (void)pthread_mutex_unlock(&w->s.held_refs.lock);
    return is_held;
}

static void await_held(struct world *w, bool is_held)
{
    while (holds(w) != is_held)
        (void)sched_yield();
}

static void a_claim_brings_the_reference_with_it(void **state)
{
    struct world *w = *state;
    const struct fake_step *s = await_start(w, STEP);
    cJSON *doc = NULL;
    await_held(w, true);
    assert_int_equal(claim_as(w, s, &pod_a, CLAIM_A, &doc, NULL), 0);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.engineRef.name", STEP);
    assert_false(holds(w));
    df_json_wipe(doc);
}

static void without_any_other_write_it_is_written_alone(void **state)
{
    struct world *w = *state;
    (void)await_start(w, STEP);
    await_value(w, DF_KIND_TASK_ACTION, STEP, "status.engineRef.name", STEP);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy", "");
    await_held(w, false);
}

/* A reference that is held says where the step's pods are, as one that is written. The loop stands
 * still, so that nothing but the claim can write it. */
static void a_pod_is_checked_against_what_is_held(void **state)
{
    struct world *w = *state;
    const struct fake_step *s = await_start(w, STEP);
    cJSON *doc = NULL;
    struct df_err err;
    await_held(w, true);
    df_control_stop(w->s.control, false);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    DF_JSON cJSON *ref = json("{'kind':'Job','name':'" STEP "','namespace':'team'}");
    assert_int_equal(
        df_held_ref_put(&w->s, task, df_json_str(task, "status.auth.claim"), ref, NULL), 0);
    assert_fails(claim_as(w, s, &pod_a, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "TokenNamespace");
    struct pod p = pod_a;
    p.namespace = "team";
    assert_int_equal(claim_as(w, s, &p, CLAIM_A, &doc, NULL), 0);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.engineRef.namespace", "team");
    df_json_wipe(doc);
}

static void hold_job(struct world *w, const char *uid)
{
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    DF_FREE char *text =
        df_strf("{'kind':'Job','name':'" STEP "','namespace':'team','uid':'%s'}", uid);
    DF_JSON cJSON *ref = json(text);
    assert_int_equal(
        df_held_ref_put(&w->s, task, df_json_str(task, "status.auth.claim"), ref, NULL), 0);
}

static struct world *world_of_check;

static int check_while_it_starts_again(struct df_engine *e, const struct df_engine_step *step,
                                       const struct df_engine_pod *pod, struct df_err *err)
{
    (void)e, (void)step, (void)pod, (void)err;
    hold_job(world_of_check, "second");
    return 0;
}

static void a_pod_does_not_claim_for_the_job_that_follows_its_own(void **state)
{
    struct world *w = *state;
    const struct fake_step *s = await_start(w, STEP);
    struct pod p = pod_a;
    cJSON *doc = NULL;
    struct df_err err = {0};
    await_held(w, true);
    df_control_stop(w->s.control, false);
    hold_job(w, "first");
    world_of_check = w;
    job_runner.check_pod = check_while_it_starts_again;
    p.namespace = "team";
    assert_fails(claim_as(w, s, &p, CLAIM_A, &doc, &err), err, DF_ERR_RETRY, "Conflict");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy", "");
    assert_int_equal(claim_as(w, s, &p, CLAIM_A, &doc, NULL), 0);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.engineRef.uid", "second");
    df_json_wipe(doc);
}

/* The engine says that the runner is gone, some time ago. */
static void a_try_that_is_lost_while_its_reference_is_held_counts(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    await_held(w, true);
    (void)pthread_mutex_lock(&w->engine.lock);
    s->seen.since_us = df_real_us() - INT64_C(10000000);
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, STEP, -1, "killed by signal 9");
    await_creates(w, STEP, 2);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.systemFailures", "1");
    /* A spawner that follows this one must not take what is gone for what was made now. */
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.engineRef.lost", "");
    await_ref(w, STEP);
}

/* Between the read of a document and the look at what is held, the one may have taken up the other. */
static void a_reference_is_seen_that_was_written_since_the_document_was_read(void **state)
{
    struct world *w = *state;
    DF_SHARED const cJSON *task = NULL;
    int64_t due_us = -1;
    (void)await_start(w, STEP);
    await_held(w, true);
    df_control_stop(w->s.control, false);
    assert_int_equal(df_store_look_for(w->s.store, DF_KIND_TASK_ACTION, STEP, &task, NULL), 0);
    assert_null(df_json_at(task, "status.engineRef"));
    assert_int_equal(df_task_write_held(&w->s, STEP, NULL), 0);
    assert_false(holds(w));
    assert_int_equal(df_held_ref_show(&w->s, &task, &due_us, NULL), 0);
    assert_string_equal(df_json_str(task, "status.engineRef.name"), STEP);
    assert_int_equal(due_us, 0);
}

static void of_a_step_that_has_ended_nothing_is_held(void **state)
{
    struct world *w = *state;
    (void)await_start(w, STEP);
    await_held(w, true);
    assert_int_equal(
        df_request_cancel_run(&w->s, "net-1", DF_ROLE_ADMIN, "ann", "enough", NULL, NULL), 0);
    await_value(w, DF_KIND_TASK_ACTION, STEP, "spec.cancel.by", "ann");
    end_processes(w, STEP, 143, "killed by signal 15");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.engineRef.name", STEP);
    await_held(w, false);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_is_held_for_the_attempt_that_made_it_and_no_other),
        cmocka_unit_test(a_later_attempt_replaces_what_was_held_of_an_earlier_one),
        TEST(a_claim_brings_the_reference_with_it),
        TEST(without_any_other_write_it_is_written_alone),
        TEST(a_pod_is_checked_against_what_is_held),
        TEST(a_pod_does_not_claim_for_the_job_that_follows_its_own),
        TEST(a_try_that_is_lost_while_its_reference_is_held_counts),
        TEST(a_reference_is_seen_that_was_written_since_the_document_was_read),
        TEST(of_a_step_that_has_ended_nothing_is_held),
    };
    return cmocka_run_group_tests_name("held_refs", tests, make_keys, free_keys);
}
