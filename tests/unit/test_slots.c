/* Slots for living steps: the control loop over a real store, with more steps than may run. Steps
 * in pods may get theirs when they are made. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/control/loop.h"
#include "tests/unit/pod_tokens.h"

#include "tests/unit/control_loop.h"

#define DRY "{'action':'dry-run'}"

static bool runs_now(struct world *w, const char *step)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    bool runs = fake_find(&w->engine, step)->seen.phase == DF_ENGINE_RUNNING;
    (void)pthread_mutex_unlock(&w->engine.lock);
    return runs;
}

/* Waits until Progressing of the step has this message. */
static void await_message(struct world *w, const char *step, const char *message)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, step);
        if (task && df_streq(df_task_message(task), message)) {
            assert_string_equal(df_task_reason(task), "Queued");
            return;
        }
        wait_for_change(w, mark);
    }
}

/* Waits until the step is told that it has no slot, whatever the words. */
static void await_refused(struct world *w, const char *step)
{
    for (bool waits = false; !waits;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, step);
        waits = task && df_streq(df_task_reason(task), "Queued") &&
                !df_str_empty(df_task_message(task));
        if (!waits)
            wait_for_change(w, mark);
    }
}

/* An executor each, with one dry run. spec: of the executor, or "". */
static void ask(struct world *w, const char *executor, const char *spec, const char *body)
{
    make_executor(w, executor, spec);
    run(w, executor, body);
}

static void finish(struct world *w, const char *step)
{
    struct runner r = claim(w, step);
    report(&r, NOTHING_TO_DO);
}

static size_t running_steps(struct world *w)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&w->engine.lock);
    for (size_t i = 0; i < w->engine.count; i++)
        n += w->engine.steps[i].seen.phase == DF_ENGINE_RUNNING;
    (void)pthread_mutex_unlock(&w->engine.lock);
    return n;
}

static void no_more_steps_live_at_once_than_are_allowed_and_all_come_to_their_turn(void **state)
{
    struct world *w = *state;
    enum { EXECUTORS = 12, PLACES = 3 };
    bool done[EXECUTORS] = {0};
    w->config.limit_steps = PLACES;
    for (int i = 0; i < EXECUTORS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "e%d", i);
        make_executor(w, name, "");
        run(w, name, AUTO);
    }
    start(w);
    for (int finished = 0; finished < EXECUTORS;) {
        assert_true(running_steps(w) <= PLACES);
        for (int i = 0; i < EXECUTORS; i++) {
            char step[32];
            (void)snprintf(step, sizeof(step), "e%d-1-plan", i);
            if (done[i] || !runs_now(w, step))
                continue;
            struct runner r = claim(w, step);
            report(&r, NOTHING_TO_DO);
            done[i] = true;
            finished++;
        }
    }
    await_settled(w);
}

/* ---- what is told ---- */

