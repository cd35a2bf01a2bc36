/*
 * One function for each encoding (emit_...); it calls the sink for every form of a value.
 * emit_piece() and df_redact_forms() at the end apply them to lines and pieces.
 */
#include "common/redact/forms.h"

#include "common/redact/nonsecret.h"
#include "common/redact/unwrap.h"

/* The form being built. Pieces are short enough that none can be longer. */
struct form {
    char bytes[DF_REDACT_FORM_MAX];
    size_t n;
};

struct forms {
    int (*emit)(void *arg, const struct df_redact_form *form, struct df_err *err);
    void *arg;
    struct form out;
};

static void form_put(struct form *o, char c)
{
    if (o->n == sizeof o->bytes)
        DF_BUG("a form of a secret has more than %zu bytes", sizeof o->bytes);
    o->bytes[o->n++] = c;
}

static void puts_all(struct form *o, const char *s)
{
    while (*s)
        form_put(o, *s++);
}

/* Emits what was put together, with the flags of `as`. */
static int emit_as(struct forms *f, struct df_redact_form as, struct df_err *err)
{
    as.bytes = f->out.bytes;
    as.n = f->out.n;
    f->out.n = 0;
    return as.n < DF_REDACT_MIN ? 0 : f->emit(f->arg, &as, err);
}

static int emit_form(struct forms *f, struct df_err *err)
{
    return emit_as(f, (struct df_redact_form){0}, err);
}

/* --- hex and base64 -------------------------------------------------------------------------- */

static const char lower_hex[] = "0123456789abcdef";
static const char upper_hex[] = "0123456789ABCDEF";

static void add_hex(struct form *o, unsigned char c, const char *digits)
{
    form_put(o, digits[c >> 4]);
    form_put(o, digits[c & 15]);
}

/* The digits of each byte, with separator between the bytes unless that is 0. */
static int emit_hex(struct forms *f, const unsigned char *v, size_t n, char separator, bool joined,
                    struct df_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (i && separator)
            form_put(&f->out, separator);
        add_hex(&f->out, v[i], lower_hex);
    }
    return emit_as(f, (struct df_redact_form){.fold = true, .joined = joined}, err);
}

/* Two alphabets, each with 0, 1 or 2 bytes before the value in its group of three. */
enum { BASE64_KINDS = 6 };

