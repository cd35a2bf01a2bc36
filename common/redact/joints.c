#include "common/redact/joints.h"

/* Bytes of text in which the view behind a joint is looked for; without it the joint is open. */
enum { AHEAD = 64, AROUND = 3 };

/* --- the filter ------------------------------------------------------------------------------ */

static uint32_t gram_at(const char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x | 0x20202020U;
}

/* Two bits of one word answer for a gram: one access to memory, and few wrong answers. */
static uint64_t *word_of(const struct df_joints *j, uint32_t gram, uint64_t *ret_mask)
{
    uint64_t h = gram * 0x9e3779b97f4a7c15ULL;
    *ret_mask = (uint64_t)1 << (h & 63) | (uint64_t)1 << (h >> 6 & 63);
    return &j->bits[h >> (64 - j->log2)];
}

static size_t pair_at(const char *p)
{
    return (size_t)(unsigned char)(p[0] | 0x20) << 8 | (unsigned char)(p[1] | 0x20);
}

static void add_bytes(struct df_joints *j, const char *b, size_t n)
{
    uint64_t mask;
    for (size_t i = 0; i + 1 < n; i++)
        j->pairs[pair_at(b + i) / 64] |= (uint64_t)1 << pair_at(b + i) % 64;
    for (size_t i = 0; i + DF_GRAM <= n; i++) {
        uint64_t *word = word_of(j, gram_at(b + i), &mask);
        *word |= mask;
    }
}

int df_joints_new(const struct df_patterns *p, struct df_joints *ret, struct df_err *err)
{
    enum { LEAST = 8, MOST = 17 }; /* words: 2 KiB to 1 MiB */
    if (!p->count)
        return 0;
    ret->log2 = LEAST;
    while (ret->log2 < MOST && ((size_t)1 << ret->log2) < p->bytes_len / 4)
        ret->log2++;
    ret->bits = calloc((size_t)1 << ret->log2, sizeof *ret->bits);
    if (!ret->bits)
        return df_fail_oom(err);
    for (size_t i = 0; i < p->count; i++)
        add_bytes(ret, p->bytes + p->patterns[i].at, p->patterns[i].len);
    return 0;
}

void df_joints_free(struct df_joints *j)
{
    free(j->bits);
}

static bool has_pair(const struct df_joints *j, const char *p)
{
    return j->pairs[pair_at(p) / 64] >> pair_at(p) % 64 & 1;
}

static bool has_gram(const struct df_joints *j, const char *p)
{
    uint64_t mask;
    const uint64_t *word = word_of(j, gram_at(p), &mask);
    return (*word & mask) == mask;
}

/* --- the walk -------------------------------------------------------------------------------- */

/* Puts the last bytes of the view in front of `at` into w->before. The text from w->end has no
 * joint; what came before it is there already. */
static void look_back(struct df_joint_walk *w, size_t at)
{
    char found[AROUND];
    size_t n = 0;
    for (size_t i = at; i > w->end && n < AROUND; i--)
        if (df_unwrap_is_plain(w->text[i - 1]))
            found[AROUND - ++n] = w->text[i - 1];
    size_t kept = w->befores < AROUND - n ? w->befores : AROUND - n;
    memmove(w->before, w->before + w->befores - kept, kept);
    memcpy(w->before + kept, found + AROUND - n, n);
    w->befores = kept + n;
}

/* Adds bytes of the view behind the joint until there are `most`; false if the text does not say all
 * of them. */
static bool look_ahead(const struct df_joint_walk *w, char *window, size_t *n, size_t most)
{
    size_t end = w->n - w->end < AHEAD ? w->n : w->end + AHEAD;
    struct df_unwrap_token t = {.len = 1};
    for (size_t at = w->end; at < end && *n < most; at += t.len) {
        t.byte = df_unwrap_is_plain(w->text[at]) ? w->text[at] : -1;
        t.len = 1;
        if (df_unwrap_is_special(w->text[at]) &&
            !df_unwrap_token(w->text + at, w->n - at, w->last, &t))
            return false;
        if (t.byte >= 0)
            window[(*n)++] = (char)t.byte;
    }
    return *n == most || (w->last && end == w->n);
}

static bool has_any_gram(const struct df_joints *j, const char *window, size_t n)
{
    for (size_t i = 0; i + DF_GRAM <= n; i++)
        if (has_gram(j, window + i))
            return true;
    return false;
}

/* The two neighbours of a gap decide most cases, and need the least work. */
static bool is_open(const struct df_joint_walk *w, const struct df_unwrap_token *t)
{
    char window[2 * AROUND + 1];
    size_t n = w->befores, front = n;
    memcpy(window, w->before, n);
    if (t->byte >= 0) {
        window[n++] = (char)t->byte;
    } else {
        if (!front)
            return false; /* no occurrence begins in front of it */
        if (!look_ahead(w, window, &n, front + 1))
            return true;
        if (n == front || !has_pair(w->filter, window + front - 1))
            return false;
        n = front;
    }
    return !look_ahead(w, window, &n, n + AROUND) || has_any_gram(w->filter, window, n);
}

static void add_before(struct df_joint_walk *w, char c)
{
    if (w->befores == AROUND)
        memmove(w->before, w->before + 1, --w->befores);
    w->before[w->befores++] = c;
}

/* Most joints are the end of a line whose neighbours no pattern has. A closed joint also ends what
 * the next ones have to know: no occurrence in front of it reaches them. */
static bool is_closed_line(const struct df_joint_walk *w, size_t at)
{
    size_t next = at + 1;
    if (w->text[at] != '\n' || at == w->end || !df_unwrap_is_plain(w->text[at - 1]))
        return false;
    while (next < w->n && w->text[next] == ' ')
        next++;
    if (next == w->n || !df_unwrap_is_plain(w->text[next]) || df_unwrap_is_special(w->text[next]))
        return false;
    const char pair[2] = {w->text[at - 1], w->text[next]};
    return !has_pair(w->filter, pair);
}

static void read_joint(struct df_joint_walk *w, size_t at, struct df_unwrap_token *t)
{
    look_back(w, at);
    bool whole = df_unwrap_token(w->text + at, w->n - at, w->last, t);
    w->end = whole ? at + t->len : SIZE_MAX;
    w->open = !whole || (t->joint && is_open(w, t));
    t->joint |= !whole;
    if (t->joint && !w->open)
        w->befores = 0;
    else if (whole && t->byte >= 0)
        add_before(w, (char)t->byte);
}

bool df_joint_next(struct df_joint_walk *w)
{
    struct df_unwrap_token t = {.joint = false};
    while (!t.joint) {
        w->at = df_unwrap_next_joint(w->text, w->end, w->n);
        if (w->at == w->n)
            return false;
        if (is_closed_line(w, w->at)) {
            w->end = w->at + 1;
            w->befores = 0;
            w->open = false;
            return true;
        }
        read_joint(w, w->at, &t);
    }
    return true;
}
