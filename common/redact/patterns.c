/*
 * Building: add patterns, sort them, choose a window of each, fill the tables of grams. Searching:
 * df_patterns_scan() and df_patterns_hold(). patterns.h explains the method.
 */
#include "common/redact/patterns.h"

#include "common/base/limits.h"

/* A gram without the case of its letters, because some patterns ignore it. It makes other bytes
 * equal as well; the comparison that follows is exact. */
static uint32_t load_gram(const char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x | 0x20202020U;
}

static uint32_t hash(uint32_t gram)
{
    return gram * 0x9e3779b1U;
}

static unsigned char fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static int compare_folded(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fold(a[i]) != fold(b[i]))
            return fold(a[i]) - fold(b[i]);
    return 0;
}

static const char *bytes_of(const struct df_patterns *s, const struct df_pattern *p)
{
    return s->bytes + p->at;
}

/* --- collecting ------------------------------------------------------------------------------ */

/* Most forms of a value are equal to one that came shortly before; those are left out here, others
 * by sort_patterns(). */
enum { LOOK_BACK = 64 };

static int grow_bytes(struct df_patterns *s, size_t need, struct df_err *err)
{
    if (need > DF_LIMIT_REDACT_BYTES)
        return df_fail(err, DF_ERR_LIMIT,
                       "the secrets to mask are too large: over %zu MiB in all forms",
                       DF_LIMIT_REDACT_BYTES / DF_MIB);
    size_t cap = s->bytes_cap ? s->bytes_cap : 4096;
    while (cap < need)
        cap *= 2;
    char *bytes = df_realloc_wiped(s->bytes, s->bytes_len, cap);
    if (!bytes)
        return df_fail_oom(err);
    s->bytes = bytes;
    s->bytes_cap = cap;
    return 0;
}

static int grow_patterns(struct df_patterns *s, struct df_err *err)
{
    size_t cap = s->cap ? s->cap * 2 : 256;
    struct df_pattern *p = reallocarray(s->patterns, cap, sizeof *p);
    if (!p)
        return df_fail_oom(err);
    s->patterns = p;
    s->cap = cap;
    return 0;
}

static bool is_same(const struct df_patterns *s, const struct df_pattern *p,
                    const struct df_redact_form *form)
{
    return p->len == form->n && p->fold == form->fold && p->tail == form->tail &&
           memcmp(bytes_of(s, p), form->bytes, form->n) == 0;
}

int df_patterns_add(struct df_patterns *s, const struct df_redact_form *form, struct df_err *err)
{
    for (size_t i = s->count < LOOK_BACK ? 0 : s->count - LOOK_BACK; i < s->count; i++)
        if (is_same(s, &s->patterns[i], form))
            return 0;
    if (s->bytes_len + form->n > s->bytes_cap && grow_bytes(s, s->bytes_len + form->n, err) < 0)
        return -1;
    if (s->count == s->cap && grow_patterns(s, err) < 0)
        return -1;
    s->patterns[s->count++] = (struct df_pattern){.at = (uint32_t)s->bytes_len,
                                                  .len = (uint16_t)form->n,
                                                  .fold = form->fold,
                                                  .tail = form->tail};
    memcpy(s->bytes + s->bytes_len, form->bytes, form->n);
    s->bytes_len += form->n;
    return 0;
}

/* By their bytes without case, the shorter of two first; then by what makes them different. */
static int compare_patterns(const void *a, const void *b, void *arg)
{
    const struct df_patterns *s = arg;
    const struct df_pattern *p = a, *q = b;
    const char *x = bytes_of(s, p), *y = bytes_of(s, q);
    int c = compare_folded(x, y, p->len < q->len ? p->len : q->len);
    if (c || p->len != q->len)
        return c ? c : (int)p->len - (int)q->len;
    if (p->tail != q->tail)
        return p->tail - q->tail;
    c = memcmp(x, y, p->len);
    return c ? c : p->fold - q->fold;
}

