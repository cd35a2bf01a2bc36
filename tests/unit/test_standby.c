/* The list of runners that wait for a step: what the control loop takes, and what their requests
 * hear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/shared_pod.h"
#include "spawner/steps/standby.h"
#include "tests/unit/json_words.h"

#define ONE "standby-1"
#define TWO "standby-2"
#define CLAIM_A "{'claimId':'0000000000000000000000000000000a'}"
#define CLAIM_B "{'claimId':'0000000000000000000000000000000b'}"

enum { LONG_MS = 250000 };

static const struct df_standby_form small = {"d1", 100, ""};

static struct df_standby *b;

static int open_list(void **state)
{
    (void)state;
    if (df_standby_new(&b, NULL) < 0)
        return -1;
    df_standby_open(b);
    return 0;
}

static int close_list(void **state)
{
    (void)state;
    df_standby_free(b);
    return 0;
}

static void add_of(const char *id, const struct df_standby_form *form, int64_t age_ms)
{
    DF_FREE char *text = df_strf("{'kind':'Job','name':'%s','namespace':'infra','uid':'j-%s',"
                                 "'serviceAccountName':'runner','hostUid':'%s'}",
                                 id, id, id);
    DF_JSON cJSON *ref = json(text);
    assert_int_equal(df_standby_add(b, ref, form, age_ms, NULL), 0);
}

static void add(const char *id)
{
    add_of(id, &small, 0);
}

/* NULL: no runner may be given. */
static void assert_takes(const struct df_standby_form *step, const char *id)
{
    DF_JSON cJSON *ref = NULL;
    assert_int_equal(df_standby_take(b, step, &ref, NULL), 0);
    if (!id) {
        assert_null(ref);
        return;
    }
    assert_non_null(ref);
    assert_string_equal(df_shared_pod_host_of(ref), id);
    assert_string_equal(df_json_str(ref, "name"), id);
    assert_string_equal(df_json_str(ref, "namespace"), "infra");
    assert_string_equal(df_json_str(ref, "serviceAccountName"), "runner");
}

/* ---- one entry as it is shown ---- */

struct look {
    size_t count;
    struct df_standby_view seen;
};

static struct look look_at(const char *id)
{
    static struct df_standby_view all[DF_LIMIT_STANDBY];
    struct look l = {.count = df_standby_list(b, all)};
    for (size_t i = 0; i < l.count; i++)
        if (df_streq(all[i].id, id))
            l.seen = all[i];
    return l;
}

/* ---- a request, in a thread of its own ---- */

struct request {
    pthread_t thread;
    const char *id, *claim;
    bool gone; /* atomic */
    struct df_standby_answer heard;
    int result;
    struct df_err err;
};

static bool is_gone(void *arg)
{
    const struct request *q = arg;
    return __atomic_load_n(&q->gone, __ATOMIC_ACQUIRE);
}

static void ask(struct request *q, int64_t wait_ms)
{
    DF_JSON cJSON *body = json(q->claim);
    const struct df_standby_request r = {.id = q->id, .body = body, .gone = is_gone, .arg = q};
    q->result = df_standby_wait(b, &r, wait_ms, &q->heard, &q->err);
}

static void *ask_long(void *arg)
{
    ask(arg, LONG_MS);
    return NULL;
}

static void begin(struct request *q)
{
    assert_int_equal(pthread_create(&q->thread, NULL, ask_long, q), 0);
}

static void await_waits(const char *id)
{
    while (!look_at(id).seen.waits)
        (void)sched_yield();
}

static void await_request(struct request *q)
{
    begin(q);
    await_waits(q->id);
}

static void assert_hears(struct request *q, const char *step)
{
    (void)pthread_join(q->thread, NULL);
    assert_int_equal(q->result, 0);
    assert_string_equal(q->heard.step, step);
    assert_null(q->heard.preparation);
}

