/*
 * Reads the sealed values of a run: those to mask, then the environment, variables and files. Each
 * df_sealed_ function is called by one stage; sealed.h describes the member.
 */
#include "runner/tofu/sealed.h"

#include <errno.h>
#include <unistd.h>

#include "common/base/fs.h"
#include "common/base/parse.h"

#define TF_VAR "TF_VAR_"

static int refuse_entry(const char *what, const cJSON *entry, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "sealed.%s: \"%.80s\" cannot be used",
                          what, entry->string ? entry->string : "");
}

/* ---- values to mask ---- */

bool df_sealed_is_plain(const cJSON *step, const char *name)
{
    const cJSON *plain;
    cJSON_ArrayForEach (plain, df_json_at(step, "sealed.plain")) {
        if (df_streq(cJSON_GetStringValue(plain), name))
            return true;
    }
    return false;
}

static int add_secret(struct df_strs *to, const char *value)
{
    if (!df_str_empty(value))
        (void)df_strs_add(to, value);
    return 0;
}

int df_sealed_add_leaves(struct df_strs *to, const cJSON *value, struct df_err *err)
{
    const cJSON *item;
    if (cJSON_IsString(value) || cJSON_IsRaw(value))
        return add_secret(to, value->valuestring);
    if (cJSON_IsNumber(value)) {
        DF_FREE char *text = df_json_print(value);
        return text ? add_secret(to, text) : df_fail_oom(err);
    }
    cJSON_ArrayForEach (item, value) {
        if (df_sealed_add_leaves(to, item, err) < 0)
            return -1;
    }
    return 0;
}

bool df_sealed_is_sensitive(const struct df_hcl_block *b)
{
    return df_streq(b->type, "variable") && b->labels.len && df_hcl_is_sensitive(b);
}

/* True if the value of this variable must be masked. */
static bool is_hidden(const cJSON *step, const struct df_hcl_module *module, const char *entry,
                      const char *variable)
{
    if (!module || !df_sealed_is_plain(step, entry))
        return true;
    for (size_t i = 0; i < module->len; i++)
        if (df_sealed_is_sensitive(&module->blocks[i]) &&
            df_streq(module->blocks[i].labels.items[0], variable))
            return true;
    return false;
}

/* Tokens of registries, and passwords of image registries. */
static int add_token(void *arg, const struct df_hcl_literal *l, struct df_err *err)
{
    static const char *const words[] = {"token", "password", "secret"};
    (void)err;
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (strstr(l->name, words[i]))
            return add_secret(arg, l->value);
    return 0;
}

static int add_cli_secrets(const cJSON *step, struct df_strs *to, struct df_err *err)
{
    const char *text = df_json_str(step, "sealed.cliConfig");
    return text ? df_hcl_literals(text, add_token, to, err) : 0;
}

int df_sealed_secrets(const cJSON *step, const struct df_hcl_module *module, struct df_strs *to,
                      struct df_err *err)
{
    const cJSON *entry;
    if (add_cli_secrets(step, to, err) < 0)
        return -1;
    cJSON_ArrayForEach (entry, df_json_at(step, "sealed.environment")) {
        const char *name = entry->string;
        bool hidden = df_starts_with(name, TF_VAR)
                          ? is_hidden(step, module, name, name + strlen(TF_VAR))
                          : !df_sealed_is_plain(step, name);
        if (hidden && df_sealed_add_leaves(to, entry, err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (entry, df_json_at(step, "sealed.variables")) {
        if (is_hidden(step, module, entry->string, entry->string) &&
            df_sealed_add_leaves(to, entry, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- environment ---- */

static bool is_set_by_step(const cJSON *step, const char *name)
{
    return cJSON_HasObjectItem(df_json_at(step, "environment"), name) ||
           cJSON_HasObjectItem(df_json_at(step, "secretEnvironment"), name);
}

int df_sealed_environment(const cJSON *step, struct df_strs *env, struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(step, "sealed.environment")) {
        if (!cJSON_IsString(entry) || !df_is_env_name(entry->string))
            return refuse_entry("environment", entry, err);
        if (df_starts_with(entry->string, TF_VAR) && is_set_by_step(step, entry->string))
            continue;
        (void)df_strs_set_env(env, entry->string, entry->valuestring);
    }
    return df_strs_check(env, err);
}

/* ---- the home ---- */

static int link_if_there(const char *from, const char *to, struct df_err *err)
{
    if (!df_fs_exists(from) || symlink(from, to) == 0 || errno == EEXIST)
        return 0;
    return df_fail_errno(err, errno, "link %s", to);
}

int df_sealed_link_home(const cJSON *step, const char *home, struct df_err *err)
{
    const char *config = df_json_str(step, "sealed.environment.AWS_CONFIG_FILE");
    const char *slash = config ? strrchr(config, '/') : NULL;
    if (!slash)
        return 0;
    DF_FREE char *from = df_strf("%.*s/sso", (int)(slash - config), config);
    DF_FREE char *dir = df_fs_join(home, ".aws");
    DF_FREE char *to = df_fs_join(home, ".aws/sso");
    if (df_check_alloc(from, err) < 0 || df_check_alloc(to, err) < 0 ||
        df_fs_mkdirs(dir, 0700, err) < 0)
        return -1;
    return link_if_there(from, to, err);
}

/* ---- variables ---- */

static int write_var_file(const char *dir, const char *name, const char *text, struct df_strs *args,
                          struct df_err *err)
{
    DF_FREE char *path = df_fs_join(dir, name);
    if (df_fs_write(path, text, strlen(text), 0600, err) < 0)
        return -1;
    (void)df_strs_addf(args, "-var-file=%s", path);
    return df_strs_check(args, err);
}

int df_sealed_files(const cJSON *step, const char *secret_dir, struct df_strs *args,
                    struct df_err *err)
{
    DF_FREE char *dir = df_fs_join(secret_dir, "sealed");
    const cJSON *file;
    if (df_fs_mkdirs(dir, 0700, err) < 0)
        return -1;
    cJSON_ArrayForEach (file, df_json_at(step, "sealed.files")) {
        if (!cJSON_IsString(file) || *file->string == '.' || strchr(file->string, '/'))
            return refuse_entry("files", file, err);
        if (write_var_file(dir, file->string, file->valuestring, args, err) < 0)
            return -1;
    }
    return 0;
}

int df_sealed_variables(const cJSON *step, const char *secret_dir, struct df_strs *args,
                        struct df_err *err)
{
    const cJSON *variables = df_json_at(step, "sealed.variables");
    if (!variables || !variables->child)
        return 0;
    char *text = df_json_print(variables);
    if (!text)
        return df_fail_oom(err);
    int result = write_var_file(secret_dir, "sealed.tfvars.json", text, args, err);
    df_str_wipe(&text);
    return result;
}
