#include "common/process/mounts.h"

#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"

/* ---- /proc/self/mountinfo: id parent device root point ... ---- */

/* Blanks and the like stand there as "\040"; decodes in place. */
static void decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in; out++) {
        bool is_escape = in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' &&
                         in[2] <= '7' && in[3] >= '0' && in[3] <= '7';
        *out = is_escape ? (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + in[3] - '0') : *in;
        in += is_escape ? 4 : 1;
    }
    *out = '\0';
}

/* A copy of the n-th word of a line, decoded; NULL: no memory. */
static char *word(const char *line, int n)
{
    for (; n > 0; n--) {
        line += strcspn(line, " \n");
        line += *line == ' ';
    }
    char *copy = strndup(line, strcspn(line, " \n"));
    if (copy)
        decode(copy);
    return copy;
}

static int add_row(struct df_mounts *m, const char *line, struct df_err *err)
{
    struct df_mount *more = reallocarray(m->rows, m->len + 1, sizeof(*more));
    if (!more)
        return df_fail_oom(err);
    m->rows = more;
    struct df_mount *row = &m->rows[m->len++];
    *row = (struct df_mount){.device = word(line, 2), .root = word(line, 3), .real = word(line, 4)};
    return row->device && row->root && row->real ? 0 : df_fail_oom(err);
}

int df_mounts_read(struct df_mounts *ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_MOUNTINFO);
    DF_MOUNTS struct df_mounts m = {0};
    if (df_fs_read("/proc/self/mountinfo", &text, err) < 0)
        return -1;
    for (const char *line = df_buf_str(&text); *line;) {
        if (add_row(&m, line, err) < 0)
            return -1;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    *ret = m;
    m = (struct df_mounts){0};
    return 0;
}

void df_mounts_free(struct df_mounts *m)
{
    for (size_t i = 0; i < m->len; i++) {
        free(m->rows[i].device);
        free(m->rows[i].root);
        free(m->rows[i].real);
    }
    free(m->rows);
    *m = (struct df_mounts){0};
}

/* ---- other names ---- */

/* The mount that shows this path: the innermost, and of several at one place the last. */
static const struct df_mount *mount_of(const struct df_mounts *m, const char *real)
{
    const struct df_mount *found = NULL;
    for (size_t i = 0; i < m->len; i++)
        if (df_fs_is_within(real, m->rows[i].real) &&
            (!found || strlen(m->rows[i].real) >= strlen(found->real)))
            found = &m->rows[i];
    return found;
}

/* Joins a directory and what is below it, "" or "/x". */
static char *below(const char *directory, const char *rest)
{
    return df_strf("%s%s", strcmp(directory, "/") == 0 && *rest ? "" : directory, rest);
}

/* What path has behind the directory in which it is: "" or "/x". */
static const char *rest_of(const char *path, const char *directory)
{
    return path + (strcmp(directory, "/") == 0 && path[1] ? 0 : strlen(directory));
}

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* whole: the path within the file system. Something else may be mounted over the place. */
static void add_place(const struct df_mount *row, const char *whole, const char *real,
                      struct df_strs *ret)
{
    DF_FREE char *name = below(row->real, rest_of(whole, row->root));
    if (!name || (strcmp(name, real) != 0 && is_same(name, real)))
        (void)df_strs_take(ret, DF_TAKE(name));
}

void df_mounts_other_names(const struct df_mounts *m, const char *real, struct df_strs *ret)
{
    const struct df_mount *own = mount_of(m, real);
    DF_FREE char *whole = own ? below(own->root, rest_of(real, own->real)) : NULL;
    if (own && !whole)
        (void)df_strs_take(ret, NULL);
    for (size_t i = 0; whole && i < m->len; i++) {
        const struct df_mount *row = &m->rows[i];
        if (strcmp(row->device, own->device) != 0)
            continue;
        if (df_fs_is_within(whole, row->root))
            add_place(row, whole, real, ret);
        else if (df_fs_is_within(row->root, whole) && !df_fs_is_within(row->real, real))
            (void)df_strs_add(ret, row->real);
    }
}