static void assert_refused(const struct request *q, enum df_err_class class, const char *reason)
{
    assert_int_equal(q->result, -1);
    assert_int_equal(q->err.cls, class);
    assert_string_equal(q->err.reason, reason);
}

/* ---- what is taken ---- */

static void a_runner_that_waits_is_taken_before_one_that_starts(void **state)
{
    (void)state;
    struct request two = {.id = TWO, .claim = CLAIM_A};
    add(ONE);
    add(TWO);
    await_request(&two);
    assert_takes(&small, TWO);
    assert_takes(&small, ONE);
    assert_takes(&small, NULL);
    df_standby_offer(b, TWO, "u-1");
    assert_hears(&two, "u-1");
}

static void a_runner_that_starts_for_long_is_taken_when_it_waits(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    add_of(ONE, &small, DF_STANDBY_START_MS);
    assert_takes(&small, NULL);
    await_request(&one);
    assert_takes(&small, ONE);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&one, "u-1");
}

static void a_runner_between_two_requests_is_taken(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    add_of(ONE, &small, DF_STANDBY_START_MS);
    ask(&one, 0);
    assert_int_equal(one.result, 0);
    assert_string_equal(one.heard.step, "");
    assert_takes(&small, ONE);
}

static void the_runner_of_a_step_is_found(void **state)
{
    (void)state;
    char id[DF_LIMIT_NAME + 1];
    add(ONE);
    add(TWO);
    df_standby_offer(b, TWO, "u-1");
    df_standby_of_step(b, "u-1", id);
    assert_string_equal(id, TWO);
    df_standby_of_step(b, "u-2", id);
    assert_string_equal(id, "");
}

static void a_step_gets_a_runner_of_its_form_that_has_the_time(void **state)
{
    (void)state;
    static const struct {
        struct df_standby_form step;
        bool fits;
    } cases[] = {
        {{"d1", 99}, true},   {{"d1", 100}, true}, {{"d1", 101}, false},
        {{"d2", 100}, false}, {{"", 100}, false},
    };
    add(ONE);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        assert_takes(&cases[i].step, cases[i].fits ? ONE : NULL);
        df_standby_return(b, ONE);
    }
}

static void the_runner_that_is_there_longest_is_taken_first(void **state)
{
    (void)state;
    static const char *const ids[] = {"standby-c", "standby-a", "standby-b"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(ids); i++)
        add(ids[i]);
    df_standby_remove(b, "standby-a");
    assert_takes(&small, "standby-c");
    assert_takes(&small, "standby-b");
    assert_takes(&small, NULL);
}

static void a_runner_that_was_returned_is_taken_again_unless_a_step_was_offered(void **state)
{
    (void)state;
    add(ONE);
    assert_takes(&small, ONE);
    assert_takes(&small, NULL);
    df_standby_return(b, ONE);
    assert_takes(&small, ONE);
    df_standby_offer(b, ONE, "u-1");
    df_standby_return(b, ONE);
    df_standby_return(b, TWO); /* is not there */
    assert_takes(&small, NULL);
}

static void a_runner_that_was_added_twice_is_there_once(void **state)
{
    (void)state;
    static const struct df_standby_form other = {"d2", 5, ""};
    add(ONE);
    assert_takes(&small, ONE);
    add_of(ONE, &other, 0);
    assert_int_equal(look_at(ONE).count, 1);
    assert_takes(&small, NULL);
    assert_takes(&other, NULL);
}

