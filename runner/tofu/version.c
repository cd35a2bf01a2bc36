/*
 * Versions first (parse, format, compare as SemVer), then constraints (parse, allow).
 */
#include "runner/tofu/version.h"

#include <ctype.h>

#include "common/base/buf.h"
#include "common/base/parse.h"

/* ---- versions ---- */

static bool is_pre(const char *s, size_t n, size_t cap)
{
    if (n == 0 || n >= cap)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '.')
            return false;
    }
    return true;
}

/* Takes the digits at *p as the next number and moves *p after them. */
static bool take_number(const char **p, struct df_version *v)
{
    size_t n = strspn(*p, "0123456789");
    if (n == 0 || n > 9 || v->given == 3)
        return false;
    v->number[v->given++] = strtol(*p, NULL, 10);
    *p += n;
    return true;
}

int df_version_parse(const char *text, struct df_version *ret, struct df_err *err)
{
    struct df_version v = {0};
    const char *p = text + (*text == 'v');
    bool good = take_number(&p, &v);
    while (good && *p == '.') {
        p++;
        good = take_number(&p, &v);
    }
    if (good && *p == '-') {
        size_t n = strcspn(++p, "+");
        good = is_pre(p, n, sizeof(v.pre));
        if (good)
            memcpy(v.pre, p, n);
        p += n;
    }
    if (good && *p == '+')
        p += strlen(p);
    if (!good || *p)
        return df_fail(err, DF_ERR_USER, "\"%.80s\" is not a version (such as 1.9.0)", text);
    *ret = v;
    return 0;
}

const char *df_version_format(const struct df_version *v, char out[DF_VERSION_TEXT])
{
    (void)snprintf(out, DF_VERSION_TEXT, "%lld.%lld.%lld%s%s", (long long)v->number[0],
                   (long long)v->number[1], (long long)v->number[2], *v->pre ? "-" : "", v->pre);
    return out;
}

static bool is_number(const char *s, size_t n)
{
    return n > 0 && strspn(s, "0123456789") >= n;
}

/* One identifier of a pre-release: numbers by value and below words, words by their bytes. */
static int compare_identifier(const char *a, size_t n, const char *b, size_t m)
{
    bool na = is_number(a, n), nb = is_number(b, m);
    if (na != nb)
        return na ? -1 : 1;
    if (na && n != m)
        return n < m ? -1 : 1;
    int order = memcmp(a, b, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

static int compare_pre(const char *a, const char *b)
{
    if (!*a || !*b)
        return !*a - !*b; /* a release is above its pre-releases */
    for (;;) {
        size_t n = strcspn(a, "."), m = strcspn(b, ".");
        int order = compare_identifier(a, n, b, m);
        if (order || !a[n] || !b[m])
            return order ? order : (a[n] != 0) - (b[m] != 0);
        a += n + 1;
        b += m + 1;
    }
}

static int compare_numbers(const struct df_version *a, const struct df_version *b)
{
    for (int i = 0; i < 3; i++) {
        if (a->number[i] != b->number[i])
            return a->number[i] < b->number[i] ? -1 : 1;
    }
    return 0;
}

int df_version_compare(const struct df_version *a, const struct df_version *b)
{
    int order = compare_numbers(a, b);
    return order ? order : compare_pre(a->pre, b->pre);
}

/* ---- constraints ---- */

static const struct {
    const char *text;
    enum df_version_op op;
} operators[] = {
    {">=", DF_VERSION_GE}, {"<=", DF_VERSION_LE}, {"!=", DF_VERSION_NE}, {"~>", DF_VERSION_NEAR},
    {">", DF_VERSION_GT},  {"<", DF_VERSION_LT},  {"=", DF_VERSION_EQ},
};

static enum df_version_op take_operator(const char **p)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(operators); i++) {
        if (df_starts_with(*p, operators[i].text)) {
            *p += strlen(operators[i].text);
            return operators[i].op;
        }
    }
    return DF_VERSION_EQ;
}

static int parse_term(const char *term, size_t n, struct df_constraint *c, struct df_err *err)
{
    if (c->n == DF_ARRAY_SIZE(c->terms))
        return df_fail(err, DF_ERR_USER, "a version constraint has at most %zu parts", c->n);
    const char *p = term;
    c->terms[c->n].op = take_operator(&p);
    p += strspn(p, " \t");
    size_t left = n - (size_t)(p - term);
    while (left && strchr(" \t", p[left - 1]))
        left--;
    DF_FREE char *text = strndup(p, left);
    if (!text)
        return df_fail_oom(err);
    return df_version_parse(text, &c->terms[c->n++].version, err);
}

int df_constraint_parse(const char *text, struct df_constraint *ret, struct df_err *err)
{
    struct df_constraint c = {.n = 0};
    const char *p = text ? text : "";
    p += strspn(p, " \t");
    while (*p) {
        size_t n = strcspn(p, ",");
        if (parse_term(p, n, &c, err) < 0)
            return df_err_wrap(err, "version constraint \"%.80s\"", text);
        bool more = p[n] == ',';
        p += n + more;
        p += strspn(p, " \t");
        if (more && !*p)
            return df_fail(err, DF_ERR_USER, "version constraint \"%.80s\" ends with a comma",
                           text);
    }
    *ret = c;
    return 0;
}

char *df_constraint_print(const struct df_constraint *c)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_ARRAY_SIZE(c->terms) * (DF_VERSION_TEXT + 8));
    for (size_t i = 0; i < c->n; i++) {
        char text[DF_VERSION_TEXT];
        for (size_t k = 0; k < DF_ARRAY_SIZE(operators); k++) {
            if (operators[k].op == c->terms[i].op)
                (void)df_buf_addf(&out, "%s%s ", i ? ", " : "", operators[k].text);
        }
        (void)df_buf_adds(&out, df_version_format(&c->terms[i].version, text));
    }
    return out.len ? df_buf_take(&out) : strdup("");
}

/* `~> 1.9` is at least 1.9 and below 2; `~> 1.9.2` is at least 1.9.2 and below 1.10. */
static bool is_near(const struct df_version *v, const struct df_version *floor)
{
    int fixed = floor->given > 1 ? floor->given - 1 : 1;
    for (int i = 0; i < fixed; i++) {
        if (v->number[i] != floor->number[i])
            return false;
    }
    return df_version_compare(v, floor) >= 0;
}

static bool holds(enum df_version_op op, const struct df_version *v, const struct df_version *w)
{
    int order = df_version_compare(v, w);
    switch (op) {
    case DF_VERSION_EQ:
        return order == 0;
    case DF_VERSION_NE:
        return order != 0;
    case DF_VERSION_GT:
        return order > 0;
    case DF_VERSION_GE:
        return order >= 0;
    case DF_VERSION_LT:
        return order < 0;
    case DF_VERSION_LE:
        return order <= 0;
    case DF_VERSION_NEAR:
        return is_near(v, w);
    }
    DF_BUG("version operator %d", (int)op);
}

bool df_constraint_allows(const struct df_constraint *c, const struct df_version *v)
{
    bool pre_named = false;
    for (size_t i = 0; i < c->n; i++) {
        const struct df_version *w = &c->terms[i].version;
        if (!holds(c->terms[i].op, v, w))
            return false;
        if (*w->pre && c->terms[i].op != DF_VERSION_NE && compare_numbers(v, w) == 0)
            pre_named = true;
    }
    return !*v->pre || pre_named;
}

const struct df_version *df_constraint_exact(const struct df_constraint *c)
{
    return c->n == 1 && c->terms[0].op == DF_VERSION_EQ ? &c->terms[0].version : NULL;
}
