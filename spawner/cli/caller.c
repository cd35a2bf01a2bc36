/*
 * Passes values of the caller's shell to a run: first the rules (which names match, what the
 * executor sets), then the sources in order: --env, the shell's variables, credential files. At the
 * end: the note about variables that a service does not get. Read add() first.
 */
#include "spawner/cli/caller.h"

#include <errno.h>

#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/providers/cli_file.h"
#include "spawner/model/model.h"
#include "spawner/model/platform.h"
#include "spawner/model/secret_forms.h"

#define TF_VAR "TF_VAR_"
#define WORKSPACE "TF_WORKSPACE"
#define GIT_CONFIG "GIT_CONFIG_GLOBAL"

struct caller {
    const cJSON *executor; /* NULL: not known */
    cJSON *body;
    const char *cli_file; /* that --env TF_CLI_CONFIG_FILE names; or NULL */
    struct df_strs said;  /* names of the values that were added, for the note */
};

/* ---- names ---- */

/* pattern may end in *. */
static bool matches(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    return n && pattern[n - 1] == '*' ? strncmp(pattern, name, n - 1) == 0
                                      : df_streq(pattern, name);
}

/* Variables that contain a location or an account, not a secret: the log may show them. For
 * TF_VAR_* the runner decides, because it knows which variables the module declares sensitive. */
static const char *const plain_names[] = {
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_VAULT",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_SDK_LOAD_CONFIG",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CA_BUNDLE",
    "AWS_ENDPOINT_URL*",
    "AWS_USE_*",
    "AWS_EC2_METADATA_*",
    "AWS_STS_REGIONAL_ENDPOINTS",
    "AWS_MAX_ATTEMPTS",
    "AWS_RETRY_MODE",
    "ARM_SUBSCRIPTION_ID",
    "ARM_TENANT_ID",
    "ARM_CLIENT_ID",
    "ARM_ENVIRONMENT",
    "ARM_METADATA_HOSTNAME",
    "ARM_USE_*",
    "ARM_SKIP_*",
    "ARM_CLIENT_CERTIFICATE_PATH",
    "ARM_OIDC_TOKEN_FILE_PATH",
    "AZURE_CONFIG_DIR",
    "AZURE_SUBSCRIPTION_ID",
    "AZURE_TENANT_ID",
    "AZURE_CLIENT_ID",
    "GOOGLE_PROJECT",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_REGION",
    "GOOGLE_ZONE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
    "CLOUDSDK_CONFIG",
    "CLOUDSDK_CORE_*",
    "CLOUDSDK_COMPUTE_*",
    "CLOUDSDK_ACTIVE_CONFIG_NAME",
    GIT_CONFIG,
    "SSH_AUTH_SOCK",
    "VAULT_ADDR",
    "VAULT_NAMESPACE",
    "DD_HOST",
    "DATADOG_HOST",
    "SCW_DEFAULT_*",
    "TF_VAR_*",
    /* of a platform */
    "ENVIRONMENT",
    "KUBECONFIG_PATH",
    "TARGET_SCOPE",
    "PV_POLICY",
    "ACTION_TIMEOUT",
};

static bool is_plain(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(plain_names); i++)
        if (matches(plain_names[i], name))
            return true;
    return false;
}

/* ---- what the executor sets itself ---- */

/* If the executor has an integration for the provider, it alone sets these variables: none of the
 * shell is added to them. */
static const struct {
    const char *provider, *pattern;
} families[] = {
    {"aws", "AWS_*"},       {"azurerm", "ARM_*"},
    {"azurerm", "AZURE_*"}, {"gcp", "GOOGLE_*"},
    {"gcp", "CLOUDSDK_*"},  {"mongodb_atlas", "MONGODB_ATLAS_*"},
    {"datadog", "DD_*"},    {"github", "GITHUB_*"},
    {"gitlab", "GITLAB_*"}, {"bitbucket", "BITBUCKET_*"},
};

static bool has_integration(const cJSON *executor, const char *provider)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(executor, "spec.integrations")) {
        if (df_streq(df_json_str(entry, "provider"), provider))
            return true;
    }
    return false;
}

