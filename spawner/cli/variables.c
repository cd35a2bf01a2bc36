/*
 * df_variables_read() keeps what the options say as body.given, in their order: {"name", "text"} of
 * a --var, {"file", "text"} of a .tfvars file, {"values"} of another file. df_variables_settle()
 * takes it away again.
 */
#include "spawner/cli/variables.h"

#include <ctype.h>

#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/yaml/yaml.h"

#define GIVEN "given"

/* ---- values ---- */

int df_variable_cut(const char *what, const char *text, char **ret_name, const char **ret_value,
                    struct df_err *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return df_fail(err, DF_ERR_USER, "%s \"%s\": must be name=value", what, text);
    *ret_value = equals + 1;
    return df_check_alloc(*ret_name = strndup(text, (size_t)(equals - text)), err);
}

static size_t name_length(const char *text)
{
    static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return isalpha((unsigned char)*text) || *text == '_' ? strspn(text, bytes) : 0;
}

static bool is_name(const char *text)
{
    return *text && !text[name_length(text)];
}

static int text_of(const char *text, cJSON **ret, struct df_err *err)
{
    return df_check_alloc(*ret = cJSON_CreateString(text), err);
}

/* A value whose type nobody knows here. An object without "=" and ":" is no object of the tool. */
static int guess_value(const char *what, const char *name, const char *text, cJSON **ret,
                       struct df_err *err)
{
    struct df_err why = {0};
    bool is_list = *text == '[', is_object = *text == '{';
    if (!is_list && !is_object)
        return text_of(text, ret, err);
    if (df_json_parse(text, strlen(text), ret, &why) == 0)
        return 0;
    bool may_be = is_list || strpbrk(text, "=:");
    if (why.cls == DF_ERR_USER && may_be && is_name(name) && df_hcl_is_closed(text))
        return 0;
    (void)df_err_wrap(&why, "%s %s", what, name);
    return df_err_pass(err, &why);
}

/* The tool takes a template in a string of JSON for one; JSON of ours would be the text itself. */
static bool is_plain_json(const char *text, cJSON **ret)
{
    if (strstr(text, "${") || strstr(text, "%{") ||
        df_json_parse(text, strlen(text), ret, NULL) < 0)
        return false;
    if (!cJSON_IsNull(*ret))
        return true;
    cJSON_Delete(*ret);
    *ret = NULL;
    return false;
}

/* The value of a type that is no string, number or bool. */
static int expression_of(const char *what, const char *name, const char *text, cJSON **ret,
                         struct df_err *err)
{
    static const char *const words[] = {"null", "true", "false"};
    bool is_word = is_name(text), is_blank = !text[strspn(text, " \t\r\n")];
    if (is_plain_json(text, ret))
        return 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        is_word &= !df_streq(text, words[i]);
    if (!is_word && !is_blank && is_name(name) && df_hcl_is_closed(text))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "%s %s: the module declares a type other than string, number and bool, so the "
                   "value must be an expression (JSON or HCL), which it is not%s",
                   what, name,
                   is_word || is_blank ? ": a text needs quotes (NAME='\"text\"')"
                   : strstr(text, "${") || strstr(text, "%{")
                       ? " without a template (${ or %{): give it in a .tfvars file (--var-file)"
                       : "");
}

int df_variable_value(const struct df_hcl_module *m, const char *what, const char *name,
                      const char *text, cJSON **ret, struct df_err *err)
{
    *ret = NULL;
    if (!df_hcl_variable(m, name))
        return guess_value(what, name, text, ret, err);
    return df_hcl_takes_text(m, name) ? text_of(text, ret, err)
                                      : expression_of(what, name, text, ret, err);
}

/* ---- what was given ---- */

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

static int add_given(cJSON *body, const char *key, cJSON *value, const char *text,
                     struct df_err *err)
{
    cJSON *all = df_json_array_at(body, GIVEN);
    DF_SECRET_JSON cJSON *one = df_json_object(DF_ITEM(key, value), DF_STR("text", text));
    return df_json_append(all, DF_TAKE(one), err);
}

