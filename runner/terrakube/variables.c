#include "runner/terrakube/variables.h"

#include "common/base/fs.h"

/* Linux allows 128 KiB for one argument. */
enum { ARGUMENT_MAX = 128 * 1024 - 64 };

/* ---- the two shapes of the payload ---- */

/* {"name": "value"}, or [{"key": "name", "value": "value"}]. */
static const char *name_of(const cJSON *variable)
{
    return variable->string ? variable->string : df_json_str(variable, "key");
}

/* NULL: it is no text. An absent value counts as "". */
static const char *value_of(const cJSON *variable)
{
    const cJSON *value =
        variable->string ? variable : cJSON_GetObjectItemCaseSensitive(variable, "value");
    return !value || cJSON_IsNull(value) ? "" : cJSON_GetStringValue(value);
}

/* ---- the arguments ---- */

struct files {
    cJSON *texts;              /* owned */
    struct df_buf expressions; /* HCL */
};

static void files_free(struct files *f)
{
    df_json_wipe(f->texts);
    df_buf_wipe(&f->expressions);
}

static int add_argument(const char *name, const char *value, struct df_strs *to, struct df_err *err)
{
    if (strlen(name) + strlen(value) > ARGUMENT_MAX)
        return df_fail_reason(
            err, DF_ERR_USER, "VariableInvalid",
            "Value for undeclared variable: a variable named \"%s\" was assigned, "
            "but the root module does not declare a variable of that name. To use "
            "this value, add a \"variable\" block to the configuration",
            name);
    (void)df_strs_add(to, "-var");
    return df_strs_addf(to, "%s=%s", name, value);
}

/* In brackets an expression may have several lines, and end with a comment. A value that closes
 * them could set other variables. The tool shows the first line of a value that it refuses: with
 * its name. */
static int add_expression(const char *name, const char *value, struct files *f, struct df_err *err)
{
    if (!value[strspn(value, " \t\r\n")] || !df_hcl_is_closed(value))
        return df_fail_reason(err, DF_ERR_USER, "VariableInvalid",
                              "the value of variable \"%.80s\" is not one expression, as its type "
                              "needs: %s",
                              name,
                              *value
                                  ? "a bracket, a string or a comment is left open, a bracket is "
                                    "closed that was not opened, or it has a template (${ or %{)"
                                  : "it is empty");
    return df_buf_addf(&f->expressions, "%s = (%s\n)\n", name, value) < 0
               ? df_buf_check(&f->expressions, err)
               : 0;
}

static int add_variable(const cJSON *variable, const struct df_hcl_module *module, struct files *f,
                        struct df_strs *to, struct df_err *err)
{
    const char *name = name_of(variable), *value = value_of(variable);
    if (df_str_empty(name) || !value)
        return df_fail_reason(err, DF_ERR_USER, "VariableInvalid",
                              "variable \"%.80s\": it needs a name, and a value that is a text",
                              name ? name : "");
    if (!df_hcl_variable(module, name))
        return add_argument(name, value, to, err);
    if (df_hcl_takes_text(module, name))
        return df_json_set_str(f->texts, name, value, err);
    return add_expression(name, value, f, err);
}

static int write_file(const char *dir, const char *name, const char *text, size_t n,
                      struct df_strs *to, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(dir, name);
    if (df_fs_write(path, text, n, 0600, err) < 0)
        return -1;
    (void)df_strs_addf(to, "-var-file=%s", path);
    return 0;
}

static int write_texts(const cJSON *texts, const char *dir, struct df_strs *to, struct df_err *err)
{
    if (!texts->child)
        return 0;
    char *text = df_json_print(texts);
    int failed = text ? write_file(dir, "terrakube.tfvars.json", text, strlen(text), to, err)
                      : df_fail_oom(err);
    df_str_wipe(&text);
    return failed;
}

int df_terrakube_variables_write(const cJSON *variables, const struct df_hcl_module *module,
                                 const char *dir, struct df_strs *to, struct df_err *err)
{
    DF_CLEANUP(files_free)
    struct files f = {.texts = cJSON_CreateObject(),
                      .expressions = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT)};
    const cJSON *variable;
    if (!f.texts)
        return df_fail_oom(err);
    cJSON_ArrayForEach (variable, variables) {
        if (add_variable(variable, module, &f, to, err) < 0)
            return -1;
    }
    /* The last file wins: no expression can set what is a text. */
    if ((f.expressions.len &&
         write_file(dir, "terrakube.tfvars", f.expressions.data, f.expressions.len, to, err) < 0) ||
        write_texts(f.texts, dir, to, err) < 0)
        return -1;
    return df_strs_check(to, err);
}

int df_terrakube_variables_secrets(const cJSON *variables, const struct df_hcl_module *module,
                                   struct df_strs *to, struct df_err *err)
{
    const cJSON *variable;
    cJSON_ArrayForEach (variable, variables) {
        const char *name = name_of(variable), *value = value_of(variable);
        if (name && !df_str_empty(value) && df_hcl_sensitive(module, name))
            (void)df_strs_add(to, value);
    }
    return df_strs_check(to, err);
}
