/*
 * A scan of the native syntax: skip comments, strings and heredocs, and recognize blocks and
 * attributes by the words, labels and braces between them. take_statement() tells them apart.
 */
#include <ctype.h>

#include "common/hcl/blocks.h"

struct scan {
    const char *p, *end;
    const char *counted; /* line counts the lines up to here */
    unsigned line;
};

/* ---- what is not code ---- */

static bool scan_at(const struct scan *s, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(s->end - s->p) >= n && memcmp(s->p, word, n) == 0;
}

static void skip_to_line_end(struct scan *s)
{
    while (s->p < s->end && *s->p != '\n')
        s->p++;
}

static void skip_block_comment(struct scan *s)
{
    s->p += 2; /* its opening must not be taken for half of the end */
    while (s->p < s->end && !scan_at(s, "*/"))
        s->p++;
    s->p += s->p < s->end ? 2 : 0;
}

/* From after the opening quote to after the closing one. A template "${...}" may contain strings:
 * open is a stack of unclosed quotes and braces. */
static void skip_string(struct scan *s)
{
    char open[64] = {'"'};
    size_t depth = 1;
    while (s->p < s->end && depth > 0) {
        bool in_string = open[depth - 1] == '"';
        char c = *s->p;
        if (in_string && c == '\\') {
            s->p += s->end - s->p > 1 ? 2 : 1;
            continue;
        }
        if (in_string && (scan_at(s, "$${") || scan_at(s, "%%{"))) {
            s->p += 3;
            continue;
        }
        bool template = in_string && (scan_at(s, "${") || scan_at(s, "%{"));
        s->p += template ? 2 : 1;
        if (c == (in_string ? '"' : '}'))
            depth--;
        else if (template || (!in_string && (c == '"' || c == '{'))) {
            if (depth == sizeof(open))
                return; /* tofu would refuse it */
            open[depth++] = c == '"' ? '"' : '}';
        }
    }
}

/* At "<<": skips to after the line of only the closing word, if it is a heredoc. */
static void skip_heredoc(struct scan *s)
{
    s->p += 2;
    if (scan_at(s, "-"))
        s->p++;
    const char *word = s->p;
    while (s->p < s->end && (isalnum((unsigned char)*s->p) || strchr("_-.", *s->p)))
        s->p++;
    size_t n = (size_t)(s->p - word);
    while (n > 0 && s->p < s->end) {
        skip_to_line_end(s);
        while (s->p < s->end && isspace((unsigned char)*s->p))
            s->p++;
        if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
            continue;
        const char *after = s->p + n;
        while (after < s->end && (*after == ' ' || *after == '\t' || *after == '\r'))
            after++;
        if (after == s->end || *after == '\n')
            return;
    }
}

/* Skips a comment, string or heredoc; false if *p is code. */
static bool skip_non_code(struct scan *s)
{
    if (scan_at(s, "#") || scan_at(s, "//"))
        skip_to_line_end(s);
    else if (scan_at(s, "/*"))
        skip_block_comment(s);
    else if (scan_at(s, "<<"))
        skip_heredoc(s);
    else if (scan_at(s, "\"")) {
        s->p++;
        skip_string(s);
    } else
        return false;
    return true;
}

/* ---- words ---- */

