#include "common/redact/redact.h"

#include "common/redact/set.h"

enum { PIECE = 32 * 1024 };

static const char mask[] = "***";

struct df_redact {
    const struct df_redact_set *set;
    char *work;      /* held bytes, then the current piece; PIECE + max_len */
    uint64_t *cover; /* a bit for each byte of work: masked */
    size_t held;     /* bytes that may begin a secret */
    size_t masked;   /* how many of them, at the front, are masked already */
    bool after_mask; /* the output ends with a mask */
};

static size_t cover_words(const struct df_redact_set *set)
{
    return (PIECE + set->max_len) / 64 + 1;
}

int df_redact_new(const struct df_redact_set *set, struct df_redact **ret, struct df_err *err)
{
    struct df_redact *r = calloc(1, sizeof *r);
    if (!r)
        return df_fail_oom(err);
    r->set = set;
    r->work = malloc(PIECE + set->max_len);
    r->cover = calloc(cover_words(set), sizeof *r->cover);
    if (!r->work || !r->cover) {
        df_redact_free(r);
        return df_fail_oom(err);
    }
    *ret = r;
    return 0;
}

void df_redact_free(struct df_redact *r)
{
    if (!r)
        return;
    if (r->work)
        explicit_bzero(r->work, PIECE + r->set->max_len);
    free(r->work);
    free(r->cover);
    free(r);
}

/* Returns the first position at or after `from` whose bit is `value`; n if there is none. */
static size_t find_bit(const uint64_t *bits, size_t from, size_t n, bool value)
{
    while (from < n) {
        uint64_t word = value ? bits[from / 64] : ~bits[from / 64];
        word >>= from % 64;
        if (word) {
            size_t at = from + (size_t)__builtin_ctzll(word);
            return at < n ? at : n;
        }
        from = (from / 64 + 1) * 64;
    }
    return n;
}

/* Writes work[0..n) with masked runs replaced. */
static void emit_masked(struct df_redact *r, size_t n, struct df_buf *out)
{
    for (size_t at = 0; at < n;) {
        size_t clean_end = find_bit(r->cover, at, n, true);
        if (clean_end > at) {
            (void)df_buf_add(out, r->work + at, clean_end - at);
            r->after_mask = false;
        }
        at = find_bit(r->cover, clean_end, n, false);
        if (at > clean_end && !r->after_mask) {
            (void)df_buf_add(out, mask, sizeof mask - 1);
            r->after_mask = true;
        }
    }
}

/* Writes the part of work[0..n) that can be decided; holds the rest. */
static void decide_bytes(struct df_redact *r, size_t n, bool last, struct df_buf *out)
{
    memset(r->cover, 0, (n / 64 + 1) * sizeof *r->cover);
    for (size_t i = 0; i < r->masked; i++)
        r->cover[i / 64] |= (uint64_t)1 << (i % 64);
    (void)df_redact_scan(r->set, r->work, n, r->cover);
    size_t decided = last ? n : df_redact_hold(r->set, r->work, n);
    emit_masked(r, decided, out);
    r->held = n - decided;
    r->masked = find_bit(r->cover, decided, n, false) - decided;
    memmove(r->work, r->work + decided, r->held);
}

int df_redact_feed(struct df_redact *r, const char *bytes, size_t n, struct df_buf *out,
                   struct df_err *err)
{
    if (!r->set->max_len) {
        (void)df_buf_add(out, bytes, n);
        return df_buf_check(out, err);
    }
    while (n) {
        size_t piece = n < PIECE ? n : PIECE;
        memcpy(r->work + r->held, bytes, piece);
        decide_bytes(r, r->held + piece, false, out);
        bytes += piece;
        n -= piece;
    }
    return df_buf_check(out, err);
}

int df_redact_finish(struct df_redact *r, struct df_buf *out, struct df_err *err)
{
    decide_bytes(r, r->held, true, out);
    r->after_mask = false;
    return df_buf_check(out, err);
}

bool df_redact_finds(const struct df_redact_set *set, const char *bytes, size_t n)
{
    return df_redact_scan(set, bytes, n, NULL);
}

static void free_redact(struct df_redact **r)
{
    df_redact_free(*r);
}

int df_redact_string(const struct df_redact_set *set, const char *s, struct df_buf *out,
                     struct df_err *err)
{
    size_t n = strlen(s);
    if (!df_redact_scan(set, s, n, NULL)) {
        (void)df_buf_add(out, s, n);
        return df_buf_check(out, err);
    }
    DF_CLEANUP(free_redact) struct df_redact *r = NULL;
    if (df_redact_new(set, &r, err) < 0 || df_redact_feed(r, s, n, out, err) < 0)
        return -1;
    return df_redact_finish(r, out, err);
}
