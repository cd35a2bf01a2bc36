/* When may a plan be applied? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "spawner/model/apply_window.h"
#include "tests/unit/json_words.h"

static int64_t at(const char *time)
{
    DF_FREE char *text = df_strf("%sZ", time);
    int64_t us = 0;
    if (df_time_parse(text, &us, NULL) < 0)
        fail_msg("%s", time);
    return us;
}

#define NIGHT "'from':'22:00','to':'06:00'"
#define DAY "'from':'09:00','to':'17:00'"
#define WORK ",'days':['mon','tue','wed','thu','fri']"

/* 2026-11-30 is a Monday, 2028-02-29 a Tuesday. */
static void it_opens_next(void **state)
{
    (void)state;
    static const struct {
        const char *window, *now, *opens;
    } cases[] = {
        {DAY, "2026-11-30T09:00:00", "2026-11-30T09:00:00"},
        {DAY, "2026-11-30T08:59:59.999999", "2026-11-30T09:00:00"},
        {DAY, "2026-11-30T16:59:59.999999", "2026-11-30T16:59:59.999999"},
        {DAY, "2026-11-30T17:00:00", "2026-12-01T09:00:00"},
        {DAY WORK, "2026-12-04T17:00:00", "2026-12-07T09:00:00"},
        {DAY WORK, "2026-12-05T12:00:00", "2026-12-07T09:00:00"},
        {DAY WORK, "2026-12-07T12:00:00", "2026-12-07T12:00:00"},
        {DAY ",'days':['mon']", "2026-11-30T17:00:00", "2026-12-07T09:00:00"},
        {DAY ",'days':['sun','wed']", "2026-11-30T12:00:00", "2026-12-02T09:00:00"},
        {DAY ",'days':['sun','wed']", "2026-12-02T17:00:00", "2026-12-06T09:00:00"},
        /* over midnight: the day is that on which it began */
        {NIGHT, "2026-11-30T21:59:59", "2026-11-30T22:00:00"},
        {NIGHT, "2026-11-30T23:30:00", "2026-11-30T23:30:00"},
        {NIGHT, "2026-12-01T00:00:00", "2026-12-01T00:00:00"},
        {NIGHT, "2026-12-01T05:59:59", "2026-12-01T05:59:59"},
        {NIGHT, "2026-12-01T06:00:00", "2026-12-01T22:00:00"},
        {NIGHT WORK, "2026-12-05T05:00:00", "2026-12-05T05:00:00"},
        {NIGHT WORK, "2026-12-05T06:00:00", "2026-12-07T22:00:00"},
        {NIGHT WORK, "2026-12-07T03:00:00", "2026-12-07T22:00:00"},
        {NIGHT ",'days':['sun']", "2026-11-30T03:00:00", "2026-11-30T03:00:00"},
        {"'from':'00:00','to':'00:01'", "2026-11-30T00:01:00", "2026-12-01T00:00:00"},
        {"'from':'00:01','to':'00:00'", "2026-11-30T00:00:30", "2026-11-30T00:01:00"},
        {"'from':'00:01','to':'00:00'", "2026-11-30T23:59:59", "2026-11-30T23:59:59"},
        /* leap day, end of a year */
        {DAY ",'days':['tue']", "2028-02-28T12:00:00", "2028-02-29T09:00:00"},
        {DAY ",'days':['wed']", "2028-02-29T12:00:00", "2028-03-01T09:00:00"},
        {DAY, "2026-12-31T18:00:00", "2027-01-01T09:00:00"},
        /* the offset moves days as well; it is the same on both sides of a change of summer time */
        {NIGHT ",'utcOffset':'+01:00'", "2026-11-30T20:59:00", "2026-11-30T21:00:00"},
        {NIGHT ",'utcOffset':'+01:00'", "2026-12-01T04:59:00", "2026-12-01T04:59:00"},
        {NIGHT ",'utcOffset':'+01:00'", "2026-12-01T05:00:00", "2026-12-01T21:00:00"},
        {NIGHT ",'utcOffset':'+01:00'", "2026-07-01T12:00:00", "2026-07-01T21:00:00"},
        {DAY ",'days':['mon'],'utcOffset':'+14:00'", "2026-11-29T18:00:00", "2026-11-29T19:00:00"},
        {DAY ",'days':['mon'],'utcOffset':'-10:30'", "2026-12-01T01:00:00", "2026-12-01T01:00:00"},
        {DAY ",'days':['mon'],'utcOffset':'-10:30'", "2026-12-01T03:30:00", "2026-12-07T19:30:00"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *text = df_strf("{%s}", cases[i].window);
        DF_JSON cJSON *window = json(text);
        int64_t opens = df_apply_window_opens(window, at(cases[i].now));
        char is[DF_TIME_LEN];
        if (opens != at(cases[i].opens))
            fail_msg("%s at %s opens at %s, not %s", text, cases[i].now, df_time_format(opens, is),
                     cases[i].opens);
    }
}

static void without_one_it_is_always_open(void **state)
{
    (void)state;
    assert_true(df_apply_window_opens(NULL, 7) == 7);
}

/* From any minute of two weeks the time named is open, and the minute before it is not, or is the
 * present. */
static void what_is_named_is_the_next_time(void **state)
{
    (void)state;
    static const char *const windows[] = {"{" DAY WORK "}", "{" NIGHT ",'days':['sat']}",
                                          "{" NIGHT WORK ",'utcOffset':'-05:45'}",
                                          "{'from':'12:00','to':'11:59','days':['sun']}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(windows); i++) {
        DF_JSON cJSON *window = json(windows[i]);
        int64_t next = 0;
        for (int64_t minute = 14 * 1440; minute-- > 0;) {
            int64_t now = at("2028-02-20T00:00:00") + minute * 60000000;
            int64_t opens = df_apply_window_opens(window, now);
            assert_true(opens >= now && df_apply_window_opens(window, opens) == opens);
            if (next && opens > now)
                assert_true(opens == next);
            next = opens;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_next),
        cmocka_unit_test(without_one_it_is_always_open),
        cmocka_unit_test(what_is_named_is_the_next_time),
    };
    return cmocka_run_group_tests_name("apply_window", tests, NULL, NULL);
}
