/*
 * hcl.c - chooses the files of a module as the tool does, and gives each to a scanner. Read
 * read_all() first. Override files come last. For OpenTofu a file x.tofu replaces x.tf.
 */
#include "common/hcl/hcl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/hcl/blocks.h"

static const char *const ends[] = {".tofu.json", ".tf.json", ".tofu", ".tf"};

/* The length of a name without its ending, "x.tf.json": 1; 0 without such an ending. */
static size_t stem(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++) {
        if (df_ends_with(name, ends[i]))
            return strlen(name) - strlen(ends[i]);
    }
    return 0;
}

static bool is_tofu(const char *name)
{
    return df_starts_with(name + stem(name), ".tofu");
}

/* Skips hidden files and editors' copies, as the tools do. */
static bool is_configuration(const char *name, enum df_hcl_tool tool)
{
    if (*name == '.' || *name == '#' || stem(name) == 0)
        return false;
    return tool != DF_HCL_TERRAFORM || !is_tofu(name);
}

static bool is_override(const char *name)
{
    size_t n = stem(name), m = strlen("override");
    return n >= m && memcmp(name + n - m, "override", m) == 0 && (n == m || name[n - m - 1] == '_');
}

static int by_order(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int later = is_override(x) - is_override(y);
    return later ? later : strcmp(x, y);
}

static bool is_replaced(const struct df_strs *names, const char *name)
{
    char other[NAME_MAX + sizeof(".tofu.json")];
    const char *key = other;
    (void)snprintf(other, sizeof(other), "%.*s.tofu%s", (int)stem(name), name,
                   df_ends_with(name, ".json") ? ".json" : "");
    return !is_tofu(name) && bsearch(&key, names->items, names->len, sizeof(key), by_order);
}

static int list_files(const char *dir, enum df_hcl_tool tool, struct df_strs *ret,
                      struct df_err *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return df_fail_errno(err, errno, "read directory %s", dir);
    for (const struct dirent *e; ret->len <= DF_LIMIT_HCL_FILES && (e = readdir(d));) {
        if (is_configuration(e->d_name, tool))
            (void)df_strs_add(ret, e->d_name);
    }
    (void)closedir(d);
    if (ret->len > DF_LIMIT_HCL_FILES)
        return df_fail(err, DF_ERR_LIMIT, "%s: the module has more than %d files", dir,
                       DF_LIMIT_HCL_FILES);
    if (ret->len > 0)
        qsort(ret->items, ret->len, sizeof(*ret->items), by_order);
    return df_strs_check(ret, err);
}

/* What is done with one file of a module. */
struct reading {
    int (*take)(struct reading *r, const char *name, const struct df_buf *text, struct df_err *err);
    size_t files;
    struct df_hcl_module *m; /* of df_hcl_scan() */
    int (*visit)(void *arg, const struct df_hcl_literal *l, struct df_err *err);
    void *arg;
};

static int read_hcl_file(struct reading *r, const char *path, const char *name, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HCL_FILE);
    return df_fs_read(path, &text, err) < 0 ? -1 : r->take(r, name, &text, err);
}

/* The tool reports unreadable files; only our own limits and lack of memory are failures here. */
static int read_one(struct reading *r, const char *dir, const char *name, struct df_err *err)
{
    struct stat st;
    struct df_err why = {0};
    DF_FREE char *path = df_fs_join(dir, name);
    if (!path)
        return df_fail_oom(err);
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    r->files++;
    if (read_hcl_file(r, path, name, &why) == 0 ||
        (why.cls != DF_ERR_LIMIT && why.cls != DF_ERR_SYSTEM))
        return 0;
    return df_err_pass(err, &why);
}

static int read_all(struct reading *r, const char *dir, enum df_hcl_tool tool, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    if (list_files(dir, tool, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++) {
        bool replaced = tool == DF_HCL_OPENTOFU && is_replaced(&names, names.items[i]);
        if (!replaced && read_one(r, dir, names.items[i], err) < 0)
            return -1;
    }
    return 0;
}

int df_hcl_scan_text(const char *file, const char *text, size_t n, struct df_hcl_module *m,
                     struct df_err *err)
{
    bool json = df_ends_with(file, ".json");
    return (json ? df_hcl_scan_json : df_hcl_scan_native)(file, text, n, m, err);
}

static int take_blocks(struct reading *r, const char *name, const struct df_buf *text,
                       struct df_err *err)
{
    return df_hcl_scan_text(name, df_buf_str(text), text->len, r->m, err);
}

int df_hcl_scan(const char *dir, enum df_hcl_tool tool, struct df_hcl_module *ret,
                struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct reading r = {.take = take_blocks, .m = &m};
    if (read_all(&r, dir, tool, err) < 0)
        return -1;
    m.files = r.files;
    *ret = m;
    m = (struct df_hcl_module){0};
    return 0;
}

static int take_literals(struct reading *r, const char *name, const struct df_buf *text,
                         struct df_err *err)
{
    (void)name;
    return df_hcl_literals(df_buf_str(text), r->visit, r->arg, err);
}

int df_hcl_literals_in(const char *dir, enum df_hcl_tool tool,
                       int (*visit)(void *arg, const struct df_hcl_literal *l, struct df_err *err),
                       void *arg, struct df_err *err)
{
    struct reading r = {.take = take_literals, .visit = visit, .arg = arg};
    return read_all(&r, dir, tool, err);
}
