/*
 * Building: collect and sort the patterns, choose a window of each, fill the tables of grams.
 * Searching: df_redact_scan() and df_redact_hold(). set.h explains the method.
 */
#include "common/redact/set.h"

#include "common/base/limits.h"
#include "common/redact/forms.h"
#include "common/redact/members.h"
#include "common/redact/redact.h"

static uint32_t load_gram(const char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint32_t hash(uint32_t gram)
{
    return gram * 0x9e3779b1U;
}

static const char *bytes_of(const struct df_redact_set *s, const struct df_redact_pattern *p)
{
    return s->bytes + p->at;
}

/* --- collecting ------------------------------------------------------------------------------ */

/* Most forms of a value are equal to one that came shortly before; those are left out here, others
 * by sort_patterns(). */
enum { LOOK_BACK = 64 };

/* Like realloc(), but wipes the old copy. */
static int grow_bytes(struct df_redact_set *s, size_t need, struct df_err *err)
{
    if (need > DF_LIMIT_REDACT_BYTES)
        return df_fail(err, DF_ERR_LIMIT,
                       "the secrets to mask are too large: over %zu MiB in all forms",
                       DF_LIMIT_REDACT_BYTES / DF_MIB);
    size_t cap = s->bytes_cap ? s->bytes_cap : 4096;
    while (cap < need)
        cap *= 2;
    char *bytes = malloc(cap);
    if (!bytes)
        return df_fail_oom(err);
    if (s->bytes) {
        memcpy(bytes, s->bytes, s->bytes_len);
        explicit_bzero(s->bytes, s->bytes_len);
        free(s->bytes);
    }
    s->bytes = bytes;
    s->bytes_cap = cap;
    return 0;
}

static int grow_patterns(struct df_redact_set *s, struct df_err *err)
{
    size_t cap = s->cap ? s->cap * 2 : 256;
    struct df_redact_pattern *p = reallocarray(s->patterns, cap, sizeof *p);
    if (!p)
        return df_fail_oom(err);
    s->patterns = p;
    s->cap = cap;
    return 0;
}

static int add_pattern(void *arg, const char *bytes, size_t n, struct df_err *err)
{
    struct df_redact_set *s = arg;
    for (size_t i = s->count < LOOK_BACK ? 0 : s->count - LOOK_BACK; i < s->count; i++) {
        const struct df_redact_pattern *p = &s->patterns[i];
        if (p->len == n && memcmp(bytes_of(s, p), bytes, n) == 0)
            return 0;
    }
    if (s->bytes_len + n > s->bytes_cap && grow_bytes(s, s->bytes_len + n, err) < 0)
        return -1;
    if (s->count == s->cap && grow_patterns(s, err) < 0)
        return -1;
    s->patterns[s->count++] =
        (struct df_redact_pattern){.at = (uint32_t)s->bytes_len, .len = (uint16_t)n};
    memcpy(s->bytes + s->bytes_len, bytes, n);
    s->bytes_len += n;
    return 0;
}

static int add_value(void *arg, const char *value, struct df_err *err)
{
    return df_redact_forms(value, add_pattern, arg, err);
}

static int collect_patterns(struct df_redact_set *s, const struct df_strs *secrets,
                            struct df_err *err)
{
    if (secrets->len > DF_LIMIT_SECRETS_MASKED)
        return df_fail(err, DF_ERR_LIMIT, "%zu secrets to mask, at most %d are allowed",
                       secrets->len, DF_LIMIT_SECRETS_MASKED);
    for (size_t i = 0; i < secrets->len; i++) {
        if (add_value(s, secrets->items[i], err) < 0 ||
            df_redact_members(secrets->items[i], add_value, s, err) < 0)
            return -1;
    }
    return 0;
}

static int compare_patterns(const void *a, const void *b, void *arg)
{
    const struct df_redact_set *s = arg;
    const struct df_redact_pattern *p = a, *q = b;
    int c = memcmp(bytes_of(s, p), bytes_of(s, q), p->len < q->len ? p->len : q->len);
    return c ? c : (int)p->len - (int)q->len;
}

static void sort_patterns(struct df_redact_set *s)
{
    qsort_r(s->patterns, s->count, sizeof *s->patterns, compare_patterns, s);
    size_t kept = 0, min_len = DF_REDACT_STEP_MAX + DF_GRAM - 1;
    for (size_t i = 0; i < s->count; i++) {
        struct df_redact_pattern *p = &s->patterns[i];
        if (kept && compare_patterns(p, &s->patterns[kept - 1], s) == 0)
            continue;
        min_len = p->len < min_len ? p->len : min_len;
        s->max_len = p->len > s->max_len ? p->len : s->max_len;
        s->patterns[kept++] = *p;
    }
    s->count = kept;
    s->step = min_len - DF_GRAM + 1;
}

/* --- windows --------------------------------------------------------------------------------- */

enum { TALLY_BITS = 16 };

/* The number of occurrences of each gram (by hash) in all patterns. */
static uint32_t *tally_grams(const struct df_redact_set *s)
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

static void choose_window(const struct df_redact_set *s, const uint32_t *tally,
                          struct df_redact_pattern *p)
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

static int choose_windows(struct df_redact_set *s, struct df_err *err)
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

static int allocate_tables(struct df_redact_set *s, struct df_err *err)
{
    size_t grams = s->count * s->step;
    s->bits_log2 = log2_at_least(grams * 32, 12, 18);
    s->heads_log2 = log2_at_least(grams, 8, 18);
    s->bits = calloc(((size_t)1 << s->bits_log2) / 64, sizeof *s->bits);
    s->heads = calloc(((size_t)1 << s->heads_log2) + 1, sizeof *s->heads);
    s->grams = calloc(grams + 1, sizeof *s->grams); /* + 1: never zero bytes */
    return s->bits && s->heads && s->grams ? 0 : df_fail_oom(err);
}

/* Counts the grams of each group, then fills groups from their ends: heads[] is exact
 * afterwards. */
static void fill_tables(struct df_redact_set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct df_redact_pattern *p = &s->patterns[i];
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
        const struct df_redact_pattern *p = &s->patterns[i / s->step];
        uint16_t back = (uint16_t)(p->window + i % s->step);
        uint32_t gram = load_gram(bytes_of(s, p) + back);
        s->grams[--s->heads[hash(gram) >> (32 - s->heads_log2)]] =
            (struct df_redact_gram){gram, p->at, p->len, back};
    }
}

