#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/state_words.h"

#define DAY_US ((int64_t)24 * 3600 * 1000000)

static int64_t days; /* since the test began */

static int64_t real_us(void)
{
    return DAY_US * (20000 + days);
}

static int64_t mono_us(void)
{
    return real_us();
}

static int no_random(void *bytes, size_t n)
{
    memset(bytes, 7, n);
    return 0;
}

static const struct df_clock calendar = {mono_us, real_us, no_random};

static void put_by_person(const struct world *w, int serial)
{
    struct df_err err = {0};
    DF_FREE char *text = state_text(serial, "L", "");
    const struct df_state_writer by = {.actor = "ci", .needs_lock = true};
    if (put_text(w, text, &by, &err) < 0)
        fail_msg("%s", err.message);
}

static int64_t prune(const struct world *w, int64_t newest, int64_t since_us)
{
    struct df_err err = {0};
    const struct df_state_keep keep = {newest, since_us};
    int64_t foretold = -1, removed = -1;
    if (df_state_prune(w->states, UID, &keep, true, &foretold, &err) < 0 ||
        df_state_prune(w->states, UID, &keep, false, &removed, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(removed, foretold);
    return removed;
}

static void assert_versions(const struct world *w, const char *wanted)
{
    DF_JSON cJSON *list = versions_of(w);
    DF_BUF struct df_buf found = DF_BUF_INIT(1000);
    const cJSON *meta;
    cJSON_ArrayForEach (meta, list)
        (void)df_buf_addf(&found, " %lld", (long long)df_json_int(meta, "version", 0));
    assert_string_equal(df_buf_str(&found), wanted);
}

static void the_newest_version_of_a_step_outlives_a_flood_of_a_persons(void **state)
{
    WORLD w = open_world(*state);
    must_put(&w, 1);
    must_put(&w, 2);
    for (int serial = 3; serial <= 107; serial++)
        put_by_person(&w, serial);
    assert_int_equal(prune(&w, 100, 0), 6);
    DF_BUF struct df_buf good = DF_BUF_INIT(1000);
    read_version(&w, 2, &good);
    DF_FREE char *second = state_text(2, "L", "");
    assert_string_equal(df_buf_str(&good), second);
    assert_int_equal(prune(&w, 2, 0), 98);
    assert_versions(&w, " 107 106 2");
    assert_int_equal(prune(&w, 2, 0), 0);
}

static void without_a_step_only_the_newest_stay(void **state)
{
    WORLD w = open_world(*state);
    for (int serial = 1; serial <= 5; serial++)
        put_by_person(&w, serial);
    assert_int_equal(prune(&w, 2, 0), 3);
    assert_versions(&w, " 5 4");
}

static void what_was_current_at_a_time_stays_with_all_that_came_later(void **state)
{
    WORLD w = open_world(*state);
    df_clock_install(&calendar);
    for (days = 0; days < 6; days++)
        must_put(&w, (int)days + 1);
    int64_t since_us = DAY_US * 20002 + DAY_US / 2; /* version 3 was current */
    int64_t removed = prune(&w, 1, since_us);
    df_clock_install(NULL);
    assert_int_equal(removed, 2);
    assert_versions(&w, " 6 5 4 3");
}

static void a_version_of_which_nobody_knows_the_writer_stops_the_removal(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    int64_t count = -1;
    must_put(&w, 1);
    must_put(&w, 2);
    put_by_person(&w, 3);
    put_by_person(&w, 4);
    overwrite(&w, "00000002.state", "{\"ver");
    assert_failed(df_state_prune(w.states, UID, &(struct df_state_keep){1, 0}, false, &count, &err),
                  &err, DF_ERR_SYSTEM, "StateUnreadable");
    assert_int_equal(count_versions(&w), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(the_newest_version_of_a_step_outlives_a_flood_of_a_persons),
        scratch_test(without_a_step_only_the_newest_stay),
        scratch_test(what_was_current_at_a_time_stays_with_all_that_came_later),
        scratch_test(a_version_of_which_nobody_knows_the_writer_stops_the_removal),
    };
    return cmocka_run_group_tests_name("state_prune", tests, NULL, NULL);
}
