/*
 * unwrap.c - first tokens: df_unwrap_token() reads one byte, escape or line end. Then a fast search
 * for the next joint: it may stop at a place that is none, and never passes one. Then the views,
 * which are made of tokens.
 */
#include "common/redact/unwrap.h"

#include <ctype.h>

#include "common/redact/blocks.h"
#include "common/redact/prefix.h"

enum { BACKSLASHES_MAX = 8, CSI_MAX = 32, ENTITY_MAX = 10 };

/* --- tokens ---------------------------------------------------------------------------------- */

/* Plain are the printable characters but quotes and backslash. */
const unsigned char df_unwrap_kinds[256] = {
    ['\n'] = DF_UNWRAP_SPECIAL,
    ['\r'] = DF_UNWRAP_SPECIAL,
    ['\033'] = DF_UNWRAP_SPECIAL,
    ['!'] = DF_UNWRAP_PLAIN,
    ['"'] = DF_UNWRAP_SPECIAL,
    ['#' ... '$'] = DF_UNWRAP_PLAIN,
    ['%' ... '&'] = DF_UNWRAP_PLAIN | DF_UNWRAP_SPECIAL,
    ['\''] = DF_UNWRAP_SPECIAL,
    ['(' ... '['] = DF_UNWRAP_PLAIN,
    ['\\'] = DF_UNWRAP_SPECIAL,
    [']' ... '~'] = DF_UNWRAP_PLAIN,
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static int shown(unsigned code)
{
    return code < 0x7f && df_unwrap_is_plain((char)code) ? (int)code : -1;
}

/* The number of n hex digits at p; -1 if they are none. */
static int read_hex(const char *p, size_t n)
{
    int value = 0;
    for (size_t i = 0; i < n; i++) {
        int d = hex_digit(p[i]);
        if (d < 0)
            return -1;
        value = value << 4 | d;
    }
    return value;
}

/* Makes the token of an escape whose hex digits are text[at..at + digits). */
static bool take_hex(const char *text, size_t n, size_t at, size_t digits,
                     struct df_unwrap_token *ret)
{
    int code = at + digits <= n ? read_hex(text + at, digits) : -1;
    if (code < 0)
        return false;
    *ret = (struct df_unwrap_token){at + digits, shown((unsigned)code), true, false};
    return true;
}

/* \u0041, \x41, \n, \r, \t behind one or more backslashes; else one backslash. */
static void read_backslash(const char *text, size_t n, struct df_unwrap_token *ret)
{
    size_t at = 1;
    *ret = (struct df_unwrap_token){1, -1, true, false};
    while (at < n && at < BACKSLASHES_MAX && text[at] == '\\')
        at++;
    if (at == n)
        return;
    if (strchr("nrt", text[at]) && text[at])
        *ret = (struct df_unwrap_token){at + 1, -1, true, false};
    else if (text[at] == 'u')
        (void)take_hex(text, n, at + 1, 4, ret);
    else if (text[at] == 'x')
        (void)take_hex(text, n, at + 1, 2, ret);
}

static void read_entity(const char *text, size_t n, struct df_unwrap_token *ret)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = {{"&amp;", '&'},  {"&lt;", '<'},    {"&gt;", '>'},
                    {"&quot;", '"'}, {"&apos;", '\''}, {"&nbsp;", ' '}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(entities); i++) {
        size_t len = strlen(entities[i].name);
        if (len <= n && memcmp(text, entities[i].name, len) == 0)
            *ret = (struct df_unwrap_token){len, shown((unsigned char)entities[i].c), true, false};
    }
    if (n < 4 || text[1] != '#')
        return;
    bool hex = text[2] == 'x' || text[2] == 'X';
    unsigned code = 0;
    size_t at = hex ? 3 : 2, first = at;
    for (; at < n && at < ENTITY_MAX; at++) {
        int d = hex_digit(text[at]);
        if (d < 0 || (!hex && d > 9))
            break;
        code = code * (hex ? 16 : 10) + (unsigned)d;
    }
    if (at > first && at < n && text[at] == ';')
        *ret = (struct df_unwrap_token){at + 1, shown(code), true, false};
}

/* Control sequences: ESC [, parameters, one final byte. */
static void read_control(const char *text, size_t n, struct df_unwrap_token *ret)
{
    size_t at = 2;
    *ret = (struct df_unwrap_token){1, -1, false, false};
    if (n < 2 || text[1] != '[')
        return;
    while (at < n && at < CSI_MAX && text[at] >= 0x20 && text[at] < 0x40)
        at++;
    if (at < n && text[at] >= 0x40 && text[at] < 0x7f)
        *ret = (struct df_unwrap_token){at + 1, -1, true, false};
}

