#include "runner/secrets.h"

#include "common/base/fs.h"
#include "runner/tofu/sealed.h"

static void add_string(struct df_strs *to, const char *value)
{
    if (!df_str_empty(value))
        (void)df_strs_add(to, value);
}

static void add_strings_of(struct df_strs *to, const cJSON *parent)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, parent) {
        if (cJSON_IsString(entry))
            add_string(to, entry->valuestring);
    }
}

/* The tokens as they are now; those that replace them in a long step are short-lived, too. */
static int add_tokens(struct df_strs *to, const cJSON *step, struct df_err *err)
{
    const cJSON *path;
    cJSON_ArrayForEach (path, df_json_at(step, "identityTokenFiles")) {
        DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
        const char *name = cJSON_GetStringValue(path);
        struct df_err why = {0};
        if (df_fs_read(name ? name : "", &token, &why) < 0)
            return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                  "the identity token of an integration: %s", why.message);
        while (token.len && strchr("\r\n", token.data[token.len - 1]))
            token.data[--token.len] = '\0';
        add_string(to, df_buf_str(&token));
    }
    return 0;
}

int df_secrets_collect(const cJSON *step, const struct df_hcl_module *module,
                       const struct df_strs *more, struct df_redact_set **ret, struct df_err *err)
{
    static const char *const groups[] = {"mask", "secretEnvironment", "files", "binaryFiles",
                                         "providers.credentials"};
    static const char *const singles[] = {"stepToken", "state.password",
                                          "source.credentials.password",
                                          "source.credentials.sshPrivateKey"};
    DF_SECRET_STRS struct df_strs all = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(groups); i++)
        add_strings_of(&all, df_json_at(step, groups[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(singles); i++)
        add_string(&all, df_json_str(step, singles[i]));
    for (size_t i = 0; more && i < more->len; i++)
        add_string(&all, more->items[i]);
    if (add_tokens(&all, step, err) < 0 || df_sealed_secrets(step, module, &all, err) < 0 ||
        df_strs_check(&all, err) < 0)
        return -1;
    return df_redact_set_new(&all, ret, err);
}

/* ---- values that a document must not hold ---- */

/* How to remove the value from the document; NULL: no memory. */
static char *way_out(const cJSON *step, const char *name, bool of_variables)
{
    const char *executor = df_json_str(step, "executor"), *run = df_json_str(step, "run");
    if (!executor || !run)
        return strdup("take it out");
    if (!of_variables)
        return df_strf("take it out with `dayfly edit executor %s`", executor);
    if (cJSON_GetObjectItemCaseSensitive(df_json_at(step, "ofRun.variables"), name))
        return df_strf("run %s keeps it until executor %s is deleted, so replace the value itself "
                       "if it is a secret",
                       run, executor);
    return df_strf("take it out with `dayfly set %s var %s-`", executor, name);
}

static int refuse_value(const cJSON *step, const struct df_hcl_block *b, bool of_variables,
                        struct df_err *err)
{
    const char *name = b->labels.items[0];
    DF_FREE char *way = way_out(step, name, of_variables);
    if (!way)
        return df_fail_oom(err);
    return df_fail_reason(
        err, DF_ERR_USER, "SensitiveValue",
        "variable %s is declared sensitive (%s, line %u), but its value is in spec.%s, where "
        "others can read it: %s, and give it with `dayfly run --secret-var %s`, or store it with "
        "`dayfly secret set` and name the secret in spec.secrets",
        name, b->file, b->line, of_variables ? "variables" : "environment", way, name);
}

int df_secrets_check(const cJSON *step, const struct df_hcl_module *module, struct df_err *err)
{
    for (size_t i = 0; i < module->len; i++) {
        const struct df_hcl_block *b = &module->blocks[i];
        if (!df_sealed_is_sensitive(b))
            continue;
        const char *name = b->labels.items[0];
        DF_FREE char *variable = df_strf("TF_VAR_%s", name);
        if (!variable)
            return df_fail_oom(err);
        if (cJSON_GetObjectItemCaseSensitive(df_json_at(step, "variables"), name))
            return refuse_value(step, b, true, err);
        if (cJSON_GetObjectItemCaseSensitive(df_json_at(step, "environment"), variable))
            return refuse_value(step, b, false, err);
    }
    return 0;
}