static bool starts_word(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t take_word(struct scan *s)
{
    const char *start = s->p;
    while (s->p < s->end && (starts_word(*s->p) || isdigit((unsigned char)*s->p) || *s->p == '-'))
        s->p++;
    return (size_t)(s->p - start);
}

static void skip_blanks(struct scan *s)
{
    for (;;) {
        if (scan_at(s, "/*"))
            skip_block_comment(s);
        else if (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
            s->p++;
        else
            return;
    }
}

static unsigned line_of(struct scan *s, const char *where)
{
    for (; s->counted < where; s->counted++)
        s->line += *s->counted == '\n';
    return s->line;
}

/* ---- blocks and attributes ---- */

/* Skips the labels of a block and its brace; false: it is not a block. */
static bool take_labels(struct scan *s, struct df_strs *labels)
{
    for (;;) {
        skip_blanks(s);
        if (scan_at(s, "{")) {
            s->p++;
            return true;
        }
        const char *start = s->p;
        if (scan_at(s, "\"")) {
            s->p++;
            skip_string(s);
            size_t n = (size_t)(s->p - start) - 1;
            bool closed = n > 0 && s->p[-1] == '"';
            (void)df_strs_take(labels, strndup(start + 1, n - closed));
        } else if (s->p < s->end && starts_word(*s->p))
            (void)df_strs_take(labels, strndup(start, take_word(s)));
        else
            return false;
    }
}

static bool ends_value(struct scan s)
{
    skip_blanks(&s);
    return s.p == s.end || strchr("\r\n}#", *s.p) || scan_at(&s, "//");
}

/* "var.path" is an expression; "1.5" and "string" are not. */
static bool is_traversal(const char *text, size_t n)
{
    return n && starts_word(*text) && memchr(text, '.', n);
}

/* After the "=" of an attribute. The scan continues there, because a value may contain anything. */
static int keep_attribute(struct scan s, struct df_hcl_block *b, const char *name, size_t name_len,
                          struct df_err *err)
{
    skip_blanks(&s);
    const char *start = s.p;
    size_t n;
    if (scan_at(&s, "\"")) {
        s.p++;
        skip_string(&s);
        start++;
        n = s.p > start && s.p[-1] == '"' ? (size_t)(s.p - start) - 1 : 0;
    } else {
        while (s.p < s.end && (isalnum((unsigned char)*s.p) || strchr("_.-", *s.p)))
            s.p++;
        n = (size_t)(s.p - start);
    }
    bool plain =
        ends_value(s) && df_hcl_is_plain(start, n) && (start[-1] == '"' || !is_traversal(start, n));
    return df_hcl_add_attribute(b, name, name_len, plain ? start : NULL, n, err);
}

struct state {
    struct scan s;
    const char *file;
    struct df_hcl_module *m;
    int64_t depth;
    bool in_terraform;
    size_t open;    /* number of the block whose attributes are kept, from 1; 0: none */
    int64_t inside; /* depth of its attributes */
};

static int add_block(struct state *t, unsigned line, const char *type, size_t n,
                     struct df_strs *labels, struct df_err *err)
{
    struct df_hcl_block *b = df_hcl_add(t->m, t->file, line, type, n, err);
    if (!b)
        return -1;
    b->labels = *labels;
    *labels = (struct df_strs){0};
    b->in_terraform = t->depth == 1;
    if (df_hcl_keeps_attributes(b)) {
        t->open = t->m->len;
        t->inside = t->depth + 1;
    }
    return 0;
}

static bool is_assignment(struct scan *s)
{
    skip_blanks(s);
    if (!scan_at(s, "=") || scan_at(s, "==") || scan_at(s, "=>"))
        return false;
    s->p++;
    return true;
}

/* At a word: a block, an attribute, or part of an expression. */
static int take_statement(struct state *t, struct df_err *err)
{
    const char *word = t->s.p;
    size_t n = take_word(&t->s);
    if (t->open && t->depth == t->inside && is_assignment(&t->s))
        return keep_attribute(t->s, &t->m->blocks[t->open - 1], word, n, err);
    if (t->depth > 0 && !(t->depth == 1 && t->in_terraform && df_hcl_is_state_block(word, n)))
        return 0;
    unsigned line = line_of(&t->s, word);
    DF_STRS struct df_strs labels = {0};
    bool opens = take_labels(&t->s, &labels);
    if (df_strs_check(&labels, err) < 0)
        return -1;
    if (!opens)
        return 0;
    if (t->depth == 0)
        t->in_terraform = n == strlen("terraform") && memcmp(word, "terraform", n) == 0;
    if (add_block(t, line, word, n, &labels, err) < 0)
        return -1;
    t->depth++;
    return 0;
}

int df_hcl_scan_native(const char *file, const char *text, size_t n, struct df_hcl_module *m,
                       struct df_err *err)
{
    struct state t = {{text, text + n, text, 1}, file, m};
    if (scan_at(&t.s, "\xef\xbb\xbf"))
        t.s.p += 3; /* byte order mark of Windows editors */
    while (t.s.p < t.s.end) {
        if (skip_non_code(&t.s))
            continue;
        if (starts_word(*t.s.p)) {
            if (take_statement(&t, err) < 0)
                return -1;
            continue;
        }
        t.depth += (*t.s.p == '{') - (*t.s.p == '}');
        if (t.depth < t.inside)
            t.open = 0;
        t.s.p++;
    }
    return 0;
}
