#include "runner/tofu/varvalues.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/json/json.h"
#include "runner/tofu/sealed.h"

#define ARGUMENT "-var-file="

struct search {
    const char *dir;
    const struct df_hcl_module *module;
    struct df_strs *to;
};

/* ---- one file ---- */

static bool is_word(const char *value)
{
    return df_streq(value, "true") || df_streq(value, "false") || df_streq(value, "null");
}

static void add_attributes(const struct search *s, const struct df_hcl_block *assigned)
{
    for (size_t i = 0; i < s->module->len; i++) {
        const struct df_hcl_block *b = &s->module->blocks[i];
        const char *value =
            df_sealed_is_sensitive(b) ? df_hcl_attribute(assigned, b->labels.items[0]) : NULL;
        if (!df_str_empty(value) && !is_word(value))
            (void)df_strs_add(s->to, value);
    }
}

/* A literal of a list, an object or a heredoc. */
static int add_literal(void *arg, const struct df_hcl_literal *l, struct df_err *err)
{
    const struct search *s = arg;
    (void)err;
    for (size_t i = 0; i < s->module->len; i++) {
        const struct df_hcl_block *b = &s->module->blocks[i];
        if (df_sealed_is_sensitive(b) && df_streq(b->labels.items[0], l->top) &&
            !df_str_empty(l->value))
            (void)df_strs_add(s->to, l->value);
    }
    return 0;
}

static void wipe_values(struct df_hcl_module *m)
{
    for (size_t i = 0; i < m->len; i++)
        for (size_t j = 0; j < m->blocks[i].attributes.len; j++)
            explicit_bzero(m->blocks[i].attributes.items[j],
                           strlen(m->blocks[i].attributes.items[j]));
}

/* A .tfvars file has the syntax of a block's body, so it is scanned as one. */
static int scan_native(const struct search *s, const char *text, struct df_err *err)
{
    struct df_buf block = DF_BUF_INIT(DF_LIMIT_HCL_FILE + DF_KIB);
    DF_HCL_MODULE struct df_hcl_module m = {0};
    (void)df_buf_addf(&block, "variable \"v\" {\n%s\n}\n", text);
    int failed = df_buf_check(&block, err) < 0 ||
                 df_hcl_scan_text("v.tf", df_buf_str(&block), block.len, &m, err) < 0;
    if (!failed && m.len)
        add_attributes(s, &m.blocks[0]);
    wipe_values(&m);
    df_buf_wipe(&block);
    struct search found = *s;
    return failed ? -1 : df_hcl_literals(text, add_literal, &found, err);
}

static int scan_json(const struct search *s, const char *text, size_t n, struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = NULL;
    if (df_json_parse(text, n, &doc, err) < 0)
        return -1;
    for (size_t i = 0; i < s->module->len; i++) {
        const struct df_hcl_block *b = &s->module->blocks[i];
        if (df_sealed_is_sensitive(b) &&
            df_sealed_add_leaves(s->to, cJSON_GetObjectItemCaseSensitive(doc, b->labels.items[0]),
                                 err) < 0)
            return -1;
    }
    return 0;
}

static int read_values_file(const struct search *s, const char *path, struct df_err *err)
{
    struct df_buf text = DF_BUF_INIT(DF_LIMIT_HCL_FILE);
    int failed = df_fs_read(path, &text, err) < 0 ||
                 (df_ends_with(path, ".json") ? scan_json(s, df_buf_str(&text), text.len, err)
                                              : scan_native(s, df_buf_str(&text), err)) < 0;
    df_buf_wipe(&text);
    return failed ? -1 : 0;
}

static int scan_values_file(const struct search *s, const char *file, struct df_err *err)
{
    struct stat st;
    struct df_err why = {0};
    DF_FREE char *path = *file == '/' ? strdup(file) : df_fs_join(s->dir, file);
    if (!path)
        return df_fail_oom(err);
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || read_values_file(s, path, &why) == 0 ||
        (why.cls != DF_ERR_LIMIT && why.cls != DF_ERR_SYSTEM))
        return df_strs_check(s->to, err);
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "%s", file);
}

/* ---- all of them ---- */

static bool is_read_by_itself(const char *name)
{
    return df_streq(name, "terraform.tfvars") || df_streq(name, "terraform.tfvars.json") ||
           df_ends_with(name, ".auto.tfvars") || df_ends_with(name, ".auto.tfvars.json");
}

static int scan_directory(const struct search *s, struct df_err *err)
{
    int result = 0;
    DIR *d = opendir(s->dir);
    if (!d)
        return df_fail_errno(err, errno, "read directory %s", s->dir);
    for (const struct dirent *e; result == 0 && (e = readdir(d));)
        if (is_read_by_itself(e->d_name))
            result = scan_values_file(s, e->d_name, err);
    (void)closedir(d);
    return result;
}

int df_varvalues_collect(const char *module_dir, const struct df_strs *arguments,
                         const struct df_hcl_module *module, struct df_strs *to, struct df_err *err)
{
    const struct search s = {module_dir, module, to};
    bool any = false;
    for (size_t i = 0; i < module->len && !any; i++)
        any = df_sealed_is_sensitive(&module->blocks[i]);
    if (!any)
        return 0;
    for (size_t i = 0; i < arguments->len; i++)
        if (df_starts_with(arguments->items[i], ARGUMENT) &&
            scan_values_file(&s, arguments->items[i] + strlen(ARGUMENT), err) < 0)
            return -1;
    return scan_directory(&s, err);
}
