#include "spawner/steps/step_document.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/engine/job_object.h"
#include "spawner/model/integration.h"
#include "spawner/steps/claim.h"

/* What a runner downloads lives as long as its pod. */
#define POD_TOOLS DF_JOB_WORK_DIR "/tools"

/* The document while it is made. */
struct making {
    struct df_spawner *s;
    const cJSON *task;
    const struct df_step_tokens *tokens;
    cJSON *doc;
};

static int copy(cJSON *to, const char *key, const cJSON *from, const char *path, struct df_err *err)
{
    const cJSON *item = df_json_at(from, path);
    return item ? df_json_set(to, key, cJSON_Duplicate(item, true), err) : 0;
}

/* Known secret values are masked in the log, wherever else in the document they stand. */
static int mask(struct making *m, const char *value, struct df_err *err)
{
    cJSON *list = df_json_array_at(m->doc, "mask");
    if (!list)
        return df_fail_oom(err);
    return df_json_append_str(list, value, err);
}

/* A secret of the vault, all its values masked. what: the field that asks for it. */
static int get_secret(struct making *m, const char *name, const char *what, cJSON **ret,
                      struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    if (df_vault_get(m->s->vault, name, &secret, &why) < 0) {
        if (why.cls == DF_ERR_NOT_FOUND)
            return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                  "%s: there is no secret \"%s\"; make it with: dayfly secret set "
                                  "%s KEY",
                                  what, name, name);
        *err = why;
        return -1;
    }
    const cJSON *value;
    cJSON_ArrayForEach (value, secret) {
        if (mask(m, cJSON_GetStringValue(value), err) < 0)
            return -1;
    }
    *ret = DF_TAKE(secret);
    return 0;
}

/* ---- what the TaskAction says ---- */

static int add_identity(struct making *m, struct df_err *err)
{
    const cJSON *t = m->task;
    if (copy(m->doc, "uid", t, "metadata.uid", err) < 0 ||
        copy(m->doc, "name", t, "metadata.name", err) < 0 ||
        copy(m->doc, "run", t, "spec.runRef.name", err) < 0 ||
        copy(m->doc, "executor", t, "spec.executorRef.name", err) < 0 ||
        copy(m->doc, "action", t, "spec.action", err) < 0 ||
        copy(m->doc, "timeoutSeconds", t, "spec.timeoutSeconds", err) < 0 ||
        copy(m->doc, "graceSeconds", t, "spec.graceSeconds", err) < 0 ||
        copy(m->doc, "runtime", t, "spec.runtime", err) < 0 ||
        copy(m->doc, "variables", t, "spec.variables", err) < 0 ||
        copy(m->doc, "arguments", t, "spec.arguments", err) < 0 ||
        copy(m->doc, "traceparent", t, "spec.traceparent", err) < 0 ||
        df_json_add_str(m->doc, "stepToken", m->tokens->step, err) < 0)
        return -1;
    if (m->tokens->claim && mask(m, m->tokens->claim, err) < 0)
        return -1;
    return mask(m, m->tokens->step, err);
}