static bool is_set_by(const cJSON *executor, const char *name)
{
    const cJSON *entry;
    for (size_t i = 0; i < DF_ARRAY_SIZE(families); i++)
        if (matches(families[i].pattern, name) && has_integration(executor, families[i].provider))
            return true;
    cJSON_ArrayForEach (entry, df_json_at(executor, "spec.environment")) {
        if (df_streq(df_json_str(entry, "name"), name))
            return true;
    }
    cJSON_ArrayForEach (entry, df_json_at(executor, "spec.secrets")) {
        if (df_secret_sets(entry, name))
            return true;
    }
    return false;
}

/* ---- adding ---- */

static cJSON *environment_of(const struct caller *c)
{
    cJSON *secrets = df_json_object_at(c->body, "secrets");
    return df_json_object_at(secrets, "environment");
}

static bool is_given(const struct caller *c, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(df_json_at(c->body, "secrets.environment"), name);
}

static int give(struct caller *c, const char *name, const char *value, struct df_err *err)
{
    cJSON *environment = environment_of(c);
    cJSON *secrets = cJSON_GetObjectItemCaseSensitive(c->body, "secrets");
    if (df_json_set_str(environment, name, value, err) < 0)
        return -1;
    if (!is_plain(name))
        return 0;
    return df_json_append_str(df_json_array_at(secrets, "plain"), name, err);
}

static int give_and_say(struct caller *c, const char *name, const char *value, struct df_err *err)
{
    (void)df_strs_add(&c->said, name);
    return give(c, name, value, err);
}

/* ---- --env ---- */

/* *ret_name: for the caller to free; *ret_value: borrowed. */
static int read_named(const char *text, char **ret_name, const char **ret_value, struct df_err *err)
{
    const char *equals = strchr(text, '=');
    DF_FREE char *name = equals ? strndup(text, (size_t)(equals - text)) : strdup(text);
    if (!name)
        return df_fail_oom(err);
    if (!df_is_env_name(name))
        return df_fail(err, DF_ERR_USER,
                       "--env: \"%.64s\" is not the name of an environment variable", name);
    const char *value = equals ? equals + 1 : getenv(name);
    if (!value)
        return df_fail(err, DF_ERR_USER, "--env %s: the variable is not set in this shell", name);
    *ret_name = DF_TAKE(name);
    *ret_value = value;
    return 0;
}

static int give_named(struct caller *c, const char *text, struct df_err *err)
{
    DF_FREE char *name = NULL;
    const char *value = NULL;
    if (read_named(text, &name, &value, err) < 0)
        return -1;
    if (df_streq(name, DF_CLI_FILE_VARIABLE)) {
        c->cli_file = value;
        return 0;
    }
    return give_and_say(c, name, value, err);
}

/* ---- before anything is changed ---- */

static int refuse_workspace(const char *what, const char *way_out, struct df_err *err)
{
    return df_fail(err, DF_ERR_USER,
                   "%s: an executor is one workspace, so nothing was run: %sgive each workspace an "
                   "executor of its own with --name",
                   what, way_out);
}

static int check_cli_file(const struct df_cli *cli, const char *path, struct df_err *err)
{
    if (!df_connection_shell(cli->server))
        return df_fail(err, DF_ERR_USER,
                       "--env " DF_CLI_FILE_VARIABLE ": a service takes mirrors and tokens from "
                       "providers.* of its configuration, not from a caller");
    if (access(path, R_OK) == 0)
        return 0;
    (void)df_fail_errno(err, errno, "--env " DF_CLI_FILE_VARIABLE ": %s", path);
    err->cls = DF_ERR_USER;
    return -1;
}

static int check_named(const struct df_cli *cli, const char *text, struct df_err *err)
{
    DF_FREE char *name = NULL;
    const char *value = NULL;
    if (read_named(text, &name, &value, err) < 0)
        return -1;
    if (df_streq(name, WORKSPACE))
        return refuse_workspace("--env " WORKSPACE, "", err);
    return df_streq(name, DF_CLI_FILE_VARIABLE) ? check_cli_file(cli, value, err) : 0;
}

/* Variables of the shell that change what the tool does, or how it stores the state, and that no
 * run gets by itself. */
static const struct {
    const char *pattern, *way_out;
} not_taken[] = {{"TF_ENCRYPTION", "take it along with --env TF_ENCRYPTION"},
                 {"TF_CLI_ARGS*", "give its options with --arg"}};

static bool is_named(const struct df_cli *cli, const char *name, size_t n)
{
    const char *named = NULL;
    for (size_t i = 0; (named = df_arg_nth(&cli->args, "env", i)); i++)
        if (strcspn(named, "=") == n && strncmp(named, name, n) == 0)
            return true;
    return false;
}

