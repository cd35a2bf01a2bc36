/*
 * redact_oracle.h - the slow truth about redaction, for the unit test and the fuzzer.
 *
 * Compares every pattern at every position, marks what any occurrence covers, and writes "***" for
 * each run of marked bytes. Header-only, so that both programs can include it.
 */
#ifndef DF_TEST_REDACT_ORACLE_H
#define DF_TEST_REDACT_ORACLE_H

#include "common/base/buf.h"
#include "common/base/strs.h"
#include "common/redact/forms.h"

struct oracle {
    struct df_buf *patterns; /* count of them */
    size_t count, cap;
};

static inline int oracle_add(void *arg, const char *bytes, size_t n, struct df_err *err)
{
    (void)err;
    struct oracle *o = arg;
    if (o->count == o->cap) {
        o->cap = o->cap ? 2 * o->cap : 64;
        o->patterns = realloc(o->patterns, o->cap * sizeof *o->patterns);
        if (!o->patterns)
            abort();
    }
    struct df_buf *b = &o->patterns[o->count++];
    *b = DF_BUF_INIT(DF_REDACT_FORM_MAX);
    return df_buf_add(b, bytes, n);
}

static inline struct oracle oracle_new(const struct df_strs *secrets)
{
    struct oracle o = {0};
    for (size_t i = 0; i < secrets->len; i++) {
        if (df_redact_forms(secrets->items[i], oracle_add, &o, NULL) < 0)
            abort();
    }
    return o;
}

static inline void oracle_free(struct oracle *o)
{
    for (size_t i = 0; i < o->count; i++)
        df_buf_free(&o->patterns[i]);
    free(o->patterns);
}

static inline void oracle_redact(const struct oracle *o, const char *text, size_t n,
                                 struct df_buf *out)
{
    char *covered = calloc(n + 1, 1);
    if (!covered)
        abort();
    for (size_t p = 0; p < o->count; p++) {
        size_t len = o->patterns[p].len;
        for (size_t at = 0; at + len <= n; at++) {
            if (memcmp(text + at, o->patterns[p].data, len) == 0)
                memset(covered + at, 1, len);
        }
    }
    for (size_t at = 0; at < n; at++) {
        if (!covered[at])
            (void)df_buf_addc(out, text[at]);
        else if (at == 0 || !covered[at - 1])
            (void)df_buf_adds(out, "***");
    }
    free(covered);
}

#endif
