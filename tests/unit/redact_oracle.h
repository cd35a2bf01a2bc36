/*
 * redact_oracle.h - the slow truth about redaction, for the unit test and the fuzzer.
 *
 * Compares every pattern at every position of the text and of the view of the whole text, marks
 * what any occurrence covers, and writes "***" for each run of marked bytes. It knows nothing of
 * pieces, windows and joints that can be skipped, and finds the prefixes of lines in a way of its
 * own. Header-only, so that both programs can include it.
 */
#ifndef DF_TEST_REDACT_ORACLE_H
#define DF_TEST_REDACT_ORACLE_H

#include <ctype.h>

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/base/strs.h"
#include "common/redact/forms.h"
#include "common/redact/members.h"
#include "common/redact/prefix.h"
#include "common/redact/unwrap.h"

struct oracle_pattern {
    struct df_buf form;
    bool fold, tail, joined;
};

struct oracle {
    struct oracle_pattern *patterns; /* count of them */
    size_t count, cap;
};

static inline int oracle_add(void *arg, const struct df_redact_form *form, struct df_err *err)
{
    (void)err;
    struct oracle *o = arg;
    if (o->count == o->cap) {
        o->cap = o->cap ? 2 * o->cap : 64;
        o->patterns = realloc(o->patterns, o->cap * sizeof *o->patterns);
        if (!o->patterns)
            abort();
    }
    struct oracle_pattern *p = &o->patterns[o->count++];
    *p = (struct oracle_pattern){DF_BUF_INIT(DF_REDACT_FORM_MAX), form->fold, form->tail,
                                 form->joined};
    return df_buf_add(&p->form, form->bytes, form->n);
}

static inline int oracle_add_value(void *arg, const char *value, struct df_err *err)
{
    return df_redact_forms(value, oracle_add, arg, err);
}

static inline struct oracle oracle_new(const struct df_strs *secrets)
{
    struct oracle o = {0};
    for (size_t i = 0; i < secrets->len; i++) {
        if (oracle_add_value(&o, secrets->items[i], NULL) < 0 ||
            df_redact_members(secrets->items[i], oracle_add_value, &o, NULL) < 0)
            abort();
    }
    return o;
}

static inline void oracle_free(struct oracle *o)
{
    for (size_t i = 0; i < o->count; i++)
        df_buf_free(&o->patterns[i].form);
    free(o->patterns);
}

/* Writes a byte as an encoder may write it: in one of four escapes, or as it is. */
static inline void oracle_spell(struct df_buf *text, unsigned how, char c)
{
    unsigned byte = (unsigned char)c;
    switch (how) {
    case 0:
        (void)df_buf_addf(text, "%%%02x", byte);
        break;
    case 1:
        (void)df_buf_addf(text, "\\u%04X", byte);
        break;
    case 2:
        (void)df_buf_addf(text, "&#%u;", byte);
        break;
    case 3:
        (void)df_buf_addf(text, "\\\\x%02x", byte);
        break;
    default:
        (void)df_buf_addc(text, c);
    }
}

static inline bool oracle_matches(const struct oracle_pattern *p, const char *text)
{
    for (size_t i = 0; i < p->form.len; i++) {
        char a = text[i], b = p->form.data[i];
        if (a != b && !(p->fold && tolower((unsigned char)a) == tolower((unsigned char)b)))
            return false;
    }
    return true;
}

static inline bool oracle_has_tail(const struct oracle_pattern *p, const char *text, size_t at,
                                   size_t n)
{
    char c = at < n ? text[at] : '\0';
    return p->tail && c && (isalnum((unsigned char)c) || strchr("+/-_", c));
}

static inline void oracle_mark_text(const struct oracle_pattern *p, const char *text, size_t n,
                                    char *covered)
{
    size_t len = p->form.len;
    for (size_t at = 0; at + len <= n; at++)
        if (oracle_matches(p, text + at))
            memset(covered + at, 1, len + oracle_has_tail(p, text, at + len, n));
}

/* The first of the two bytes that stand behind what a tool writes in front of the line at text;
 * NULL if it writes nothing. Written again, slowly, because the redactor's own way is what is
 * tested. */
