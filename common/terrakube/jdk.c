/*
 * jdk.c - the writer goes through the text twice, because the form depends on the encoded length.
 */
#include "common/terrakube/jdk.h"

#include "common/base/parse.h"

#define MAGIC "\xac\xed\x00\x05" /* STREAM_MAGIC, version 5 */
#define MAGIC_LEN ((size_t)4)
#define TC_STRING 0x74
#define TC_LONGSTRING 0x7c
#define REPLACEMENT 0xfffdU

/* ---- to Java ---- */

/* The character at p, of n >= 1 bytes; *ret_len says how many bytes it takes. What is no UTF-8
 * becomes U+FFFD, one for each longest beginning of a character, as Java's own decoder does it. */
static uint32_t decode(const unsigned char *p, size_t n, size_t *ret_len)
{
    size_t len = df_utf8_length(p[0]);
    uint32_t c = len < 2 ? p[0] : p[0] & (0x7fU >> len);
    /* The bounds of the second byte (table of RFC 3629). */
    unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < len; i++) {
        if (i == n || p[i] < low || p[i] > high) {
            *ret_len = i;
            return REPLACEMENT;
        }
        c = c << 6 | (p[i] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *ret_len = len ? len : 1;
    return len ? c : REPLACEMENT;
}

static size_t put_unit(uint32_t unit, char out[3])
{
    if (unit && unit < 0x80) {
        out[0] = (char)unit;
        return 1;
    }
    if (unit < 0x800) {
        out[0] = (char)(0xc0 | unit >> 6);
        out[1] = (char)(0x80 | (unit & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | unit >> 12);
    out[1] = (char)(0x80 | (unit >> 6 & 0x3f));
    out[2] = (char)(0x80 | (unit & 0x3f));
    return 3;
}

/* One character in modified UTF-8: two surrogates if it is above U+FFFF. */
static size_t put_modified(uint32_t c, char out[6])
{
    if (c < 0x10000)
        return put_unit(c, out);
    c -= 0x10000;
    return put_unit(0xd800 | c >> 10, out) + put_unit(0xdc00 | (c & 0x3ff), out + 3);
}

/* Adds the text in modified UTF-8 unless out is NULL; the length of that. */
static uint64_t put_text(struct df_buf *out, const char *text, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0, len; i < n; i += len) {
        char bytes[6];
        size_t made = put_modified(decode((const unsigned char *)text + i, n - i, &len), bytes);
        if (out)
            (void)df_buf_add(out, bytes, made);
        total += made;
    }
    return total;
}

int df_jdk_add(struct df_buf *out, const char *text, size_t n, struct df_err *err)
{
    uint64_t length = put_text(NULL, text, n);
    bool is_long = length > 0xffff;
    (void)df_buf_add(out, MAGIC, MAGIC_LEN);
    (void)df_buf_addc(out, is_long ? TC_LONGSTRING : TC_STRING);
    for (int shift = is_long ? 56 : 8; shift >= 0; shift -= 8)
        (void)df_buf_addc(out, (char)(length >> shift));
    (void)put_text(out, text, n);
    return df_buf_check(out, err);
}

/* ---- from Java ---- */

/* The UTF-16 unit at p, as java.io.DataInput.readUTF() reads it; *ret_len: its bytes, 0 if none is
 * there. */
static uint32_t get_unit(const unsigned char *p, size_t n, size_t *ret_len)
{
    size_t len = n == 0                  ? 0
                 : p[0] < 0x80           ? 1
                 : (p[0] & 0xe0) == 0xc0 ? 2
                 : (p[0] & 0xf0) == 0xe0 ? 3
                                         : 0;
    uint32_t unit = len < 2 ? (len ? p[0] : 0) : p[0] & (0x7fU >> len);
    bool whole = len <= n;
    for (size_t i = 1; whole && i < len; i++) {
        whole = (p[i] & 0xc0) == 0x80;
        unit = unit << 6 | (p[i] & 0x3f);
    }
    *ret_len = whole ? len : 0;
    return unit;
}

static bool is_high(uint32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(uint32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

static void put_utf8(struct df_buf *out, uint32_t c)
{
    if (c < 0x80) {
        (void)df_buf_addc(out, (char)c);
    } else if (c < 0x10000) {
        char bytes[3];
        (void)df_buf_add(out, bytes, put_unit(c, bytes));
    } else {
        (void)df_buf_addc(out, (char)(0xf0 | c >> 18));
        for (int shift = 12; shift >= 0; shift -= 6)
            (void)df_buf_addc(out, (char)(0x80 | (c >> shift & 0x3f)));
    }
}

/* A surrogate without its other half is no character: U+FFFD. */
static bool get_text(const unsigned char *p, size_t n, struct df_buf *out)
{
    for (size_t i = 0, len, len2 = 0; i < n; i += len) {
        uint32_t c = get_unit(p + i, n - i, &len);
        if (!len)
            return false;
        uint32_t low = is_high(c) ? get_unit(p + i + len, n - i - len, &len2) : 0;
        if (is_high(c) && len2 && is_low(low)) {
            c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
            len += len2;
        } else if (is_high(c) || is_low(c)) {
            c = REPLACEMENT;
        }
        put_utf8(out, c);
    }
    return true;
}

static int fail_form(struct df_err *err)
{
    return df_fail(err, DF_ERR_USER, "not one string of Java's object stream");
}

int df_jdk_read(const void *bytes, size_t n, struct df_buf *out, struct df_err *err)
{
    const unsigned char *p = bytes;
    if (n <= MAGIC_LEN || memcmp(p, MAGIC, MAGIC_LEN) != 0)
        return fail_form(err);
    size_t digits = p[MAGIC_LEN] == TC_STRING ? 2 : p[MAGIC_LEN] == TC_LONGSTRING ? 8 : 0;
    size_t head = MAGIC_LEN + 1 + digits;
    if (!digits || n < head)
        return fail_form(err);
    uint64_t length = 0;
    for (size_t i = 0; i < digits; i++)
        length = length << 8 | p[MAGIC_LEN + 1 + i];
    if (length != n - head || !get_text(p + head, n - head, out))
        return fail_form(err);
    return df_buf_check(out, err);
}