static void sort_patterns(struct df_patterns *s)
{
    qsort_r(s->patterns, s->count, sizeof *s->patterns, compare_patterns, s);
    size_t kept = 0;
    s->min_len = SIZE_MAX;
    for (size_t i = 0; i < s->count; i++) {
        struct df_pattern *p = &s->patterns[i];
        if (kept && compare_patterns(p, &s->patterns[kept - 1], s) == 0)
            continue;
        s->min_len = p->len < s->min_len ? p->len : s->min_len;
        size_t len = p->len + (size_t)p->tail;
        s->max_len = len > s->max_len ? len : s->max_len;
        s->patterns[kept++] = *p;
    }
    s->count = kept;
    size_t step = s->min_len - DF_GRAM + 1;
    s->step = step < DF_REDACT_STEP_MAX ? step : DF_REDACT_STEP_MAX;
}

/* --- windows --------------------------------------------------------------------------------- */

enum { TALLY_BITS = 16 };

/* The number of occurrences of each gram (by hash) in all patterns. */
static uint32_t *tally_grams(const struct df_patterns *s)
{
    uint32_t *tally = calloc((size_t)1 << TALLY_BITS, sizeof *tally);
    for (size_t i = 0; tally && i < s->count; i++) {
        const char *b = bytes_of(s, &s->patterns[i]);
        for (size_t at = 0; at + DF_GRAM <= s->patterns[i].len; at++)
            tally[hash(load_gram(b + at)) >> (32 - TALLY_BITS)]++;
    }
    return tally;
}

static uint32_t tally_of(const uint32_t *tally, const char *gram)
{
    return tally[hash(load_gram(gram)) >> (32 - TALLY_BITS)];
}

static void choose_window(const struct df_patterns *s, const uint32_t *tally, struct df_pattern *p)
{
    const char *b = bytes_of(s, p);
    uint64_t cost = 0, best;
    for (size_t i = 0; i < s->step; i++)
        cost += tally_of(tally, b + i);
    best = cost;
    for (size_t at = 1; at + s->step + DF_GRAM - 1 <= p->len; at++) {
        cost += tally_of(tally, b + at + s->step - 1);
        cost -= tally_of(tally, b + at - 1);
        if (cost < best) {
            best = cost;
            p->window = (uint16_t)at;
        }
    }
}

static int choose_windows(struct df_patterns *s, struct df_err *err)
{
    DF_FREE uint32_t *tally = tally_grams(s);
    if (!tally)
        return df_fail_oom(err);
    for (size_t i = 0; i < s->count; i++)
        choose_window(s, tally, &s->patterns[i]);
    return 0;
}

/* --- tables ---------------------------------------------------------------------------------- */

static unsigned log2_at_least(size_t n, unsigned least, unsigned most)
{
    unsigned bits = least;
    while (bits < most && ((size_t)1 << bits) < n)
        bits++;
    return bits;
}

static void set_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static bool has_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static int allocate_tables(struct df_patterns *s, struct df_err *err)
{
    size_t grams = s->count * s->step;
    /* Sparse: a wrong yes costs more than a miss of the first-level cache. */
    s->bits_log2 = log2_at_least(grams * 256, 12, 20);
    s->heads_log2 = log2_at_least(grams, 8, 18);
    s->bits = calloc(((size_t)1 << s->bits_log2) / 64, sizeof *s->bits);
    s->heads = calloc(((size_t)1 << s->heads_log2) + 1, sizeof *s->heads);
    s->grams = calloc(grams + 1, sizeof *s->grams); /* + 1: never zero bytes */
    return s->bits && s->heads && s->grams ? 0 : df_fail_oom(err);
}

/* Counts the grams of each group, then fills groups from their ends: heads[] is exact
 * afterwards. */
static void fill_tables(struct df_patterns *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct df_pattern *p = &s->patterns[i];
        set_bit(s->prefixes, hash(load_gram(bytes_of(s, p))) >> (32 - DF_PREFIX_BITS));
        for (size_t k = 0; k < s->step; k++) {
            uint32_t h = hash(load_gram(bytes_of(s, p) + p->window + k));
            set_bit(s->bits, h >> (32 - s->bits_log2));
            s->heads[h >> (32 - s->heads_log2)]++;
        }
    }
    for (size_t h = 1; h <= (size_t)1 << s->heads_log2; h++)
        s->heads[h] += s->heads[h - 1];
    for (size_t i = 0; i < s->count * s->step; i++) {
        const struct df_pattern *p = &s->patterns[i / s->step];
        uint16_t back = (uint16_t)(p->window + i % s->step);
        uint32_t gram = load_gram(bytes_of(s, p) + back);
        s->grams[--s->heads[hash(gram) >> (32 - s->heads_log2)]] =
            (struct df_pattern_gram){gram, p->at, p->len, back, p->fold, p->tail};
    }
}