static int read_var(cJSON *body, const char *option, struct df_err *err)
{
    DF_FREE char *name = NULL;
    const char *value = NULL;
    if (df_variable_cut("--var", option, &name, &value, err) < 0)
        return -1;
    return add_given(body, "name", cJSON_CreateString(name), value, err);
}

static int read_values(cJSON *body, const char *path, struct df_err *err)
{
    DF_JSON cJSON *file = NULL;
    if (load_file(path, &file, err) < 0)
        return df_err_wrap(err, "--var-file %s", path);
    return add_given(body, "values", DF_TAKE(file), NULL, err);
}

static bool is_tfvars(const char *path)
{
    return df_ends_with(path, ".tfvars") || df_ends_with(path, ".tfvars.json");
}

static int read_tfvars(cJSON *body, const char *path, struct df_err *err)
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
    return add_given(body, "file", cJSON_CreateString(slash ? slash + 1 : path), df_buf_str(&text),
                     err);
}

static int read_option(cJSON *body, const struct df_arg *a, struct df_err *err)
{
    if (df_streq(a->option->name, "var"))
        return read_var(body, a->value, err);
    if (!df_streq(a->option->name, "var-file"))
        return 0;
    return (is_tfvars(a->value) ? read_tfvars : read_values)(body, a->value, err);
}

int df_variables_read(const struct df_args *args, cJSON *body, struct df_err *err)
{
    for (size_t i = 0; i < args->given_count; i++)
        if (read_option(body, &args->given[i], err) < 0)
            return -1;
    return 0;
}

bool df_variables_have_file(const cJSON *body)
{
    const cJSON *one;
    cJSON_ArrayForEach (one, df_json_at(body, GIVEN)) {
        if (df_json_str(one, "file"))
            return true;
    }
    return false;
}

/* ---- the request ---- */

/* Adds the file as "2-prod.tfvars": the number makes names unique, and keeps their order. */
static int add_text(cJSON *body, const char *name, const char *text, struct df_err *err)
{
    cJSON *secrets = df_json_object_at(body, "secrets");
    cJSON *files = df_json_object_at(secrets, "files");
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

static int add_file(cJSON *body, const char *name, const char *text, struct df_err *err)
{
    return put_before(body, err) < 0 ? -1 : add_text(body, name, text, err);
}

/* In brackets an expression may have several lines, and end with a comment. */
static int add_expression(cJSON *body, const char *name, const char *text, struct df_err *err)
{
    DF_FREE char *line = df_strf("%s = (%s\n)\n", name, text);
    return line ? add_file(body, "variables.tfvars", line, err) : df_fail_oom(err);
}

static int add_var(const struct df_hcl_module *m, cJSON *body, const char *name, const char *text,
                   struct df_err *err)
{
    cJSON *value = NULL;
    if (df_variable_value(m, "--var", name, text, &value, err) < 0)
        return -1;
    if (!value)
        return add_expression(body, name, text, err);
    return df_json_set(df_json_object_at(body, "variables"), name, value, err);
}

static int add_values(cJSON *body, const cJSON *values, struct df_err *err)
{
    cJSON *variables = df_json_object_at(body, "variables");
    const cJSON *member;
    if (!variables)
        return df_fail_oom(err);
    cJSON_ArrayForEach (member, values) {
        if (df_json_set(variables, member->string, cJSON_Duplicate(member, true), err) < 0)
            return -1;
    }
    return 0;
}

static int add_one(const struct df_hcl_module *m, cJSON *body, const cJSON *given,
                   struct df_err *err)
{
    const char *name = df_json_str(given, "name"), *file = df_json_str(given, "file");
    const char *text = df_json_str(given, "text");
    if (name)
        return add_var(m, body, name, text, err);
    return file ? add_file(body, file, text, err)
                : add_values(body, df_json_at(given, "values"), err);
}

int df_variables_settle(const struct df_hcl_module *m, cJSON *body, struct df_err *err)
{
    DF_SECRET_JSON cJSON *all = cJSON_DetachItemFromObjectCaseSensitive(body, GIVEN);
    const cJSON *one;
    cJSON_ArrayForEach (one, all) {
        if (add_one(m, body, one, err) < 0)
            return -1;
    }
    return 0;
}