static void a_step_that_finds_no_place_says_how_many_run_and_how_many_are_before(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    start(w);
    ask(w, "net", "", DRY);
    struct runner r = claim(w, "net-1-plan");
    ask(w, "dns", "", DRY);
    await_message(w, "dns-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    ask(w, "web", "", DRY);
    await_message(w, "web-1-plan", "1 step runs, the limit is 1 (limits.steps); 1 before this one");
    await_value(w, DF_KIND_RUN, "dns-1", "status.message",
                "1 step runs, the limit is 1 (limits.steps); it is the next");
    report(&r, NOTHING_TO_DO);
    finish(w, "dns-1-plan");
    finish(w, "web-1-plan");
    await_settled(w);
    assert_value(w, DF_KIND_RUN, "dns-1", "status.message", "");
}

/* ---- order ---- */

static void the_higher_priority_starts_first_whenever_it_came(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    start(w);
    ask(w, "net", "", DRY);
    struct runner r = claim(w, "net-1-plan");
    ask(w, "low", "", "{'action':'dry-run','priority':-1}");
    await_message(w, "low-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    ask(w, "mean", "", DRY);
    await_message(w, "mean-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    ask(w, "high", "", "{'action':'dry-run','priority':9}");
    await_message(w, "high-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    report(&r, NOTHING_TO_DO);
    finish(w, "high-1-plan");
    assert_int_equal(fake_look(w, "low-1-plan").creates, 0);
    r = claim(w, "mean-1-plan");
    assert_int_equal(fake_look(w, "low-1-plan").creates, 0);
    report(&r, NOTHING_TO_DO);
    finish(w, "low-1-plan");
    await_settled(w);
}

static void what_has_begun_is_finished_before_another_run_begins(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    start(w);
    ask(w, "net", "", AUTO);
    (void)await_start(w, "net-1-plan");
    ask(w, "dns", "", DRY);
    await_message(w, "dns-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    ask(w, "high", "", "{'action':'dry-run','priority':9}");
    await_message(w, "high-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    play_plan(w, "net-1", "net-1-plan");
    struct runner high = claim(w, "high-1-plan");
    await_refused(w, "net-1-apply");
    report(&high, NOTHING_TO_DO);
    (void)await_start(w, "net-1-apply");
    assert_int_equal(fake_look(w, "dns-1-plan").creates, 0);
    play_apply(w, "net-1-apply");
    finish(w, "dns-1-plan");
    await_settled(w);
}

/* Otherwise whoever is looked at first after a start would be the first. */
static void the_order_outlives_a_restart(void **state)
{
    static const char *const names[] = {"low", "mean", "high"};
    struct world *w = *state;
    w->config.limit_steps = 1;
    start(w);
    ask(w, "net", "", DRY);
    (void)claim(w, "net-1-plan");
    for (int i = 0; i < 3; i++) {
        DF_FREE char *body = df_strf("{'action':'dry-run','priority':%d}", i);
        DF_FREE char *step = df_strf("%s-1-plan", names[i]);
        ask(w, names[i], "", body);
        await_message(w, step, "1 step runs, the limit is 1 (limits.steps); it is the next");
    }
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    w->config.limit_steps = 2; /* whoever is looked at first would find the free place */
    start(w);
    for (int i = 2; i >= 0; i--) {
        DF_FREE char *step = df_strf("%s-1-plan", names[i]);
        for (int before = 0; before < i; before++) {
            DF_FREE char *other = df_strf("%s-1-plan", names[before]);
            assert_false(runs_now(w, other));
        }
        finish(w, step);
    }
}

static void who_waits_in_vain_holds_nobody_back(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    start(w);
    ask(w, "net", "", DRY);
    struct runner r = claim(w, "net-1-plan");
    ask(w, "canceled", "", "{'action':'dry-run','priority':9}");
    await_message(w, "canceled-1-plan",
                  "1 step runs, the limit is 1 (limits.steps); it is the next");
    ask(w, "gone", "", "{'action':'dry-run','priority':8}");
    await_message(w, "gone-1-plan",
                  "1 step runs, the limit is 1 (limits.steps); 1 before this one");
    ask(w, "last", "", DRY);
    await_message(w, "last-1-plan",
                  "1 step runs, the limit is 1 (limits.steps); 2 before this one");
    assert_int_equal(
        df_request_cancel_run(&w->s, "canceled-1", DF_VERBS_WRITE, "ann", NULL, NULL, NULL), 0);
    await_value(w, DF_KIND_RUN, "canceled-1", "status.phase", "Canceled");
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_TASK_ACTION, "gone-1-plan", NULL, NULL),
                     0);
    report(&r, NOTHING_TO_DO);
    finish(w, "last-1-plan");
}

/* A start takes it for one that waits, and it comes to its end before it asks for a place. */
static void who_fails_before_it_asks_holds_nobody_back(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *lost =
        json("{'metadata':{'name':'lost','namespace':'default',"
             "'labels':{'dayfly.dev/unfinished':'true'}},"
             "'spec':{'action':'plan','engine':'gone','targetResource':'executor/lost',"
             "'priority':9,'runRef':{'name':'lost-1'}},'status':{}}");
    assert_int_equal(df_store_create(w->s.store, DF_KIND_TASK_ACTION, lost, NULL, NULL), 0);
    w->config.limit_steps = 1;
    start(w);
    ask(w, "net", "", DRY);
    finish(w, "net-1-plan");
    await_settled(w);
    assert_value(w, DF_KIND_TASK_ACTION, "lost", "status.reason", "InvalidStep");
}

/* ---- limits of their own ---- */

static void a_class_has_a_limit_of_its_own_and_holds_back_nobody_else(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *classes = json("{'gpu':{'limit':1},'small':{}}");
    w->config.classes = classes;
    start(w);
    ask(w, "net", "'class':'gpu'", DRY);
    struct runner r = claim(w, "net-1-plan");
    ask(w, "dns", "", "{'action':'dry-run','class':'gpu'}");
    await_message(
        w, "dns-1-plan",
        "1 step of the class gpu runs, the limit is 1 (classes.gpu.limit); it is the next");
    ask(w, "web", "'class':'gpu'", "{'action':'dry-run','class':'small'}");
    finish(w, "web-1-plan");
    assert_int_equal(fake_look(w, "dns-1-plan").creates, 0);
    report(&r, NOTHING_TO_DO);
    finish(w, "dns-1-plan");
    await_settled(w);
    w->config.classes = NULL;
}

/* For one step more of this class; "": of none. */
static int64_t room_for(struct world *w, const char *class_name)
{
    DF_FREE char *text = df_strf("{'metadata':{'name':'next','namespace':'default'},"
                                 "'spec':{'class':'%s'}}",
                                 class_name);
    DF_JSON cJSON *task = json(text);
    int64_t room = -1;
    assert_int_equal(df_slots_room(&w->s.control->slots, task, &room, NULL), 0);
    return room;
}

static void a_step_that_waits_for_its_class_leaves_the_others_their_room(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *classes = json("{'gpu':{'limit':2},'small':{}}");
    w->config.classes = classes;
    w->config.limit_steps = 4;
    start(w);
    ask(w, "net", "'class':'gpu'", DRY);
    ask(w, "vpn", "'class':'gpu'", DRY);
    struct runner net = claim(w, "net-1-plan"), vpn = claim(w, "vpn-1-plan");
    ask(w, "dns", "'class':'gpu'", DRY);
    await_refused(w, "dns-1-plan");
    assert_int_equal(room_for(w, "gpu"), 0);
    assert_int_equal(room_for(w, "small"), 2);
    assert_int_equal(room_for(w, ""), 2);
    report(&net, NOTHING_TO_DO);
    report(&vpn, NOTHING_TO_DO);
    finish(w, "dns-1-plan");
    await_settled(w);
    w->config.classes = NULL;
}

/* Whoever comes next must not take the place that is about to become free. */
static void a_step_that_waits_for_a_limit_of_all_leaves_no_room(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    start(w);
    ask(w, "net", "", DRY);
    struct runner net = claim(w, "net-1-plan");
    ask(w, "dns", "", DRY);
    await_refused(w, "dns-1-plan");
    w->config.limit_steps = 2;
    assert_int_equal(room_for(w, ""), 0);
    report(&net, NOTHING_TO_DO);
    finish(w, "dns-1-plan");
    await_settled(w);
}

static void a_namespace_has_a_limit_of_its_own(void **state)
{
    struct world *w = *state;
    w->config.limit_per_namespace = 1;
    start(w);
    ask(w, "net", "", DRY);
    struct runner r = claim(w, "net-1-plan");
    ask(w, "dns", "", DRY);
    await_message(w, "dns-1-plan",
                  "1 step in the namespace default runs, the limit is 1 (limits.perNamespace); it "
                  "is the next");
    report(&r, NOTHING_TO_DO);
    finish(w, "dns-1-plan");
    await_settled(w);
}

/* What is asked for in vain (a quota) keeps its place: it is in the engine's hands. */
static void what_the_engine_puts_off_keeps_its_place(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    w->engine.create_error = (struct df_err){.cls = DF_ERR_RETRY, .message = "exceeded quota"};
    start(w);
    ask(w, "net", "", DRY);
    await_creates(w, "net-1-plan", 2);
    ask(w, "dns", "", "{'action':'dry-run','priority':9}");
    await_message(w, "dns-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    (void)pthread_mutex_lock(&w->engine.lock);
    w->engine.create_error = (struct df_err){0};
    (void)pthread_mutex_unlock(&w->engine.lock);
    finish(w, "net-1-plan");
    finish(w, "dns-1-plan");
    await_settled(w);
}

/* ---- what it costs ---- */

struct writes {
    int before_created;
    bool is_created;
    struct df_store *store;
};

static void on_write(void *arg, const struct df_store_event *event)
{
    struct writes *n = arg;
    if (event->kind != DF_KIND_TASK_ACTION || event->change != DF_CHANGE_MODIFIED || n->is_created)
        return;
    DF_JSON cJSON *task = NULL;
    if (df_store_get(n->store, DF_KIND_TASK_ACTION, event->name, &task, NULL) < 0)
        return;
    n->before_created++;
    n->is_created = df_label_has(task, DF_LABEL_LIVE);
}

static void a_step_that_need_not_wait_is_written_once_before_it_is_started(void **state)
{
    struct world *w = *state;
    struct writes n = {.store = w->s.store};
    assert_int_equal(df_store_watch(w->s.store, on_write, &n, NULL), 0);
    start(w);
    ask(w, "net", "", DRY);
    finish(w, "net-1-plan");
    await_settled(w);
    df_store_unwatch(w->s.store, on_write, &n);
    assert_true(n.is_created);
    assert_int_equal(n.before_created, 1);
}

static struct {
    struct df_store *store;
    atomic_int made, with_place;
} news;

/* A df_store_watcher: counts steps as they are when they are made. */
static void on_made(void *arg, const struct df_store_event *event)
{
    DF_JSON cJSON *task = NULL;
    (void)arg;
    if (event->kind != DF_KIND_TASK_ACTION || event->change != DF_CHANGE_ADDED ||
        df_store_get(news.store, DF_KIND_TASK_ACTION, event->name, &task, NULL) < 0)
        return;
    bool has_place = df_label_has(task, DF_LABEL_LIVE) &&
                     cJSON_GetArraySize(df_json_at(task, "status.phaseHistory")) == 2;
    atomic_fetch_add(&news.with_place, has_place);
    atomic_fetch_add(&news.made, 1);
}

static void await_made(int count)
{
    while (atomic_load(&news.made) < count)
        (void)sched_yield();
}

static void a_step_in_a_pod_that_need_not_wait_is_made_with_its_place(void **state)
{
    struct world *w = *state;
    w->config.limit_steps = 1;
    news.store = w->s.store;
    assert_int_equal(df_store_watch(w->s.store, on_made, NULL, NULL), 0);
    start(w);
    ask(w, "net", "", DRY);
    await_made(1);
    ask(w, "dns", "", DRY);
    await_made(2);
    df_store_unwatch(w->s.store, on_made, NULL);
    assert_int_equal(atomic_load(&news.with_place), 1);
    (void)await_start(w, "net-1-plan");
    await_refused(w, "dns-1-plan");
}

#define IN_PODS(fn) cmocka_unit_test_setup_teardown(fn, pods_open, world_teardown)
#define HERE_AND_IN_PODS(fn) TEST(fn), IN_PODS(fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HERE_AND_IN_PODS(no_more_steps_live_at_once_than_are_allowed_and_all_come_to_their_turn),
        HERE_AND_IN_PODS(a_step_that_finds_no_place_says_how_many_run_and_how_many_are_before),
        HERE_AND_IN_PODS(the_higher_priority_starts_first_whenever_it_came),
        HERE_AND_IN_PODS(what_has_begun_is_finished_before_another_run_begins),
        HERE_AND_IN_PODS(the_order_outlives_a_restart),
        HERE_AND_IN_PODS(who_waits_in_vain_holds_nobody_back),
        HERE_AND_IN_PODS(who_fails_before_it_asks_holds_nobody_back),
        HERE_AND_IN_PODS(a_class_has_a_limit_of_its_own_and_holds_back_nobody_else),
        HERE_AND_IN_PODS(a_step_that_waits_for_its_class_leaves_the_others_their_room),
        HERE_AND_IN_PODS(a_step_that_waits_for_a_limit_of_all_leaves_no_room),
        HERE_AND_IN_PODS(a_namespace_has_a_limit_of_its_own),
        HERE_AND_IN_PODS(what_the_engine_puts_off_keeps_its_place),
        TEST(a_step_that_need_not_wait_is_written_once_before_it_is_started),
        IN_PODS(a_step_in_a_pod_that_need_not_wait_is_made_with_its_place),
    };
    return cmocka_run_group_tests_name("slots", tests, make_keys, free_keys);
}
