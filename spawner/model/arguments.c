/*
 * What a user may add to the command line and the environment of tofu. Refused are options that
 * dayfly sets itself, that move the state or the plan to another location, or that make a run do
 * something other than its action.
 */
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/model/model.h"
#include "spawner/model/rules.h"

/* ---- arguments ---- */

struct refusal {
    const char *name; /* of the option, without dashes; a prefix when it ends with '*' */
    const char *why;
};

static const struct refusal refused_options[] = {
    {"chdir", "use spec.source.folder"},
    {"state*", "the state is kept by spec.storage"},
    {"backup*", "the state is kept by spec.storage"},
    {"backend*", "the state is kept by spec.storage"},
    {"lock*", "dayfly locks the state itself"},
    {"auto-approve", "use autoApprove of the run"},
    {"destroy", "use the action destroy"},
    {"out", "dayfly keeps the plan itself"},
    {"generate-config-out", "a run changes no sources"},
    {"json*", "dayfly reads the events itself"},
    {"input", "nobody can answer a prompt"},
    {"detailed-exitcode", "dayfly reads the exit code itself"},
    {"show-sensitive", "sensitive values stay out of the log"},
    {"var", "use spec.variables"},
    {"help", "it makes no plan"},
    {"h", "it makes no plan"},
    {"version", "it makes no plan"},
};

static bool is_option(const char *pattern, const char *name, size_t n)
{
    size_t m = strlen(pattern);
    if (m && pattern[m - 1] == '*')
        return n >= m - 1 && strncmp(name, pattern, m - 1) == 0;
    return n == m && strncmp(name, pattern, n) == 0;
}

/* Go takes -x and --x for the same option, with its value after "=" or in the next argument. */
static void check_option(const char *argument, const struct df_path *path, struct df_faults *f)
{
    const char *name = argument + (argument[1] == '-' ? 2 : 1);
    size_t n = strcspn(name, "=");
    if (n == 0 || *name == '-') {
        df_fault(f, path, "\"%.64s\" is not an option", argument);
        return;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(refused_options); i++)
        if (is_option(refused_options[i].name, name, n))
            df_fault(f, path, "-%.*s is refused: %s", n > 64 ? 64 : (int)n, name,
                     refused_options[i].why);
}

/* Options whose values are files, each with an equals sign in the place of the value. */
static const char *const file_options[] = {"var-file=", "target-file=", "exclude-file="};

/* The value of -var-file=VALUE and its like, or NULL for another argument. *ret_option: which. */
static const char *file_of(const char *argument, const char **ret_option)
{
    if (*argument != '-')
        return NULL;
    argument += argument[1] == '-' ? 2 : 1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(file_options); i++) {
        *ret_option = file_options[i];
        if (df_starts_with(argument, *ret_option))
            return argument + strlen(*ret_option);
    }
    return NULL;
}

/* The runner checks links and "..": it has the source. */
static void check_relative(const char *file, const struct df_path *path, struct df_faults *f)
{
    if (*file == '/')
        df_fault(
            f, path,
            "\"%.64s\" is absolute: name a file of the source, relative to the module's folder",
            file);
}

void df_rule_variable_file(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    check_relative(value->valuestring, path, f);
}

/* Checks both forms of the options with files. No other option has a value that begins with a
 * slash. */
static void check_file(const char *argument, const struct df_path *path, struct df_faults *f)
{
    const char *option = NULL, *file = file_of(argument, &option);
    if (file && !*file)
        df_fault(f, path, "-%.*s needs the name of a file", (int)strcspn(option, "="), option);
    else
        check_relative(file ? file : argument, path, f);
}

void df_rule_arguments(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    bool may_be_value = false;
    int index = 0;
    for (const cJSON *item = value->child; item; item = item->next) {
        const struct df_path here = {path, NULL, index++};
        const char *argument = item->valuestring;
        check_file(argument, &here, f);
        if (*argument == '-')
            check_option(argument, &here, f);
        else if (!may_be_value)
            df_fault(f, &here, "\"%.64s\" does not begin with -", argument);
        may_be_value = *argument == '-' && !strchr(argument, '=');
    }
}

/* ---- environment ---- */

static const struct refusal refused_variables[] = {
    {"TF_HTTP_*", "the state is kept by spec.storage"},
    {"TF_STATE*", "the state is kept by spec.storage"},
    {"TF_WORKSPACE", "an executor is one workspace"},
    {"TF_CLI_ARGS*", "use spec.arguments"},
    {"TF_CLI_CONFIG_FILE", "dayfly writes the CLI configuration"},
    {"TERRAFORM_CONFIG", "dayfly writes the CLI configuration"},
    {"TF_PLUGIN_CACHE_MAY*", "the lock file decides which providers are right"},
    {"TF_REATTACH_PROVIDERS", "providers are started by tofu"},
    {"TF_LOG_PATH", "the tool's own log would escape the mask in a file; use TF_LOG"},
    {"TF_TEMP_LOG_PATH", "the tool's own log would escape the mask in a file; use TF_LOG"},
    {"TF_DATA_DIR", "it is set by dayfly"},
    {"TF_IN_AUTOMATION", "it is set by dayfly"},
    {"TF_INPUT", "it is set by dayfly"},
    {"PATH", "it is set by dayfly"},
    {"HOME", "it is set by dayfly"},
    {"TMPDIR", "it is set by dayfly"},
    {"DAYFLY_*", "it is set by dayfly"},
    {"LD_*", "it changes which program runs"},
};

