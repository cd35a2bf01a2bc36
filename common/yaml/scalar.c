#include "common/yaml/scalar.h"

#include <errno.h>

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static const char *skip_sign(const char *s)
{
    return *s == '-' || *s == '+' ? s + 1 : s;
}

static size_t count_digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* [-+]? ( . [0-9]+ | [0-9]+ ( . [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_number(const char *text)
{
    const char *s = skip_sign(text);
    size_t before = count_digits(s), after = 0;
    s += before;
    if (*s == '.') {
        after = count_digits(++s);
        s += after;
    }
    if (before + after == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s = skip_sign(s + 1);
        size_t exponent = count_digits(s);
        if (!exponent)
            return false;
        s += exponent;
    }
    return *s == '\0';
}

/* Returns the radix of 0x1F or 0o17; 0 for anything else. */
static int radix_of(const char *text)
{
    if (df_starts_with(text, "0x") && text[2] &&
        text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == '\0')
        return 16;
    if (df_starts_with(text, "0o") && text[2] && text[2 + strspn(text + 2, "01234567")] == '\0')
        return 8;
    return 0;
}

static int return_item(cJSON *item, cJSON **ret, struct df_err *err)
{
    if (!item)
        return df_fail_oom(err);
    *ret = item;
    return 0;
}

/* A number of YAML as JSON writes it: "+.50" is 0.50, "007." is 7. The caller frees. */
static char *json_number(const char *text)
{
    const char *first = skip_sign(text);
    first += strspn(first, "0");
    int before = (int)count_digits(first);
    const char *point = first + before, *fraction = point + (*point == '.');
    int after = (int)count_digits(fraction);
    return df_strf("%s%.*s%s%s%.*s%s", *text == '-' ? "-" : "", before, first, before ? "" : "0",
                   after ? "." : "", after, fraction, fraction + after);
}

static int resolve_number(const char *text, cJSON **ret, struct df_err *err)
{
    DF_FREE char *number = json_number(text);
    return number ? return_item(df_json_number(number), ret, err) : df_fail_oom(err);
}

static int resolve_radix(const char *text, int radix, cJSON **ret, struct df_err *err)
{
    errno = 0;
    unsigned long long value = strtoull(text + 2, NULL, radix);
    if (errno == ERANGE || (double)value > DF_JSON_MAX_WHOLE)
        return df_fail(err, DF_ERR_USER, "the number %.64s is too large", text);
    return return_item(cJSON_CreateNumber((double)value), ret, err);
}

int df_yaml_resolve(const char *text, cJSON **ret, struct df_err *err)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    static const char *const odd[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL};
    if (is_one_of(text, nulls))
        return return_item(cJSON_CreateNull(), ret, err);
    if (is_one_of(text, trues))
        return return_item(cJSON_CreateTrue(), ret, err);
    if (is_one_of(text, falses))
        return return_item(cJSON_CreateFalse(), ret, err);
    int radix = radix_of(text);
    if (radix)
        return resolve_radix(text, radix, ret, err);
    if (is_number(text))
        return resolve_number(text, ret, err);
    if (is_one_of(skip_sign(text), odd))
        return df_fail(err, DF_ERR_USER, "the number %.64s is not finite", text);
    return return_item(cJSON_CreateString(text), ret, err);
}