/* Will somebody decide by this plan? */
static int add_reviewed(struct making *m, struct df_err *err)
{
    const char *name = df_json_str(m->task, "spec.runRef.name");
    DF_JSON cJSON *run = NULL;
    struct df_err why = {0};
    if (df_streq(df_json_str(m->task, "spec.action"), "apply"))
        return 0;
    if (df_store_get(m->s->store, DF_KIND_RUN, name ? name : "", &run, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND) {
        *err = why;
        return -1;
    }
    return df_json_add_bool(m->doc, "reviewed", !df_json_bool(run, "spec.autoApprove", false), err);
}

/* For an apply: exactly what was planned, and nothing else. */
static int add_expected(struct making *m, struct df_err *err)
{
    const char *from = df_json_str(m->task, "spec.planFrom");
    DF_JSON cJSON *plan = NULL;
    if (!from)
        return 0;
    cJSON *expected = df_json_object_at(m->doc, "expected");
    if (!expected)
        return df_fail_oom(err);
    if (df_store_get(m->s->store, DF_KIND_TASK_ACTION, from, &plan, err) < 0 ||
        copy(expected, "commit", plan, "status.source.commit", err) < 0 ||
        copy(expected, "treeDigest", plan, "status.source.treeDigest", err) < 0 ||
        copy(expected, "toolName", plan, "status.tool.name", err) < 0 ||
        copy(expected, "toolVersion", plan, "status.tool.version", err) < 0)
        return -1;
    return copy(expected, "lockFileSha256", plan, "status.lockFileSha256", err);
}

/* ---- what the configuration says ---- */

static int add_strings(cJSON *to, const char *key, const struct df_strs *list, struct df_err *err)
{
    cJSON *array = df_json_array_at(to, key);
    if (!array)
        return df_fail_oom(err);
    for (size_t i = 0; i < list->len; i++)
        if (df_json_append_str(array, list->items[i], err) < 0)
            return -1;
    return 0;
}

int df_step_tools(const struct df_config *c, bool in_pod, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *tools = cJSON_CreateObject();
    cJSON *index = tools ? df_json_object_at(tools, "index") : NULL;
    if (!index)
        return df_fail_oom(err);
    if (add_strings(tools, "directories", &c->tool_directories, err) < 0 ||
        df_json_add_bool(tools, "searchPath", c->tool_search_path, err) < 0 ||
        df_json_add_str(tools, "cacheDirectory", in_pod ? POD_TOOLS : c->tool_cache_directory,
                        err) < 0 ||
        df_json_add_str(index, "opentofu", c->tool_index_opentofu, err) < 0 ||
        df_json_add_str(index, "terraform", c->tool_index_terraform, err) < 0 ||
        df_json_add_str(tools, "caFile", c->tool_ca_file, err) < 0)
        return -1;
    *ret = DF_TAKE(tools);
    return 0;
}

static int add_tools(struct making *m, struct df_err *err)
{
    cJSON *tools = NULL;
    if (df_step_tools(m->s->config, df_claim_is_of_pod(m->task), &tools, err) < 0)
        return -1;
    return df_json_add(m->doc, "tools", tools, err);
}

struct df_placement_levels df_step_placement(const struct df_config *config, const cJSON *task)
{
    const cJSON *class =
        cJSON_GetObjectItemCaseSensitive(config->classes, df_json_str(task, "spec.class"));
    const cJSON *workspace = cJSON_GetObjectItemCaseSensitive(
        config->workspaces, df_json_str(task, "spec.executorRef.name"));
    return (struct df_placement_levels){.defaults = config->kube_placement,
                                        .class = df_json_at(class, "placement"),
                                        .workspace = df_json_at(workspace, "placement"),
                                        .environment = df_json_at(task, "spec.environment"),
                                        .executor = df_json_at(task, "spec.placement")};
}

/* Where the runner finds its plugin cache: in a pod it is what the placement mounts. */
static int add_plugin_cache(const struct making *m, cJSON *providers, struct df_err *err)
{
    const struct df_config *c = m->s->config;
    const struct df_placement_levels levels = df_step_placement(c, m->task);
    DF_JSON cJSON *placement = NULL;
    if (!df_claim_is_of_pod(m->task))
        return df_json_add_str(providers, "pluginCacheDirectory", c->plugin_cache_directory, err);
    if (df_placement_resolve(&levels, &placement, err) < 0)
        return -1;
    return df_json_add_str(providers, "pluginCacheDirectory", df_placement_plugin_cache(placement),
                           err);
}

static int add_providers(struct making *m, struct df_err *err)
{
    const struct df_config *c = m->s->config;
    DF_SECRET_JSON cJSON *credentials = NULL;
    cJSON *providers = df_json_object_at(m->doc, "providers");
    if (!providers)
        return df_fail_oom(err);
    if (add_plugin_cache(m, providers, err) < 0 ||
        df_json_add_str(providers, "filesystemMirror", c->filesystem_mirror, err) < 0 ||
        df_json_add_str(providers, "networkMirror", c->network_mirror, err) < 0 ||
        df_config_credentials(c, &credentials, err) < 0)
        return -1;
    const cJSON *token;
    cJSON_ArrayForEach (token, credentials) {
        if (mask(m, cJSON_GetStringValue(token), err) < 0)
            return -1;
    }
    return df_json_set(providers, "credentials", DF_TAKE(credentials), err);
}

/* ---- the source and its credentials ---- */

static int add_credentials(cJSON *source, const cJSON *secret, struct df_err *err)
{
    static const struct {
        const char *key, *member;
    } members[] = {{"username", "username"},      {"password", "password"},
                   {"token", "password"},         {"ssh-privatekey", "sshPrivateKey"},
                   {"known_hosts", "knownHosts"}, {"ca.crt", "caCertificate"}};
    cJSON *credentials = df_json_object_at(source, "credentials");
    if (!credentials)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(secret, members[i].key);
        if (value && df_json_set_str(credentials, members[i].member, value->valuestring, err) < 0)
            return -1;
    }
    /* The forges take any name beside a token; oauth2 is the one that each of them documents or
     * accepts. */
    bool alone = df_json_at(credentials, "password") && !df_json_at(credentials, "username");
    return alone ? df_json_add_str(credentials, "username", "oauth2", err) : 0;
}

