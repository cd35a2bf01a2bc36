#include "spawner/model/apply_window.h"

#include "spawner/model/rows.h"
#include "spawner/model/rules.h"

enum { DAY_MINUTES = 24 * 60, NO_TIME = -1 };
#define MINUTE_US INT64_C(60000000)

/* ---- the rows ---- */

/* The minutes of "22:00"; -1: it is none. The digits are checked one by one: sscanf takes blanks
 * and signs. */
static int minutes_of(const char *text)
{
    if (strlen(text) != 5 || text[2] != ':' || strspn(text, "0123456789") != 2 ||
        strspn(text + 3, "0123456789") != 2)
        return NO_TIME;
    int hours = (text[0] - '0') * 10 + text[1] - '0';
    int minutes = (text[3] - '0') * 10 + text[4] - '0';
    return hours < 24 && minutes < 60 ? hours * 60 + minutes : NO_TIME;
}

void df_rule_clock(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (minutes_of(value->valuestring) < 0)
        df_fault(f, path, "\"%.64s\" is no time from 00:00 to 23:59", value->valuestring);
}

/* The largest is that of Kiribati. */
void df_rule_utc_offset(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *text = value->valuestring;
    int minutes = *text == '+' || *text == '-' ? minutes_of(text + 1) : NO_TIME;
    if (minutes < 0 || minutes > 14 * 60)
        df_fault(f, path, "\"%.64s\" is no offset from -14:00 to +14:00, as +01:00", text);
}

void df_rule_apply_window(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (df_streq(df_json_str(value, "from"), df_json_str(value, "to")))
        df_fault(f, path, "from and to must be different times");
}

static const char *const days[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun", NULL};
enum { DAYS = DF_ARRAY_SIZE(days) - 1 };
static const struct df_field day = WORD(NULL, days);
const struct df_field df_apply_window_rows[] = {
    LIST("days", &day, DAYS, .min = 1),
    STRING("from", 5, .flags = DF_REQUIRED, .rule = df_rule_clock),
    STRING("to", 5, .flags = DF_REQUIRED, .rule = df_rule_clock),
    STRING("utcOffset", 6, .rule = df_rule_utc_offset),
    {0},
};

/* ---- the time ---- */

static int64_t offset_us(const cJSON *window)
{
    const char *text = df_json_str(window, "utcOffset");
    int64_t minutes = text && *text ? minutes_of(text + 1) : 0;
    return (text && *text == '-' ? -minutes : minutes) * MINUTE_US;
}

/* Does a window begin on this day, counted from 1970-01-01, which was a Thursday? */
static bool begins_on(const cJSON *window, int64_t at)
{
    const cJSON *listed = df_json_at(window, "days");
    return !listed || df_json_has_string(listed, days[(at + 3) % DAYS]);
}

int64_t df_apply_window_opens(const cJSON *window, int64_t now_us)
{
    const char *from = df_json_str(window, "from"), *to = df_json_str(window, "to");
    if (!from || !to || minutes_of(from) < 0 || minutes_of(to) < 0)
        return now_us;
    int64_t begin = minutes_of(from) * MINUTE_US, end = minutes_of(to) * MINUTE_US;
    int64_t here_us = now_us + offset_us(window);
    int64_t today = here_us / (DAY_MINUTES * MINUTE_US);
    if (end <= begin)
        end += DAY_MINUTES * MINUTE_US;
    for (int64_t at = today - 1; at <= today + DAYS; at++) {
        int64_t midnight_us = at * DAY_MINUTES * MINUTE_US;
        if (begins_on(window, at) && here_us < midnight_us + end)
            return here_us < midnight_us + begin ? midnight_us + begin - offset_us(window) : now_us;
    }
    return now_us; /* not reached: one of eight days in a row is in any list */
}