static void there_are_only_so_many_runners(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *more = json("{'name':'standby-more','hostUid':'standby-more'}");
    for (int i = 0; i < DF_LIMIT_STANDBY; i++) {
        DF_FREE char *id = df_strf(DF_STANDBY_PREFIX "%d", i);
        add(id);
    }
    assert_int_equal(df_standby_add(b, more, &small, 0, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    add(ONE); /* is there */
    df_standby_remove(b, ONE);
    assert_int_equal(df_standby_add(b, more, &small, 0, NULL), 0);
    assert_int_equal(look_at("standby-more").count, DF_LIMIT_STANDBY);
}

static void each_runner_is_shown_as_it_is(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    add(ONE);
    struct df_standby_view v = look_at(ONE).seen;
    assert_true(v.is_free && !v.waits && !v.has_asked);
    assert_string_equal(v.form.digest, "d1");
    assert_int_equal(v.form.seconds, 100);
    await_request(&one);
    v = look_at(ONE).seen;
    assert_true(v.is_free && v.waits && v.has_asked);
    assert_takes(&small, ONE);
    assert_false(look_at(ONE).seen.is_free);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&one, "u-1");
    v = look_at(ONE).seen;
    assert_true(!v.is_free && !v.waits && v.has_asked);
}

static void only_a_free_runner_is_dismissed(void **state)
{
    (void)state;
    struct request two = {.id = TWO, .claim = CLAIM_A};
    assert_true(df_standby_is_empty(b));
    add(ONE);
    assert_takes(&small, ONE);
    add(TWO);
    await_request(&two);
    assert_false(df_standby_dismiss(b, ONE));
    assert_true(df_standby_dismiss(b, TWO));
    (void)pthread_join(two.thread, NULL);
    assert_refused(&two, DF_ERR_CONFLICT, "StepOver");
    assert_false(df_standby_dismiss(b, TWO));
    assert_int_equal(look_at(ONE).count, 1);
}

static void a_runner_for_one_run_is_given_to_its_step_alone(void **state)
{
    (void)state;
    static const struct df_standby_form of_net = {"d1", 100, "net-1"},
                                        of_dns = {"d1", 100, "dns-1"};
    add_of(ONE, &of_net, 2 * DF_STANDBY_START_MS); /* no Job of the step's own would be sooner */
    assert_takes(&of_dns, NULL);
    assert_takes(&of_net, ONE);
    add_of(TWO, &small, 0);
    assert_takes(&of_dns, TWO);
}

static void the_step_of_a_runner_is_known(void **state)
{
    (void)state;
    char step[DF_STANDBY_STEP];
    add(ONE);
    df_standby_step(b, ONE, step);
    assert_string_equal(step, "");
    df_standby_offer(b, ONE, "u-1");
    df_standby_step(b, ONE, step);
    assert_string_equal(step, "u-1");
    df_standby_step(b, TWO, step);
    assert_string_equal(step, "");
}

/* ---- what a runner may get ready ---- */

#define WANTS_A "{'claimId':'0000000000000000000000000000000a','prepares':true}"

static void prepare(const char *id)
{
    DF_JSON cJSON *doc = json("{'tools':{}}");
    assert_int_equal(df_standby_prepare(b, id, doc, NULL), 0);
}

static void assert_prepares(struct request *q)
{
    assert_int_equal(q->result, 0);
    assert_string_equal(q->heard.step, "");
    assert_non_null(df_json_at(q->heard.preparation, "tools"));
    cJSON_Delete(q->heard.preparation);
}

static void a_request_that_wants_it_hears_what_to_get_ready(void **state)
{
    (void)state;
    struct request waits = {.id = ONE, .claim = WANTS_A}, comes = waits, later = waits;
    later.claim = CLAIM_A;
    add(ONE);
    assert_false(look_at(ONE).seen.is_prepared);
    await_request(&waits);
    prepare(ONE);
    (void)pthread_join(waits.thread, NULL);
    assert_prepares(&waits);
    assert_true(look_at(ONE).seen.is_prepared && look_at(ONE).seen.is_free);
    ask(&comes, LONG_MS);
    assert_prepares(&comes);
    await_request(&later);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&later, "u-1");
}

