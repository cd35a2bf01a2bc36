/*
 * Most lines have no prefix, which their first blank shows: it must be followed by a parenthesis.
 * Only then what is in front of it is compared with the syntax of an address.
 */
#include "common/redact/prefix.h"

#include "common/base/limits.h"
#include "common/redact/blocks.h"

enum { BYTE_INNER = 1, BYTE_FIRST = 2, BYTE_TYPE = 4, BYTE_DIGIT = 8 };

/* Of an address; names may have letters of any alphabet. */
static const unsigned char kinds[256] = {
    ['A' ... 'Z'] = BYTE_FIRST | BYTE_INNER | BYTE_TYPE,
    ['a' ... 'z'] = BYTE_FIRST | BYTE_INNER | BYTE_TYPE,
    ['0' ... '9'] = BYTE_INNER | BYTE_TYPE | BYTE_DIGIT,
    ['_'] = BYTE_FIRST | BYTE_INNER | BYTE_TYPE,
    ['-'] = BYTE_INNER | BYTE_TYPE,
    ['.'] = BYTE_INNER,
    ['['] = BYTE_INNER,
    [']'] = BYTE_INNER,
    [0x80 ... 0xff] = BYTE_FIRST | BYTE_INNER,
};

struct reader {
    const char *text;
    size_t n;
    size_t at;
    bool cut; /* the text ended too early to tell */
};

/* The next byte; -1 at the end. */
static int peek_byte(struct reader *r)
{
    if (r->at < r->n)
        return (unsigned char)r->text[r->at];
    r->cut = true;
    return -1;
}

static bool take_byte(struct reader *r, char c)
{
    if (peek_byte(r) != c)
        return false;
    r->at++;
    return true;
}

static bool is_kind(int c, unsigned char kind)
{
    return c >= 0 && kinds[c] & kind;
}

/* Moves to the next blank, control character or double quote. */
static void skip_to_stop(struct reader *r)
{
    while (r->at + sizeof(df_block) <= r->n) {
        df_block b = df_block_load(r->text + r->at);
        size_t first = df_block_first((df_block)(b <= ' ') | (df_block)(b == '"'));
        r->at += first;
        if (first < sizeof(df_block))
            return;
    }
    while (r->at < r->n && (unsigned char)r->text[r->at] > ' ' && r->text[r->at] != '"')
        r->at++;
}

/* ESC [ parameters m, any number of them. */
static bool skip_colours(struct reader *r)
{
    while (peek_byte(r) == '\033') {
        r->at++;
        if (!take_byte(r, '['))
            return false;
        while (peek_byte(r) == ';' || is_kind(peek_byte(r), BYTE_DIGIT))
            r->at++;
        if (!take_byte(r, 'm'))
            return false;
    }
    return true;
}

/* A key in quotes, which stands in one line. */
static bool skip_key(struct reader *r)
{
    if (!take_byte(r, '"'))
        return false;
    for (int c; (c = peek_byte(r)) >= 0 && c != '\n'; r->at++) {
        if (c == '"') {
            r->at++;
            return true;
        }
        r->at += c == '\\' && r->at + 1 < r->n;
    }
    return false;
}

/* Everything up to the blank behind it, quickly. */
static bool skip_address(struct reader *r)
{
    if (!is_kind(peek_byte(r), BYTE_FIRST))
        return false;
    skip_to_stop(r);
    while (peek_byte(r) == '"') {
        if (r->text[r->at - 1] != '[' || !skip_key(r))
            return false;
        skip_to_stop(r);
    }
    return peek_byte(r) == ' ';
}

/* " (type):" */
static bool skip_type(struct reader *r)
{
    if (!take_byte(r, ' ') || !take_byte(r, '('))
        return false;
    size_t first = r->at;
    while (is_kind(peek_byte(r), BYTE_TYPE))
        r->at++;
    return r->at > first && take_byte(r, ')') && take_byte(r, ':');
}

/* Names with dots between, at least two, and keys in brackets. */
static bool is_address(const char *text, size_t n)
{
    struct reader r = {.text = text, .n = n - (text[n - 1] == ':')};
    size_t dots = 0;
    while (r.at < r.n) {
        int c = peek_byte(&r);
        if (c == '"' ? !skip_key(&r) : !is_kind(c, BYTE_INNER))
            return false;
        dots += c == '.';
        r.at += c != '"';
    }
    return dots > 0;
}

/* Colours, address, type. */
static bool read_prefix(struct reader *r)
{
    if (!skip_colours(r))
        return false;
    size_t first = r->at;
    if (!skip_address(r))
        return false;
    size_t n = r->at - first;
    return skip_type(r) && is_address(r->text + first, n);
}

bool df_redact_prefix(const char *text, size_t n, bool last, size_t *ret_len)
{
    bool is_capped = n >= DF_LIMIT_REDACT_PREFIX;
    struct reader r = {.text = text, .n = is_capped ? DF_LIMIT_REDACT_PREFIX : n};
    bool found = read_prefix(&r);
    *ret_len = found ? r.at : 0;
    return found || !r.cut || last || is_capped;
}