/* --- the set --------------------------------------------------------------------------------- */

void df_redact_set_free(struct df_redact_set *s)
{
    if (!s)
        return;
    if (s->bytes)
        explicit_bzero(s->bytes, s->bytes_len);
    if (s->grams)
        explicit_bzero(s->grams, s->count * s->step * sizeof *s->grams);
    free(s->bytes);
    free(s->patterns);
    free(s->bits);
    free(s->heads);
    free(s->grams);
    free(s);
}

static void free_set(struct df_redact_set **s)
{
    df_redact_set_free(*s);
}

int df_redact_set_new(const struct df_strs *secrets, struct df_redact_set **ret, struct df_err *err)
{
    DF_CLEANUP(free_set) struct df_redact_set *s = calloc(1, sizeof *s);
    if (!s)
        return df_fail_oom(err);
    if (collect_patterns(s, secrets, err) < 0)
        return -1;
    if (s->count) {
        sort_patterns(s);
        if (choose_windows(s, err) < 0 || allocate_tables(s, err) < 0)
            return -1;
        fill_tables(s);
    }
    *ret = DF_TAKE(s);
    return 0;
}

/* --- search ---------------------------------------------------------------------------------- */

static void set_range(uint64_t *bits, size_t from, size_t to)
{
    for (; from < to && from % 64; from++)
        set_bit(bits, from);
    for (; from + 64 <= to; from += 64)
        bits[from / 64] = UINT64_MAX;
    for (; from < to; from++)
        set_bit(bits, from);
}

/* The gram at text + at may be in the table: compares the patterns that have it. */
static bool verify_gram(const struct df_redact_set *s, const char *text, size_t n, size_t at,
                        uint64_t *cover)
{
    uint32_t gram = load_gram(text + at), h = hash(gram) >> (32 - s->heads_log2);
    bool found = false;
    for (uint32_t i = s->heads[h]; i < s->heads[h + 1]; i++) {
        const struct df_redact_gram *g = &s->grams[i];
        if (g->gram != gram || g->back > at)
            continue;
        size_t from = at - g->back;
        if (g->len > n - from || memcmp(text + from, s->bytes + g->at, g->len) != 0)
            continue;
        found = true;
        if (!cover)
            break;
        set_range(cover, from, from + g->len);
    }
    return found;
}

bool df_redact_scan(const struct df_redact_set *s, const char *text, size_t n, uint64_t *cover)
{
    if (!s->count)
        return false;
    const uint64_t *bits = s->bits;
    const unsigned shift = 32 - s->bits_log2;
    const size_t step = s->step;
    bool found = false;
    for (size_t at = 0; at + DF_GRAM <= n; at += step) {
        if (__builtin_expect(!has_bit(bits, hash(load_gram(text + at)) >> shift), 1))
            continue;
        if (verify_gram(s, text, n, at, cover)) {
            found = true;
            if (!cover)
                break;
        }
    }
    return found;
}

/* True if text is a proper prefix of a pattern. Such patterns follow it in the sort order. */
static bool begins_a_pattern(const struct df_redact_set *s, const char *text, size_t n)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct df_redact_pattern *p = &s->patterns[mid];
        int c = memcmp(bytes_of(s, p), text, p->len < n ? p->len : n);
        if (c > 0 || (c == 0 && p->len > n))
            high = mid;
        else
            low = mid + 1;
    }
    const struct df_redact_pattern *p = &s->patterns[low];
    return low < s->count && p->len > n && memcmp(bytes_of(s, p), text, n) == 0;
}

size_t df_redact_hold(const struct df_redact_set *s, const char *text, size_t n)
{
    for (size_t at = n < s->max_len ? 0 : n - s->max_len + 1; at < n; at++) {
        if (n - at >= DF_GRAM &&
            !has_bit(s->prefixes, hash(load_gram(text + at)) >> (32 - DF_PREFIX_BITS)))
            continue;
        if (begins_a_pattern(s, text + at, n - at))
            return at;
    }
    return n;
}
