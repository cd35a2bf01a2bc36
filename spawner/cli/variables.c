#include "spawner/cli/variables.h"

#include <ctype.h>

#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/hcl/hcl.h"
#include "common/yaml/yaml.h"

/* ---- values ---- */

int df_variable_add(cJSON *all, const char *what, const char *text, struct df_err *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return df_fail(err, DF_ERR_USER, "%s \"%s\": must be name=value", what, text);
    DF_FREE char *name = strndup(text, (size_t)(equals - text));
    const char *value = equals + 1;
    if (!name)
        return df_fail_oom(err);
    if (*value != '[' && *value != '{')
        return df_json_set_str(all, name, value, err);
    cJSON *parsed = NULL;
    if (df_json_parse(value, strlen(value), &parsed, err) < 0)
        return df_err_wrap(err, "%s %s", what, name);
    return df_json_set(all, name, parsed, err);
}

static int read_file(const char *path, struct df_buf *text, struct df_err *err)
{
    if (df_fs_read(path, text, err) == 0)
        return 0;
    err->cls = DF_ERR_USER;
    return -1;
}

static int load_file(const char *path, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (read_file(path, &text, err) < 0)
        return -1;
    if (df_yaml_parse(df_buf_str(&text), text.len, ret, NULL, err) < 0) {
        err->cls = DF_ERR_USER;
        return -1;
    }
    return cJSON_IsObject(*ret) ? 0 : df_fail(err, DF_ERR_USER, "must be an object: name: value");
}

static int add_values(cJSON *all, const char *path, struct df_err *err)
{
    DF_JSON cJSON *file = NULL;
    if (load_file(path, &file, err) < 0)
        return df_err_wrap(err, "--var-file %s", path);
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, file) {
        if (df_json_set(all, member->string, cJSON_Duplicate(member, true), err) < 0)
            return -1;
    }
    return 0;
}

/* ---- .tfvars files ---- */

static bool is_tfvars(const char *path)
{
    return df_ends_with(path, ".tfvars") || df_ends_with(path, ".tfvars.json");
}

/* Adds the file as "2-prod.tfvars": the number makes names unique, and keeps their order. */
static int add_text(cJSON *body, const char *name, const char *text, struct df_err *err)
{
    cJSON *secrets = df_json_object_at(body, "secrets");
    cJSON *files = secrets ? df_json_object_at(secrets, "files") : NULL;
    if (!files)
        return df_fail_oom(err);
    DF_FREE char *unique = df_strf("%d-%s", cJSON_GetArraySize(files) + 1, name);
    if (!unique)
        return df_fail_oom(err);
    for (char *p = unique; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p))
            *p = '_';
    return df_json_add_str(files, unique, text, err);
}

/* Moves the earlier variables into a file before the next one, which then wins over them. */
static int put_before(cJSON *body, struct df_err *err)
{
    DF_JSON cJSON *before = cJSON_DetachItemFromObjectCaseSensitive(body, "variables");
    if (!before || !before->child)
        return 0;
    DF_FREE char *text = df_json_print(before);
    return text ? add_text(body, "variables.tfvars.json", text, err) : df_fail_oom(err);
}

static int add_tfvars(cJSON *body, const char *path, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    const char *slash = strrchr(path, '/');
    if (read_file(path, &text, err) < 0)
        return df_err_wrap(err, "--var-file %s", path);
    const char *fault = df_text_fault(df_buf_str(&text), text.len);
    if (fault)
        return df_fail(err, DF_ERR_USER, "--var-file %s: %s", path, fault);
    if (strlen(df_buf_str(&text)) != text.len)
        return df_fail(err, DF_ERR_USER, "--var-file %s: is not a text file", path);
    if (put_before(body, err) < 0)
        return -1;
    return add_text(body, slash ? slash + 1 : path, df_buf_str(&text), err);
}

/* ---- the command line ---- */

/* A list or map in the tool's own syntax, which then reads it from a file of variables. */
static bool is_hcl(const char *text)
{
    static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t n = strspn(text, bytes);
    const char *value = text + n + (text[n] == '=');
    bool may_be = *value == '[' || (*value == '{' && strpbrk(value, "=:"));
    return isalpha((unsigned char)*text) && text[n] == '=' && may_be && df_hcl_is_closed(value);
}

static int add_var(cJSON *body, const char *text, struct df_err *err)
{
    cJSON *variables = df_json_object_at(body, "variables");
    struct df_err why = {0};
    if (!variables)
        return df_fail_oom(err);
    if (df_variable_add(variables, "--var", text, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_USER || !is_hcl(text))
        return df_err_pass(err, &why);
    DF_FREE char *line = df_strf("%s\n", text);
    if (!line)
        return df_fail_oom(err);
    return put_before(body, err) < 0 ? -1 : add_text(body, "variables.tfvars", line, err);
}

static int add_option(cJSON *body, const struct df_arg *a, struct df_err *err)
{
    if (df_streq(a->option->name, "var"))
        return add_var(body, a->value, err);
    if (!df_streq(a->option->name, "var-file"))
        return 0;
    if (is_tfvars(a->value))
        return add_tfvars(body, a->value, err);
    cJSON *variables = df_json_object_at(body, "variables");
    return variables ? add_values(variables, a->value, err) : df_fail_oom(err);
}

int df_variables_read(const struct df_args *args, cJSON *body, struct df_err *err)
{
    for (size_t i = 0; i < args->given_count; i++)
        if (add_option(body, &args->given[i], err) < 0)
            return -1;
    return 0;
}
