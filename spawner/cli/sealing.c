/*
 * Gives the variables of a request their values, adds those of --secret-var to its secrets, then
 * moves variables that the module declares sensitive there. Read df_sealing_settle() and
 * df_sealing_add() first.
 */
#include "spawner/cli/sealing.h"

#include "common/base/limits.h"
#include "common/base/nearest.h"
#include "common/hcl/hcl.h"
#include "spawner/cli/value.h"
#include "spawner/cli/variables.h"

/* ---- --secret-var ---- */

/* As for --var, but for one thing: an expression that is no JSON is refused, because it cannot be
 * sealed as a value. m: NULL if the module cannot be read here. The caller deletes *ret with
 * df_json_wipe(). */
static int parse_value(const struct df_hcl_module *m, const char *name, const char *text,
                       cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    bool is_json = m ? !df_hcl_takes_text(m, name) : *text == '[' || *text == '{';
    if (!is_json)
        return df_check_alloc(*ret = cJSON_CreateString(text), err);
    /* Do not pass the parser's message on: it may quote the value. */
    if (df_json_parse(text, strlen(text), ret, &why) == 0)
        return 0;
    return m ? df_fail(err, DF_ERR_USER,
                       "--secret-var %s: its type is no string, number or bool, so the value must "
                       "be JSON (a text in double quotes), which it is not",
                       name)
             : df_fail(err, DF_ERR_USER,
                       "--secret-var %s: the value begins like JSON and is not valid JSON", name);
}

static int read_secret_var(struct df_cli *cli, const struct df_hcl_module *m, const char *name,
                           const char *file, cJSON *to, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    DF_FREE char *prompt = df_strf("Value of variable %s (not shown): ", name);
    cJSON *value = NULL;
    if (!prompt)
        return df_fail_oom(err);
    if (df_value_read(cli, prompt, file, &text, err) < 0)
        return df_err_wrap(err, "--secret-var %s", name);
    if (!text.len)
        return df_fail(err, DF_ERR_USER, "--secret-var %s: the value is empty", name);
    if (parse_value(m, name, df_buf_str(&text), &value, err) < 0)
        return -1;
    return df_json_set(to, name, value, err);
}

static int add_secret_var(struct df_cli *cli, const struct df_hcl_module *m, const char *option,
                          cJSON *to, struct df_err *err)
{
    const char *equals = strchr(option, '=');
    const char *source = equals ? equals + 1 : NULL;
    DF_FREE char *name = equals ? strndup(option, (size_t)(equals - option)) : strdup(option);
    if (!name)
        return df_fail_oom(err);
    if (source && *source != '@' && !df_streq(source, "-"))
        return df_fail(err, DF_ERR_USER,
                       "--secret-var %s: a value on the command line can be seen by others; use "
                       "--secret-var %s (a prompt), %s=@FILE or %s=- (standard input)",
                       name, name, name, name);
    return read_secret_var(cli, m, name, source && *source == '@' ? source + 1 : source, to, err);
}

static cJSON *sealed_variables(cJSON *body)
{
    cJSON *secrets = df_json_object_at(body, "secrets");
    return df_json_object_at(secrets, "variables");
}