static inline const char *oracle_prefix_end(const char *text, const char *end)
{
    static const char in_address[] = ".-_[]";
    const char *p = text;
    size_t dots = 0;
    for (; p + 1 < end && p[0] == '\033' && p[1] == '['; p++) {
        for (p += 2; p < end && (isdigit((unsigned char)*p) || *p == ';');)
            p++;
        if (p >= end || *p != 'm')
            return NULL;
    }
    if (p >= end || !(isalpha((unsigned char)*p) || *p == '_' || *p & 0x80))
        return NULL;
    for (; p < end && (isalnum((unsigned char)*p) || *p & 0x80 || (*p && strchr(in_address, *p)));
         p++) {
        dots += *p == '.';
        if (*p != '[' || p + 1 == end || p[1] != '"')
            continue;
        for (p += 2; p < end && *p != '"' && *p != '\n';)
            p += 1 + (*p == '\\' && p + 1 < end);
        if (p >= end || *p != '"')
            return NULL;
    }
    p += p < end && *p == ':';
    if (!dots || end - p < 5 || p[0] != ' ' || p[1] != '(')
        return NULL;
    const char *type = p + 2;
    for (p = type; p < end && (isalnum((unsigned char)*p) || *p == '_' || *p == '-');)
        p++;
    if (p == type || end - p < 2 || p[0] != ')' || p[1] != ':')
        return NULL;
    return (size_t)(p + 2 - text) <= DF_LIMIT_REDACT_PREFIX ? p + 2 : NULL;
}

/* Marks text[from..to) but line breaks with a prefix behind them, and blanks and colours there. */
static inline void oracle_mark_lines(const char *text, size_t from, size_t to, char *covered)
{
    while (from < to) {
        const char *next =
            text[from] == '\n' ? oracle_prefix_end(text + from + 1, text + to) : NULL;
        if (!next) {
            covered[from++] = 1;
            continue;
        }
        for (from = (size_t)(next - text);
             from < to && (text[from] == ' ' || text[from] == '\033');) {
            struct df_unwrap_token t;
            (void)df_unwrap_token(text + from, to - from, true, &t);
            from += t.len;
        }
    }
}

/* An occurrence in the view counts if it has a joint inside and is not spread too far. What is in
 * front of a line break within its first three bytes is shown. */
static inline void oracle_mark_view(const struct oracle_pattern *p, const struct df_unwrapped *v,
                                    const char *text, char *covered)
{
    size_t len = p->form.len;
    for (size_t at = 0; at + len <= v->n; at++) {
        const struct df_unwrap_place *from = &v->places[at], *end = from + len - 1;
        if (!oracle_matches(p, v->bytes + at) || end->joints + end->escaped == from->joints ||
            end->end - from->start > DF_LIMIT_REDACT_SPAN)
            continue;
        if (oracle_has_tail(p, v->bytes, at + len, v->n) && end[1].start == end->end)
            end++;
        const struct df_unwrap_place *first = from;
        for (size_t i = 1; i <= 3; i++)
            if (from[i].breaks > from[i - 1].breaks)
                first = from + i;
        oracle_mark_lines(text, first->start, end->end, covered);
    }
}

/* The redactor finds the same prefixes. */
static inline void oracle_check_prefixes(const char *text, size_t n)
{
    for (size_t at = 1; at <= n; at++) {
        if (text[at - 1] != '\n')
            continue;
        const char *end = oracle_prefix_end(text + at, text + n);
        size_t len = 1;
        if (!df_redact_prefix(text + at, n - at, true, &len) ||
            len != (end ? (size_t)(end - text) - at : 0))
            abort();
    }
}

static inline void oracle_redact(const struct oracle *o, const char *text, size_t n,
                                 struct df_buf *out)
{
    char *covered = calloc(n + 1, 1);
    struct df_unwrapped view;
    if (!covered || df_unwrap_new(n + 1, &view, NULL) < 0)
        abort();
    oracle_check_prefixes(text, n);
    df_unwrap_read(&view, text, 0, n);
    for (size_t i = 0; i < o->count; i++) {
        if (o->patterns[i].joined)
            oracle_mark_view(&o->patterns[i], &view, text, covered);
        else
            oracle_mark_text(&o->patterns[i], text, n, covered);
    }
    for (size_t at = 0; at < n; at++) {
        if (!covered[at])
            (void)df_buf_addc(out, text[at]);
        else if (at == 0 || !covered[at - 1])
            (void)df_buf_adds(out, "***");
    }
    df_unwrap_free(&view);
    free(covered);
}

#endif
