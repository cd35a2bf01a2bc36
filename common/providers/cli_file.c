/*
 * Finds the files as the tools do, and makes one text of them: the configuration as it is, in its
 * own syntax, and the tokens of `login`, which the tools read from a file of their own. Read
 * df_cli_file_read() at the end first.
 */
#include "common/providers/cli_file.h"

#include <ctype.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/hcl/hcl.h"
#include "common/json/json.h"

/* Settings of the plugin cache: a step has one of its own, and another HOME. */
static const char *const left_out[] = {"plugin_cache_dir",
                                       "plugin_cache_may_break_dependency_lock_file"};

void df_cli_file_free(struct df_cli_file *f)
{
    df_str_wipe(&f->text);
    df_strs_free(&f->names);
}

/* ---- where the files are ---- */

/* Sets *ret to the file below a directory of the environment, if it is not set and there is one. */
static int find_below(const char *variable, const char *name, char **ret, struct df_err *err)
{
    const char *directory = getenv(variable);
    if (*ret || df_str_empty(directory))
        return 0;
    DF_FREE char *path = df_fs_join(directory, name);
    if (!path)
        return df_fail_oom(err);
    if (df_fs_exists(path))
        *ret = DF_TAKE(path);
    return 0;
}

/* ~/.tofurc, ~/.terraformrc; where there is neither, OpenTofu looks in XDG_CONFIG_HOME. */
static int find_configuration(bool is_terraform, char **ret, struct df_err *err)
{
    if ((!is_terraform && find_below("HOME", ".tofurc", ret, err) < 0) ||
        find_below("HOME", ".terraformrc", ret, err) < 0)
        return -1;
    return is_terraform ? 0 : find_below("XDG_CONFIG_HOME", "opentofu/tofurc", ret, err);
}

/* The directory of the tokens is ~/.terraform.d, if it is there. */
static int find_tokens(bool is_terraform, char **ret, struct df_err *err)
{
    DF_FREE char *old = NULL;
    if (find_below("HOME", ".terraform.d", &old, err) < 0 ||
        find_below("HOME", ".terraform.d/credentials.tfrc.json", ret, err) < 0)
        return -1;
    return old || is_terraform
               ? 0
               : find_below("XDG_CONFIG_HOME", "opentofu/credentials.tfrc.json", ret, err);
}

static int add_name(struct df_cli_file *f, const char *path, struct df_err *err)
{
    const char *home = getenv("HOME");
    size_t cut = home && *home && df_fs_is_within(path, home) ? strlen(home) : 0;
    (void)df_strs_addf(&f->names, "%s%s", cut ? "~" : "", path + cut);
    return df_strs_check(&f->names, err);
}

static int read_file(struct df_cli_file *f, const char *path, struct df_buf *out,
                     struct df_err *err)
{
    if (df_fs_read(path, out, err) < 0) {
        err->cls = err->cls == DF_ERR_LIMIT ? err->cls : DF_ERR_USER;
        return -1;
    }
    return add_name(f, path, err);
}

/* ---- tokens ---- */

/* Reads {"credentials": {HOST: {"token": TEXT}}}. *ret: NULL: there is none; the caller wipes. */
static int read_tokens(struct df_cli_file *f, bool is_terraform, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = NULL;
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_CLI_FILE);
    DF_SECRET_JSON cJSON *doc = NULL;
    if (find_tokens(is_terraform, &path, err) < 0)
        return -1;
    if (!path)
        return 0;
    if (read_file(f, path, &text, err) < 0)
        return -1;
    if (df_json_parse(df_buf_str(&text), text.len, &doc, err) < 0)
        return df_err_wrap(err, "%s", path);
    *ret = cJSON_DetachItemFromObjectCaseSensitive(doc, "credentials");
    return 0;
}

/* Both syntaxes expand ${...}, and neither a host nor a token has such bytes. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (!isgraph((unsigned char)*text) || strchr("\"\\$%", *text))
            return false;
    return true;
}

static int check_token(const cJSON *entry, const char **ret, struct df_err *err)
{
    *ret = df_json_str(entry, "token");
    if (!*ret || (is_plain(entry->string) && is_plain(*ret)))
        return 0;
    return df_fail(
        err, DF_ERR_USER,
        "credentials.tfrc.json: the host \"%.64s\" or its token has a character that is not "
        "allowed there",
        entry->string);
}

/* ---- the native syntax ---- */

static bool is_left_out(const char *line, size_t n)
{
    size_t blank = strspn(line, " \t");
    for (size_t i = 0; i < DF_ARRAY_SIZE(left_out); i++) {
        size_t m = strlen(left_out[i]);
        if (blank + m < n && memcmp(line + blank, left_out[i], m) == 0 &&
            strchr(" \t=", line[blank + m]))
            return true;
    }
    return false;
}

