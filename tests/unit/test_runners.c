/* The decision which waiting runner is made or removed next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "spawner/model/runners.h"

#define NOW INT64_C(10000000)
#define MANY 100 /* seconds that are long enough for all that lingers */

/* Runners that ask, and asked just now. */
#define ASKS .has_asked = true, .waits = true, .made_ms = NOW - 1000, .since_ms = NOW - 1000
#define RUN(name) .run = name, .digest = "d"
#define CLASS(least, most, queue)                                                                  \
    {                                                                                              \
        .run = "", .digest = "d", .min = least, .max = most, .waiting = queue                      \
    }

static const struct expectation {
    const char *says;
    struct df_runner_demand demands[3];
    struct df_runner runners[4];
    int64_t taken_ago_ms, crowded_ms; /* 0: never; 0: it is not */
    bool stops;
    enum df_runners_next next;
    size_t index;
    int64_t wait_ms;
} expectations[] = {
    {.says = "nobody wants any and there is none", .wait_ms = 5000},
    {"a class gets its first", {CLASS(1, 2, 0)}, .next = DF_RUNNERS_MAKE},
    {"and no second that nobody wants",
     {CLASS(1, 2, 0)},
     {{RUN(""), .is_free = true, ASKS}},
     .wait_ms = 5000},
    {"a step that waits wants one more",
     {CLASS(1, 2, 1)},
     {{RUN(""), .is_free = true, ASKS}},
     .next = DF_RUNNERS_MAKE},
    {"up to the most of the class",
     {CLASS(1, 1, 5)},
     {{RUN(""), .is_free = true, ASKS}},
     .wait_ms = 5000},
    {"one that has a step does not count",
     {CLASS(1, 1, 0)},
     {{RUN(""), .has_step = true, ASKS}},
     .next = DF_RUNNERS_MAKE},
    {"after one was taken its step works first",
     {CLASS(1, 1, 0)},
     {{RUN(""), .has_step = true, ASKS}},
     .taken_ago_ms = 10,
     .wait_ms = 1000},
    {"a step that waits for one does not",
     {CLASS(0, 1, 1)},
     {{RUN(""), .has_step = true, ASKS}},
     .taken_ago_ms = 10,
     .next = DF_RUNNERS_MAKE},
    {"a demand that was refused is tried later, and the next one now",
     {{RUN("r-1"), .room = 1, .retry_ms = NOW + 1}, {RUN("r-2"), .room = 1}},
     .next = DF_RUNNERS_MAKE,
     .index = 1},
    {"a run gets one", {{RUN("r-1"), .room = 1}}, .next = DF_RUNNERS_MAKE},
    {"and has it then",
     {{RUN("r-1"), .room = 2}},
     {{RUN("r-1"), .is_free = true, ASKS}},
     .wait_ms = 5000},
    {"one of a class is as good",
     {{RUN("r-1"), .room = 2}, CLASS(1, 1, 0)},
     {{RUN(""), .is_free = true, ASKS}},
     .wait_ms = 5000},
    {"that of another run is not",
     {{RUN("r-1"), .room = 2}, {RUN("r-2"), .room = 2}},
     {{RUN("r-2"), .is_free = true, ASKS}},
     .next = DF_RUNNERS_MAKE},
    {"under the limits there is no room for it",
     {{RUN("r-1"), .room = 1}, {RUN("r-2"), .room = 1}},
     {{RUN("r-2"), .is_free = true, ASKS}},
     .wait_ms = 5000},
    {"but one of which a person is asked holds no place",
     {{RUN("r-1"), .room = 1}, {RUN("r-2"), .room = 5, .is_asked = true}},
     {{RUN("r-2"), .is_free = true, ASKS}},
     .next = DF_RUNNERS_MAKE},
    {"and goes when its place is needed",
     {{RUN("r-2"), .room = 0, .is_asked = true}},
     {{RUN("r-2"), .is_free = true, ASKS}},
     .next = DF_RUNNERS_REMOVE},
    {"while a step finds no place none is made",
     {{RUN("r-1"), .room = 9}},
     .crowded_ms = 1,
     .wait_ms = 5000},
    {"and those ahead of an apply go",
     {{RUN("r-1"), .room = 9}},
     {{RUN("r-1"), .is_free = true, ASKS}},
     .crowded_ms = 1,
     .next = DF_RUNNERS_REMOVE},
    {"those of classes stay",
     {CLASS(1, 1, 0)},
     {{RUN(""), .is_free = true, ASKS}},
     .crowded_ms = 1,
     .wait_ms = 5000},
    {"that of a run that wants none goes", .runners = {{RUN("r-1"), .is_free = true, ASKS}},
     .next = DF_RUNNERS_REMOVE},
    {"unless it has a step", .runners = {{RUN("r-1"), .has_step = true, ASKS}}, .wait_ms = 5000},
    {"or is about to get one", .runners = {{RUN("r-1"), ASKS}}, .wait_ms = 5000},
    {"a surplus of a class lingers", .runners = {{RUN(""), .is_free = true, ASKS}},
     .wait_ms = 5000},
    {"and goes then",
     .runners = {{RUN(""), .is_free = true, .has_asked = true, .waits = true, .made_ms = NOW,
                  .since_ms = NOW - MANY * 1000}},
     .next = DF_RUNNERS_REMOVE},
    {"one that never asked goes after the pending time",
     {CLASS(1, 1, 0)},
     {{RUN(""), .is_free = true, .made_ms = NOW - 61000, .since_ms = NOW - 61000}},
     .next = DF_RUNNERS_REMOVE},
    {"one that asks no more goes",
     {CLASS(1, 1, 0)},
     {{RUN(""), .is_free = true, .has_asked = true, .made_ms = NOW, .since_ms = NOW,
       .quiet_ms = NOW - 31000}},
     .next = DF_RUNNERS_REMOVE},
    {"one that asked a moment ago stays",
     {CLASS(1, 1, 0)},
     {{RUN(""), .is_free = true, .has_asked = true, .made_ms = NOW, .since_ms = NOW,
       .quiet_ms = NOW - 29000}},
     .wait_ms = 5000},
    {"one whose Job ends soon goes before",
     {CLASS(1, 1, 0)},
     {{RUN(""), .is_free = true, .has_asked = true, .waits = true, .since_ms = NOW,
       .made_ms = NOW - DF_STANDBY_LIFE_SECONDS * INT64_C(1000)}},
     .next = DF_RUNNERS_REMOVE},
    {"a service that stops makes none", {CLASS(1, 1, 0)}, .stops = true, .wait_ms = 5000},
    {"what is missing comes before what is too much",
     {{RUN("r-1"), .room = 9}},
     {{RUN("r-9"), .is_free = true, ASKS}},
     .next = DF_RUNNERS_MAKE},
};

