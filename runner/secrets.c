#include "runner/secrets.h"

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

int df_secrets_collect(const cJSON *step, const struct df_hcl_module *module,
                       struct df_strs *values, struct df_err *err)
{
    static const char *const groups[] = {"mask", "secretEnvironment", "files", "binaryFiles",
                                         "providers.credentials"};
    static const char *const singles[] = {"stepToken", "state.password",
                                          "source.credentials.password",
                                          "source.credentials.sshPrivateKey"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(groups); i++)
        add_strings_of(values, df_json_at(step, groups[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(singles); i++)
        add_string(values, df_json_str(step, singles[i]));
    return df_sealed_secrets(step, module, values, err) < 0 ? -1 : df_strs_check(values, err);
}

int df_secrets_given(const cJSON *step, struct df_strs *values, struct df_err *err)
{
    add_strings_of(values, df_json_at(step, "mask"));
    add_strings_of(values, df_json_at(step, "secretEnvironment"));
    return df_strs_check(values, err);
}

int df_secrets_masks(const cJSON *step, struct df_masks **ret, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs values = {0};
    DF_STRS struct df_strs tokens = {0};
    struct df_err why = {0};
    add_strings_of(&tokens, df_json_at(step, "identityTokenFiles"));
    if (df_strs_check(&tokens, err) < 0 || df_secrets_collect(step, NULL, &values, err) < 0)
        return -1;
    if (df_masks_new(&values, &tokens, ret, &why) == 0)
        return 0;
    return why.cls == DF_ERR_USER
               ? df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                "the identity token of an integration: %s", why.message)
               : df_err_pass(err, &why);
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
