#include "common/hcl/calls.h"

#include "common/base/fs.h"
#include "common/base/limits.h"

bool df_hcl_is_local(const char *source)
{
    return df_starts_with(source, "./") || df_starts_with(source, "../") || df_streq(source, ".") ||
           df_streq(source, "..");
}

/* Appends one part of a path to an absolute one. */
static void add_part(struct df_buf *path, const char *part, size_t n)
{
    if (n == 0 || (n == 1 && *part == '.'))
        return;
    if (n != 2 || memcmp(part, "..", n) != 0) {
        (void)df_buf_addf(path, "/%.*s", (int)n, part);
        return;
    }
    const char *slash = strrchr(df_buf_str(path), '/');
    path->len = slash ? (size_t)(slash - path->data) : 0;
    if (path->data)
        path->data[path->len] = '\0';
}

char *df_hcl_path(const char *directory, const char *path)
{
    const char *const both[] = {directory, path};
    DF_BUF struct df_buf out = DF_BUF_INIT(strlen(directory) + strlen(path) + 2);
    for (size_t i = 0; i < DF_ARRAY_SIZE(both); i++) {
        for (const char *p = both[i]; *p; p += strspn(p, "/")) {
            size_t n = strcspn(p, "/");
            add_part(&out, p, n);
            p += n;
        }
    }
    if (df_buf_check(&out, NULL) < 0)
        return NULL;
    return strdup(out.len ? df_buf_str(&out) : "/");
}

struct search {
    enum df_hcl_tool tool;
    int (*visit)(void *arg, const struct df_hcl_call *call, struct df_err *err);
    void *arg;
    struct df_strs directories; /* those that were seen, in the order in which they are read */
};

static int take_call(struct search *s, const char *directory, const struct df_hcl_block *b,
                     struct df_err *err)
{
    const char *source = df_hcl_attribute(b, "source");
    if (!df_streq(b->type, "module") || !source || !df_hcl_is_local(source))
        return 0;
    DF_FREE char *target = df_hcl_path(directory, source);
    if (!target)
        return df_fail_oom(err);
    const struct df_hcl_call call = {.directory = directory,
                                     .name = b->labels.len ? b->labels.items[0] : "",
                                     .source = source,
                                     .target = target,
                                     .file = b->file,
                                     .line = b->line};
    if (s->visit(s->arg, &call, err) < 0)
        return -1;
    if (!df_strs_add_new(&s->directories, target))
        return df_strs_check(&s->directories, err);
    return s->directories.len > DF_LIMIT_LOCAL_MODULES
               ? df_fail(err, DF_ERR_LIMIT, "%s: more than %d local modules", directory,
                         DF_LIMIT_LOCAL_MODULES)
               : 0;
}

/* The tool reports what it cannot read; only our own limits and lack of memory are failures
 * here. */
static int read_directory(struct search *s, const char *directory, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err why = {0};
    if (df_hcl_scan(directory, s->tool, &m, &why) < 0)
        return why.cls == DF_ERR_LIMIT ? df_err_pass(err, &why) : 0;
    for (size_t i = 0; i < m.len; i++)
        if (take_call(s, directory, &m.blocks[i], err) < 0)
            return -1;
    return 0;
}

int df_hcl_calls(const char *directory, enum df_hcl_tool tool,
                 int (*visit)(void *arg, const struct df_hcl_call *call, struct df_err *err),
                 void *arg, struct df_err *err)
{
    struct search s = {.tool = tool, .visit = visit, .arg = arg};
    (void)df_strs_add(&s.directories, directory);
    int result = df_strs_check(&s.directories, err);
    for (size_t i = 0; result == 0 && i < s.directories.len; i++) {
        DF_FREE char *next = strdup(s.directories.items[i]); /* the list may move */
        result = next ? read_directory(&s, next, err) : df_fail_oom(err);
    }
    df_strs_free(&s.directories);
    return result;
}
