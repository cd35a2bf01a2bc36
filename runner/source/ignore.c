/*
 * Reads and matches the patterns of .terraformignore. Two matchers: match_name() for one part of a
 * path, match_parts() for several with "**"; neither takes more than pattern times path.
 */
#include "runner/source/ignore.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "common/base/limits.h"

void df_ignore_free(struct df_ignore *g)
{
    for (size_t i = 0; i < g->len; i++) {
        free(g->rules[i].base);
        free(g->rules[i].pattern);
    }
    free(g->rules);
    *g = (struct df_ignore){0};
}

/* ---- rules ---- */

static int add_rule(struct df_ignore *g, const struct df_ignore_rule *rule, struct df_err *err)
{
    if (g->len >= DF_LIMIT_IGNORE_RULES)
        return df_fail_reason(err, DF_ERR_LIMIT, "SourceRefused",
                              DF_IGNORE_FILE ": more than %d rules", DF_LIMIT_IGNORE_RULES);
    struct df_ignore_rule *rules = reallocarray(g->rules, g->len + 1, sizeof(*rules));
    if (!rules)
        return df_fail_oom(err);
    g->rules = rules;
    g->rules[g->len++] = *rule;
    return 0;
}

static int add_line(struct df_ignore *g, const char *base, const char *line, size_t n,
                    struct df_err *err)
{
    struct df_ignore_rule rule = {0};
    while (n && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    if (!n || *line == '#')
        return 0;
    rule.is_negated = *line == '!';
    line += rule.is_negated;
    n -= rule.is_negated;
    rule.is_for_directories = n && line[n - 1] == '/';
    n -= rule.is_for_directories;
    rule.is_anchored = memchr(line, '/', n) != NULL;
    bool has_slash = n && *line == '/';
    line += has_slash;
    n -= has_slash;
    if (!n)
        return 0;
    rule.base = strdup(base);
    rule.pattern = strndup(line, n);
    if (rule.base && rule.pattern && add_rule(g, &rule, err) == 0)
        return 0;
    int failed = rule.base && rule.pattern ? -1 : df_fail_oom(err);
    free(rule.base);
    free(rule.pattern);
    return failed;
}

int df_ignore_add(struct df_ignore *g, const char *base, const char *text, struct df_err *err)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (add_line(g, base, text, n, err) < 0)
            return -1;
        text += n + (text[n] == '\n');
    }
    return 0;
}

int df_ignore_read(struct df_ignore *g, int directory, const char *base, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_IGNORE_FILE);
    /* O_NONBLOCK: it may be a fifo, which the copy refuses. */
    DF_CLOSE int fd =
        openat(directory, DF_IGNORE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (df_fs_read_fd(fd, &text, err) < 0) {
        (void)df_err_reason(err, "SourceRefused");
        return df_err_wrap(err, "%s%s" DF_IGNORE_FILE, base, *base ? "/" : "");
    }
    return df_ignore_add(g, base, df_buf_str(&text), err);
}

/* ---- matching ---- */

struct piece {
    const char *p;
    size_t n;
};

/* At "[": does the class have c? *ret_n: its length; 0: it has no end and is a plain character. */
static bool class_has(struct piece s, char c, size_t *ret_n)
{
    size_t i = 1;
    bool is_negated = i < s.n && (s.p[i] == '!' || s.p[i] == '^'), found = false;
    i += is_negated;
    for (size_t first = i; i < s.n && (s.p[i] != ']' || i == first); i++) {
        bool is_range = i + 2 < s.n && s.p[i + 1] == '-' && s.p[i + 2] != ']';
        found |= is_range ? s.p[i] <= c && c <= s.p[i + 2] : s.p[i] == c;
        i += is_range ? 2 : 0;
    }
    *ret_n = i < s.n ? i + 1 : 0;
    return found != is_negated;
}

/* Does the first item of the pattern match the character? *ret_n: the length of the item. */
static bool match_one(struct piece s, char c, size_t *ret_n)
{
    *ret_n = 1;
    if (*s.p == '?')
        return true;
    if (*s.p == '[') {
        bool has = class_has(s, c, ret_n);
        if (*ret_n)
            return has;
        *ret_n = 1;
    }
    bool is_escaped = *s.p == '\\' && s.n > 1;
    *ret_n += is_escaped;
    return s.p[is_escaped] == c;
}

/* Goes back to the last "*" only: what an earlier one takes is of no consequence. */
static bool match_name(struct piece pattern, struct piece name)
{
    size_t i = 0, k = 0, star = SIZE_MAX, from = 0, n;
    while (k < name.n) {
        if (i < pattern.n && pattern.p[i] == '*') {
            star = ++i;
            from = k;
        } else if (i < pattern.n &&
                   match_one((struct piece){pattern.p + i, pattern.n - i}, name.p[k], &n)) {
            i += n;
            k++;
        } else if (star != SIZE_MAX) {
            i = star;
            k = ++from;
        } else
            return false;
    }
    while (i < pattern.n && pattern.p[i] == '*')
        i++;
    return i == pattern.n;
}

/* The first part of a path; *rest: what is behind its slash, n 0: nothing. */
static struct piece first_part(struct piece path, struct piece *rest)
{
    const char *slash = memchr(path.p, '/', path.n);
    size_t n = slash ? (size_t)(slash - path.p) : path.n;
    size_t skipped = n + (slash != NULL);
    *rest = (struct piece){path.p + skipped, path.n - skipped};
    return (struct piece){path.p, n};
}

/* As match_name(), part by part: "**" is the star. At the end of a pattern it needs one part. */
static bool match_parts(struct piece pattern, struct piece path)
{
    struct piece star = {0}, from = {0}, after, rest;
    bool has_star = false;
    while (path.n) {
        struct piece part = pattern.n ? first_part(pattern, &after) : (struct piece){0};
        if (part.n == 2 && memcmp(part.p, "**", 2) == 0) {
            if (!after.n)
                return true;
            has_star = true;
            star = pattern = after;
            from = path;
        } else if (pattern.n && match_name(part, first_part(path, &rest))) {
            pattern = after;
            path = rest;
        } else if (has_star) {
            (void)first_part(from, &rest);
            from = path = rest;
            pattern = star;
        } else
            return false;
    }
    return !pattern.n;
}

static bool matches(const struct df_ignore_rule *r, const char *path, bool is_directory)
{
    size_t n = strlen(r->base);
    if ((n && (strncmp(path, r->base, n) != 0 || path[n] != '/')) ||
        (r->is_for_directories && !is_directory))
        return false;
    const char *below = path + n + (n > 0), *slash = strrchr(below, '/');
    const char *name = slash && !r->is_anchored ? slash + 1 : below;
    return match_parts((struct piece){r->pattern, strlen(r->pattern)},
                       (struct piece){name, strlen(name)});
}

enum df_ignore_word df_ignore_of(const struct df_ignore *g, const char *path, bool is_directory)
{
    for (size_t i = g->len; i > 0; i--)
        if (matches(&g->rules[i - 1], path, is_directory))
            return g->rules[i - 1].is_negated ? DF_IGNORE_KEPT : DF_IGNORE_LEFT_OUT;
    return DF_IGNORE_NOTHING;
}
