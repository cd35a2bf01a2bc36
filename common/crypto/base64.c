#include "common/crypto/crypto.h"

static const char standard_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int df_base64_encode(const void *bytes, size_t n, bool url, struct df_buf *out, struct df_err *err)
{
    const char *alphabet = url ? url_alphabet : standard_alphabet;
    const unsigned char *p = bytes;
    for (; n >= 3; p += 3, n -= 3) {
        unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
        char four[4] = {alphabet[v >> 18], alphabet[v >> 12 & 63], alphabet[v >> 6 & 63],
                        alphabet[v & 63]};
        (void)df_buf_add(out, four, 4);
    }
    if (n) {
        unsigned v = (unsigned)p[0] << 16 | (n == 2 ? (unsigned)p[1] << 8 : 0);
        char four[4] = {alphabet[v >> 18], alphabet[v >> 12 & 63],
                        n == 2 ? alphabet[v >> 6 & 63] : '=', '='};
        (void)df_buf_add(out, four, url ? n + 1 : 4);
    }
    return df_buf_check(out, err);
}

static int digit_value(char c, bool url)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == (url ? '-' : '+'))
        return 62;
    return c == (url ? '_' : '/') ? 63 : -1;
}

/* Decodes the 2 to 4 digits of one group; fails on foreign bytes and on set bits that are lost. */
static int decode_group(const char *text, size_t digits, bool url, struct df_buf *out)
{
    unsigned v = 0;
    for (size_t i = 0; i < 4; i++) {
        int d = i < digits ? digit_value(text[i], url) : 0;
        if (d < 0)
            return -1;
        v = v << 6 | (unsigned)d;
    }
    const char three[3] = {(char)(v >> 16), (char)(v >> 8 & 255), (char)(v & 255)};
    unsigned lost = digits == 4 ? 0 : digits == 3 ? v & 255 : v & 65535;
    if (lost)
        return -1;
    (void)df_buf_add(out, three, digits - 1);
    return 0;
}

int df_base64_decode(const char *text, size_t n, bool url, struct df_buf *out, struct df_err *err)
{
    size_t digits = n;
    while (!url && digits && n - digits < 2 && text[digits - 1] == '=')
        digits--;
    bool whole = url ? n == digits : n % 4 == 0;
    if (!whole || digits % 4 == 1)
        return df_fail(err, DF_ERR_USER, "not base64: %zu characters", n);
    for (size_t i = 0; i < digits; i += 4) {
        size_t here = digits - i < 4 ? digits - i : 4;
        if (decode_group(text + i, here, url, out) < 0)
            return df_fail(err, DF_ERR_USER, "not base64: at character %zu", i + 1);
    }
    return df_buf_check(out, err);
}
