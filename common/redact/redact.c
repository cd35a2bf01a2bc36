/*
 * A stream: decide_bytes() marks in a bit map what any occurrence covers, in the text and then in
 * its view, and how much of the end has to wait for more bytes.
 */
#include "common/redact/redact.h"

#include "common/base/limits.h"
#include "common/redact/prefix.h"
#include "common/redact/set.h"

enum { PIECE = 32 * 1024, UNCOVERED_MAX = 3 };

static const char mask[] = "***";

struct df_redact {
    const struct df_redact_set *set;
    char *work;               /* kept bytes, then the current piece */
    size_t work_cap;          /* PIECE and all that can be kept */
    uint64_t *cover;          /* a bit for each byte of work: masked; 0 behind the kept bytes */
    struct df_unwrapped view; /* of a part of work */
    size_t kept;              /* bytes in front of the current piece: */
    size_t written;  /* ... so many are shown already, and may be the start of an occurrence */
    bool after_mask; /* the output ends with a mask */
};

/* What waits at the end of the text. */
struct tail {
    size_t hold; /* first byte that may not be shown yet */
    size_t keep; /* first byte that is needed to decide about those; not behind hold */
};

static int new_of_cap(const struct df_redact_set *set, size_t cap, struct df_redact **ret,
                      struct df_err *err)
{
    struct df_redact *r = calloc(1, sizeof *r);
    if (!r)
        return df_fail_oom(err);
    r->set = set;
    r->work_cap = cap;
    r->work = malloc(r->work_cap);
    r->cover = calloc(r->work_cap / 64 + 1, sizeof *r->cover);
    if (!r->work || !r->cover || df_unwrap_new(r->work_cap, &r->view, err) < 0) {
        df_redact_free(r);
        return df_fail_oom(err);
    }
    *ret = r;
    return 0;
}

int df_redact_new(const struct df_redact_set *set, struct df_redact **ret, struct df_err *err)
{
    size_t cap = PIECE + DF_LIMIT_REDACT_SPAN + set->plain.max_len + DF_UNWRAP_TOKEN_MAX +
                 DF_LIMIT_REDACT_PREFIX;
    return new_of_cap(set, cap, ret, err);
}

void df_redact_free(struct df_redact *r)
{
    if (!r)
        return;
    if (r->work)
        explicit_bzero(r->work, r->work_cap);
    df_unwrap_free(&r->view);
    free(r->work);
    free(r->cover);
    free(r);
}

int df_redact_widen(struct df_redact **r, const struct df_redact_set *set, struct df_err *err)
{
    const struct df_redact *old = *r;
    struct df_redact *wide = NULL;
    if (df_redact_new(set, &wide, err) < 0)
        return -1;
    if (old->kept + PIECE > wide->work_cap) {
        df_redact_free(wide);
        return df_fail(err, DF_ERR_LIMIT, "a set without the values of the former one");
    }
    memcpy(wide->work, old->work, old->kept);
    memcpy(wide->cover, old->cover, (old->kept / 64 + 1) * sizeof *old->cover);
    wide->kept = old->kept;
    wide->written = old->written;
    wide->after_mask = old->after_mask;
    df_redact_free(*r);
    *r = wide;
    return 0;
}

/* --- the bit map ----------------------------------------------------------------------------- */

static void set_range(uint64_t *bits, size_t from, size_t to)
{
    for (; from < to && from % 64; from++)
        bits[from / 64] |= (uint64_t)1 << (from % 64);
    for (; from + 64 <= to; from += 64)
        bits[from / 64] = UINT64_MAX;
    for (; from < to; from++)
        bits[from / 64] |= (uint64_t)1 << (from % 64);
}

