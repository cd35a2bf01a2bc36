/*
 * Directories of a step, files in the module's directory, and the environment of the tool.
 * df_workspace_prepare() at the end calls them in order; compose_env() has the precedence.
 */
#include "runner/tofu/workspace.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "common/http/http.h"
#include "common/process/tmpdir.h"
#include "runner/tofu/backend_noted.h"
#include "runner/tofu/cliconfig.h"
#include "runner/tofu/override.h"
#include "runner/tofu/sealed.h"

#define VARIABLES_FILE "zzzz_dayfly.auto.tfvars.json"
#define FILES_PREFIX "@files/"

/* ---- directories ---- */

void df_dirs_free(struct df_dirs *d)
{
    free(d->source);
    free(d->spool);
    free(d->fetch);
    free(d->secret);
    free(d->home);
    free(d->temporary);
    *d = (struct df_dirs){0};
}

static int make_dir(const char *work_dir, const char *name, char **ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(work_dir, name);
    if (df_fs_mkdirs(path, 0700, err) < 0)
        return -1;
    *ret = DF_TAKE(path);
    return 0;
}

/* Files of an earlier runner must not become part of this step. */
static int make_empty_dir(const char *work_dir, const char *name, char **ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(work_dir, name);
    if (!path)
        return df_fail_oom(err);
    if (df_fs_renew_dir(path, err) < 0)
        return df_err_wrap(err, "empty %s", path);
    *ret = DF_TAKE(path);
    return 0;
}

int df_dirs_make(const char *work_dir, struct df_dirs *ret, struct df_err *err)
{
    struct df_dirs d = {0};
    if (df_fs_mkdirs(work_dir, 0700, err) < 0)
        return -1;
    /* The engine gives each step another link to the same directory (work_dir.h): resolve it. */
    DF_FREE char *real = realpath(work_dir, NULL);
    if (!real)
        return df_fail_errno(err, errno, "%s", work_dir);
    if (make_dir(real, "spool", &d.spool, err) < 0 ||
        make_empty_dir(real, "source", &d.source, err) < 0 ||
        make_empty_dir(real, "fetch", &d.fetch, err) < 0 ||
        make_empty_dir(real, "secret", &d.secret, err) < 0 ||
        make_empty_dir(real, "home", &d.home, err) < 0 ||
        df_tmpdir_make(work_dir, &d.temporary, err) < 0) {
        df_dirs_free(&d);
        return -1;
    }
    *ret = d;
    return 0;
}

/* A link on the way would lead the step to where others may write. */
static int check_way(const char *directory, struct df_err *err)
{
    DF_FREE char *real = realpath(directory, NULL);
    if (!real)
        return df_fail_errno(err, errno, "%s", directory);
    return df_streq(real, directory)
               ? 0
               : df_fail(err, DF_ERR_CONFLICT, "%s was replaced by %s", directory, real);
}

int df_dirs_renew(const struct df_dirs *d, struct df_err *err)
{
    const char *const emptied[] = {d->spool, d->fetch, d->secret, d->home, d->temporary};
    if (check_way(d->source, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(emptied); i++)
        if (df_fs_renew_dir(emptied[i], err) < 0)
            return df_err_wrap(err, "empty %s", emptied[i]);
    return 0;
}

/* ---- files ---- */

static int write_json(const char *dir, const char *name, const cJSON *json, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(dir, name);
    return df_json_save(path, json, err);
}

static bool is_file_name(const char *s)
{
    return *s && *s != '.' && !strchr(s, '/') && strlen(s) < 200;
}

static int write_base64(const char *path, const cJSON *file, struct df_err *err)
{
    const char *text = file->valuestring;
    DF_CLEANUP(df_buf_wipe) struct df_buf bytes = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT);
    if (df_base64_decode(text, strlen(text), false, &bytes, NULL) < 0)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "binaryFiles: %s is not base64",
                              file->string);
    return df_fs_write(path, df_buf_str(&bytes), bytes.len, 0600, err);
}

/* group: of the step, name -> text or base64. */
static int write_step_files(const cJSON *step, const char *group, const char *dir,
                            struct df_err *err)
{
    bool is_binary = df_streq(group, "binaryFiles");
    const cJSON *file;
    cJSON_ArrayForEach (file, df_json_at(step, group)) {
        if (!cJSON_IsString(file) || !is_file_name(file->string))
            return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                  "%s: \"%.80s\" is not a file name with a string", group,
                                  file->string);
        DF_FREE char *path = df_fs_join(dir, file->string);
        if (df_check_alloc(path, err) < 0 ||
            (is_binary
                 ? write_base64(path, file, err)
                 : df_fs_write(path, file->valuestring, strlen(file->valuestring), 0600, err)) < 0)
            return -1;
    }
    return 0;
}

