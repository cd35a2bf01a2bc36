/*
 * What the environment of Terrakube's API says of its Jobs, for steps of Terrakube that this
 * service runs: ExecutorEphemeral... (2.34), and the node selector in JAVA_TOOL_OPTIONS. The
 * configuration wins over both.
 */
#include "common/base/parse.h"
#include "spawner/config/keys.h"
#include "spawner/model/engine_kinds.h"

static const char *get_env(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* ---- seconds ---- */

static int read_seconds(char *const *env, const char *name, int64_t *to, struct df_err *err)
{
    const char *text = get_env(env, name);
    struct df_err why = {0};
    if (df_str_empty(text))
        return 0;
    if (df_parse_i64(text, 1, DF_LIMIT_TERRAKUBE_SECONDS, to, &why) == 0)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "SettingInvalid",
                          "%s: \"%.64s\" must be a number of seconds from 1 to %d", name, text,
                          DF_LIMIT_TERRAKUBE_SECONDS);
}

/* ---- the node selector ---- */

/* Before and after the package was renamed (2.27). */
static const char *const prefixes[] = {"-Dio.terrakube.executor.ephemeral.nodeSelector",
                                       "-Dorg.terrakube.executor.ephemeral.nodeSelector"};

/* The key of ".key=value" or "[key]=value", where a key with a slash or a dot needs the second
 * form. The caller frees both. -1: it is neither. */
static int split_option(const char *text, char **ret_key, char **ret_value)
{
    bool bracket = *text == '[';
    const char *end = strchr(text, bracket ? ']' : '=');
    const char *equals = end && bracket ? end + 1 : end;
    if ((*text != '.' && !bracket) || !end || *equals != '=' || end == text + 1)
        return -1;
    *ret_key = strndup(text + 1, (size_t)(end - text - 1));
    *ret_value = strdup(equals + 1);
    return 0;
}

/* Adds the pair, unless the configuration has the key. */
static int add_selector(struct df_config *c, const char *key, const char *value, struct df_err *err)
{
    if (!c->kube_placement)
        c->kube_placement = cJSON_CreateObject();
    cJSON *selector = df_json_object_at(c->kube_placement, "nodeSelector");
    if (!selector)
        return df_fail_oom(err);
    return cJSON_GetObjectItemCaseSensitive(selector, key)
               ? 0
               : df_json_add_str(selector, key, value, err);
}

static int read_option(struct df_config *c, const char *option, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(prefixes); i++) {
        DF_FREE char *key = NULL, *value = NULL;
        if (!df_starts_with(option, prefixes[i]))
            continue;
        if (split_option(option + strlen(prefixes[i]), &key, &value) < 0)
            return df_fail_reason(err, DF_ERR_USER, "SettingInvalid",
                                  "JAVA_TOOL_OPTIONS: \"%.200s\" must be %s.KEY=VALUE, or "
                                  "%s[KEY]=VALUE for a key with a dot or a slash",
                                  option, prefixes[0], prefixes[0]);
        return key && value ? add_selector(c, key, value, err) : df_fail_oom(err);
    }
    return 0;
}

static int read_options(struct df_config *c, char *const *env, struct df_err *err)
{
    const char *text = get_env(env, "JAVA_TOOL_OPTIONS");
    while (text && *text) {
        size_t n = strcspn(text, " \t\n");
        DF_FREE char *option = strndup(text, n);
        if (!option)
            return df_fail_oom(err);
        if (read_option(c, option, err) < 0)
            return -1;
        text += n;
        text += strspn(text, " \t\n");
    }
    return 0;
}

int df_config_fill_terrakube(struct df_config *c, char *const *env, struct df_err *err)
{
    if (!c->upstream_listen)
        return 0;
    if (!c->terrakube_steps) /* a machine has one folder and one memory; a cluster has many */
        c->terrakube_steps = df_engine_kind_of(c->engine)->runs_here ? 1 : c->limit_steps;
    if (read_seconds(env, "ExecutorEphemeralActiveDeadlineSeconds", &c->terrakube_deadline_s, err) <
            0 ||
        read_seconds(env, "ExecutorEphemeralTerminationGracePeriodSeconds", &c->timeout_grace_s,
                     err) < 0 ||
        read_seconds(env, "ExecutorEphemeralTtlSecondsAfterFinished", &c->kube_ttl_s, err) < 0)
        return -1;
    return read_options(c, env, err);
}