/* entry: "NAME=value" */
static int check_entry(const struct df_cli *cli, const char *entry, struct df_err *err)
{
    size_t n = strcspn(entry, "=");
    DF_FREE char *name = strndup(entry, n);
    if (!name)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(not_taken); i++)
        if (matches(not_taken[i].pattern, name) && entry[n] && entry[n + 1] &&
            !is_named(cli, entry, n))
            return df_fail(err, DF_ERR_USER,
                           "%s of this shell reaches no run by itself, so nothing was run: %s, or "
                           "do without it (`unset %s`, or --no-env)",
                           name, not_taken[i].way_out, name);
    return 0;
}

static int check_shell(const struct df_cli *cli, struct df_err *err)
{
    const char *workspace = getenv(WORKSPACE);
    if (!df_connection_shell(cli->server))
        return 0;
    for (char **entry = environ; *entry; entry++)
        if (check_entry(cli, *entry, err) < 0)
            return -1;
    if (df_str_empty(workspace) || df_streq(workspace, "default"))
        return 0;
    DF_FREE char *what =
        df_strf(WORKSPACE " of this shell selects the workspace \"%.90s\"", workspace);
    return what ? refuse_workspace(what, "`unset " WORKSPACE "`, and ", err) : df_fail_oom(err);
}

int df_caller_check(const struct df_cli *cli, struct df_err *err)
{
    const char *named = NULL;
    bool has_none = df_arg_given(&cli->args, "no-env");
    if (has_none && df_arg_given(&cli->args, "env"))
        return df_fail(err, DF_ERR_USER, "--env and --no-env contradict each other");
    for (size_t i = 0; (named = df_arg_nth(&cli->args, "env", i)); i++)
        if (check_named(cli, named, err) < 0)
            return -1;
    return has_none ? 0 : check_shell(cli, err);
}

/* ---- the shell's variables ---- */

static bool is_listed(const struct df_strs *patterns, const char *name)
{
    for (size_t i = 0; i < patterns->len; i++)
        if (matches(patterns->items[i], name))
            return true;
    return false;
}

/* *ret: the name of this environment entry if a run without a service gets it, for the caller to
 * free; else NULL. */
static int find_variable(const struct caller *c, const struct df_strs *patterns, const char *entry,
                         char **ret, struct df_err *err)
{
    const char *equals = strchr(entry, '=');
    DF_FREE char *name = equals ? strndup(entry, (size_t)(equals - entry)) : strdup("");
    if (!name)
        return df_fail_oom(err);
    bool passes = equals && equals[1] && is_listed(patterns, name) && !is_given(c, name) &&
                  !is_set_by(c->executor, name);
    *ret = passes ? DF_TAKE(name) : NULL;
    return 0;
}

static int give_variable(struct caller *c, const struct df_strs *patterns, const char *entry,
                         struct df_err *err)
{
    DF_FREE char *name = NULL;
    if (find_variable(c, patterns, entry, &name, err) < 0)
        return -1;
    return name ? give_and_say(c, name, strchr(entry, '=') + 1, err) : 0;
}

/* ---- the files of the providers' own tools ---- */

struct credential_file {
    const char *directory; /* relative to HOME */
    const char *file;      /* in directory; "": the directory itself */
    const char *variable;  /* the environment variable for its path */
    const char *unless;    /* not if this variable is set, which has credentials; or NULL */
};

/* A variable is set for each file, because a step has its own HOME: Google's libraries search the
 * file of `gcloud auth application-default login` only below HOME. */
static const struct credential_file credential_files[] = {
    {".aws", "config", "AWS_CONFIG_FILE", NULL},
    {".aws", "credentials", "AWS_SHARED_CREDENTIALS_FILE", NULL},
    {".config/gcloud", "", "CLOUDSDK_CONFIG", NULL},
    {".config/gcloud", "application_default_credentials.json", "GOOGLE_APPLICATION_CREDENTIALS",
     "GOOGLE_CREDENTIALS"},
    {".azure", "", "AZURE_CONFIG_DIR", NULL},
};

static void say_directory(struct caller *c, const char *directory)
{
    DF_FREE char *text = df_strf("~/%s", directory);
    for (size_t i = 0; text && i < c->said.len; i++)
        if (df_streq(c->said.items[i], text))
            return;
    (void)df_strs_add(&c->said, text ? text : directory);
}

