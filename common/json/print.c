/*
 * Prints trees. When the buffer grows, the old memory is wiped, because it may contain secrets.
 */
#include <math.h>

#include "common/base/parse.h"
#include "common/json/number.h"

struct writer {
    char *out;
    size_t len, room; /* a NUL fits behind len */
    bool pretty;
    bool has_nul; /* DF_JSON_NUL is "\u0000" */
    bool failed;  /* out of memory */
};

#define FIRST_ROOM 1024

static bool grow_text(struct writer *w, size_t n)
{
    size_t room = w->room ? w->room * 2 : FIRST_ROOM;
    while (room <= w->len + n)
        room *= 2;
    char *out = w->failed ? NULL : df_realloc_wiped(w->out, w->len, room);
    if (!out) {
        w->failed = true;
        return false;
    }
    w->out = out;
    w->room = room;
    return true;
}

static void put_bytes(struct writer *w, const char *bytes, size_t n)
{
    bool fits = w->out && w->len + n < w->room;
    if (!fits && !grow_text(w, n))
        return;
    memcpy(w->out + w->len, bytes, n);
    w->len += n;
}

static void puts_to(struct writer *w, const char *s)
{
    put_bytes(w, s, strlen(s));
}

static void put_newline(struct writer *w, int depth)
{
    if (!w->pretty)
        return;
    puts_to(w, "\n");
    for (int i = 0; i < depth; i++)
        puts_to(w, "  ");
}

static void put_number(struct writer *w, double d)
{
    char text[DF_NUMBER_TEXT];
    puts_to(w, isfinite(d) ? df_number_print(d, text) : "null");
}

static void put_escaped(struct writer *w, unsigned c)
{
    static const char from[] = "\"\\\b\f\n\r\t", into[] = "\"\\bfnrt";
    char text[8];
    const char *found = c < 0x80 ? strchr(from, (int)c) : NULL;
    if (found)
        (void)snprintf(text, sizeof(text), "\\%c", into[found - from]);
    else
        (void)snprintf(text, sizeof(text), "\\u%04x", c);
    puts_to(w, text);
}

/* Escapes more than JSON requires: control characters that a terminal would execute, and characters
 * that YAML parsers reject or read as a line break. So the text is safe in both. */
static bool must_escape(unsigned c)
{
    return c < 0x20 || c == '"' || c == '\\' || (c >= 0x7f && c < 0xa0) || c == 0x2028 ||
           c == 0x2029 || c == 0xfeff || c == 0xfffe || c == 0xffff;
}

/* Returns the length of the sequence at s and its code point; 0 if it is not UTF-8. */
static size_t decode_utf8(const char *s, unsigned *ret)
{
    static const unsigned first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    for (size_t n = 1; n <= 4 && s[n - 1]; n++) {
        if (!df_is_utf8(s, n))
            continue;
        *ret = (unsigned char)s[0] & first_bits[n];
        for (size_t i = 1; i < n; i++)
            *ret = *ret << 6 | ((unsigned char)s[i] & 0x3f);
        return n;
    }
    return 0;
}

/* Returns how many bytes need no escape. Nearly all do not, so they are copied at once. */
static size_t plain_length(const char *s)
{
    size_t n = 0;
    for (unsigned char c; (c = (unsigned char)s[n]) >= 0x20 && c < 0x7f && c != '"' && c != '\\';)
        n++;
    return n;
}

/* Not every tree comes from the parser: bytes that are not UTF-8 become U+FFFD. */
static size_t put_other(struct writer *w, const char *s)
{
    unsigned c = 0;
    size_t n = decode_utf8(s, &c);
    if (!n && df_starts_with(s, DF_JSON_NUL)) {
        puts_to(w, w->has_nul ? "\\u0000" : "\xef\xbf\xbd");
        return strlen(DF_JSON_NUL);
    }
    if (!n)
        puts_to(w, "\xef\xbf\xbd");
    else if (must_escape(c))
        put_escaped(w, c);
    else
        put_bytes(w, s, n);
    return n ? n : 1;
}

static void put_string(struct writer *w, const char *s)
{
    puts_to(w, "\"");
    while (*s) {
        size_t n = plain_length(s);
        put_bytes(w, s, n);
        s += n;
        if (*s)
            s += put_other(w, s);
    }
    puts_to(w, "\"");
}

static void put_value(struct writer *w, const cJSON *j, int depth);

static void put_items(struct writer *w, const cJSON *j, int depth)
{
    bool is_object = cJSON_IsObject(j);
    puts_to(w, is_object ? "{" : "[");
    for (const cJSON *item = j->child; item; item = item->next) {
        put_newline(w, depth + 1);
        if (is_object) {
            put_string(w, item->string);
            puts_to(w, w->pretty ? ": " : ":");
        }
        put_value(w, item, depth + 1);
        if (item->next)
            puts_to(w, ",");
    }
    if (j->child)
        put_newline(w, depth);
    puts_to(w, is_object ? "}" : "]");
}

static void put_value(struct writer *w, const cJSON *j, int depth)
{
    switch (j->type & 0xff) {
    case cJSON_Object:
    case cJSON_Array:
        put_items(w, j, depth);
        break;
    case cJSON_String:
        put_string(w, j->valuestring);
        break;
    case cJSON_Raw:
        puts_to(w, j->valuestring);
        break;
    case cJSON_Number:
        put_number(w, j->valuedouble);
        break;
    case cJSON_True:
        puts_to(w, "true");
        break;
    case cJSON_False:
        puts_to(w, "false");
        break;
    default:
        puts_to(w, "null");
    }
}

static char *print_tree(struct writer *w, const cJSON *j)
{
    if (!j)
        return NULL;
    put_value(w, j, 0);
    put_bytes(w, "", 1);
    if (w->failed) {
        if (w->out)
            explicit_bzero(w->out, w->len);
        free(w->out);
        return NULL;
    }
    char *fitting = realloc(w->out, w->len);
    return fitting ? fitting : w->out;
}

char *df_json_print(const cJSON *j)
{
    struct writer w = {.pretty = false};
    return print_tree(&w, j);
}

char *df_json_print_pretty(const cJSON *j)
{
    struct writer w = {.pretty = true, .has_nul = true};
    return print_tree(&w, j);
}

char *df_json_print_nul(const cJSON *j)
{
    struct writer w = {.has_nul = true};
    return print_tree(&w, j);
}

int df_json_add_bytes(struct df_buf *out, const char *s)
{
    for (const char *nul; (nul = strstr(s, DF_JSON_NUL)); s = nul + strlen(DF_JSON_NUL)) {
        (void)df_buf_add(out, s, (size_t)(nul - s));
        (void)df_buf_addc(out, '\0');
    }
    return df_buf_adds(out, s);
}

void df_json_show_nul(char *s)
{
    for (; (s = strstr(s, DF_JSON_NUL)); s += 2) {
        s[0] = '^';
        s[1] = '@';
    }
}