/* By the time of its last request the pool removes a runner that has gone. */
static void a_runner_that_was_answered_just_now_is_no_silent_one(void **state)
{
    (void)state;
    struct request waits = {.id = ONE, .claim = WANTS_A};
    int64_t before_ms = df_mono_ms();
    add(ONE);
    await_request(&waits);
    prepare(ONE);
    (void)pthread_join(waits.thread, NULL);
    assert_prepares(&waits);
    struct df_standby_view seen = look_at(ONE).seen;
    assert_true(seen.has_asked && !seen.waits);
    assert_true(seen.quiet_ms >= before_ms);
    assert_takes(&small, ONE);
}

static void a_runner_gets_nothing_ready_but_what_is_said_of_it(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = WANTS_A};
    add(ONE);
    add(TWO);
    prepare(TWO);
    prepare("standby-3");
    await_request(&one);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&one, "u-1");
}

static void a_step_comes_before_what_to_get_ready(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = WANTS_A};
    add(ONE);
    df_standby_offer(b, ONE, "u-1");
    prepare(ONE);
    begin(&one);
    assert_hears(&one, "u-1");
}

/* ---- what a request hears ---- */

static void an_offer_ends_the_wait_and_every_later_request_hears_it_too(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A}, again = one;
    add(ONE);
    await_request(&one);
    df_standby_offer(b, ONE, "u-1");
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&one, "u-1");
    begin(&again);
    assert_hears(&again, "u-1");
}

static void an_offer_to_a_runner_that_is_not_there_yet_counts_when_it_is_repeated(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    df_standby_offer(b, ONE, "u-1");
    add(ONE);
    assert_true(look_at(ONE).seen.is_free);
    df_standby_offer(b, ONE, "u-1");
    assert_takes(&small, NULL);
    begin(&one);
    assert_hears(&one, "u-1");
}

static void a_runner_gets_one_step_and_no_other(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    add(ONE);
    df_standby_offer(b, ONE, "u-1");
    df_standby_offer(b, ONE, "u-2");
    ask(&one, LONG_MS);
    assert_int_equal(one.result, 0);
    assert_string_equal(one.heard.step, "u-1");
}

static void an_offer_is_heard_by_its_runner_only(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A}, two = {.id = TWO, .claim = CLAIM_B};
    add(ONE);
    add(TWO);
    await_request(&one);
    await_request(&two);
    df_standby_offer(b, TWO, "u-2");
    assert_hears(&two, "u-2");
    assert_true(look_at(ONE).seen.waits);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&one, "u-1");
}

static void a_runner_that_is_removed_hears_that_it_is_over(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    add(ONE);
    await_request(&one);
    df_standby_remove(b, ONE);
    df_standby_remove(b, ONE);
    (void)pthread_join(one.thread, NULL);
    assert_refused(&one, DF_ERR_CONFLICT, "StepOver");
    ask(&one, LONG_MS);
    assert_refused(&one, DF_ERR_CONFLICT, "StepOver");
    assert_takes(&small, NULL);
}

static void while_the_list_is_not_complete_every_runner_asks_again(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    df_standby_free(b);
    assert_int_equal(df_standby_new(&b, NULL), 0);
    ask(&one, LONG_MS);
    assert_refused(&one, DF_ERR_RETRY, "NotListedYet");
    add(ONE); /* nobody knows yet whether it has a step */
    ask(&one, LONG_MS);
    assert_refused(&one, DF_ERR_RETRY, "NotListedYet");
    df_standby_open(b);
    await_request(&one);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&one, "u-1");
}

static void a_client_that_left_waits_no_more(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A};
    add(ONE);
    await_request(&one);
    __atomic_store_n(&one.gone, true, __ATOMIC_RELEASE);
    (void)pthread_join(one.thread, NULL);
    assert_refused(&one, DF_ERR_RETRY, "NotDecidedYet");
    assert_false(look_at(ONE).seen.waits);
}

static void a_step_is_not_told_to_a_client_that_left(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A}, again = one;
    add(ONE);
    await_request(&one);
    __atomic_store_n(&one.gone, true, __ATOMIC_RELEASE);
    df_standby_offer(b, ONE, "u-1");
    (void)pthread_join(one.thread, NULL);
    assert_refused(&one, DF_ERR_RETRY, "NotDecidedYet");
    begin(&again);
    assert_hears(&again, "u-1");
}