static int give_file(struct caller *c, const struct credential_file *f, struct df_err *err)
{
    const char *home = getenv("HOME");
    if (df_str_empty(home) || is_given(c, f->variable) || (f->unless && is_given(c, f->unless)) ||
        is_set_by(c->executor, f->variable))
        return 0;
    DF_FREE char *path = df_strf("%s/%s%s%s", home, f->directory, *f->file ? "/" : "", f->file);
    if (!path)
        return df_fail_oom(err);
    if (!df_fs_exists(path))
        return 0;
    say_directory(c, f->directory);
    return give(c, f->variable, path, err);
}

/* ---- the configuration of git ---- */

/* True if the file may say how git reaches a repository; most have only a name and a taste. */
static bool leads_git(const char *path)
{
    static const char *const words[] = {"insteadof", "[credential", "[http", "[include",
                                        "sshcommand"};
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (df_fs_read(path, &text, NULL) < 0)
        return false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (strcasestr(df_buf_str(&text), words[i]))
            return true;
    return false;
}

/* shown: the path for people. */
static int give_git_file(struct caller *c, const char *path, const char *shown, struct df_err *err)
{
    if (!path)
        return df_fail_oom(err);
    if (is_given(c, GIT_CONFIG) || is_set_by(c->executor, GIT_CONFIG) || !leads_git(path))
        return 0;
    (void)df_strs_add(&c->said, shown);
    return give(c, GIT_CONFIG, path, err);
}

/* The tool fetches modules with git, and a step has a HOME of its own. */
static int give_git_config(struct caller *c, struct df_err *err)
{
    const char *home = getenv("HOME"), *named = getenv(GIT_CONFIG);
    if (!df_str_empty(named))
        return give_git_file(c, named, named, err);
    if (df_str_empty(home))
        return 0;
    DF_FREE char *usual = df_strf("%s/.gitconfig", home);
    DF_FREE char *other = df_strf("%s/.config/git/config", home);
    return give_git_file(c, usual, "~/.gitconfig", err) < 0
               ? -1
               : give_git_file(c, other, "~/.config/git/config", err);
}

/* ---- the tool's own configuration ---- */

static bool is_terraform(const struct caller *c)
{
    const char *wanted = df_json_str(c->executor, "spec.runtime.name");
    return df_streq(wanted ? wanted : df_json_str(c->executor, "status.tool.name"), "terraform");
}

static int give_cli_text(struct caller *c, const struct df_cli_file *f, struct df_err *err)
{
    cJSON *secrets = df_json_object_at(c->body, "secrets");
    for (size_t i = 0; i < f->names.len; i++)
        (void)df_strs_add(&c->said, f->names.items[i]);
    if (f->has_helper)
        df_cli_note("the credentials_helper of %s is not used: give its tokens as "
                    "TF_TOKEN_<host>, or in blocks `credentials`",
                    f->names.items[0]);
    return df_json_set_str(secrets, DF_SEALED_CLI_CONFIG, f->text, err);
}

/* What ~/.tofurc or ~/.terraformrc says, or the file in its place. */
static int give_cli_file(struct caller *c, const struct df_config *config, struct df_err *err)
{
    DF_CLI_FILE struct df_cli_file f = {0};
    if ((!c->cli_file && !config->caller_files) || df_platform_is(c->executor))
        return 0;
    if (df_cli_file_read(is_terraform(c), c->cli_file, &f, err) < 0)
        return df_err_wrap(err, "the tool's configuration (--no-env passes nothing)");
    if (f.missing)
        df_cli_note(DF_CLI_FILE_VARIABLE " of this shell names %s, which cannot be read: the run "
                                         "goes on without it, as the tool does",
                    f.missing);
    return f.text ? give_cli_text(c, &f, err) : 0;
}

/* ---- all of it ---- */

static int give_shell(struct caller *c, const struct df_config *config, struct df_err *err)
{
    for (char **entry = environ; *entry; entry++)
        if (give_variable(c, &config->caller_environment, *entry, err) < 0)
            return -1;
    for (size_t i = 0; config->caller_files && i < DF_ARRAY_SIZE(credential_files); i++)
        if (give_file(c, &credential_files[i], err) < 0)
            return -1;
    if (config->caller_files && give_git_config(c, err) < 0)
        return -1;
    return give_cli_file(c, config, err);
}