/* m: NULL if the module cannot be read here. */
static int add_secret_vars(struct df_cli *cli, const struct df_hcl_module *m, cJSON *body,
                           struct df_err *err)
{
    const char *option = NULL;
    int from_input = 0;
    for (size_t i = 0; (option = df_arg_nth(&cli->args, "secret-var", i)); i++) {
        cJSON *to = sealed_variables(body);
        const char *equals = strchr(option, '=');
        from_input += df_streq(equals, "=-") || (!equals && !cli->in_tty);
        if (!to)
            return df_fail_oom(err);
        if (from_input > 1)
            return df_fail(err, DF_ERR_USER,
                           "--secret-var: standard input holds one value; give the others as "
                           "NAME=@FILE");
        if (add_secret_var(cli, m, option, to, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the module ---- */

/* Reads the blocks of the executor's module. False: it is no directory that can be read here. */
static bool read_module(const cJSON *executor, const cJSON *body, struct df_hcl_module *ret)
{
    static const char scheme[] = "file://";
    const char *url = df_json_str(executor, "spec.source.url");
    const char *folder = df_json_str(body, "source.folder");
    if (!folder)
        folder = df_json_str(executor, "spec.source.folder");
    if (!url || !df_starts_with(url, scheme) ||
        !df_streq(df_json_str(executor, "spec.source.kind"), "directory"))
        return false;
    DF_FREE char *dir = df_strf("%s/%s", url + strlen(scheme), folder ? folder : "");
    return dir && df_hcl_scan(dir, DF_HCL_ANY, ret, NULL) == 0 && ret->files > 0;
}

/* NULL: no name is near. Borrowed from the module. */
static const char *nearest_variable(const struct df_hcl_module *m, const char *name)
{
    size_t distance = SIZE_MAX;
    const char *nearest = NULL;
    for (size_t i = 0; i < m->len; i++) {
        const struct df_hcl_block *b = &m->blocks[i];
        if (df_streq(b->type, "variable") && b->labels.len)
            df_nearest(name, b->labels.items[0], &nearest, &distance);
    }
    return nearest;
}

/* As the tool does: what is given by name on the command line must be declared; what a file gives
 * need not be. */
static int check_declared(const struct df_args *args, const struct df_hcl_module *m,
                          struct df_err *err)
{
    for (size_t i = 0; i < args->given_count; i++) {
        const struct df_arg *a = &args->given[i];
        if (!df_args_word("var|secret-var", a->option->name))
            continue;
        DF_FREE char *name = strndup(a->value, strcspn(a->value, "="));
        if (!name)
            return df_fail_oom(err);
        if (df_hcl_variable(m, name))
            continue;
        const char *nearest = nearest_variable(m, name);
        return df_fail(err, DF_ERR_USER,
                       "--%s %s: the module declares no variable of this name%s%s%s",
                       a->option->name, name, nearest ? "; did you mean " : "",
                       nearest ? nearest : "", nearest ? "?" : "");
    }
    return 0;
}

int df_sealing_settle(const struct df_cli *cli, const cJSON *executor, cJSON *body,
                      struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    bool visible = read_module(executor, body, &m);
    if (visible && check_declared(&cli->args, &m, err) < 0)
        return -1;
    return df_variables_settle(visible ? &m : NULL, body, err);
}

/* ---- --var ---- */

static int seal(cJSON *body, cJSON *variables, cJSON *variable, bool sensitive, struct df_err *err)
{
    cJSON *to = sealed_variables(body);
    cJSON *plain = to ? df_json_array_at(cJSON_GetObjectItem(body, "secrets"), "plain") : NULL;
    if (!plain)
        return df_fail_oom(err);
    if (cJSON_GetObjectItemCaseSensitive(to, variable->string))
        return df_fail(err, DF_ERR_USER, "variable %s: --var and --secret-var both give it",
                       variable->string);
    if (!sensitive && df_json_append_str(plain, variable->string, err) < 0)
        return -1;
    DF_FREE char *name = strdup(variable->string);
    return df_json_put(to, err, DF_ITEM(name, cJSON_DetachItemViaPointer(variables, variable)));
}

/* m: NULL if the module cannot be read here. */
static int seal_variables(const struct df_hcl_module *m, cJSON *body, struct df_err *err)
{
    cJSON *variables = cJSON_GetObjectItemCaseSensitive(body, "variables"), *next = NULL;
    for (cJSON *v = variables ? variables->child : NULL; v; v = next) {
        next = v->next;
        bool sensitive = df_hcl_sensitive(m, v->string) != NULL;
        if ((!m || sensitive) && seal(body, variables, v, sensitive, err) < 0)
            return -1;
    }
    if (variables && !variables->child)
        cJSON_DeleteItemFromObjectCaseSensitive(body, "variables");
    return 0;
}

int df_sealing_add(struct df_cli *cli, const cJSON *executor, cJSON *body, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    bool visible = read_module(executor, body, &m);
    if (add_secret_vars(cli, visible ? &m : NULL, body, err) < 0)
        return -1;
    return seal_variables(visible ? &m : NULL, body, err);
}
