/*
 * clock.c - the installed clock (the system's unless a test replaces it), random bytes, and the
 * strict parsers and printers of times and durations.
 */
#include "common/base/clock.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>

#include "common/base/parse.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    if (clock_gettime(id, &ts) < 0)
        DF_BUG("clock_gettime: errno %d", errno);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t system_mono_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t system_real_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

static int system_random(void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = getrandom((char *)bytes + done, n - done, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        done += (size_t)got;
    }
    return 0;
}

static const struct df_clock system_clock = {system_mono_us, system_real_us, system_random};
static const struct df_clock *the_clock = &system_clock;

void df_clock_install(const struct df_clock *clock)
{
    the_clock = clock ? clock : &system_clock;
}

int64_t df_mono_us(void)
{
    return the_clock->mono_us();
}

int64_t df_mono_ms(void)
{
    return the_clock->mono_us() / 1000;
}

int64_t df_real_us(void)
{
    return the_clock->real_us();
}

void df_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

struct timespec df_mono_after_us(int64_t us)
{
    struct timespec t;
    us = us > 0 ? us : 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + us % 1000000 * 1000;
    t.tv_sec += (time_t)(us / 1000000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

int df_random(void *bytes, size_t n, struct df_err *err)
{
    return the_clock->fill_random(bytes, n) < 0 ? df_fail_errno(err, errno, "read random bytes")
                                                : 0;
}

int df_random_hex(char *out, size_t n, struct df_err *err)
{
    unsigned char bytes[64];
    if (n > sizeof(bytes))
        DF_BUG("%zu random bytes asked for", n);
    if (df_random(bytes, n, err) < 0)
        return -1;
    df_hex(bytes, n, out);
    return 0;
}

int df_uuid(char out[37], struct df_err *err)
{
    unsigned char b[16];
    if (df_random(b, sizeof(b), err) < 0)
        return -1;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    (void)snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                   b[13], b[14], b[15]);
    return 0;
}

const char *df_time_format(int64_t real_us, char out[DF_TIME_LEN])
{
    /* Floor division, so that times before 1970 do not round towards it. */
    int64_t sec = real_us / 1000000, us = real_us % 1000000;
    if (us < 0) {
        us += 1000000;
        sec--;
    }
    time_t t = (time_t)sec;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || tm.tm_year < -1900 || tm.tm_year > 8099) {
        (void)snprintf(out, DF_TIME_LEN, "0000-01-01T00:00:00.000000Z");
        return out;
    }
    char date[sizeof("2026-11-21T08:50:01")];
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out, DF_TIME_LEN, "%s.%06dZ", date, (int)us);
    return out;
}

/* ---- RFC 3339, strictly: strptime() accepts blanks, signs and missing digits ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads exactly n digits within [min, max] and the separator behind them ('\0': none). */
static bool take_digits(const char **p, int n, int min, int max, char separator, int *ret)
{
    int value = 0;
    for (; n > 0; n--, (*p)++) {
        if (!is_digit(**p))
            return false;
        value = value * 10 + (**p - '0');
    }
    *ret = value;
    if (value < min || value > max)
        return false;
    if (!separator)
        return true;
    return *(*p)++ == separator;
}

static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (leap && month == 2);
}

static bool take_date(const char **p, struct tm *tm)
{
    int year = 0, month = 0, day = 0;
    if (!take_digits(p, 4, 0, 9999, '-', &year) || !take_digits(p, 2, 1, 12, '-', &month) ||
        !take_digits(p, 2, 1, days_of_month(year, month), '\0', &day))
        return false;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return true;
}

static bool take_clock(const char **p, struct tm *tm)
{
    return take_digits(p, 2, 0, 23, ':', &tm->tm_hour) &&
           take_digits(p, 2, 0, 59, ':', &tm->tm_min) &&
           take_digits(p, 2, 0, 60, '\0', &tm->tm_sec);
}

