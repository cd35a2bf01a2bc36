/*
 * A strict RFC 8259 reader that builds cJSON trees. cJSON's own reader accepts too much: bad UTF-8,
 * raw control bytes, "\uZZZZ", numbers like 01, duplicate keys.
 */
#include "common/base/parse.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/json/json.h"

/* Where the reader is: a member, and the one that it is in. Arrays have no place. */
struct place {
    const char *key;
    const struct place *above; /* NULL: it is in the root */
};

struct reader {
    const char *text;
    size_t n;
    size_t at;
    int depth;
    bool takes_nul;             /* "\u0000" is allowed and becomes DF_JSON_NUL */
    const char *const *skipped; /* names and paths of members to skip; or NULL */
    const struct place *place;  /* the member whose value is read; NULL: the root is */
    struct df_err *err;
};

static int read_value(struct reader *r, cJSON **ret);

/* Returns the next byte; NUL at the end (a NUL inside the text is rejected earlier). */
static char peek_byte(const struct reader *r)
{
    return r->at < r->n ? r->text[r->at] : '\0';
}

static int fail_at(const struct reader *r, const char *what)
{
    return df_fail(r->err, DF_ERR_USER, "bad JSON at byte %zu: %s", r->at, what);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct reader *r)
{
    while (r->at < r->n && is_space(r->text[r->at]))
        r->at++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* ---- strings ---- */

/* Reads the four digits after "\u", whose 'u' is at r->at. Afterwards r->at is behind them. */
static int read_hex4(struct reader *r, unsigned *ret)
{
    unsigned value = 0;
    r->at++;
    for (int i = 0; i < 4; i++, r->at++) {
        int digit = hex_digit(peek_byte(r));
        if (digit < 0)
            return fail_at(r, "four hex digits must follow \\u");
        value = value << 4 | (unsigned)digit;
    }
    *ret = value;
    return 0;
}

static char *put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c >= 0x10000) {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    } else if (c >= 0x800) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        *to++ = (char)(0xc0 | c >> 6);
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

static int put_nul(struct reader *r, char **to)
{
    if (!r->takes_nul)
        return fail_at(r, "a string may not contain NUL");
    *to = stpcpy(*to, DF_JSON_NUL);
    return 0;
}