void df_check_variable(const char *name, const struct df_path *path, struct df_faults *f)
{
    if (!df_is_env_name(name)) {
        df_fault(f, path, "\"%.64s\" is not the name of an environment variable", name);
        return;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(refused_variables); i++)
        if (is_option(refused_variables[i].name, name, strlen(name)))
            df_fault(f, path, "%.64s is refused: %s", name, refused_variables[i].why);
}

/* ---- environment of a run ---- */

/* Programs that a step starts read their environment: nearly any name may run code (TF_ENCRYPTION,
 * BASH_ENV, GIT_SSH_COMMAND) or lead credentials elsewhere (proxies, endpoints, files). So these
 * are the names that are known to do neither: values of the module, words for the log, keys. */
static const char *const callers_variables[] = {
    "TF_VAR_*",
    "TF_LOG",
    "TF_LOG_CORE",
    "TF_LOG_PROVIDER*",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "ARM_CLIENT_ID",
    "ARM_CLIENT_SECRET",
    "ARM_TENANT_ID",
    "ARM_SUBSCRIPTION_ID",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_SUBSCRIPTION_ID",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "GOOGLE_PROJECT",
    "GOOGLE_REGION",
    "GOOGLE_ZONE",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "BITBUCKET_TOKEN",
    "CLOUDFLARE_API_TOKEN",
    "DIGITALOCEAN_TOKEN",
    "DIGITALOCEAN_ACCESS_TOKEN",
    "HCLOUD_TOKEN",
    "LINODE_TOKEN",
    "SCW_ACCESS_KEY",
    "SCW_SECRET_KEY",
    "VAULT_TOKEN",
    "DD_API_KEY",
    "DD_APP_KEY",
    "DATADOG_API_KEY",
    "DATADOG_APP_KEY",
    "FASTLY_API_KEY",
    "NEW_RELIC_API_KEY",
    "PAGERDUTY_TOKEN",
};

static bool is_named(const char *name, const struct df_strs *named)
{
    for (size_t i = 0; named && i < named->len; i++)
        if (is_option(named->items[i], name, strlen(name)))
            return true;
    return false;
}

static bool is_callers(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(callers_variables); i++)
        if (is_option(callers_variables[i], name, strlen(name)))
            return true;
    return false;
}

const char *df_model_admins_variable(const cJSON *environment, const struct df_strs *named)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, environment) {
        if (!is_callers(entry->string) && !is_named(entry->string, named))
            return entry->string;
    }
    return NULL;
}

/* Up to the first underscore: AWS_. */
static bool is_of_family(const char *name, const cJSON *variables)
{
    size_t n = strcspn(name, "_") + 1;
    const cJSON *v;
    cJSON_ArrayForEach (v, variables) {
        if (strncmp(name, v->string, n) == 0)
            return true;
    }
    return false;
}

const char *df_model_foreign_variable(const cJSON *environment, const cJSON *own,
                                      const struct df_strs *named)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, environment) {
        if (!df_starts_with(entry->string, "TF_") && !is_named(entry->string, named) &&
            is_of_family(entry->string, own))
            return entry->string;
    }
    return NULL;
}

/* ---- lists ---- */

/* Adds a fault for each entry that repeats the value of `key`. Quadratic, but lists have at most a
 * few hundred entries. */
static void check_unique(const cJSON *list, const char *key, const struct df_path *path,
                         struct df_faults *f)
{
    int index = 0;
    for (const cJSON *item = list->child; item; item = item->next) {
        const struct df_path here = {path, NULL, index++};
        const char *name = df_json_str(item, key);
        for (const cJSON *old = list->child; old != item; old = old->next) {
            if (df_streq(df_json_str(old, key), name)) {
                df_fault(f, &here, "\"%.64s\" occurs twice", name);
                break;
            }
        }
    }
}

void df_rule_environment(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int index = 0;
    for (const cJSON *item = value->child; item; item = item->next) {
        const struct df_path entry = {path, NULL, index++}, here = {&entry, "name", 0};
        df_check_variable(df_json_str(item, "name"), &here, f);
    }
    check_unique(value, "name", path, f);
}

void df_rule_environment_names(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *m = value->child; m; m = m->next)
        df_check_variable(m->string, path, f);
}