static int join(const struct df_strs *names, struct df_buf *out, struct df_err *err)
{
    if (df_strs_check(names, err) < 0)
        return -1;
    for (size_t i = 0; i < names->len; i++)
        (void)df_buf_addf(out, "%s%s", i ? ", " : "", names->items[i]);
    return df_buf_check(out, err);
}

static int say(const struct caller *c, struct df_err *err)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_LIMIT_HTTP_BODY);
    if (join(&c->said, &names, err) < 0)
        return -1;
    if (c->said.len)
        df_cli_note("passed from this shell: %s (--no-env passes nothing)", df_buf_str(&names));
    return 0;
}

/* ---- the note about what a service does not get ---- */

/* True if the run would probably fail or behave differently without this variable. A region alone
 * does not justify a note. */
static bool is_worth_a_note(const char *name)
{
    return !is_plain(name) || df_starts_with(name, TF_VAR) || df_streq(name, "AWS_PROFILE") ||
           df_streq(name, "GOOGLE_APPLICATION_CREDENTIALS");
}

static int list_kept(const struct caller *c, const struct df_strs *patterns, struct df_strs *ret,
                     bool *ret_worth, struct df_err *err)
{
    for (char **entry = environ; *entry; entry++) {
        DF_FREE char *name = NULL;
        if (find_variable(c, patterns, *entry, &name, err) < 0)
            return -1;
        if (!name)
            continue;
        *ret_worth = *ret_worth || is_worth_a_note(name);
        (void)df_strs_add(ret, name);
    }
    return 0;
}

static int say_kept(const struct caller *c, const struct df_strs *patterns, struct df_err *err)
{
    DF_STRS struct df_strs kept = {0};
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_LIMIT_HTTP_BODY);
    bool worth = false;
    if (list_kept(c, patterns, &kept, &worth, err) < 0 || join(&kept, &names, err) < 0)
        return -1;
    if (worth)
        df_cli_note("not passed to the service from this shell: %s (--env NAME passes one, "
                    "--no-env passes nothing and says nothing)",
                    df_buf_str(&names));
    return 0;
}

/* Uses the list in this machine's configuration; prints nothing if that is invalid. */
static int say_not_passed(const struct df_cli *cli, const struct caller *c, struct df_err *err)
{
    struct df_config config = {0};
    struct df_err ignored = {0};
    if (df_config_load(df_cli_config(cli), environ, NULL, &config, &ignored) < 0)
        return 0;
    int result = say_kept(c, &config.caller_environment, err);
    df_config_free(&config);
    return result;
}

static int add(struct df_cli *cli, struct caller *c, struct df_err *err)
{
    const char *named = NULL;
    for (size_t i = 0; (named = df_arg_nth(&cli->args, "env", i)); i++)
        if (give_named(c, named, err) < 0)
            return -1;
    const struct df_config *config = df_connection_shell(cli->server);
    if ((config ? give_shell(c, config, err) : say_not_passed(cli, c, err)) < 0)
        return -1;
    return say(c, err);
}

/* Returns the executor with the providers of the integrations that it names; the caller frees. One
 * that is absent fails the run itself. */
static int with_providers(struct df_cli *cli, const cJSON *executor, cJSON **ret,
                          struct df_err *err)
{
    DF_JSON cJSON *copy = executor ? cJSON_Duplicate(executor, true) : cJSON_CreateObject();
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(copy, "spec"), *entry;
    cJSON_ArrayForEach (entry, cJSON_GetObjectItemCaseSensitive(spec, "integrations")) {
        DF_JSON cJSON *doc = NULL;
        const char *name = df_json_str(entry, "name");
        DF_FREE char *path = name ? df_path("integrations", name, NULL) : NULL;
        struct df_err why = {0};
        if (path && df_cli_call(cli, "GET", path, NULL, &doc, &why) < 0 &&
            why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
        const char *provider = df_json_str(doc, "spec.provider");
        if (provider && df_json_set_str(entry, "provider", provider, err) < 0)
            return -1;
    }
    return df_check_alloc(*ret = DF_TAKE(copy), err);
}

int df_caller_add(struct df_cli *cli, const cJSON *executor, cJSON *body, struct df_err *err)
{
    DF_JSON cJSON *own = NULL;
    if (df_arg_given(&cli->args, "no-env"))
        return 0;
    if (with_providers(cli, executor, &own, err) < 0)
        return -1;
    struct caller c = {.executor = own, .body = body};
    int result = add(cli, &c, err);
    df_strs_free(&c.said);
    return result;
}
