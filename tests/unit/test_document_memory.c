/* What the leader remembers about documents (store/memory.h): what all memories have in common, and
 * the references to what an engine made, between its making and the write of the step that brings
 * them. Others have tests in test_waits.c, test_shown.c and test_applied.c. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pod_tokens.h"

#define STEP "net-1-plan"

/* ---- all of a document ---- */

static cJSON *document(const char *name, const char *uid)
{
    DF_FREE char *text = df_strf("{'metadata':{'name':'%s','uid':'%s'},'status':{'auth':"
                                 "{'claim':'h'}}}",
                                 name, uid);
    return json(text);
}

static const char cause;

static struct df_wait_case wait_of(enum df_kind kind, const char *name)
{
    return (struct df_wait_case){.kind = kind, .name = name, .what = &cause};
}

/* Everything that can be remembered about the step, and about a run of the same name. */
static void remember(struct df_memory *m, const char *name, const char *uid)
{
    DF_JSON cJSON *doc = document(name, uid), *value = json("{'a':1}");
    const struct df_wait_case step = wait_of(DF_KIND_TASK_ACTION, name),
                              run = wait_of(DF_KIND_RUN, name);
    assert_int_equal(df_memory_add_wait(m, &step, doc, 7), 7);
    assert_int_equal(df_memory_put_ref(m, doc, "h", value, NULL), 0);
    df_memory_put_outputs(m, doc, value);
    assert_int_equal(df_memory_add_wait(m, &run, doc, 8), 8);
    df_memory_await_executor(m, doc, "net");
    df_memory_put_log_due(m, doc, 9);
    assert_int_equal(df_memory_put_step(m, doc, value, NULL), 0);
}

static bool remembers_step(struct df_memory *m, const char *name, const char *uid)
{
    DF_JSON cJSON *doc = document(name, uid), *entry = NULL;
    assert_int_equal(df_memory_get_step(m, doc, &entry, NULL), 0);
    return entry;
}

static bool remembers_log(struct df_memory *m, const char *name, const char *uid)
{
    DF_JSON cJSON *doc = document(name, uid);
    return df_memory_get_log_due(m, doc) == 9;
}

static bool remembers_ref(struct df_memory *m, const char *name, const char *uid)
{
    DF_JSON cJSON *doc = document(name, uid), *ref = NULL;
    int64_t due_us = 0;
    assert_int_equal(df_memory_get_ref(m, doc, &ref, &due_us, NULL), 0);
    assert_int_equal(ref != NULL, due_us != 0);
    return ref;
}

static bool remembers_wait(struct df_memory *m, enum df_kind kind, const char *name)
{
    const struct df_wait_case c = wait_of(kind, name);
    return df_memory_has_wait(m, &c);
}

static bool remembers_outputs(struct df_memory *m, const char *uid)
{
    DF_JSON cJSON *outputs = df_memory_take_outputs(m, uid);
    return outputs;
}

static void one_forget_ends_every_memory_of_the_document_and_of_no_other(void **state)
{
    struct df_memory memory = {0}, *m = &memory;
    char run[64] = "";
    (void)state;
    remember(m, "a", "ua");
    remember(m, "b", "ub");
    df_memory_forget(m, DF_KIND_TASK_ACTION, "a");
    assert_false(remembers_wait(m, DF_KIND_TASK_ACTION, "a"));
    assert_false(remembers_ref(m, "a", "ua"));
    assert_false(remembers_outputs(m, "ua"));
    assert_false(remembers_log(m, "a", "ua"));
    assert_true(remembers_wait(m, DF_KIND_RUN, "a"));
    assert_true(remembers_step(m, "a", "ua"));
    df_memory_forget(m, DF_KIND_RUN, "a");
    assert_false(remembers_wait(m, DF_KIND_RUN, "a"));
    assert_false(remembers_step(m, "a", "ua"));
    for (size_t i = 0; i < DF_MEMORY_KINDS; i++)
        assert_int_equal(m->counts[i], i == DF_MEMORY_WAIT ? 2 : 1); /* those of b */
    assert_true(remembers_wait(m, DF_KIND_TASK_ACTION, "b"));
    assert_true(remembers_wait(m, DF_KIND_RUN, "b"));
    assert_true(remembers_ref(m, "b", "ub"));
    assert_true(remembers_outputs(m, "ub"));
    assert_true(remembers_log(m, "b", "ub"));
    assert_true(df_memory_take_awaiting(m, "net", run));
    assert_string_equal(run, "b");
    df_memory_forget(m, DF_KIND_TASK_ACTION, "b");
    df_memory_forget(m, DF_KIND_RUN, "b");
    df_memory_forget(m, DF_KIND_RUN, "never-seen");
    assert_null(m->first);
    remember(m, "c", "uc"); /* a list that was emptied takes new entries */
    assert_true(remembers_ref(m, "c", "uc"));
    df_memory_free(m);
}

