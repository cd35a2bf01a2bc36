#include "common/archive/names.h"

#include <search.h>
#include <stdarg.h>
#include <strings.h>

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

struct name {
    enum df_name_kind kind;
    char path[];
};

DF_PRINTF(3, 0)
static int names_refuse(struct df_err *err, enum df_err_class cls, const char *fmt, va_list ap)
{
    char text[1024];
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    return df_fail_reason(err, cls, "SourceRefused", "archive refused: %s", text);
}

int df_archive_refuse(struct df_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)names_refuse(err, DF_ERR_USER, fmt, ap);
    va_end(ap);
    return -1;
}

int df_archive_too_much(struct df_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)names_refuse(err, DF_ERR_LIMIT, fmt, ap);
    va_end(ap);
    return -1;
}

void df_names_free(struct df_names *n)
{
    tdestroy(n->tree, free);
    n->tree = NULL;
}

static int names_compare(const void *a, const void *b)
{
    return strcasecmp(((const struct name *)a)->path, ((const struct name *)b)->path);
}

/* The entry for this path, ignoring case: a new one or an older one. */
static const struct name *find_or_add(struct df_names *n, const char *path, size_t len,
                                      enum df_name_kind kind, bool *ret_new)
{
    struct name *fresh = malloc(sizeof(*fresh) + len + 1);
    if (!fresh)
        return NULL;
    fresh->kind = kind;
    memcpy(fresh->path, path, len);
    fresh->path[len] = '\0';
    struct name **found = tsearch(fresh, &n->tree, names_compare);
    *ret_new = found && *found == fresh;
    if (!*ret_new)
        free(fresh);
    return found ? *found : NULL;
}

static int add_one(struct df_names *n, const char *path, size_t len, enum df_name_kind kind,
                   struct df_err *err)
{
    bool is_new = false;
    const struct name *there = find_or_add(n, path, len, kind, &is_new);
    if (!there)
        return df_fail_oom(err);
    if (is_new)
        return 0;
    if (strlen(there->path) != len || memcmp(there->path, path, len) != 0)
        return df_archive_refuse(err, "\"%.*s\" and \"%s\" differ by case only", (int)len, path,
                                 there->path);
    if (kind == DF_NAME_DIRECTORY && there->kind != DF_NAME_DIRECTORY)
        return df_archive_refuse(err, "\"%.*s\" is a directory and something else, too", (int)len,
                                 path);
    if (kind != DF_NAME_DIRECTORY)
        return df_archive_refuse(err, "\"%.*s\" is there twice", (int)len, path);
    return 0;
}

int df_names_add(struct df_names *n, const char *path, enum df_name_kind kind, struct df_err *err)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        if (add_one(n, path, (size_t)(slash - path), DF_NAME_DIRECTORY, err) < 0)
            return -1;
    return add_one(n, path, strlen(path), kind, err);
}

/* Copies the name for a message, without control characters. */
static void printable(const char *raw, char to[128])
{
    size_t n = 0;
    for (; *raw && n < 127; raw++)
        to[n++] = (unsigned char)*raw < 0x20 || (unsigned char)*raw >= 0x7f ? '?' : *raw;
    to[n] = '\0';
}

static int check_text(const char *raw, const char *shown, struct df_err *err)
{
    if (strlen(raw) > DF_LIMIT_ARCHIVE_PATH)
        return df_archive_too_much(err, "the name \"%s...\" is longer than %d bytes", shown,
                                   DF_LIMIT_ARCHIVE_PATH);
    if (df_has_control(raw))
        return df_archive_refuse(err, "the name \"%s\" holds a control character", shown);
    if (!df_is_utf8(raw, strlen(raw)))
        return df_archive_refuse(err, "the name \"%s\" is not UTF-8", shown);
    if (*raw == '/')
        return df_archive_refuse(err, "the name \"%s\" is absolute", shown);
    return 0;
}

int df_name_clean(const char *raw, char **ret, struct df_err *err)
{
    char shown[128];
    printable(raw, shown);
    if (check_text(raw, shown, err) < 0)
        return -1;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_LIMIT_ARCHIVE_PATH);
    int depth = 0;
    for (const char *p = raw; *p;) {
        size_t n = strcspn(p, "/");
        bool dot = n == 1 && *p == '.';
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return df_archive_refuse(err, "the name \"%s\" leads out with \"..\"", shown);
        if (n > 255 || (n && !dot && ++depth > DF_LIMIT_ARCHIVE_DEPTH))
            return df_archive_too_much(err, "the name \"%s\" is too long or too deep", shown);
        if (n && !dot) {
            (void)df_buf_addf(&b, "%s%.*s", b.len ? "/" : "", (int)n, p);
        }
        p += n + strspn(p + n, "/");
    }
    if (df_buf_check(&b, err) < 0)
        return -1;
    return df_check_alloc(*ret = df_buf_take(&b), err);
}
