/*
 * The string literals of an expression or of a variable file, each with the names before it. It
 * knows strings, heredocs, comments and brackets, and takes templates in strings as text.
 */
#include <ctype.h>

#include "common/base/buf.h"
#include "common/hcl/hcl.h"

enum { NAME_SIZE = 256 };

struct literals {
    const char *p, *end;
    int depth;
    bool is_broken;      /* a bracket closed nothing, or a string, heredoc or comment has no end */
    bool has_template;   /* "${" or "%{": what follows has strings of its own, which are not read */
    char top[NAME_SIZE]; /* the attribute at depth 0 */
    char last[NAME_SIZE]; /* the name before p, of an attribute or a member */
    struct df_buf value;
    int (*visit)(void *arg, const struct df_hcl_literal *l, struct df_err *err);
    void *arg;
};

static bool starts(const struct literals *s, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(s->end - s->p) >= n && memcmp(s->p, word, n) == 0;
}

static void keep_name(char to[NAME_SIZE], const char *name, size_t n)
{
    size_t kept = n < NAME_SIZE - 1 ? n : NAME_SIZE - 1;
    memcpy(to, name, kept);
    to[kept] = '\0';
}

/* A string that '=' or ':' follows is the name of what comes next. */
static bool is_name(const struct literals *s)
{
    const char *p = s->p;
    while (p < s->end && (*p == ' ' || *p == '\t'))
        p++;
    return p < s->end && (*p == ':' || (*p == '=' && (p + 1 == s->end || p[1] != '=')));
}

static int take_value(struct literals *s, struct df_err *err)
{
    const struct df_hcl_literal l = {s->top, s->last, df_buf_str(&s->value)};
    if (df_buf_check(&s->value, err) < 0)
        return -1;
    if (is_name(s)) {
        keep_name(s->last, l.value, strlen(l.value));
        return 0;
    }
    return s->visit(s->arg, &l, err);
}

static void take_escape(struct literals *s)
{
    static const char from[] = "nrt", to[] = "\n\r\t";
    const char *at = strchr(from, s->p[1]);
    (void)df_buf_addc(&s->value, at && *at ? to[at - from] : s->p[1]);
    s->p += 2;
}

static int take_string(struct literals *s, struct df_err *err)
{
    df_buf_clear(&s->value);
    for (s->p++; s->p < s->end && *s->p != '"';) {
        if (*s->p == '\\' && s->p + 1 < s->end) {
            take_escape(s);
            continue;
        }
        if ((starts(s, "$${") || starts(s, "%%{")) && s->p[-1] != *s->p)
            s->p++;
        else
            s->has_template |= starts(s, "${") || starts(s, "%{");
        (void)df_buf_addc(&s->value, *s->p++);
    }
    s->is_broken |= s->p == s->end;
    s->p += s->p < s->end;
    return take_value(s, err);
}

static const char *line_end(const struct literals *s)
{
    const char *end = memchr(s->p, '\n', (size_t)(s->end - s->p));
    return end ? end : s->end;
}

/* True if the line has nothing but the word of the heredoc, and white space. */
static bool is_last_line(const struct literals *s, const char *word, const char *end)
{
    const char *p = s->p + strlen(word);
    if (!starts(s, word))
        return false;
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p >= end;
}

/* At "<<": the lines up to the closing word, without their indentation. */
static int take_heredoc(struct literals *s, struct df_err *err)
{
    char word[NAME_SIZE];
    bool closes = false;
    s->p += starts(s, "<<-") ? 3 : 2;
    const char *end = line_end(s);
    size_t n = (size_t)(end - s->p);
    while (n && isspace((unsigned char)s->p[n - 1]))
        n--;
    keep_name(word, s->p, n);
    df_buf_clear(&s->value);
    for (s->p = end < s->end ? end + 1 : end; !closes && s->p < s->end;) {
        end = line_end(s);
        while (s->p < end && (*s->p == ' ' || *s->p == '\t'))
            s->p++;
        closes = is_last_line(s, word, end);
        s->has_template |= memmem(s->p, (size_t)(end - s->p), "${", 2) ||
                           memmem(s->p, (size_t)(end - s->p), "%{", 2);
        if (!closes)
            (void)df_buf_add(&s->value, s->p, (size_t)(end - s->p) + (end < s->end));
        s->p = end < s->end ? end + 1 : end;
    }
    s->is_broken |= !closes;
    return take_value(s, err);
}

static void skip_comment(struct literals *s)
{
    const char *end =
        starts(s, "/*") ? memmem(s->p + 2, (size_t)(s->end - s->p) - 2, "*/", 2) : line_end(s);
    s->is_broken |= !end;
    s->p = end ? end + (starts(s, "/*") ? 2 : 0) : s->end;
}

static void take_word(struct literals *s)
{
    const char *from = s->p;
    while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '_' || *s->p == '-'))
        s->p++;
    if (!is_name(s))
        return;
    keep_name(s->last, from, (size_t)(s->p - from));
    if (s->depth == 0)
        keep_name(s->top, from, (size_t)(s->p - from));
}

static int take_next(struct literals *s, struct df_err *err)
{
    char c = *s->p;
    if (c == '"')
        return take_string(s, err);
    if (starts(s, "<<"))
        return take_heredoc(s, err);
    if (c == '#' || starts(s, "//") || starts(s, "/*"))
        skip_comment(s);
    else if (isalnum((unsigned char)c) || c == '_')
        take_word(s);
    else {
        s->depth += strchr("{[(", c) ? 1 : strchr("}])", c) ? -1 : 0;
        s->is_broken |= s->depth < 0;
        s->p++;
    }
    return 0;
}

static int take_all(struct literals *s, struct df_err *err)
{
    int result = 0;
    s->end = s->p + strlen(s->p);
    s->value = DF_BUF_INIT((size_t)(s->end - s->p) + 1);
    while (result == 0 && s->p < s->end)
        result = take_next(s, err);
    df_buf_wipe(&s->value);
    explicit_bzero(s->last, sizeof s->last);
    return result;
}

int df_hcl_literals(const char *text,
                    int (*visit)(void *arg, const struct df_hcl_literal *l, struct df_err *err),
                    void *arg, struct df_err *err)
{
    struct literals s = {.p = text, .visit = visit, .arg = arg};
    return take_all(&s, err);
}

static int ignore(void *arg, const struct df_hcl_literal *l, struct df_err *err)
{
    (void)arg, (void)l, (void)err;
    return 0;
}

bool df_hcl_is_closed(const char *text)
{
    struct literals s = {.p = text, .visit = ignore};
    return take_all(&s, NULL) == 0 && !s.is_broken && !s.has_template && s.depth == 0;
}