static void add_lines(const char *text, struct df_buf *out)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (!is_left_out(text, n))
            (void)df_buf_addf(out, "%.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static bool has_block(const struct df_hcl_module *m, const char *type, const char *label)
{
    for (size_t i = 0; i < m->len; i++) {
        const struct df_hcl_block *b = &m->blocks[i];
        if (df_streq(b->type, type) &&
            (!label || (b->labels.len && df_streq(b->labels.items[0], label))))
            return true;
    }
    return false;
}

static int make_native(struct df_cli_file *f, const char *text, const cJSON *tokens,
                       struct df_buf *out, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    const cJSON *entry;
    const char *token = NULL;
    if (df_hcl_scan_text("tofurc", text, strlen(text), &m, err) < 0)
        return -1;
    f->has_mirror = has_block(&m, "provider_installation", NULL);
    f->has_helper = has_block(&m, "credentials_helper", NULL);
    add_lines(text, out);
    cJSON_ArrayForEach (entry, tokens) {
        if (check_token(entry, &token, err) < 0)
            return -1;
        if (token && !has_block(&m, "credentials", entry->string))
            (void)df_buf_addf(out, "credentials \"%s\" {\n  token = \"%s\"\n}\n", entry->string,
                              token);
    }
    return df_buf_check(out, err);
}

/* ---- JSON ---- */

static int add_tokens(cJSON *doc, const cJSON *tokens, struct df_err *err)
{
    const cJSON *entry;
    const char *token = NULL;
    cJSON_ArrayForEach (entry, tokens) {
        cJSON *hosts = df_json_object_at(doc, "credentials");
        if (!hosts)
            return df_fail(err, DF_ERR_USER, "its member credentials is no object");
        if (check_token(entry, &token, err) < 0)
            return -1;
        if (token && !cJSON_HasObjectItem(hosts, entry->string) &&
            df_json_add_str(df_json_object_at(hosts, entry->string), "token", token, err) < 0)
            return -1;
    }
    return 0;
}

static int edit_json(struct df_cli_file *f, cJSON *doc, const cJSON *tokens, struct df_buf *out,
                     struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(left_out); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(doc, left_out[i]);
    f->has_mirror = cJSON_HasObjectItem(doc, "provider_installation");
    f->has_helper = cJSON_HasObjectItem(doc, "credentials_helper");
    if (add_tokens(doc, tokens, err) < 0)
        return -1;
    char *text = df_json_print(doc);
    (void)df_buf_adds(out, text ? text : "");
    bool is_printed = text != NULL;
    df_str_wipe(&text);
    return is_printed ? df_buf_check(out, err) : df_fail_oom(err);
}

static int make_json(struct df_cli_file *f, const char *text, const cJSON *tokens,
                     struct df_buf *out, struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = NULL;
    return df_json_parse(text, strlen(text), &doc, err) < 0 ? -1
                                                            : edit_json(f, doc, tokens, out, err);
}

/* ---- all of it ---- */

static int make_text(struct df_cli_file *f, const char *path, const struct df_buf *text,
                     const cJSON *tokens, struct df_err *err)
{
    const char *from = df_buf_str(text);
    DF_CLEANUP(df_buf_wipe) struct df_buf out = DF_BUF_INIT(4 * DF_LIMIT_CLI_FILE);
    bool is_json = from[strspn(from, " \t\r\n")] == '{';
    if ((is_json ? make_json : make_native)(f, from, tokens, &out, err) < 0)
        return df_err_wrap(err, "%s", path ? path : "the tokens of `login`");
    return df_check_alloc(f->text = strdup(df_buf_str(&out)), err);
}

static int read_all(bool is_terraform, const char *named, struct df_cli_file *f, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_CLI_FILE);
    DF_SECRET_JSON cJSON *tokens = NULL;
    DF_FREE char *path = named ? strdup(named) : NULL;
    if (named && !path)
        return df_fail_oom(err);
    if ((!named && find_configuration(is_terraform, &path, err) < 0) ||
        (path && read_file(f, path, &text, err) < 0) ||
        (!named && read_tokens(f, is_terraform, &tokens, err) < 0))
        return -1;
    return path || tokens ? make_text(f, path, &text, tokens, err) : 0;
}

int df_cli_file_read(bool is_terraform, const char *named, struct df_cli_file *ret,
                     struct df_err *err)
{
    struct df_cli_file f = {0};
    const char *variable = getenv(DF_CLI_FILE_VARIABLE);
    if (!named && !df_str_empty(variable)) {
        named = variable;
        f.missing = access(named, R_OK) < 0 ? named : NULL;
    }
    if (f.missing) {
        *ret = f;
        return 0;
    }
    if (read_all(is_terraform, named, &f, err) < 0) {
        df_cli_file_free(&f);
        return -1;
    }
    *ret = f;
    return 0;
}
