/* Which numbers a double keeps, and how it is printed. Read df_json_number() at the end first. */
#include "common/json/number.h"

#include <math.h>

#define DIGITS "0123456789"

/* ---- printing ---- */

static void print_whole(double d, char out[DF_NUMBER_TEXT])
{
    if (d != 0 && fabs(d) <= DF_JSON_MAX_WHOLE)
        (void)snprintf(out, DF_NUMBER_TEXT, "%lld", (long long)d);
    else /* also -0 */
        (void)snprintf(out, DF_NUMBER_TEXT, "%.0f", d);
}

const char *df_number_print(double d, char out[DF_NUMBER_TEXT])
{
    if (d == floor(d) && fabs(d) < DF_JSON_MAX_PLAIN) {
        print_whole(d, out);
        return out;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, DF_NUMBER_TEXT, "%.*g", digits, d);
        if (strtod(out, NULL) == d)
            break;
    }
    return out;
}

/* ---- comparing ---- */

/* A decimal number: 0.D1D2D3... times ten to the power of point. */
struct decimal {
    bool negative;
    const char *digits; /* from the first that is not 0; a decimal point may be among them */
    int64_t point;
};

static int64_t read_exponent(const char *s)
{
    static const int64_t most = INT32_MAX; /* further ones are out of reach of any double */
    const char *e = strpbrk(s, "eE");
    int64_t n = e ? strtoll(e + 1, NULL, 10) : 0;
    return n < -most ? -most : n > most ? most : n;
}

static struct decimal read_decimal(const char *s)
{
    struct decimal d = {.negative = *s == '-', .point = read_exponent(s)};
    bool in_fraction = false;
    for (s += d.negative; *s == '0' || *s == '.'; s++) {
        d.point -= in_fraction;
        in_fraction |= *s == '.';
    }
    if (!in_fraction)
        d.point += (int64_t)strspn(s, DIGITS);
    if (!strspn(s, DIGITS)) /* it is zero */
        d.point = 0;
    d.digits = s;
    return d;
}

/* The next digit, or '\0' behind the last one. */
static char next_digit(struct decimal *d)
{
    d->digits += *d->digits == '.';
    return strspn(d->digits, DIGITS) ? *d->digits++ : '\0';
}

static bool is_same(const char *one, const char *other)
{
    struct decimal a = read_decimal(one), b = read_decimal(other);
    if (a.negative != b.negative || a.point != b.point)
        return false;
    for (;;) {
        char x = next_digit(&a), y = next_digit(&b);
        if (!x && !y)
            return true;
        if ((x ? x : '0') != (y ? y : '0'))
            return false;
    }
}

/* ---- reading ---- */

/* So many digits every double keeps, unless it is near the ends of its range. */
#define SURE_DIGITS 15

static bool is_surely_kept(const char *text, double value)
{
    double size = fabs(value);
    return size > 1e-290 && size < 1e290 && strcspn(text, "eE") <= SURE_DIGITS;
}

static bool is_kept(const char *text, double value)
{
    char printed[DF_NUMBER_TEXT];
    if (is_surely_kept(text, value))
        return true;
    if (!isfinite(value) || !is_same(text, df_number_print(value, printed)))
        return false;
    return !strpbrk(printed, "e") || strpbrk(text, ".eE"); /* digits stay digits */
}

cJSON *df_json_number(const char *text)
{
    double value = strtod(text, NULL);
    return is_kept(text, value) ? cJSON_CreateNumber(value) : cJSON_CreateRaw(text);
}

bool df_json_is_number(const cJSON *j)
{
    return cJSON_IsNumber(j) || cJSON_IsRaw(j);
}