static int add_source(struct making *m, struct df_err *err)
{
    const char *name = df_json_str(m->task, "spec.source.secretRef.name");
    DF_SECRET_JSON cJSON *secret = NULL;
    if (copy(m->doc, "source", m->task, "spec.source", err) < 0)
        return -1;
    cJSON *source = df_json_object_at(m->doc, "source");
    cJSON_DeleteItemFromObjectCaseSensitive(source, "secretRef");
    if (!name)
        return 0;
    if (get_secret(m, name, "spec.source.secretRef", &secret, err) < 0)
        return -1;
    return add_credentials(source, secret, err);
}

/* ---- the environment ---- */

static int add_environment(struct making *m, struct df_err *err)
{
    cJSON *environment = df_json_object_at(m->doc, "environment");
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(m->task, "spec.environment")) {
        if (df_json_set_str(environment, df_json_str(entry, "name"), df_json_str(entry, "value"),
                            err) < 0)
            return -1;
    }
    return environment ? 0 : df_fail_oom(err);
}

/* TF_VAR_<key>, once. */
static int add_variable(struct making *m, const char *key, const char *value, const char *secret,
                        struct df_err *err)
{
    cJSON *environment = df_json_object_at(m->doc, "secretEnvironment");
    DF_FREE char *name = df_strf("TF_VAR_%s", key);
    if (!environment || !name)
        return df_fail_oom(err);
    if (cJSON_GetObjectItemCaseSensitive(environment, name))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "spec.secrets: the key %s of secret %s is in another secret, too",
                              key, secret);
    return df_json_add_str(environment, name, value, err);
}

static int add_secret_keys(struct making *m, const cJSON *entry, const cJSON *secret,
                           struct df_err *err)
{
    const char *name = df_json_str(entry, "name");
    const cJSON *keys = df_json_at(entry, "keys"), *item;
    if (!keys) {
        cJSON_ArrayForEach (item, secret) {
            if (add_variable(m, item->string, item->valuestring, name, err) < 0)
                return -1;
        }
        return 0;
    }
    cJSON_ArrayForEach (item, keys) {
        const char *key = cJSON_GetStringValue(item);
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(secret, key);
        if (!value)
            return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                  "spec.secrets: secret %s has no key \"%s\"; set it with: dayfly "
                                  "secret set %s %s",
                                  name, key, name, key);
        if (add_variable(m, key, value->valuestring, name, err) < 0)
            return -1;
    }
    return 0;
}