static struct df_runners known;

static struct df_runners_verdict decide(const struct expectation *e)
{
    memset(&known, 0, sizeof(known));
    memcpy(known.demands, e->demands, sizeof(e->demands));
    while (known.demand_count < DF_ARRAY_SIZE(e->demands) && known.demands[known.demand_count].run)
        known.demand_count++;
    memcpy(known.runners, e->runners, sizeof(e->runners));
    while (known.runner_count < DF_ARRAY_SIZE(e->runners) && known.runners[known.runner_count].run)
        known.runner_count++;
    known.now_ms = NOW;
    known.may_make = !e->stops;
    known.taken_ms = e->taken_ago_ms ? NOW - e->taken_ago_ms : 0;
    known.crowded_until_ms = NOW + e->crowded_ms;
    known.pending_ms = 60000;
    df_runners_count(&known);
    return df_runners_next(&known);
}

static void what_is_next_is_what_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(expectations); i++) {
        const struct expectation *e = &expectations[i];
        struct df_runners_verdict v = decide(e);
        if (v.next != e->next || v.index != e->index || v.wait_ms != e->wait_ms)
            fail_msg("%s: next %d, index %zu, wait %lld", e->says, (int)v.next, v.index,
                     (long long)v.wait_ms);
    }
}

/* Each list at its limit. */
static void a_full_list_gets_no_runner_and_loses_one(void **state)
{
    (void)state;
    memset(&known, 0, sizeof(known));
    known.now_ms = NOW;
    known.may_make = true;
    known.pending_ms = 60000;
    for (size_t i = 0; i < DF_LIMIT_STANDBY; i++) {
        known.demands[i] = (struct df_runner_demand){.run = "", .digest = "e", .min = 1, .max = 1};
        known.runners[i] = (struct df_runner){RUN("r"), .is_free = true, ASKS};
    }
    known.demand_count = known.runner_count = DF_LIMIT_STANDBY;
    df_runners_count(&known);
    assert_int_equal(df_runners_next(&known).next, DF_RUNNERS_REMOVE);
    known.runner_count--;
    df_runners_count(&known);
    assert_int_equal(df_runners_next(&known).next, DF_RUNNERS_MAKE);
    assert_int_equal(df_runners_form(&known, "e", "").wanted, DF_LIMIT_STANDBY);
    assert_int_equal(df_runners_form(&known, "d", "r").idle, DF_LIMIT_STANDBY - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_next_is_what_the_table_says),
        cmocka_unit_test(a_full_list_gets_no_runner_and_loses_one),
    };
    return cmocka_run_group_tests_name("runners", tests, NULL, NULL);
}