/* --- the table ------------------------------------------------------------------------------- */

void df_patterns_free(struct df_patterns *s)
{
    if (s->bytes)
        explicit_bzero(s->bytes, s->bytes_cap);
    if (s->grams)
        explicit_bzero(s->grams, s->count * s->step * sizeof *s->grams);
    free(s->bytes);
    free(s->patterns);
    free(s->bits);
    free(s->heads);
    free(s->grams);
}

int df_patterns_seal(struct df_patterns *s, struct df_err *err)
{
    if (!s->count)
        return 0;
    sort_patterns(s);
    if (choose_windows(s, err) < 0 || allocate_tables(s, err) < 0)
        return -1;
    fill_tables(s);
    return 0;
}

/* --- search ---------------------------------------------------------------------------------- */

static bool is_base64(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '-' || c == '_';
}

static bool matches(const struct df_patterns *s, const struct df_pattern_gram *g, const char *text)
{
    const char *bytes = s->bytes + g->at;
    return g->fold ? compare_folded(text, bytes, g->len) == 0 : memcmp(text, bytes, g->len) == 0;
}

/* The gram at text + at may be in the table: compares the patterns that have it. */
static bool verify_gram(const struct df_patterns *s, const char *text, size_t n, size_t at,
                        df_patterns_found *found, void *arg)
{
    uint32_t gram = load_gram(text + at), h = hash(gram) >> (32 - s->heads_log2);
    bool any = false;
    for (uint32_t i = s->heads[h]; i < s->heads[h + 1]; i++) {
        const struct df_pattern_gram *g = &s->grams[i];
        if (g->gram != gram || g->back > at)
            continue;
        size_t from = at - g->back, end = from + g->len;
        if (g->len > n - from || !matches(s, g, text + from))
            continue;
        any = true;
        if (!found)
            break;
        found(arg, from, end, g->tail && end < n && is_base64(text[end]));
    }
    return any;
}

bool df_patterns_scan(const struct df_patterns *s, const char *text, size_t n,
                      df_patterns_found *found, void *arg)
{
    if (!s->count)
        return false;
    const uint64_t *bits = s->bits;
    const unsigned shift = 32 - s->bits_log2;
    const size_t step = s->step;
    bool any = false;
    for (size_t at = 0; at + DF_GRAM <= n; at += step) {
        if (__builtin_expect(!has_bit(bits, hash(load_gram(text + at)) >> shift), 1))
            continue;
        if (verify_gram(s, text, n, at, found, arg)) {
            any = true;
            if (!found)
                break;
        }
    }
    return any;
}

/* True if text is a proper prefix of a pattern, or one whose tail may follow; without regard to
 * case. Such patterns follow it in the sort order. */
static bool begins_a_pattern(const struct df_patterns *s, const char *text, size_t n)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct df_pattern *p = &s->patterns[mid];
        int c = compare_folded(bytes_of(s, p), text, p->len < n ? p->len : n);
        if (c > 0 || (c == 0 && p->len + (size_t)p->tail > n))
            high = mid;
        else
            low = mid + 1;
    }
    const struct df_pattern *p = &s->patterns[low];
    return low < s->count && p->len >= n && p->len + (size_t)p->tail > n &&
           compare_folded(bytes_of(s, p), text, n) == 0;
}

size_t df_patterns_hold(const struct df_patterns *s, const char *text, size_t from, size_t n)
{
    if (n > s->max_len && from < n - s->max_len)
        from = n - s->max_len;
    for (size_t at = from; at < n; at++) {
        if (n - at >= DF_GRAM &&
            !has_bit(s->prefixes, hash(load_gram(text + at)) >> (32 - DF_PREFIX_BITS)))
            continue;
        if (begins_a_pattern(s, text + at, n - at))
            return at;
    }
    return n;
}