static void a_request_replaces_the_older_one_of_the_same_runner(void **state)
{
    (void)state;
    struct request old = {.id = ONE, .claim = CLAIM_A}, young = old;
    add(ONE);
    await_request(&old);
    begin(&young);
    assert_hears(&old, "");
    assert_true(look_at(ONE).seen.waits);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&young, "u-1");
}

static void of_two_runners_with_one_id_both_hear_of_the_step(void **state)
{
    (void)state;
    struct request one = {.id = ONE, .claim = CLAIM_A}, other = {.id = ONE, .claim = CLAIM_B};
    add(ONE);
    await_request(&one);
    begin(&other);
    df_standby_offer(b, ONE, "u-1");
    assert_hears(&one, "u-1");
    assert_hears(&other, "u-1"); /* the claim decides between them */
}

static void many_wait_and_each_hears_of_its_own_step(void **state)
{
    (void)state;
    enum { MANY = 100 };
    static struct request q[MANY];
    static char ids[MANY][16], steps[MANY][16];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "standby-%d", i);
        (void)snprintf(steps[i], sizeof(steps[i]), "u-%d", i);
        q[i] = (struct request){.id = ids[i], .claim = CLAIM_A};
        add(ids[i]);
        begin(&q[i]);
    }
    for (int i = 0; i < MANY; i++)
        df_standby_offer(b, ids[i], steps[i]);
    for (int i = 0; i < MANY; i++)
        assert_hears(&q[i], steps[i]);
}

static void only_a_ref_with_such_a_host_is_of_a_standby_runner(void **state)
{
    (void)state;
    assert_true(df_standby_is(ONE));
    assert_false(df_standby_is("705ab4f5-6393-11e8-b7cc-42010a800002"));
    assert_false(df_standby_is(NULL));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_list, close_list)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_runner_that_waits_is_taken_before_one_that_starts),
        TEST(a_runner_that_starts_for_long_is_taken_when_it_waits),
        TEST(a_runner_between_two_requests_is_taken),
        TEST(the_runner_of_a_step_is_found),
        TEST(a_step_gets_a_runner_of_its_form_that_has_the_time),
        TEST(the_runner_that_is_there_longest_is_taken_first),
        TEST(a_runner_that_was_returned_is_taken_again_unless_a_step_was_offered),
        TEST(a_runner_that_was_added_twice_is_there_once),
        TEST(there_are_only_so_many_runners),
        TEST(each_runner_is_shown_as_it_is),
        TEST(only_a_free_runner_is_dismissed),
        TEST(a_runner_for_one_run_is_given_to_its_step_alone),
        TEST(the_step_of_a_runner_is_known),
        TEST(a_request_that_wants_it_hears_what_to_get_ready),
        TEST(a_runner_that_was_answered_just_now_is_no_silent_one),
        TEST(a_runner_gets_nothing_ready_but_what_is_said_of_it),
        TEST(a_step_comes_before_what_to_get_ready),
        TEST(an_offer_ends_the_wait_and_every_later_request_hears_it_too),
        TEST(an_offer_to_a_runner_that_is_not_there_yet_counts_when_it_is_repeated),
        TEST(a_runner_gets_one_step_and_no_other),
        TEST(an_offer_is_heard_by_its_runner_only),
        TEST(a_runner_that_is_removed_hears_that_it_is_over),
        TEST(while_the_list_is_not_complete_every_runner_asks_again),
        TEST(a_client_that_left_waits_no_more),
        TEST(a_step_is_not_told_to_a_client_that_left),
        TEST(a_request_replaces_the_older_one_of_the_same_runner),
        TEST(of_two_runners_with_one_id_both_hear_of_the_step),
        TEST(many_wait_and_each_hears_of_its_own_step),
        TEST(only_a_ref_with_such_a_host_is_of_a_standby_runner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