/* True if more bytes could make another token of this one. */
static bool is_unfinished(const char *text, size_t n)
{
    size_t at = 1;
    if (*text == '%')
        return n < 3 && read_hex(text + 1, n - 1) >= 0;
    if (*text == '\\') {
        while (at < n && at < BACKSLASHES_MAX && text[at] == '\\')
            at++;
        size_t digits = at == n ? 0 : text[at] == 'u' ? 4 : text[at] == 'x' ? 2 : 0;
        return at == n || (n - at - 1 < digits && read_hex(text + at + 1, n - at - 1) >= 0);
    }
    if (*text == '&') {
        while (at < n && (isalnum((unsigned char)text[at]) || text[at] == '#'))
            at++;
        return at == n && n <= ENTITY_MAX;
    }
    if (*text != '\033' || (n > 1 && text[1] != '['))
        return false;
    for (at = 2; at < n && text[at] >= 0x20 && text[at] < 0x40;)
        at++;
    return at >= n && n < CSI_MAX;
}

bool df_unwrap_token(const char *text, size_t n, bool last, struct df_unwrap_token *ret)
{
    char c = *text;
    *ret = (struct df_unwrap_token){1, shown((unsigned char)c), false, false};
    if (!df_unwrap_is_special(c))
        return true;
    if (n < DF_UNWRAP_TOKEN_MAX && !last && is_unfinished(text, n))
        return false;
    if (c == '\\')
        read_backslash(text, n, ret);
    else if (c == '&')
        read_entity(text, n, ret);
    else if (c == '%')
        (void)take_hex(text, n, 1, 2, ret);
    else if (c == '\033')
        read_control(text, n, ret);
    else if (c == '\n' || c == '\r')
        *ret = (struct df_unwrap_token){1, -1, true, true};
    else if ((c == '"' || c == '\'') && n > 1 && text[1] == c)
        *ret = (struct df_unwrap_token){2, -1, true, false};
    return true;
}

/* --- joints ---------------------------------------------------------------------------------- */

static bool is_joint(const char *text, size_t at, size_t n)
{
    char c = text[at];
    if (c == '"' || c == '\'')
        return at + 1 < n && text[at + 1] == c;
    return c == '\n' || c == '\r' || c == '\033' || c == '\\' || c == '%' || c == '&';
}

/* A byte that is not 0 for each of 16 bytes that may be a joint. All control characters count: that
 * is less work than to be exact. */
static df_block find_candidates(const char *text)
{
    df_block b = df_block_load(text), next = df_block_load(text + 1);
    return (df_block)(b < 0x20) | (df_block)((df_block)(b - '%') < 2) | (df_block)(b == '\\') |
           ((df_block)(b == next) & ((df_block)(b == '"') | (df_block)(b == '\'')));
}

size_t df_unwrap_next_joint(const char *text, size_t from, size_t n)
{
    while (from + sizeof(df_block) < n) {
        size_t first = df_block_first(find_candidates(text + from));
        from += first;
        if (first == sizeof(df_block))
            continue;
        if (is_joint(text, from, n))
            return from;
        from++;
    }
    while (from < n && !is_joint(text, from, n))
        from++;
    return from;
}

/* --- views ----------------------------------------------------------------------------------- */

size_t df_unwrap_fold(const char *value, size_t n, bool escaped, char *out)
{
    size_t len = 0;
    struct df_unwrap_token t = {.len = 1};
    for (size_t at = 0; at < n; at += t.len) {
        if (escaped)
            t.byte = shown((unsigned char)value[at]);
        else
            (void)df_unwrap_token(value + at, n - at, true, &t);
        if (t.byte >= 0)
            out[len++] = (char)t.byte;
    }
    return len;
}

int df_unwrap_new(size_t cap, struct df_unwrapped *ret, struct df_err *err)
{
    struct df_unwrapped v = {.bytes = malloc(cap), .places = malloc((cap + 1) * sizeof *v.places)};
    if (!v.bytes || !v.places) {
        df_unwrap_free(&v);
        return df_fail_oom(err);
    }
    *ret = v;
    return 0;
}

void df_unwrap_free(struct df_unwrapped *v)
{
    if (v->bytes)
        explicit_bzero(v->bytes, v->most);
    free(v->bytes);
    free(v->places);
    *v = (struct df_unwrapped){0};
}

/* Of what a tool writes in front of the line that begins behind the token t. */
static size_t length_of_prefix(const char *text, size_t at, size_t to,
                               const struct df_unwrap_token *t)
{
    size_t len = 0;
    if (t->line_end && !df_redact_prefix(text + at, to - at, true, &len))
        DF_BUG("a prefix that does not end");
    return len;
}

void df_unwrap_read(struct df_unwrapped *v, const char *text, size_t from, size_t to)
{
    uint32_t joints = 0, breaks = 0;
    struct df_unwrap_token t;
    v->n = 0;
    for (size_t at = from; at < to;) {
        if (!df_unwrap_token(text + at, to - at, true, &t))
            DF_BUG("a view of the middle of a token");
        if (t.byte >= 0) {
            v->bytes[v->n] = (char)t.byte;
            v->places[v->n++] = (struct df_unwrap_place){(uint32_t)at, (uint32_t)(at + t.len),
                                                         joints, breaks, t.joint};
        }
        joints += t.joint;
        breaks += t.line_end;
        at += t.len + length_of_prefix(text, at + t.len, to, &t);
    }
    v->places[v->n] = (struct df_unwrap_place){(uint32_t)to, (uint32_t)to, joints, breaks, false};
    v->most = v->n > v->most ? v->n : v->most;
}