/* ---- state ---- */

bool df_workspace_is_managed(const cJSON *step)
{
    return df_streq(df_json_str(step, "state.type"), "managed");
}

static int write_backend(const cJSON *state, const struct df_tool *tool, const char *module_dir,
                         struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_override_make(state, tool, &doc, err) < 0)
        return -1;
    return doc ? write_json(module_dir, DF_OVERRIDE_FILE, doc, err) : 0;
}

/* tofu asks the spawner for its state without a proxy, as the runner does (report/link.h). Go reads
 * the second name only where the first is empty; git and curl read the second. */
static int add_no_proxy(const char *url, struct df_strs *env, struct df_err *err)
{
    static const char *const proxies[] = {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"};
    static const char *const names[] = {"NO_PROXY", "no_proxy"};
    bool any = false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(proxies); i++)
        any |= !df_str_empty(df_strs_get_env(env, proxies[i]));
    if (!any)
        return 0;
    DF_FREE char *host = df_url_host(url);
    if (!host)
        return df_fail_oom(err);
    const char *upper = df_strs_get_env(env, names[0]), *lower = df_strs_get_env(env, names[1]);
    const char *before = df_str_empty(upper) ? lower : upper;
    DF_FREE char *value = df_str_empty(before) ? strdup(host) : df_strf("%s,%s", before, host);
    if (!value)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        (void)df_strs_set_env(env, names[i], value);
    return 0;
}

static int add_state_env(const cJSON *state, struct df_strs *env, struct df_err *err)
{
    const char *address = df_json_str(state, "address");
    if (!df_streq(df_json_str(state, "type"), "managed") || !address)
        return 0;
    const char *user = df_json_str(state, "username"), *password = df_json_str(state, "password");
    (void)df_strs_set_env(env, "TF_HTTP_ADDRESS", address);
    (void)df_strs_set_env(env, "TF_HTTP_LOCK_ADDRESS", address);
    (void)df_strs_set_env(env, "TF_HTTP_UNLOCK_ADDRESS", address);
    (void)df_strs_set_env(env, "TF_HTTP_LOCK_METHOD", "LOCK");
    (void)df_strs_set_env(env, "TF_HTTP_UNLOCK_METHOD", "UNLOCK");
    /* Wait for a spawner that restarts or is replaced: 5 minutes while nothing listens (1, 2, 4, 5,
     * 5, ... seconds), one minute while the answer is 503 (Retry-After: 1). */
    (void)df_strs_set_env(env, "TF_HTTP_RETRY_MAX", "60");
    (void)df_strs_set_env(env, "TF_HTTP_RETRY_WAIT_MAX", "5");
    if (user)
        (void)df_strs_set_env(env, "TF_HTTP_USERNAME", user);
    if (password)
        (void)df_strs_set_env(env, "TF_HTTP_PASSWORD", password);
    const char *ca = df_json_str(state, "caCertificate");
    if (ca)
        (void)df_strs_set_env(env, "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM", ca);
    return add_no_proxy(address, env, err);
}

/* ---- environment ---- */

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *const inherited[] = {
    "LANG",        "LC_ALL",    "LC_CTYPE",      "TZ",           "HTTP_PROXY",
    "HTTPS_PROXY", "NO_PROXY",  "http_proxy",    "https_proxy",  "no_proxy",
    "ALL_PROXY",   "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
};

static const struct {
    const char *name, *value;
} fixed[] = {
    {"TF_IN_AUTOMATION", "1"},
    {"TF_INPUT", "0"},
    {"CHECKPOINT_DISABLE", "1"},
    /* Relative: a plan has module paths below it, and its apply runs in another directory. */
    {"TF_DATA_DIR", ".terraform"},
};

static void add_base_env(const struct df_dirs *dirs, struct df_strs *env)
{
    const char *path = getenv("PATH");
    (void)df_strs_set_env(env, "PATH", df_str_empty(path) ? DEFAULT_PATH : path);
    (void)df_strs_set_env(env, "HOME", dirs->home);
    (void)df_strs_set_env(env, "TMPDIR", dirs->temporary);
    for (size_t i = 0; i < DF_ARRAY_SIZE(inherited); i++) {
        const char *value = getenv(inherited[i]);
        if (value)
            (void)df_strs_set_env(env, inherited[i], value);
    }
}

