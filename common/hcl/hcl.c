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

static int read_hcl_file(const char *path, const char *name, struct df_hcl_module *m,
                         struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HCL_FILE);
    if (df_fs_read(path, &text, err) < 0)
        return -1;
    return df_hcl_scan_text(name, df_buf_str(&text), text.len, m, err);
}

/* The tool reports unreadable files; only our own limits and lack of memory are failures here. */
static int scan_file(const char *dir, const char *name, struct df_hcl_module *m, struct df_err *err)
{
    struct stat st;
    struct df_err why = {0};
    DF_FREE char *path = df_fs_join(dir, name);
    if (!path)
        return df_fail_oom(err);
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    m->files++;
    if (read_hcl_file(path, name, m, &why) == 0 ||
        (why.cls != DF_ERR_LIMIT && why.cls != DF_ERR_SYSTEM))
        return 0;
    return df_err_pass(err, &why);
}

int df_hcl_scan_text(const char *file, const char *text, size_t n, struct df_hcl_module *m,
                     struct df_err *err)
{
    bool json = df_ends_with(file, ".json");
    return (json ? df_hcl_scan_json : df_hcl_scan_native)(file, text, n, m, err);
}

int df_hcl_scan(const char *dir, enum df_hcl_tool tool, struct df_hcl_module *ret,
                struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    if (list_files(dir, tool, &names, err) < 0)
        return -1;
    DF_HCL_MODULE struct df_hcl_module m = {0};
    for (size_t i = 0; i < names.len; i++) {
        bool replaced = tool == DF_HCL_OPENTOFU && is_replaced(&names, names.items[i]);
        if (!replaced && scan_file(dir, names.items[i], &m, err) < 0)
            return -1;
    }
    *ret = m;
    m = (struct df_hcl_module){0};
    return 0;
}
