#include "runner/terrakube/environment.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/http/http.h"
#include "common/terrakube/token.h"
#include "runner/terrakube/flow.h"

/* The API fails a job six hours after its creation; no token need live longer. */
enum { TOKEN_LIFE_S = 6 * 3600 };

/* ---- variables ---- */

/* The step has its own. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {"PATH", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        if (df_streq(name, names[i]))
            return true;
    }
    return false;
}

static int add_containers(const struct df_strs *from, struct df_strs *env, struct df_err *err)
{
    for (size_t i = 0; i < from->len; i++) {
        const char *value = strchr(from->items[i], '=');
        DF_FREE char *name =
            value ? strndup(from->items[i], (size_t)(value - from->items[i])) : NULL;
        if (!value)
            continue;
        if (!name)
            return df_fail_oom(err);
        if (*name && !is_ours(name) && !df_strs_get_env(env, name))
            (void)df_strs_set_env(env, name, value + 1);
    }
    return df_strs_check(env, err);
}

static int add_jobs(const cJSON *from, struct df_strs *env, struct df_err *err)
{
    const cJSON *v;
    cJSON_ArrayForEach (v, from) {
        const char *value = cJSON_GetStringValue(v);
        if (value && *v->string && !strchr(v->string, '='))
            (void)df_strs_set_env(env, v->string, value);
    }
    return df_strs_check(env, err);
}

/* ---- ~/.terraformrc ---- */

/* Scripts and the module can print the file. */
static int add_credentials(const struct df_context *c, const char *host, struct df_buf *out,
                           struct df_err *err)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    if (df_terrakube_token_make(t->settings->internal_secret, t->payload->workspace, df_real_us(),
                                TOKEN_LIFE_S, &token, err) < 0 ||
        df_output_hide_also(c->output, df_buf_str(&token), err) < 0)
        return -1;
    (void)df_buf_addf(out, "credentials \"%s\" {\ntoken = \"%s\"}\n", host, df_buf_str(&token));
    return df_buf_check(out, err);
}

static int write_cli_config(const struct df_context *c, const char *path, struct df_err *err)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(4 * DF_LIMIT_TOKEN);
    const char *registry = t->settings->registry_domain;
    DF_FREE char *host = df_url_host(t->settings->public_url ? t->settings->public_url : "");
    if (!df_str_empty(registry) && add_credentials(c, registry, &text, err) < 0)
        return -1;
    /* A second block for the same host would be an error of the tool. */
    if (!df_str_empty(host) && !df_streq(host, registry) &&
        add_credentials(c, host, &text, err) < 0)
        return -1;
    return df_fs_write(path, df_buf_str(&text), text.len, 0600, err);
}

int df_terrakube_environment_add(struct df_context *c, struct df_err *err)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    struct df_strs *env = &c->workspace.env;
    DF_FREE char *config = df_fs_join(c->dirs->home, ".terraformrc");
    if (!config)
        return df_fail_oom(err);
    /* A script may replace the file, as it does with Terrakube's executor. */
    (void)df_strs_set_env(env, "TF_CLI_CONFIG_FILE", config);
    if (write_cli_config(c, config, err) < 0 || add_containers(t->environment, env, err) < 0 ||
        add_jobs(t->payload->environment, env, err) < 0)
        return -1;
    (void)df_strs_set_env(env, "TF_DATA_DIR", ".terraform"); /* the stages look into it */
    return df_strs_check(env, err);
}