/* Reads any number of digits; those after the sixth are ignored. */
static bool take_fraction(const char **p, int64_t *us)
{
    *us = 0;
    if (**p != '.')
        return true;
    (*p)++;
    bool some = is_digit(**p);
    for (int64_t unit = 100000; is_digit(**p); (*p)++, unit /= 10)
        *us += (**p - '0') * unit;
    return some;
}

static bool take_offset(const char **p, int64_t *sec)
{
    char sign = *(*p)++;
    int hours = 0, minutes = 0;
    *sec = 0;
    if (sign == 'Z' || sign == 'z')
        return true;
    if ((sign != '+' && sign != '-') || !take_digits(p, 2, 0, 23, ':', &hours) ||
        !take_digits(p, 2, 0, 59, '\0', &minutes))
        return false;
    *sec = (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

int df_time_parse(const char *text, int64_t *ret_real_us, struct df_err *err)
{
    struct tm tm = {0};
    const char *p = text;
    int64_t us = 0, offset = 0;
    bool good = take_date(&p, &tm) && (*p == 'T' || *p == 't' || *p == ' ');
    p++;
    if (!good || !take_clock(&p, &tm) || !take_fraction(&p, &us) || !take_offset(&p, &offset) || *p)
        return df_fail(err, DF_ERR_USER, "\"%.64s\" is no RFC 3339 time (2026-11-21T08:50:01Z)",
                       text);
    *ret_real_us = ((int64_t)timegm(&tm) - offset) * 1000000 + us;
    return 0;
}

#define HOUR_US 3600e6

/* The units up to the hour are Go's. The longer ones are refused: their length in hours is told. */
static double unit_us(const char **p)
{
    static const struct {
        const char *name;
        double us;
    } units[] = {{"ns", 1e-3}, {"us", 1},      {"ms", 1e3},         {"s", 1e6},
                 {"m", 60e6},  {"h", HOUR_US}, {"d", 24 * HOUR_US}, {"w", 168 * HOUR_US}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(units); i++) {
        if (!df_starts_with(*p, units[i].name))
            continue;
        /* "m" must not match "ms": a number or the end must follow. */
        const char *end = *p + strlen(units[i].name);
        if (*end == '\0' || is_digit(*end)) {
            *p = end;
            return units[i].us;
        }
    }
    return -1;
}

/* Reads a duration without a sign, "1h30m". False: it is none. */
static bool sum_units(const char *p, double *ret_us, bool *ret_has_days)
{
    *ret_us = 0;
    *ret_has_days = false;
    do {
        /* strtod() takes more than decimal numbers: 0x10, 1e3, inf. */
        char *end = NULL;
        size_t digits = strspn(p, "0123456789.");
        double value = digits ? strtod(p, &end) : -1;
        if (!digits || end != p + digits || !isfinite(value))
            return false;
        p = end;
        double unit = unit_us(&p);
        if (unit < 0)
            return false;
        *ret_us += value * unit;
        *ret_has_days = *ret_has_days || unit > HOUR_US;
    } while (*p);
    return true;
}

int df_duration_parse(const char *text, int64_t *ret_us, struct df_err *err)
{
    double total = 0;
    bool is_negative = text[0] == '-', has_days = false;
    if (!sum_units(text + is_negative, &total, &has_days))
        return df_fail(err, DF_ERR_USER,
                       "\"%.64s\" is not a duration (250ms, 90s, 1h30m; a day is 24h)", text);
    if (is_negative)
        return df_fail(err, DF_ERR_USER, "\"%.64s\" is negative: a duration must be positive",
                       text);
    if (total > 9e18 / 1000)
        return df_fail(err, DF_ERR_USER, "duration \"%.64s\" is too long", text);
    if (has_days)
        return df_fail(err, DF_ERR_USER,
                       "\"%.64s\" is not a duration: h is the longest unit, say %.15gh", text,
                       total / HOUR_US);
    *ret_us = (int64_t)llround(total);
    return 0;
}