/* Drops the first `from` of n bits. */
static void drop_bits(uint64_t *bits, size_t from, size_t n)
{
    const size_t words = n / 64 + 1, first = from / 64, left = words - first, shift = from % 64;
    for (size_t i = 0; i < left; i++) {
        uint64_t next = shift && i + 1 < left ? bits[first + i + 1] << (64 - shift) : 0;
        bits[i] = bits[first + i] >> shift | next;
    }
    memset(bits + left, 0, first * sizeof *bits);
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

/* Writes work[from..to) with masked runs replaced. */
static void emit_masked(struct df_redact *r, size_t from, size_t to, struct df_buf *out)
{
    for (size_t at = from; at < to;) {
        size_t clean_end = find_bit(r->cover, at, to, true);
        if (clean_end > at) {
            (void)df_buf_add(out, r->work + at, clean_end - at);
            r->after_mask = false;
        }
        at = find_bit(r->cover, clean_end, to, false);
        if (at > clean_end && !r->after_mask) {
            (void)df_buf_add(out, mask, sizeof mask - 1);
            r->after_mask = true;
        }
    }
}

/* --- the view -------------------------------------------------------------------------------- */

static void cover_text(void *arg, size_t from, size_t end, bool with_tail)
{
    const struct df_redact *r = arg;
    set_range(r->cover, from, end + with_tail);
}

/* How many of its first bytes an occurrence at `at` shows: those in front of a line break, up to
 * three. To hold them back would delay the end of nearly every line until the next one comes. */
static size_t count_shown(const struct df_unwrapped *v, size_t at)
{
    size_t shown = 0;
    for (size_t k = 1; k <= UNCOVERED_MAX && at + k <= v->n; k++)
        if (v->places[at + k].breaks != v->places[at + k - 1].breaks)
            shown = k;
    return shown;
}

/* Of the blanks and colours behind a prefix. */
static size_t skip_blanks(const struct df_redact *r, size_t at, size_t end)
{
    struct df_unwrap_token t = {.len = 1};
    for (; at < end && (r->work[at] == ' ' || r->work[at] == '\033'); at += t.len)
        (void)df_unwrap_token(r->work + at, end - at, true, &t);
    return at;
}

/* Covers an occurrence but the line breaks in it behind which a tool has put its prefix, so that
 * each line keeps its own. */
static void cover_lines(const struct df_redact *r, size_t from, size_t end)
{
    size_t prefix = 0;
    for (size_t at = from; at < end; at++) {
        if (r->work[at] != '\n')
            continue;
        (void)df_redact_prefix(r->work + at + 1, end - at - 1, true, &prefix);
        if (!prefix)
            continue;
        set_range(r->cover, from, at);
        from = skip_blanks(r, at + 1 + prefix, end);
        at = from - 1;
    }
    set_range(r->cover, from, end);
}

static void cover_view(void *arg, size_t from, size_t end, bool with_tail)
{
    const struct df_redact *r = arg;
    const struct df_unwrap_place *p = r->view.places;
    if (p[end - 1].joints + p[end - 1].escaped == p[from].joints ||
        p[end - 1].end - p[from].start > DF_LIMIT_REDACT_SPAN)
        return;
    if (with_tail && p[end].start == p[end - 1].end)
        end++;
    cover_lines(r, p[from + count_shown(&r->view, from)].start, p[end - 1].end);
}

static void search_view(struct df_redact *r, size_t from, size_t to)
{
    df_unwrap_read(&r->view, r->work, from, to);
    (void)df_patterns_scan(&r->set->joined, r->view.bytes, r->view.n, cover_view, r);
}

/* Text that ends within a pattern of the view waits, if it is not shown in any case. */
static void hold_view(const struct df_redact *r, size_t n, struct tail *tail)
{
    const struct df_unwrapped *v = &r->view;
    for (size_t at = 0;; at++) {
        at = df_patterns_hold(&r->set->joined, v->bytes, at, v->n);
        if (at == v->n)
            return;
        if (n - v->places[at].start > DF_LIMIT_REDACT_SPAN)
            continue;
        size_t first = at + count_shown(v, at);
        tail->keep = v->places[at].start < tail->keep ? v->places[at].start : tail->keep;
        if (first == v->n)
            continue;
        tail->hold = v->places[first].start < tail->hold ? v->places[first].start : tail->hold;
        return;
    }
}

/* Where the last `count` bytes of the view begin, in text without joints from `from` on. */
static size_t find_last(const char *text, size_t from, size_t to, size_t count)
{
    for (; to > from && count; to--)
        count -= df_unwrap_is_plain(text[to - 1]);
    return to;
}

/* Searches the view of work[0..n) around all open joints, then looks what its end may begin. */
static void read_joints(struct df_redact *r, size_t n, bool last, struct tail *tail)
{
    struct df_joint_walk w = {.filter = &r->set->joints, .text = r->work, .n = n, .last = last};
    size_t from = 0, to = n;
    bool open = false;
    while (df_joint_next(&w)) {
        if (w.end == SIZE_MAX) {
            to = w.cut;
            tail->keep = w.at < tail->keep ? w.at : tail->keep;
            break;
        }
        if (w.at < tail->keep && tail->keep < w.end)
            tail->keep = w.at;
        if (w.open) {
            open = true;
            continue;
        }
        if (open)
            search_view(r, from, w.at);
        from = w.end;
        open = false;
    }
    if (open)
        search_view(r, from, to);
    else if (!last)
        df_unwrap_read(&r->view, r->work, find_last(r->work, from, to, r->set->joined.max_len), to);
    if (last)
        return;
    tail->hold = to < tail->hold ? to : tail->hold;
    hold_view(r, n, tail);
}

/* --- the stream ------------------------------------------------------------------------------ */

/* Writes the part of work[0..n) that can be decided; keeps the rest. */
static void decide_bytes(struct df_redact *r, size_t n, bool last, struct df_buf *out)
{
    (void)df_patterns_scan(&r->set->plain, r->work, n, cover_text, r);
    size_t hold = last ? n : df_patterns_hold(&r->set->plain, r->work, r->written, n);
    struct tail tail = {hold, hold};
    if (r->set->joined.count)
        read_joints(r, n, last, &tail);
    tail.hold = tail.hold < r->written ? r->written : tail.hold;
    tail.keep = tail.keep < tail.hold ? tail.keep : tail.hold;
    emit_masked(r, r->written, tail.hold, out);
    r->kept = n - tail.keep;
    r->written = tail.hold - tail.keep;
    drop_bits(r->cover, tail.keep, n);
    memmove(r->work, r->work + tail.keep, r->kept);
}

int df_redact_feed(struct df_redact *r, const char *bytes, size_t n, struct df_buf *out,
                   struct df_err *err)
{
    if (!r->set->plain.max_len) {
        (void)df_buf_add(out, bytes, n);
        return df_buf_check(out, err);
    }
    while (n) {
        size_t piece = n < PIECE ? n : PIECE;
        memcpy(r->work + r->kept, bytes, piece);
        decide_bytes(r, r->kept + piece, false, out);
        bytes += piece;
        n -= piece;
    }
    return df_buf_check(out, err);
}

int df_redact_finish(struct df_redact *r, struct df_buf *out, struct df_err *err)
{
    decide_bytes(r, r->kept, true, out);
    r->kept = r->written = 0;
    r->after_mask = false;
    return df_buf_check(out, err);
}

bool df_redact_may_find(const struct df_redact_set *set, const char *bytes, size_t n)
{
    if (df_patterns_scan(&set->plain, bytes, n, NULL, NULL))
        return true;
    struct df_joint_walk w = {.filter = &set->joints, .text = bytes, .n = n, .last = true};
    while (set->joined.count && df_joint_next(&w))
        if (w.open)
            return true;
    return false;
}

static void free_redact(struct df_redact **r)
{
    df_redact_free(*r);
}

int df_redact_string(const struct df_redact_set *set, const char *s, struct df_buf *out,
                     struct df_err *err)
{
    size_t n = strlen(s);
    if (!df_redact_may_find(set, s, n)) {
        (void)df_buf_add(out, s, n);
        return df_buf_check(out, err);
    }
    DF_CLEANUP(free_redact) struct df_redact *r = NULL;
    /* One piece needs room for itself alone: a document may have 100,000 strings. */
    int rc = n <= PIECE ? new_of_cap(set, n, &r, err) : df_redact_new(set, &r, err);
    if (rc < 0 || df_redact_feed(r, s, n, out, err) < 0)
        return -1;
    return df_redact_finish(r, out, err);
}