/* A document was deleted by force, and another one has its name before a pass noticed that. */
static void forgetting_a_name_ends_the_memories_of_all_that_had_it(void **state)
{
    struct df_memory memory = {0}, *m = &memory;
    (void)state;
    remember(m, "a", "former");
    remember(m, "a", "latter");
    assert_false(remembers_ref(m, "a", "former"));
    assert_true(remembers_ref(m, "a", "latter"));
    df_memory_forget(m, DF_KIND_TASK_ACTION, "a");
    df_memory_forget(m, DF_KIND_RUN, "a");
    assert_null(m->first);
    df_memory_free(m);
}

/* ---- many threads ---- */

enum { TURNS = 300 };

struct hand {
    struct df_memory *m;
    char name[8];
    size_t lost; /* memories of this document that were not there */
};

static void *use_memory(void *arg)
{
    struct hand *h = arg;
    for (int i = 0; i < TURNS; i++) {
        remember(h->m, h->name, h->name);
        h->lost += !remembers_ref(h->m, h->name, h->name);
        h->lost += !remembers_wait(h->m, DF_KIND_TASK_ACTION, h->name);
        h->lost += !remembers_outputs(h->m, h->name);
        df_memory_forget(h->m, DF_KIND_TASK_ACTION, h->name);
        df_memory_forget(h->m, DF_KIND_RUN, h->name);
        h->lost += remembers_ref(h->m, h->name, h->name);
    }
    return NULL;
}

static void threads_with_documents_of_their_own_do_not_disturb_each_other(void **state)
{
    struct df_memory memory = {0}, *m = &memory;
    struct hand hands[4];
    pthread_t threads[DF_ARRAY_SIZE(hands)];
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(hands); i++) {
        hands[i] = (struct hand){.m = m};
        (void)snprintf(hands[i].name, sizeof(hands[i].name), "s%zu", i);
        assert_int_equal(pthread_create(&threads[i], NULL, use_memory, &hands[i]), 0);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(hands); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(hands[i].lost, 0);
    }
    assert_null(m->first);
    df_memory_free(m);
}

/* ---- one reference ---- */

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
    struct df_memory memory = {0}, *m = &memory;
    DF_JSON cJSON *made = json("{" OF("u") "}");
    DF_JSON cJSON *ref = json("{'name':'s','uid':'j'}");
    (void)state;
    assert_int_equal(df_memory_put_ref(m, made, "h", ref, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(tasks); i++) {
        DF_JSON cJSON *task = json(tasks[i].task);
        int64_t due_us = -1;
        DF_JSON cJSON *found = NULL;
        assert_int_equal(df_memory_get_ref(m, task, &found, &due_us, NULL), 0);
        if ((due_us != 0) != tasks[i].is_held)
            fail_msg("%s", tasks[i].what);
        assert_int_equal(df_json_equal(found, ref), tasks[i].is_held);
        if (!tasks[i].is_held)
            df_memory_drop_ref(m, task);
    }
    assert_int_equal(m->counts[DF_MEMORY_REF], 1);
    DF_JSON cJSON *written = json(tasks[0].task);
    df_memory_drop_ref(m, written);
    assert_null(m->first);
    df_memory_free(m);
}

