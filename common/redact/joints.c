/*
 * joints.c - the filter first: bits for all grams and pairs of neighbours in the patterns. It may
 * say yes to a gram that no pattern has, and never no to one that a pattern has. Then the walk:
 * read df_joint_next() at the end. is_closed_line() decides the usual case, is_open() all others.
 * Without enough text to decide, a joint is open.
 */
#include "common/redact/joints.h"

#include "common/redact/prefix.h"

/* Bytes of text in which the view behind a joint is looked for; without it the joint is open. */
enum { AHEAD = 64 };

/* --- the filter ------------------------------------------------------------------------------ */

/* Of 8 bytes at p; without the case of letters, because some patterns ignore it. */
static uint64_t gram_at(const struct df_joints *j, const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return (x | 0x2020202020202020ULL) & j->gram_mask;
}

/* Two bits of one word answer for a gram: one access to memory, and few wrong answers. */
static uint64_t *word_of(const struct df_joints *j, uint64_t gram, uint64_t *ret_mask)
{
    const uint64_t odd = 0x9e3779b97f4a7c15ULL;
    uint64_t h = gram * odd;
    h = (h ^ h >> 32) * odd;
    *ret_mask = (uint64_t)1 << (h >> 20 & 63) | (uint64_t)1 << (h >> 26 & 63);
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
    for (size_t i = 0; i + j->gram <= n; i++) {
        char gram[DF_JOINT_GRAM_MAX] = "";
        memcpy(gram, b + i, j->gram);
        uint64_t *word = word_of(j, gram_at(j, gram), &mask);
        *word |= mask;
    }
}

int df_joints_new(const struct df_patterns *p, struct df_joints *ret, struct df_err *err)
{
    enum { LEAST = 8, MOST = 17 }; /* words: 2 KiB to 1 MiB */
    if (!p->count)
        return 0;
    /* Of an occurrence, half the bytes besides an escaped one are on one side of it: a gram. */
    ret->gram = p->min_len / 2 + 1 < DF_JOINT_GRAM_MAX ? p->min_len / 2 + 1 : DF_JOINT_GRAM_MAX;
    memset(&ret->gram_mask, 0xff, ret->gram);
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
    const uint64_t *word = word_of(j, gram_at(j, p), &mask);
    return (*word & mask) == mask;
}

/* --- the walk -------------------------------------------------------------------------------- */

/* Puts the last bytes of the view in front of `at` into w->before. The text from w->end has no
 * joint; what came before it is there already. */
static void look_back(struct df_joint_walk *w, size_t at)
{
    const size_t around = w->filter->gram - 1;
    char found[DF_JOINT_GRAM_MAX];
    size_t n = 0;
    for (size_t i = at; i > w->end && n < around; i--)
        if (df_unwrap_is_plain(w->text[i - 1]))
            found[around - ++n] = w->text[i - 1];
    size_t kept = w->befores < around - n ? w->befores : around - n;
    memmove(w->before, w->before + w->befores - kept, kept);
    memcpy(w->before + kept, found + around - n, n);
    w->befores = kept + n;
}

/* Adds the prefix of the line that begins at *end, if the token before it ended a line. False if
 * more text is needed to tell. */
static bool add_prefix(const struct df_joint_walk *w, const struct df_unwrap_token *t, size_t *end)
{
    size_t len = 0;
    bool whole = !t->line_end || df_redact_prefix(w->text + *end, w->n - *end, w->last, &len);
    *end += len;
    return whole;
}

/* Adds bytes of the view behind the joint until there are `most`; false if the text does not say
 * all of them. */
static bool look_ahead(const struct df_joint_walk *w, char *window, size_t *n, size_t most)
{
    size_t end = w->n - w->end < AHEAD ? w->n : w->end + AHEAD;
    struct df_unwrap_token t = {.len = 1};
    for (size_t at = w->end; at < end && *n < most;) {
        t = (struct df_unwrap_token){1, df_unwrap_is_plain(w->text[at]) ? w->text[at] : -1, false,
                                     false};
        if (df_unwrap_is_special(w->text[at]) &&
            !df_unwrap_token(w->text + at, w->n - at, w->last, &t))
            return false;
        at += t.len;
        if (!add_prefix(w, &t, &at))
            return false;
        if (t.byte >= 0)
            window[(*n)++] = (char)t.byte;
    }
    return *n == most || (w->last && end == w->n);
}

/* The two neighbours of a gap decide most cases, and need the least work. After that the two grams
 * that end and that begin at the joint. */
static bool is_open(const struct df_joint_walk *w, const struct df_unwrap_token *t)
{
    const size_t around = w->filter->gram - 1;
    char window[2 * DF_JOINT_GRAM_MAX];
    size_t n = w->befores, front = n; /* of the window: up to the joint, with a byte of its own */
    memcpy(window, w->before, n);
    if (t->byte >= 0) {
        window[n++] = (char)t->byte;
        front++;
    } else {
        if (!front)
            return false; /* no occurrence begins in front of it */
        if (!look_ahead(w, window, &n, front + 1))
            return true;
        if (n == front || !has_pair(w->filter, window + front - 1))
            return false;
        n = front;
    }
    if (!look_ahead(w, window, &n, front + around))
        return true;
    size_t last = t->byte >= 0 ? front : front + 1; /* of the gram that ends at the joint */
    return (last > around && last <= n && has_gram(w->filter, window + last - 1 - around)) ||
           (front + around <= n && has_gram(w->filter, window + front - 1));
}

static void add_before(struct df_joint_walk *w, char c)
{
    if (w->befores == w->filter->gram - 1)
        memmove(w->before, w->before + 1, --w->befores);
    w->before[w->befores++] = c;
}

/* Most joints are the end of a line whose neighbours no pattern has. A closed joint also ends what
 * the next ones have to know: no occurrence in front of it reaches them. */
static bool is_closed_line(const struct df_joint_walk *w, size_t at)
{
    size_t before = at, next = at + 1;
    if (w->text[at] != '\n')
        return false;
    while (before > w->end && !df_unwrap_is_plain(w->text[before - 1]))
        before--;
    while (next < w->n && w->text[next] == ' ')
        next++;
    if (before == w->end || next == w->n || !df_unwrap_is_plain(w->text[next]) ||
        df_unwrap_is_special(w->text[next]))
        return false;
    const char pair[2] = {w->text[before - 1], w->text[next]};
    size_t prefix;
    return !has_pair(w->filter, pair) &&
           df_redact_prefix(w->text + at + 1, w->n - at - 1, w->last, &prefix) && !prefix;
}

static void read_joint(struct df_joint_walk *w, size_t at, struct df_unwrap_token *t)
{
    look_back(w, at);
    bool whole = df_unwrap_token(w->text + at, w->n - at, w->last, t);
    w->cut = at;
    w->end = whole ? at + t->len : SIZE_MAX;
    if (whole && !add_prefix(w, t, &w->end)) {
        whole = false;
        w->cut = w->end;
        w->end = SIZE_MAX;
    }
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