/* Replaces @files/<name> by the path of that file. */
static void expand_files(const cJSON *step, const char *value, const char *files_dir,
                         struct df_buf *out)
{
    static const char name_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789._-";
    for (const char *p; (p = strstr(value, FILES_PREFIX));) {
        char name[200] = "";
        const char *start = p + strlen(FILES_PREFIX);
        size_t n = strspn(start, name_bytes);
        if (n < sizeof(name))
            memcpy(name, start, n);
        bool is_file = cJSON_GetObjectItemCaseSensitive(df_json_at(step, "files"), name) ||
                       cJSON_GetObjectItemCaseSensitive(df_json_at(step, "binaryFiles"), name);
        (void)df_buf_add(out, value, (size_t)(p - value));
        (void)df_buf_addf(out, "%s%s%.*s", is_file ? files_dir : FILES_PREFIX, is_file ? "/" : "",
                          (int)n, start);
        value = start + n;
    }
    (void)df_buf_adds(out, value);
}

static int add_step_value(const cJSON *step, const cJSON *entry, const char *files_dir,
                          struct df_strs *env, struct df_err *err)
{
    if (!cJSON_IsString(entry) || !df_is_env_name(entry->string))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "environment: \"%.80s\" is not a variable with a string",
                              entry->string);
    struct df_buf value = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT);
    expand_files(step, entry->valuestring, files_dir, &value);
    int result = df_buf_check(&value, err);
    if (result == 0)
        (void)df_strs_set_env(env, entry->string, df_buf_str(&value));
    df_buf_wipe(&value);
    return result;
}

static int add_step_env(const cJSON *step, const char *member, const char *files_dir,
                        struct df_strs *env, struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(step, member)) {
        if (add_step_value(step, entry, files_dir, env, err) < 0)
            return -1;
    }
    return 0;
}

void df_workspace_free(struct df_workspace *w)
{
    df_strs_wipe(&w->env);
}

/* ---- all of it ---- */

static int prepare_module(const cJSON *step, const struct df_tool *tool, const char *module_dir,
                          struct df_err *err)
{
    const cJSON *variables = df_json_at(step, "variables");
    if (write_backend(df_json_at(step, "state"), tool, module_dir, err) < 0)
        return -1;
    return cJSON_IsObject(variables) ? write_json(module_dir, VARIABLES_FILE, variables, err) : 0;
}

static int compose_env(const cJSON *step, const struct df_dirs *dirs, const char *cli_config,
                       const char *files_dir, struct df_strs *env, struct df_err *err)
{
    add_base_env(dirs, env);
    if (add_step_env(step, "environment", files_dir, env, err) < 0 ||
        add_step_env(step, "secretEnvironment", files_dir, env, err) < 0 ||
        df_sealed_environment(step, env, err) < 0)
        return -1;
    /* Last: no variable of a step may override these. */
    for (size_t i = 0; i < DF_ARRAY_SIZE(fixed); i++)
        (void)df_strs_set_env(env, fixed[i].name, fixed[i].value);
    (void)df_strs_set_env(env, "TF_CLI_CONFIG_FILE", cli_config);
    if (add_state_env(df_json_at(step, "state"), env, err) < 0)
        return -1;
    return df_strs_check(env, err);
}

int df_workspace_prepare(const cJSON *step, const struct df_tool *tool, const struct df_dirs *dirs,
                         const char *module_dir, struct df_workspace *ret, struct df_err *err)
{
    DF_FREE char *cli_config = df_fs_join(dirs->secret, "cli.tfrc");
    DF_FREE char *files_dir = df_fs_join(dirs->secret, "files");
    if (df_check_alloc(cli_config, err) < 0 || prepare_module(step, tool, module_dir, err) < 0 ||
        df_fs_mkdirs(files_dir, 0700, err) < 0 ||
        write_step_files(step, "files", files_dir, err) < 0 ||
        write_step_files(step, "binaryFiles", files_dir, err) < 0 ||
        df_sealed_link_home(step, dirs->home, err) < 0 ||
        df_cliconfig_write(df_json_at(step, "providers"), df_json_str(step, "sealed.cliConfig"),
                           cli_config, err) < 0)
        return -1;
    struct df_workspace w = {.tool = tool};
    if (compose_env(step, dirs, cli_config, files_dir, &w.env, err) < 0) {
        df_workspace_free(&w);
        return -1;
    }
    *ret = w;
    return 0;
}

/* `init` would ask whether to migrate from the backend that it noted. */
static int forget_backend(const char *module_dir, struct df_err *err)
{
    DF_FREE char *override = df_fs_join(module_dir, DF_OVERRIDE_FILE);
    DF_FREE char *note = df_fs_join(module_dir, DF_BACKEND_NOTE);
    return df_fs_remove_tree(override, err) < 0 ? -1 : df_fs_remove_tree(note, err);
}

int df_workspace_use_state(struct df_workspace *w, const cJSON *state, const char *module_dir,
                           struct df_err *err)
{
    if (forget_backend(module_dir, err) < 0 || write_backend(state, w->tool, module_dir, err) < 0)
        return -1;
    if (add_state_env(state, &w->env, err) < 0)
        return -1;
    return df_strs_check(&w->env, err);
}