static int read_unicode_escape(struct reader *r, char **to)
{
    unsigned c = 0, low = 0;
    if (read_hex4(r, &c) < 0)
        return -1;
    if (c == 0)
        return put_nul(r, to);
    if (c >= 0xdc00 && c <= 0xdfff)
        return fail_at(r, "half a surrogate pair");
    if (c >= 0xd800 && c <= 0xdbff) {
        if (peek_byte(r) != '\\' || r->at + 1 >= r->n || r->text[r->at + 1] != 'u')
            return fail_at(r, "half a surrogate pair");
        r->at++;
        if (read_hex4(r, &low) < 0)
            return -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail_at(r, "half a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    *to = put_utf8(*to, c);
    return 0;
}

static int read_escape(struct reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    char c = peek_byte(r);
    if (c == 'u')
        return read_unicode_escape(r, to);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return fail_at(r, "unknown escape in a string");
    *(*to)++ = into[found - from];
    r->at++;
    return 0;
}

/* Returns the offset of the closing quote of the string that starts at r->at; SIZE_MAX if there is
 * none. */
static size_t find_quote(const struct reader *r)
{
    for (size_t i = r->at; i < r->n; i++) {
        if (r->text[i] == '"')
            return i;
        if (r->text[i] == '\\')
            i++;
    }
    return SIZE_MAX;
}

static int fill_string(struct reader *r, size_t end, char *to)
{
    while (r->at < end) {
        unsigned char c = (unsigned char)r->text[r->at];
        if (c < 0x20)
            return fail_at(r, "a control character in a string must be escaped");
        r->at++;
        if (c != '\\')
            *to++ = (char)c;
        else if (read_escape(r, &to) < 0)
            return -1;
    }
    *to = '\0';
    r->at = end + 1;
    return 0;
}

/* Returns the length of a string without escapes, as most are; 0 for any other. */
static size_t plain_length(const struct reader *r)
{
    size_t i = r->at;
    while (i < r->n && (unsigned char)r->text[i] >= 0x20 && r->text[i] != '"' && r->text[i] != '\\')
        i++;
    return i < r->n && r->text[i] == '"' ? i - r->at : 0;
}

static int read_plain_string(struct reader *r, size_t n, char **ret)
{
    char *s = malloc(n + 1);
    if (!s)
        return df_fail_oom(r->err);
    memcpy(s, r->text + r->at, n);
    s[n] = '\0';
    r->at += n + 1;
    *ret = s;
    return 0;
}

static int read_string(struct reader *r, char **ret)
{
    if (peek_byte(r) != '"')
        return fail_at(r, "a string in double quotes is expected");
    r->at++;
    size_t n = plain_length(r);
    if (n)
        return read_plain_string(r, n, ret);
    size_t end = find_quote(r);
    if (end == SIZE_MAX)
        return fail_at(r, "the string does not end");
    /* Every escape is at least as long as the bytes it encodes. */
    size_t room = end - r->at + 1;
    char *s = malloc(room);
    if (!s)
        return df_fail_oom(r->err);
    if (fill_string(r, end, s) < 0) {
        explicit_bzero(s, room);
        free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

/* ---- numbers ---- */

static bool skip_digits(struct reader *r)
{
    size_t start = r->at;
    while (is_digit(peek_byte(r)))
        r->at++;
    return r->at > start;
}

/* Moves r->at behind the number. */
static int skip_number(struct reader *r)
{
    if (peek_byte(r) == '-')
        r->at++;
    if (peek_byte(r) == '0')
        r->at++;
    else if (!skip_digits(r))
        return fail_at(r, "not a value");
    if (peek_byte(r) == '.') {
        r->at++;
        if (!skip_digits(r))
            return fail_at(r, "digits must follow the decimal point");
    }
    if (peek_byte(r) == 'e' || peek_byte(r) == 'E') {
        r->at++;
        if (peek_byte(r) == '+' || peek_byte(r) == '-')
            r->at++;
        if (!skip_digits(r))
            return fail_at(r, "digits must follow the exponent");
    }
    return 0;
}

#define SMALL_DIGITS 15 /* are exact in a double */

/* The fast path for short whole numbers, as most are. False: use the general path. */
static bool is_small(const char *text, size_t n, double *ret)
{
    int64_t value = 0;
    size_t i = text[0] == '-';
    if (n - i > SMALL_DIGITS || (i && text[i] == '0'))
        return false;
    for (; i < n; i++) {
        if (!is_digit(text[i]))
            return false;
        value = value * 10 + (text[i] - '0');
    }
    *ret = (double)(text[0] == '-' ? -value : value);
    return true;
}

static int read_number(struct reader *r, cJSON **ret)
{
    size_t start = r->at;
    double value = 0;
    if (skip_number(r) < 0)
        return -1;
    if (is_small(r->text + start, r->at - start, &value))
        return df_check_alloc(*ret = cJSON_CreateNumber(value), r->err);
    DF_FREE char *text = strndup(r->text + start, r->at - start);
    *ret = text ? df_json_number(text) : NULL;
    return *ret ? 0 : df_fail_oom(r->err);
}

/* ---- arrays and objects ---- */

static int check_duplicates(const struct reader *r, const cJSON *object)
{
    const char *key = NULL;
    if (df_json_duplicate_key(object, &key, r->err) < 0)
        return -1;
    return !key ? 0
                : df_fail(r->err, DF_ERR_USER,
                          "bad JSON: the object that ends at byte %zu has the key \"%s\" twice",
                          r->at, key);
}

/* Moves behind the string whose text starts at r->at. */
static int skip_string(struct reader *r)
{
    size_t end = find_quote(r);
    if (end == SIZE_MAX)
        return fail_at(r, "the string does not end");
    r->at = end + 1;
    return 0;
}

/* Moves behind a value without parsing it. */
static int skip_value(struct reader *r)
{
    size_t start = r->at;
    for (int depth = 0; r->at < r->n;) {
        char c = peek_byte(r);
        bool closes = c == '}' || c == ']';
        if (depth == 0 && (closes || c == ','))
            return r->at > start ? 0 : fail_at(r, "not a value");
        r->at++;
        depth += (c == '{' || c == '[') - closes;
        if (c == '"' && skip_string(r) < 0)
            return -1;
    }
    return fail_at(r, "the text ends too early");
}

/* Is this the path of the place? Compares from its end, where most differ. */
static bool is_path(const char *path, const struct place *p)
{
    size_t n = strlen(path);
    for (; p; p = p->above) {
        size_t m = strlen(p->key);
        if (n <= m || path[n - m - 1] != '.' || memcmp(path + n - m, p->key, m) != 0 ||
            strchr(p->key, '.'))
            return false;
        n -= m + 1;
    }
    return n == 0;
}

static bool is_skipped(const struct reader *r, const struct place *p)
{
    for (const char *const *name = r->skipped; name && *name; name++)
        if (**name == '.' ? is_path(*name, p) : strcmp(*name, p->key) == 0)
            return true;
    return false;
}

static int read_member(struct reader *r, cJSON *object)
{
    DF_FREE char *key = NULL;
    cJSON *value = NULL;
    skip_space(r);
    if (read_string(r, &key) < 0)
        return -1;
    skip_space(r);
    if (peek_byte(r) != ':')
        return fail_at(r, "\":\" is expected behind a key");
    r->at++;
    const struct place place = {key, r->place};
    if (is_skipped(r, &place))
        return skip_value(r);
    r->place = &place;
    int result = read_value(r, &value);
    r->place = place.above;
    if (result < 0)
        return -1;
    value->string = DF_TAKE(key); /* cJSON would copy it */
    return df_json_append(object, value, r->err);
}

static int read_item(struct reader *r, cJSON *array)
{
    cJSON *value = NULL;
    return read_value(r, &value) < 0 ? -1 : df_json_append(array, value, r->err);
}

static int read_items(struct reader *r, cJSON *holder, char close)
{
    r->at++;
    skip_space(r);
    if (peek_byte(r) == close) {
        r->at++;
        return 0;
    }
    for (;;) {
        if ((close == '}' ? read_member(r, holder) : read_item(r, holder)) < 0)
            return -1;
        skip_space(r);
        char c = peek_byte(r);
        if (c != ',' && c != close)
            return fail_at(r, close == '}' ? "\",\" or \"}\" is expected"
                                           : "\",\" or \"]\" is expected");
        r->at++;
        if (c == close)
            return 0;
    }
}

static int read_holder(struct reader *r, cJSON **ret)
{
    bool is_object = peek_byte(r) == '{';
    if (++r->depth > DF_LIMIT_JSON_DEPTH)
        return fail_at(r, "nested too deeply");
    DF_JSON cJSON *holder = is_object ? cJSON_CreateObject() : cJSON_CreateArray();
    if (!holder)
        return df_fail_oom(r->err);
    if (read_items(r, holder, is_object ? '}' : ']') < 0)
        return -1;
    if (is_object && check_duplicates(r, holder) < 0)
        return -1;
    r->depth--;
    *ret = DF_TAKE(holder);
    return 0;
}

static int read_string_value(struct reader *r, cJSON **ret)
{
    DF_JSON cJSON *item = cJSON_CreateNull();
    if (!item)
        return df_fail_oom(r->err);
    if (read_string(r, &item->valuestring) < 0)
        return -1;
    item->type = cJSON_String;
    *ret = DF_TAKE(item);
    return 0;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if (r->n - r->at < n || memcmp(r->text + r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static int read_value(struct reader *r, cJSON **ret)
{
    skip_space(r);
    char c = peek_byte(r);
    if (c == '{' || c == '[')
        return read_holder(r, ret);
    if (c == '"')
        return read_string_value(r, ret);
    if (c == '-' || is_digit(c))
        return read_number(r, ret);
    cJSON *item = NULL;
    if (take_word(r, "true"))
        item = cJSON_CreateTrue();
    else if (take_word(r, "false"))
        item = cJSON_CreateFalse();
    else if (take_word(r, "null"))
        item = cJSON_CreateNull();
    else
        return fail_at(r, r->at < r->n ? "not a value" : "the text ends too early");
    if (!item)
        return df_fail_oom(r->err);
    *ret = item;
    return 0;
}

static int read_all(struct reader *r, cJSON **ret)
{
    DF_JSON cJSON *value = NULL;
    const char *fault = df_text_fault(r->text, r->n);
    if (fault)
        return df_fail(r->err, DF_ERR_USER, "bad JSON: it %s", fault);
    if (r->n && memchr(r->text, '\0', r->n))
        return df_fail(r->err, DF_ERR_USER, "bad JSON: it contains a NUL byte");
    if (!df_is_utf8(r->text, r->n))
        return df_fail(r->err, DF_ERR_USER, "bad JSON: it is not UTF-8");
    if (read_value(r, &value) < 0)
        return -1;
    skip_space(r);
    if (r->at < r->n)
        return fail_at(r, "something follows the value");
    *ret = DF_TAKE(value);
    return 0;
}

int df_json_parse(const char *text, size_t n, cJSON **ret, struct df_err *err)
{
    struct reader r = {.text = text, .n = n, .err = err};
    return read_all(&r, ret);
}

int df_json_parse_without(const char *text, size_t n, const char *const *skipped, cJSON **ret,
                          struct df_err *err)
{
    struct reader r = {.text = text, .n = n, .takes_nul = true, .skipped = skipped, .err = err};
    return read_all(&r, ret);
}

int df_json_parse_nul(const char *text, size_t n, cJSON **ret, struct df_err *err)
{
    return df_json_parse_without(text, n, NULL, ret, err);
}

int df_json_load(const char *path, size_t max, cJSON **ret, struct df_err *err)
{
    struct df_buf text = DF_BUF_INIT(max);
    int result = df_fs_read(path, &text, err);
    if (result == 0 && df_json_parse_nul(df_buf_str(&text), text.len, ret, err) < 0)
        result = df_err_wrap(err, "%s", path);
    df_buf_wipe(&text);
    return result;
}

int df_json_save(const char *path, const cJSON *json, struct df_err *err)
{
    char *text = df_json_print_nul(json);
    if (!text)
        return df_fail_oom(err);
    int result = df_fs_write(path, text, strlen(text), 0600, err);
    explicit_bzero(text, strlen(text));
    free(text);
    return result;
}