/* Only the characters that depend on no other byte; tail: the value has some bits of the next. */
static int emit_base64(struct forms *f, const unsigned char *v, size_t n, size_t kind, bool joined,
                       struct df_err *err)
{
    static const char *const alphabets[] = {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"};
    const char *alphabet = alphabets[kind / 3];
    size_t first_bit = kind % 3 * 8, end_bit = first_bit + n * 8;
    for (size_t bit = (first_bit + 5) / 6 * 6; bit + 6 <= end_bit; bit += 6) {
        size_t at = (bit - first_bit) / 8, shift = (bit - first_bit) % 8;
        unsigned two = (unsigned)v[at] << 8 | (at + 1 < n ? v[at + 1] : 0U);
        form_put(&f->out, alphabet[two >> (10 - shift) & 63]);
    }
    return emit_as(f, (struct df_redact_form){.tail = end_bit % 6 != 0, .joined = joined}, err);
}

static int emit_base64_all(struct forms *f, const unsigned char *v, size_t n, bool joined,
                           struct df_err *err)
{
    for (size_t kind = 0; kind < BASE64_KINDS; kind++)
        if (emit_base64(f, v, n, kind, joined, err) < 0)
            return -1;
    return 0;
}

/* The lines that encoders write for a longer value, because each may stand behind a prefix or in an
 * event of its own: base64 in 64 (openssl) and 76 characters (base64), hex in 60 (xxd -p). */
static int emit_encoded_lines(struct forms *f, const char *value, struct df_err *err)
{
    enum { SHORT = 57 };
    static const size_t line_bytes[] = {48, 57, 30};
    const unsigned char *v = (const unsigned char *)value;
    size_t n = strlen(value);
    for (size_t i = 0; i < DF_ARRAY_SIZE(line_bytes); i++) {
        for (size_t at = 0, step = line_bytes[i]; n > SHORT && at < n; at += step) {
            size_t here = n - at < step ? n - at : step;
            if ((i == 2 ? emit_hex(f, v + at, here, 0, false, err)
                        : emit_base64(f, v + at, here, 0, false, err)) < 0)
                return -1;
        }
    }
    return 0;
}

/* --- percent encoding ------------------------------------------------------------------------ */

static bool is_alnum(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* True for words that only an encoder of every byte changes; most values are such. */
static bool is_plain_word(const unsigned char *v, size_t n)
{
    while (n && (is_alnum(v[n - 1]) || strchr("-._", v[n - 1])))
        n--;
    return !n;
}

struct percent_style {
    const char *plain; /* unchanged besides letters and digits; NULL: nothing is */
    bool plus;         /* a blank becomes '+' */
};

static int emit_percent(struct forms *f, const unsigned char *v, size_t n,
                        const struct percent_style *style, struct df_err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool plain = style->plain && (is_alnum(v[i]) || strchr(style->plain, v[i]));
        if (style->plus && v[i] == ' ') {
            form_put(&f->out, '+');
        } else if (plain) {
            form_put(&f->out, (char)v[i]);
        } else {
            form_put(&f->out, '%');
            add_hex(&f->out, v[i], upper_hex);
        }
    }
    return emit_as(f, (struct df_redact_form){.fold = true}, err);
}

static int emit_percent_all(struct forms *f, const unsigned char *v, size_t n, struct df_err *err)
{
    static const struct percent_style styles[] = {
        {"-._~", false},              /* RFC 3986; AWS; curl */
        {"-._~", true},               /* forms as Go and Python send them */
        {"-._~/", false},             /* paths */
        {"-._~!'()*", false},         /* encodeURIComponent */
        {"-._*", true},               /* forms as browsers send them */
        {"-._~$&+,;=", false},        /* Go: user and password of a URL */
        {"-._~$&+:=@", false},        /* Go: one segment of a path */
        {"-._~!$&'()*+,;=:@/", false} /* Go: a whole path */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(styles); i++) {
        if (emit_percent(f, v, n, &styles[i], err) < 0)
            return -1;
    }
    return 0;
}

/* --- JSON ------------------------------------------------------------------------------------ */

enum json_style {
    JSON_SLASH = 1,  /* / is escaped */
    JSON_HTML = 2,   /* < > & are \u003c and so on: Go */
    JSON_QUOTES = 4, /* " ' + ` are \u0022 and so on: .NET */
    JSON_ASCII = 8,  /* every character beyond ASCII is \uXXXX */
    JSON_UPPER = 16  /* \u003C */
};

static void add_u(struct form *o, unsigned code, int style)
{
    const char *digits = style & JSON_UPPER ? upper_hex : lower_hex;
    puts_all(o, "\\u");
    add_hex(o, (unsigned char)(code >> 8), digits);
    add_hex(o, (unsigned char)code, digits);
}

/* Length of the UTF-8 character at v; 0 if invalid: the byte is then taken as it is. */
static size_t read_utf8(const unsigned char *v, size_t n, unsigned *ret)
{
    size_t len = v[0] >= 0xf0 ? 4 : v[0] >= 0xe0 ? 3 : v[0] >= 0xc0 ? 2 : 0;
    if (!len || len > n)
        return 0;
    unsigned code = v[0] & (0xffU >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((v[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (v[i] & 0x3fU);
    }
    *ret = code;
    return len;
}

static size_t add_json_wide(struct form *o, const unsigned char *v, size_t n, int style)
{
    unsigned code = 0;
    size_t len = read_utf8(v, n, &code);
    bool line_end = len && (code == 0x2028 || code == 0x2029);
    if (!len || (!(style & JSON_ASCII) && !(line_end && style & JSON_HTML))) {
        form_put(o, (char)v[0]);
        return 1;
    }
    if (code >= 0x10000) {
        add_u(o, 0xd800 + ((code - 0x10000) >> 10), style);
        code = 0xdc00 + ((code - 0x10000) & 0x3ff);
    }
    add_u(o, code, style);
    return len;
}

static void add_json_ascii(struct form *o, unsigned char c, int style)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = strchr(from, c);
    bool as_number = (style & JSON_QUOTES && strchr("\"'+`", c)) ||
                     (style & JSON_HTML && strchr("<>&", c)) || (!at && (c < 0x20 || c == 0x7f));
    if (as_number)
        add_u(o, c, style);
    else if (at) {
        form_put(o, '\\');
        form_put(o, to[at - from]);
    } else if (c == '/' && style & JSON_SLASH)
        puts_all(o, "\\/");
    else
        form_put(o, (char)c);
}

static void add_json(struct form *o, const unsigned char *v, size_t n, int style)
{
    for (size_t i = 0; i < n;) {
        if (v[i] >= 0x80) {
            i += add_json_wide(o, v + i, n - i, style);
        } else {
            add_json_ascii(o, v[i], style);
            i++;
        }
    }
}

/* Emits a string within a string, such as jsonencode() in a plan. */
static int emit_json_twice(struct forms *f, const unsigned char *v, size_t n, struct df_err *err)
{
    struct form once = {.n = 0};
    add_json(&once, v, n, 0);
    add_json(&f->out, (const unsigned char *)once.bytes, once.n, 0);
    explicit_bzero(once.bytes, once.n);
    return emit_form(f, err);
}

static int emit_json_all(struct forms *f, const unsigned char *v, size_t n, struct df_err *err)
{
    static const int styles[] = {0,
                                 JSON_SLASH,
                                 JSON_HTML,
                                 JSON_HTML | JSON_UPPER,
                                 JSON_ASCII,
                                 JSON_ASCII | JSON_UPPER,
                                 JSON_ASCII | JSON_SLASH,
                                 JSON_ASCII | JSON_HTML,
                                 JSON_ASCII | JSON_HTML | JSON_QUOTES | JSON_UPPER};
    for (size_t i = 0; i < DF_ARRAY_SIZE(styles); i++) {
        add_json(&f->out, v, n, styles[i]);
        if (emit_form(f, err) < 0)
            return -1;
    }
    return emit_json_twice(f, v, n, err);
}

/* --- HCL and shell --------------------------------------------------------------------------- */

/* Emits the HCL form: in templates ${ and %{ are doubled, quoted or not. */
static int emit_hcl(struct forms *f, const unsigned char *v, size_t n, bool quoted,
                    struct df_err *err)
{
    for (size_t i = 0; i < n;) {
        if ((v[i] == '$' || v[i] == '%') && i + 1 < n && v[i + 1] == '{')
            form_put(&f->out, (char)v[i]);
        if (quoted && v[i] < 0x80)
            add_json_ascii(&f->out, v[i], 0);
        else
            form_put(&f->out, (char)v[i]);
        i++;
    }
    return emit_form(f, err);
}

struct shell_style {
    const char *special;
    const char *prefix; /* in front of each special character */
    const char *suffix; /* behind it */
};

static int emit_shell(struct forms *f, const unsigned char *v, size_t n,
                      const struct shell_style *style, struct df_err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool special = strchr(style->special, v[i]);
        puts_all(&f->out, special ? style->prefix : "");
        form_put(&f->out, (char)v[i]);
        puts_all(&f->out, special ? style->suffix : "");
    }
    return emit_form(f, err);
}

static int emit_quoted_all(struct forms *f, const unsigned char *v, size_t n, struct df_err *err)
{
    static const struct shell_style styles[] = {
        {"'", "'\\", "'"},                          /* 'it'\''s' */
        {"'", "'\"", "\"'"},                        /* 'it'"'"'s' */
        {"\"$`\\", "\\", ""},                       /* "a\$b" */
        {"'\\", "\\", ""},                          /* $'it\'s' */
        {" \t!\"#$&'()*;<=>?@[\\]^`{|}~", "\\", ""} /* a\ b */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(styles); i++) {
        if (emit_shell(f, v, n, &styles[i], err) < 0)
            return -1;
    }
    return emit_hcl(f, v, n, true, err) < 0 || emit_hcl(f, v, n, false, err) < 0 ? -1 : 0;
}

/* Each blank may be a line break, as in tofu's error texts. */
static int emit_wrapped(struct forms *f, const unsigned char *v, size_t n, struct df_err *err)
{
    enum { BREAKS = 32 };
    size_t breaks = 0;
    for (size_t at = 0; at < n && breaks < BREAKS; at++) {
        if (v[at] != ' ')
            continue;
        breaks++;
        for (size_t i = 0; i < n; i++)
            form_put(&f->out, (char)(i == at ? '\n' : v[i]));
        if (emit_form(f, err) < 0)
            return -1;
    }
    return 0;
}

/* --- values, lines, pieces ------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Trims blanks at the ends of a value, because tools add and remove them. */
static void trim_blanks(const char **s, size_t *n)
{
    while (*n && is_blank((*s)[*n - 1]))
        --*n;
    while (*n && is_blank(**s)) {
        ++*s;
        --*n;
    }
}

/* The value as the view shows it: as a text, and as what an encoder that escapes everything
 * says. */
static int emit_joined(struct forms *f, const unsigned char *v, size_t n, struct df_err *err)
{
    const struct df_redact_form joined = {.joined = true};
    if (n < DF_REDACT_JOINED_MIN)
        return 0;
    for (int escaped = 0; escaped < 2; escaped++) {
        f->out.n = df_unwrap_fold((const char *)v, n, escaped, f->out.bytes);
        if (emit_as(f, joined, err) < 0)
            return -1;
    }
    return emit_base64_all(f, v, n, true, err) < 0 || emit_hex(f, v, n, 0, true, err) < 0 ||
                   emit_hex(f, v, n, ':', true, err) < 0
               ? -1
               : 0;
}

static int emit_piece(struct forms *f, const char *s, size_t n, struct df_err *err)
{
    static const struct percent_style every_byte = {NULL, false};
    trim_blanks(&s, &n);
    if (n < DF_REDACT_MIN)
        return 0;
    const unsigned char *v = (const unsigned char *)s;
    const struct df_redact_form raw = {.bytes = s, .n = n};
    if (f->emit(f->arg, &raw, err) < 0 || emit_base64_all(f, v, n, false, err) < 0 ||
        emit_hex(f, v, n, 0, false, err) < 0 || emit_hex(f, v, n, ':', false, err) < 0 ||
        emit_percent(f, v, n, &every_byte, err) < 0 || emit_joined(f, v, n, err) < 0)
        return -1;
    if (is_plain_word(v, n))
        return 0;
    if (emit_percent_all(f, v, n, err) < 0 || emit_json_all(f, v, n, err) < 0 ||
        emit_wrapped(f, v, n, err) < 0)
        return -1;
    return emit_quoted_all(f, v, n, err);
}

/* Returns the largest position up to n that does not split a UTF-8 character. */
static size_t cut_at(const char *s, size_t n)
{
    size_t cut = n;
    while (cut > n - 4 && ((unsigned char)s[cut] & 0xc0) == 0x80)
        cut--;
    return cut;
}

static int emit_value(struct forms *f, const char *s, size_t n, struct df_err *err)
{
    trim_blanks(&s, &n);
    while (n > DF_REDACT_PIECE) {
        if (emit_piece(f, s, cut_at(s, DF_REDACT_PIECE), err) < 0)
            return -1;
        size_t step = cut_at(s, DF_REDACT_PIECE - DF_REDACT_OVERLAP);
        s += step;
        n -= step;
    }
    return emit_piece(f, s, n, err);
}

static int emit_lines(struct forms *f, const char *value, struct df_err *err)
{
    if (!strchr(value, '\n'))
        return 0;
    for (const char *line = value;;) {
        size_t n = strcspn(line, "\n");
        if (!df_redact_is_nonsecret_line(line, n) && emit_value(f, line, n, err) < 0)
            return -1;
        if (!line[n])
            return 0;
        line += n + 1;
    }
}

int df_redact_forms(const char *value,
                    int (*emit)(void *arg, const struct df_redact_form *form, struct df_err *err),
                    void *arg, struct df_err *err)
{
    struct forms f = {.emit = emit, .arg = arg};
    int result = emit_value(&f, value, strlen(value), err);
    if (result == 0)
        result = emit_encoded_lines(&f, value, err);
    if (result == 0)
        result = emit_lines(&f, value, err);
    explicit_bzero(f.out.bytes, sizeof f.out.bytes);
    return result;
}