static void a_later_attempt_replaces_what_was_held_of_an_earlier_one(void **state)
{
    struct df_memory memory = {0}, *m = &memory;
    DF_JSON cJSON *task = json("{" OF("u") ",'status':{'auth':{'claim':'i'}}}");
    DF_JSON cJSON *first = json("{'uid':'j'}");
    DF_JSON cJSON *second = json("{'uid':'k'}"), *found = NULL;
    int64_t due_us = 0;
    (void)state;
    assert_int_equal(df_memory_put_ref(m, task, "h", first, NULL), 0);
    assert_int_equal(df_memory_put_ref(m, task, "i", second, NULL), 0);
    assert_int_equal(m->counts[DF_MEMORY_REF], 1);
    assert_int_equal(df_memory_get_ref(m, task, &found, &due_us, NULL), 0);
    assert_string_equal(df_json_str(found, "uid"), "k");
    df_memory_forget(m, DF_KIND_TASK_ACTION, "s");
    assert_null(m->first);
    df_memory_free(m);
}

/* ---- in the control loop ---- */

static int setup(void **state)
{
    return pods_setup(state, "'variables':{'region':'eu'}",
                      "{'action':'provision','autoApprove':true}");
}

static bool holds(struct world *w)
{
    return memories(w, DF_MEMORY_REF) > 0;
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
        df_memory_put_ref(&w->s.memory, task, df_json_str(task, "status.auth.claim"), ref, NULL),
        0);
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
        df_memory_put_ref(&w->s.memory, task, df_json_str(task, "status.auth.claim"), ref, NULL),
        0);
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

/* Between the read of a document and the look at what is held, the one may have taken up the
 * other. */
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
    assert_int_equal(df_task_write_ref(&w->s, STEP, NULL), 0);
    assert_false(holds(w));
    assert_int_equal(df_task_show_ref(&w->s, &task, &due_us, NULL), 0);
    assert_string_equal(df_json_str(task, "status.engineRef.name"), STEP);
    assert_int_equal(due_us, 0);
}

static void of_a_step_and_a_run_that_have_ended_nothing_is_remembered(void **state)
{
    struct world *w = *state;
    (void)await_start(w, STEP);
    await_held(w, true);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    const struct df_wait_case step = wait_of(DF_KIND_TASK_ACTION, STEP),
                              run = wait_of(DF_KIND_RUN, "net-1");
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "net-1");
    (void)df_memory_add_wait(&w->s.memory, &step, task, 1);
    (void)df_memory_add_wait(&w->s.memory, &run, doc, 1);
    df_memory_put_outputs(&w->s.memory, task, doc);
    df_memory_await_executor(&w->s.memory, doc, "another");
    assert_int_equal(
        df_request_cancel_run(&w->s, "net-1", DF_VERBS_ADMIN, "ann", "enough", NULL, NULL), 0);
    await_value(w, DF_KIND_TASK_ACTION, STEP, "spec.cancel.by", "ann");
    end_processes(w, STEP, 143, "killed by signal 15");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.engineRef.name", STEP);
    for (size_t i = 0; i < DF_MEMORY_KINDS; i++)
        while (memories(w, (enum df_memory_of)i))
            (void)sched_yield();
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_forget_ends_every_memory_of_the_document_and_of_no_other),
        cmocka_unit_test(forgetting_a_name_ends_the_memories_of_all_that_had_it),
        cmocka_unit_test(threads_with_documents_of_their_own_do_not_disturb_each_other),
        cmocka_unit_test(a_reference_is_held_for_the_attempt_that_made_it_and_no_other),
        cmocka_unit_test(a_later_attempt_replaces_what_was_held_of_an_earlier_one),
        TEST(a_claim_brings_the_reference_with_it),
        TEST(without_any_other_write_it_is_written_alone),
        TEST(a_pod_is_checked_against_what_is_held),
        TEST(a_pod_does_not_claim_for_the_job_that_follows_its_own),
        TEST(a_try_that_is_lost_while_its_reference_is_held_counts),
        TEST(a_reference_is_seen_that_was_written_since_the_document_was_read),
        TEST(of_a_step_and_a_run_that_have_ended_nothing_is_remembered),
    };
    return cmocka_run_group_tests_name("document_memory", tests, make_keys, free_keys);
}
