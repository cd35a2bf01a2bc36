/*
 * Each comparator becomes one or two terms of a constraint: a version with open parts ("1.5",
 * "1.5.x") is an interval, from its lowest version to the next one after it.
 */
#include "runner/tofu/range.h"

/* ---- versions with open parts ---- */

static bool is_open(const char *s, size_t n)
{
    return n == 1 && strchr("xX*", *s);
}

/* ret->given: how many numbers are not open. */
static int parse_partial(const char *s, size_t n, struct df_version *ret, struct df_err *err)
{
    *ret = (struct df_version){.given = 0};
    while (n > 2 && s[n - 2] == '.' && is_open(s + n - 1, 1))
        n -= 2;
    if (is_open(s, n))
        return 0;
    char text[DF_VERSION_TEXT];
    if (n >= sizeof text)
        return df_fail(err, DF_ERR_USER, "\"%.80s\" is not a version", s);
    (void)snprintf(text, sizeof text, "%.*s", (int)n, s);
    return df_version_parse(text, ret, err);
}

/* The first version after those that v means; place: the number that counts up. */
static struct df_version next_of(const struct df_version *v, int place)
{
    struct df_version next = {.given = 3};
    for (int i = 0; i <= place; i++)
        next.number[i] = v->number[i];
    next.number[place]++;
    return next;
}

/* ---- comparators ---- */

static int add_term(struct df_constraint *c, enum df_version_op op, const struct df_version *v,
                    struct df_err *err)
{
    if (c->n == DF_ARRAY_SIZE(c->terms))
        return df_fail(err, DF_ERR_USER, "a version range has at most %zu bounds", c->n);
    c->terms[c->n].op = op;
    c->terms[c->n++].version = *v;
    return 0;
}

/* From v on, up to the next version by the number at `place`. */
static int add_interval(struct df_constraint *c, const struct df_version *v, int place,
                        struct df_err *err)
{
    struct df_version next = next_of(v, place);
    return add_term(c, DF_VERSION_GE, v, err) < 0 ? -1 : add_term(c, DF_VERSION_LT, &next, err);
}

/* The leftmost number that is not 0 stays. */
static int caret_place(const struct df_version *v)
{
    for (int i = 0; i < v->given - 1; i++) {
        if (v->number[i])
            return i;
    }
    return v->given - 1;
}

static const struct {
    const char *text;
    enum { AT_LEAST, AT_MOST, NOT, ABOVE, BELOW, EQUAL, TILDE, CARET } kind;
} comparators[] = {{">=", AT_LEAST}, {"<=", AT_MOST}, {"!=", NOT},  {"~>", TILDE}, {">", ABOVE},
                   {"<", BELOW},     {"=", EQUAL},    {"~", TILDE}, {"^", CARET}};

static int add_comparator(struct df_constraint *c, int kind, const struct df_version *v,
                          struct df_err *err)
{
    bool whole = v->given == 3;
    struct df_version next = whole || !v->given ? *v : next_of(v, v->given - 1);
    if (!v->given) /* any version; none is above or below all */
        return kind == ABOVE || kind == BELOW || kind == NOT
                   ? df_fail(err, DF_ERR_USER, "no version is beyond every other")
                   : 0;
    switch (kind) {
    case AT_LEAST:
        return add_term(c, DF_VERSION_GE, v, err);
    case BELOW:
        return add_term(c, DF_VERSION_LT, v, err);
    case NOT:
        return add_term(c, DF_VERSION_NE, v, err);
    case AT_MOST:
        return add_term(c, whole ? DF_VERSION_LE : DF_VERSION_LT, &next, err);
    case ABOVE:
        return add_term(c, whole ? DF_VERSION_GT : DF_VERSION_GE, &next, err);
    case TILDE:
        return add_interval(c, v, v->given > 1 ? 1 : 0, err);
    case CARET:
        return add_interval(c, v, caret_place(v), err);
    default:
        return whole ? add_term(c, DF_VERSION_EQ, v, err) : add_interval(c, v, v->given - 1, err);
    }
}

/* ---- ranges ---- */

#define BLANKS " \t,"

/* Parses the comparator at *p, within end, and moves *p behind it. */
static int take_comparator(const char **p, const char *end, struct df_constraint *c,
                           struct df_err *err)
{
    struct df_version v;
    int kind = EQUAL;
    for (size_t i = 0; i < DF_ARRAY_SIZE(comparators); i++) {
        if (df_starts_with(*p, comparators[i].text)) {
            kind = (int)comparators[i].kind;
            *p += strlen(comparators[i].text);
            break;
        }
    }
    *p += strspn(*p, " \t");
    size_t n = strcspn(*p, BLANKS "|");
    if (!n || *p + n > end)
        return df_fail(err, DF_ERR_USER, "a comparator has no version");
    if (parse_partial(*p, n, &v, err) < 0 || add_comparator(c, kind, &v, err) < 0)
        return -1;
    *p += n;
    return 0;
}

/* "1.2.3 - 1.4": at is the blank before the dash. */
static int parse_hyphen(const char *begin, const char *at, const char *end, struct df_constraint *c,
                        struct df_err *err)
{
    struct df_version from, to;
    const char *second = at + strlen(" - ");
    if (parse_partial(begin, (size_t)(at - begin), &from, err) < 0 ||
        parse_partial(second, (size_t)(end - second), &to, err) < 0)
        return -1;
    return add_comparator(c, AT_LEAST, &from, err) < 0 ? -1 : add_comparator(c, AT_MOST, &to, err);
}

static int parse_alternative(const char *p, const char *end, struct df_constraint *c,
                             struct df_err *err)
{
    *c = (struct df_constraint){.n = 0};
    p += strspn(p, BLANKS);
    while (end > p && strchr(BLANKS, end[-1]))
        end--;
    const char *dash = strstr(p, " - ");
    if (dash && dash + strlen(" - ") < end)
        return parse_hyphen(p, dash, end, c, err);
    while (p < end) {
        if (take_comparator(&p, end, c, err) < 0)
            return -1;
        p += strspn(p, BLANKS);
    }
    return 0;
}

int df_range_parse(const char *text, struct df_range *ret, struct df_err *err)
{
    struct df_range r = {.n = 0};
    const char *p = !text || df_streq(text, "latest") ? "" : text;
    for (;;) {
        const char *bar = strstr(p, "||");
        if (r.n == DF_ARRAY_SIZE(r.any))
            return df_fail(err, DF_ERR_USER, "version range \"%.80s\" has more than %zu parts",
                           text, r.n);
        if (parse_alternative(p, bar ? bar : p + strlen(p), &r.any[r.n++], err) < 0)
            return df_err_wrap(err, "version range \"%.80s\"", text);
        if (!bar)
            break;
        p = bar + 2;
    }
    *ret = r;
    return 0;
}

bool df_range_allows(const struct df_range *r, const struct df_version *v)
{
    for (size_t i = 0; i < r->n; i++) {
        if (df_constraint_allows(&r->any[i], v))
            return true;
    }
    return false;
}

const struct df_version *df_range_exact(const struct df_range *r)
{
    return r->n == 1 ? df_constraint_exact(&r->any[0]) : NULL;
}