static int add_secrets(struct making *m, struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(m->task, "spec.secrets")) {
        DF_SECRET_JSON cJSON *secret = NULL;
        if (get_secret(m, df_json_str(entry, "name"), "spec.secrets", &secret, err) < 0 ||
            add_secret_keys(m, entry, secret, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_value_of(const cJSON *secret, const char *value)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, secret) {
        if (df_streq(item->valuestring, value))
            return true;
    }
    return false;
}

/* Whatever is no secret (a default region, the path of a file) goes where it is not masked. */
static int add_integration(struct making *m, const cJSON *entry, cJSON *all, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    const char *provider = df_json_str(entry, "provider");
    if (get_secret(m, df_json_str(entry, "secretRef.name"), "spec.integrations", &secret, err) < 0)
        return -1;
    int known = cJSON_GetArraySize(all); /* what is set already, so that nothing is set twice */
    if (df_integration_apply(provider, secret, all, df_json_object_at(m->doc, "files"), err) < 0)
        return -1;
    for (const cJSON *v = cJSON_GetArrayItem(all, known); v; v = v->next) {
        bool is_secret = is_value_of(secret, v->valuestring);
        cJSON *to = df_json_object_at(m->doc, is_secret ? "secretEnvironment" : "environment");
        if (df_json_set_str(to, v->string, v->valuestring, err) < 0)
            return -1;
    }
    return 0;
}

static int add_integrations(struct making *m, struct df_err *err)
{
    DF_SECRET_JSON cJSON *all = cJSON_Duplicate(df_json_at(m->doc, "environment"), true);
    const cJSON *entry;
    if (!all || !df_json_object_at(m->doc, "files"))
        return df_fail_oom(err);
    cJSON_ArrayForEach (entry, df_json_at(m->task, "spec.integrations")) {
        if (add_integration(m, entry, all, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the state ---- */

/* tofu speaks to the spawner itself, and it takes the text, not a file. */
static int add_ca(struct making *m, cJSON *state, struct df_err *err)
{
    DF_BUF struct df_buf pem = DF_BUF_INIT(DF_LIMIT_CA);
    if (!m->s->ca_file)
        return 0;
    if (df_fs_read(m->s->ca_file, &pem, err) < 0)
        return -1;
    return df_json_add_str(state, "caCertificate", df_buf_str(&pem), err);
}

static int add_managed_state(struct making *m, cJSON *state, struct df_err *err)
{
    const char *uid = df_json_str(m->task, "metadata.uid");
    DF_FREE char *address = df_strf("%s/v1/steps/%s/state", m->s->server_url, uid);
    if (!address)
        return df_fail_oom(err);
    if (df_json_add_str(state, "type", "managed", err) < 0 ||
        df_json_add_str(state, "address", address, err) < 0 ||
        df_json_add_str(state, "username", uid, err) < 0 ||
        df_json_add_str(state, "password", m->tokens->state, err) < 0 || add_ca(m, state, err) < 0)
        return -1;
    return mask(m, m->tokens->state, err);
}

static int add_state(struct making *m, struct df_err *err)
{
    const cJSON *storage = df_json_at(m->task, "spec.storage");
    const char *type = df_json_str(storage, "type");
    cJSON *state = df_json_object_at(m->doc, "state");
    if (!state)
        return df_fail_oom(err);
    if (!type || df_streq(type, "managed"))
        return add_managed_state(m, state, err);
    if (df_json_add_str(state, "type", type, err) < 0 ||
        copy(state, "config", storage, "config", err) < 0)
        return -1;
    cJSON *config = df_json_object_at(state, "config");
    const char *key = df_storage_path_key(type);
    return config && key ? df_json_set_str(config, key, df_json_str(storage, "path"), err) : 0;
}

int df_step_document(struct df_spawner *s, const cJSON *task, const struct df_step_tokens *tokens,
                     cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = cJSON_CreateObject();
    struct making m = {s, task, tokens, doc};
    if (!doc)
        return df_fail_oom(err);
    if (add_identity(&m, err) < 0 || add_reviewed(&m, err) < 0 || add_expected(&m, err) < 0 ||
        add_tools(&m, err) < 0 || add_providers(&m, err) < 0 || add_source(&m, err) < 0 ||
        add_environment(&m, err) < 0 || add_secrets(&m, err) < 0 || add_integrations(&m, err) < 0 ||
        add_state(&m, err) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}
