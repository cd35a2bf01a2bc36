#include "common/base/parse.h"

#include <errno.h>

int df_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret, struct df_err *err)
{
    char *end = NULL;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    bool starts = (*text >= '0' && *text <= '9') || *text == '-';
    if (!starts || *end || errno == ERANGE || v < min || v > max)
        return df_fail(err, DF_ERR_USER, "\"%.64s\" is not a whole number from %lld to %lld", text,
                       (long long)min, (long long)max);
    *ret = v;
    return 0;
}

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool df_scan_i64(const char **text, int64_t *ret)
{
    char *end;
    errno = 0;
    long long n = strtoll(*text, &end, 10);
    if (end == *text || errno != 0)
        return false;
    *text = end;
    *ret = n;
    return true;
}

bool df_is_dns_label(const char *s)
{
    size_t n = strlen(s);
    if (n < 1 || n > 63 || !is_lower_alnum(s[0]) || !is_lower_alnum(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_lower_alnum(s[i]) && s[i] != '-')
            return false;
    return true;
}

bool df_is_env_name(const char *s)
{
    if (!*s || (*s >= '0' && *s <= '9'))
        return false;
    for (; *s; s++) {
        bool ok = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                  (*s >= '0' && *s <= '9') || *s == '_';
        if (!ok)
            return false;
    }
    return true;
}

void df_hex(const void *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    out[2 * n] = '\0';
}

size_t df_utf8_length(unsigned char c)
{
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef)
        return 3;
    return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

/* Returns the length of leading ASCII, in whole words; most text is only ASCII. */
static size_t ascii_length(const unsigned char *p, size_t n)
{
    size_t i = 0;
    for (uint64_t word; n - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, p + i, sizeof(word));
        if (word & 0x8080808080808080)
            break;
    }
    return i;
}

#define SAY_UTF8 ": it must be UTF-8 without a byte order mark (`cmd /c \"COMMAND > FILE\"`)"

const char *df_text_fault(const char *s, size_t n)
{
    static const char utf8_mark[] = "\xef\xbb\xbf";
    bool has_mark = n >= 2 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0);
    if (has_mark || (n >= 2 && !s[0] != !s[1]))
        return "is UTF-16, as PowerShell's > writes it" SAY_UTF8;
    return n >= 3 && memcmp(s, utf8_mark, 3) == 0 ? "begins with a byte order mark" SAY_UTF8 : NULL;
}

bool df_is_utf8(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    for (size_t i = ascii_length(p, n); i < n;) {
        /* The bounds of the second byte (table of RFC 3629). */
        unsigned char low = p[i] == 0xe0 ? 0xa0 : p[i] == 0xf0 ? 0x90 : 0x80;
        unsigned char high = p[i] == 0xed ? 0x9f : p[i] == 0xf4 ? 0x8f : 0xbf;
        size_t len = df_utf8_length(p[i]);
        if (!len || len > n - i)
            return false;
        for (size_t k = 1; k < len; k++) {
            if (p[i + k] < low || p[i + k] > high)
                return false;
            low = 0x80;
            high = 0xbf;
        }
        i += len;
        i += ascii_length(p + i, n - i);
    }
    return true;
}

bool df_has_control(const char *s)
{
    for (; s && *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return true;
    return false;
}
