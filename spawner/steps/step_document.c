/*
 * step_document.c - df_step_document() at the end of the file calls one function for each part of
 * the document: identity, run, plan, tools, providers, source, environment, secrets, state; of a
 * step of an upstream only some. Every secret value that goes into it is in `mask`, too: no log
 * shows it.
 */
#include "spawner/steps/step_document.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/engine/job/job_object.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/model/redirect.h"
#include "spawner/model/secret_forms.h"
#include "spawner/model/secret_use.h"
#include "spawner/model/tables.h"
#include "spawner/model/task_kinds.h"
#include "spawner/steps/integrations.h"
#include "spawner/steps/sealed.h"
#include "spawner/steps/step_secrets.h"
#include "spawner/upstream.h"

/* In a pod: where the runner keeps the tools that it downloads. They last until the pod ends. */
#define POD_TOOLS DF_JOB_WORK_DIR "/tools"

/* The longest file name that the runner accepts. */
#define MAX_FILE_NAME 199

/* The inputs, and the document so far. */
struct making {
    struct df_spawner *s;
    const cJSON *task;
    const struct df_step_tokens *tokens;
    cJSON *doc;
    const struct df_field *rows; /* of the spec */
};

static int copy(cJSON *to, const char *key, const cJSON *from, const char *path, struct df_err *err)
{
    const cJSON *item = df_json_at(from, path);
    return item ? df_json_set(to, key, cJSON_Duplicate(item, true), err) : 0;
}

/* Adds a value that the runner masks in everything that it shows. */
static int mask(struct making *m, const char *value, struct df_err *err)
{
    cJSON *list = df_json_array_at(m->doc, "mask");
    if (!list)
        return df_fail_oom(err);
    return df_json_append_str(list, value, err);
}

static int mask_all(struct making *m, const cJSON *secret, struct df_err *err)
{
    const cJSON *value;
    cJSON_ArrayForEach (value, secret) {
        if (mask(m, cJSON_GetStringValue(value), err) < 0)
            return -1;
    }
    return 0;
}

/* Reads a secret and masks all its values. what: the field that refers to it. */
static int get_secret(struct making *m, const char *name, const char *what, cJSON **ret,
                      struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    if (df_step_secret(m->s, m->task, name, what, &secret, err) < 0 || mask_all(m, secret, err) < 0)
        return -1;
    *ret = DF_TAKE(secret);
    return 0;
}

/* ---- from the TaskAction ---- */

static int copy_fields(struct making *m, struct df_err *err)
{
    const cJSON *spec = df_json_at(m->task, "spec");
    for (const struct df_field *f = m->rows; f->name; f++)
        if ((f->flags & DF_TO_RUNNER) && copy(m->doc, f->name, spec, f->name, err) < 0)
            return -1;
    return 0;
}

static int add_identity(struct making *m, struct df_err *err)
{
    const cJSON *t = m->task;
    if (copy_fields(m, err) < 0 || copy(m->doc, "uid", t, "metadata.uid", err) < 0 ||
        copy(m->doc, "name", t, "metadata.name", err) < 0 ||
        copy(m->doc, "run", t, "spec.runRef.name", err) < 0 ||
        copy(m->doc, "executor", t, "spec.executorRef.name", err) < 0 ||
        df_json_add_str(m->doc, "stepToken", m->tokens->step, err) < 0)
        return -1;
    if (m->tokens->claim && mask(m, m->tokens->claim, err) < 0)
        return -1;
    return mask(m, m->tokens->step, err);
}

/* Says which inputs come from the run, because they override those of the executor: the run's
 * variables, and how many of the last variable files and arguments are the run's. */
static int add_of_run(struct making *m, const cJSON *run, struct df_err *err)
{
    static const char *const lists[] = {"variableFiles", "arguments"};
    const cJSON *spec = df_json_at(run, "spec");
    cJSON *of_run = df_json_object_at(m->doc, "ofRun");
    if (!of_run)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(lists); i++)
        if (df_json_add_num(of_run, lists[i], cJSON_GetArraySize(df_json_at(spec, lists[i])), err) <
            0)
            return -1;
    return copy(of_run, "variables", spec, "variables", err);
}

/* From the run: its own inputs, its sealed secrets, and whether somebody will review its plan. */
static int add_run(struct making *m, struct df_err *err)
{
    const char *name = df_json_str(m->task, "spec.runRef.name");
    DF_SHARED const cJSON *run = NULL;
    cJSON *sealed = NULL;
    if (df_store_look_for(m->s->store, DF_KIND_RUN, name ? name : "", &run, err) < 0)
        return -1;
    if (add_of_run(m, run, err) < 0 || df_sealed_get(m->s, run, &sealed, err) < 0 ||
        (sealed && df_json_add(m->doc, "sealed", sealed, err) < 0))
        return -1;
    if (df_recipe_step_of(m->task)->writes)
        return 0;
    return df_json_add_bool(m->doc, "reviewed", !df_json_bool(run, "spec.autoApprove", false), err);
}

static int copy_found(cJSON *to, const cJSON *plan, struct df_err *err)
{
    return copy(to, "commit", plan, "status.source.commit", err) < 0 ||
                   copy(to, "treeDigest", plan, "status.source.treeDigest", err) < 0 ||
                   copy(to, "toolName", plan, "status.tool.name", err) < 0
               ? -1
               : copy(to, "toolVersion", plan, "status.tool.version", err);
}

/* For an apply: the source and the tool of the plan. The runner must find the same ones. */
static int add_expected(struct making *m, struct df_err *err)
{
    const char *from = df_json_str(m->task, "spec.planFrom");
    DF_SHARED const cJSON *plan = NULL;
    if (!from)
        return 0;
    cJSON *expected = df_json_object_at(m->doc, "expected");
    if (!expected)
        return df_fail_oom(err);
    if (df_store_look_for(m->s->store, DF_KIND_TASK_ACTION, from, &plan, err) < 0)
        return -1;
    if (!plan)
        return df_fail_reason(err, DF_ERR_USER, "StepDeleted",
                              "the TaskAction %s was deleted, and with it the plan: nothing was "
                              "applied",
                              from);
    return copy_found(expected, plan, err) < 0 ||
                   copy(expected, "lockFileSha256", plan, "status.lockFileSha256", err) < 0
               ? -1
               : copy(expected, "stateLineage", plan, "status.tofuState.lineage", err);
}

/* ---- from the configuration ---- */

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

bool df_step_is_in_pod(const struct df_spawner *s, const cJSON *task)
{
    const struct df_engine *e = df_engine_find(&s->engines, df_json_str(task, "spec.engine"));
    return e && e->kind->runs_pods;
}

static int add_tools(struct making *m, struct df_err *err)
{
    cJSON *tools = NULL;
    if (df_step_tools(m->s->config, df_step_is_in_pod(m->s, m->task), &tools, err) < 0)
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

/* The plugin cache of the runner; in a pod it is the volume that the placement mounts. */
static int add_plugin_cache(const struct making *m, cJSON *providers, struct df_err *err)
{
    const struct df_config *c = m->s->config;
    const struct df_placement_levels levels = df_step_placement(c, m->task);
    DF_JSON cJSON *placement = NULL;
    if (!df_step_is_in_pod(m->s, m->task))
        return df_json_add_str(providers, "pluginCacheDirectory", c->plugin_cache_directory, err);
    if (df_placement_resolve(&levels, &placement, err) < 0)
        return -1;
    return df_json_add_str(providers, "pluginCacheDirectory", df_placement_plugin_cache(placement),
                           err);
}

/* Adds the spawner's CA, because tofu itself connects to the spawner. tofu's http backend takes the
 * PEM text, not a file. */
static int add_ca(struct making *m, cJSON *to, struct df_err *err)
{
    DF_BUF struct df_buf pem = DF_BUF_INIT(DF_LIMIT_CA);
    if (!m->s->ca_file)
        return 0;
    if (df_fs_read(m->s->ca_file, &pem, err) < 0)
        return -1;
    return df_json_add_str(to, "caCertificate", df_buf_str(&pem), err);
}

/* The mirror that this service is for its steps. The tools send no token with the request for an
 * archive, so the URL has one. They read no mirror over http: without TLS there are steps of this
 * machine alone (config.c), and these read the directory. */
static int add_own_mirror(struct making *m, cJSON *providers, struct df_err *err)
{
    const char *directory = m->s->config->mirror_directory;
    if (!directory)
        return 0;
    if (!df_starts_with(m->s->server_url, "https://"))
        return df_json_set_str(providers, "filesystemMirror", directory, err);
    DF_FREE char *url = df_strf("%s/v1/steps/%s/providers/%s/", m->s->server_url,
                                df_json_str(m->task, "metadata.uid"), m->tokens->providers);
    if (!url)
        return df_fail_oom(err);
    if (df_json_set_str(providers, "networkMirror", url, err) < 0 || add_ca(m, providers, err) < 0)
        return -1;
    return mask(m, m->tokens->providers, err);
}

static int add_providers(struct making *m, struct df_err *err)
{
    const struct df_config *c = m->s->config;
    DF_SECRET_JSON cJSON *credentials = NULL;
    cJSON *providers = df_json_object_at(m->doc, "providers");
    if (!providers)
        return df_fail_oom(err);
    if (add_plugin_cache(m, providers, err) < 0 ||
        df_json_add_num(providers, "pluginCacheMaxMiB", (double)c->plugin_cache_max_mib, err) < 0 ||
        df_json_add_str(providers, "filesystemMirror", c->filesystem_mirror, err) < 0 ||
        df_json_add_str(providers, "networkMirror", c->network_mirror, err) < 0 ||
        df_json_add_str(providers, "ociMirror", c->oci_mirror, err) < 0 ||
        df_config_credentials(c, &credentials, err) < 0)
        return -1;
    const cJSON *token;
    cJSON_ArrayForEach (token, credentials) {
        if (mask(m, cJSON_GetStringValue(token), err) < 0)
            return -1;
    }
    if (df_json_set(providers, "credentials", DF_TAKE(credentials), err) < 0)
        return -1;
    return add_own_mirror(m, providers, err);
}

static int add_source(struct making *m, struct df_err *err)
{
    if (copy(m->doc, "source", m->task, "spec.source", err) < 0)
        return -1;
    cJSON *source = df_json_object_at(m->doc, "source");
    cJSON_DeleteItemFromObjectCaseSensitive(source, "secretRef");
    /* The steps of a command that is its own service read what its caller could read anyway. */
    bool is_own = m->s->config->embedded && !df_step_is_in_pod(m->s, m->task) &&
                  df_streq(df_json_str(source, "kind"), "directory");
    return is_own ? df_json_add_bool(source, "followsLinks", true, err) : 0;
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

/* Adds a file with the value, named after secret and key; the runner sets the variable to its
 * path. */
static int add_secret_file(struct making *m, const char *secret, const char *key, const char *value,
                           char **ret, struct df_err *err)
{
    cJSON *files = df_json_object_at(m->doc, "files");
    DF_FREE char *name = df_strf("%s.%s", secret, key);
    if (!files || !name)
        return df_fail_oom(err);
    if (strlen(name) > MAX_FILE_NAME)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "spec.secrets: the key \"%.64s…\" of secret %s is too long for the "
                              "name of a file; use a shorter key",
                              key, secret);
    *ret = df_strf("@files/%s", name);
    return *ret ? df_json_set_str(files, name, value, err) : df_fail_oom(err);
}

/* Adds one key of a secret, in the form that the entry requests. */
static int add_key(struct making *m, const cJSON *entry, const char *key, const char *value,
                   struct df_err *err)
{
    const char *secret = df_json_str(entry, "name");
    cJSON *environment = df_json_object_at(m->doc, "secretEnvironment");
    DF_FREE char *name = df_secret_variable(entry, key), *path = NULL;
    if (!environment || !name)
        return df_fail_oom(err);
    if (df_secret_check_key(entry, key, err) < 0)
        return -1;
    if (cJSON_GetObjectItemCaseSensitive(environment, name) ||
        cJSON_GetObjectItemCaseSensitive(df_json_at(m->doc, "environment"), name))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "spec.secrets: the key %s of secret %s sets %s, which another secret "
                              "or spec.environment sets, too",
                              key, secret, name);
    if (df_secret_is_file(entry) && add_secret_file(m, secret, key, value, &path, err) < 0)
        return -1;
    return df_json_add_str(environment, name, path ? path : value, err);
}

static int fail_key(const struct making *m, const char *secret, const char *key, struct df_err *err)
{
    DF_FREE char *advice = df_vault_advice(m->s->vault, secret, key);
    return advice ? df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                   "spec.secrets: secret %s has no key \"%s\"; %s", secret, key,
                                   advice)
                  : df_fail_oom(err);
}

static int add_secret_keys(struct making *m, const cJSON *entry, const cJSON *secret,
                           struct df_err *err)
{
    const char *name = df_json_str(entry, "name");
    const cJSON *keys = df_json_at(entry, "keys"), *item;
    if (!keys) {
        cJSON_ArrayForEach (item, secret) {
            if (add_key(m, entry, item->string, item->valuestring, err) < 0)
                return -1;
        }
        return 0;
    }
    cJSON_ArrayForEach (item, keys) {
        const char *key = cJSON_GetStringValue(item);
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(secret, key);
        if (!value)
            return fail_key(m, name, key, err);
        if (add_key(m, entry, key, value->valuestring, err) < 0)
            return -1;
    }
    return 0;
}

/* All variables so far. */
static cJSON *all_variables(const struct making *m)
{
    DF_SECRET_JSON cJSON *all = cJSON_Duplicate(df_json_at(m->doc, "environment"), true);
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(m->doc, "secretEnvironment")) {
        if (!all || df_json_set_str(all, entry->string, entry->valuestring, NULL) < 0)
            return NULL;
    }
    return DF_TAKE(all);
}

/* Masks what the integration gave, and splits its variables: values that are not secret (a default
 * region, the path of a file) must not be masked, so they go into `environment`. */
static int add_grant(struct making *m, const struct df_integration_grant *grant,
                     const cJSON *variables, struct df_err *err)
{
    cJSON *tokens = grant->token_file ? df_json_array_at(m->doc, "identityTokenFiles") : NULL;
    if (mask_all(m, grant->secrets, err) < 0 ||
        (tokens && df_json_append_str(tokens, grant->token_file, err) < 0))
        return -1;
    if (grant->token_file && !tokens)
        return df_fail_oom(err);
    for (const cJSON *v = variables; v; v = v->next) {
        bool is_secret = df_json_has_string(grant->secrets, v->valuestring);
        cJSON *to = df_json_object_at(m->doc, is_secret ? "secretEnvironment" : "environment");
        if (df_json_set_str(to, v->string, v->valuestring, err) < 0)
            return -1;
    }
    return 0;
}

static int add_integration(struct making *m, const cJSON *entry, struct df_err *err)
{
    DF_SECRET_JSON cJSON *all = all_variables(m);
    DF_INTEGRATION_GRANT grant = {0};
    const struct df_integration_ask ask = {m->s, m->task, entry, df_step_is_in_pod(m->s, m->task)};
    const struct df_integration_places to = {all, df_json_object_at(m->doc, "files"),
                                             df_json_object_at(m->doc, "binaryFiles")};
    if (!to.environment || !to.files || !to.binary)
        return df_fail_oom(err);
    int known = cJSON_GetArraySize(all); /* new variables are appended after these */
    if (df_integration_grant(&ask, &to, &grant, err) < 0)
        return -1;
    return add_grant(m, &grant, cJSON_GetArrayItem(all, known), err);
}

static int add_credentials(struct making *m, const cJSON *secret, struct df_err *err)
{
    static const struct {
        const char *key, *member;
    } members[] = {{"username", "username"},      {"password", "password"},
                   {"token", "password"},         {"ssh-privatekey", "sshPrivateKey"},
                   {"known_hosts", "knownHosts"}, {"ca.crt", "caCertificate"}};
    cJSON *credentials = df_json_object_at(df_json_object_at(m->doc, "source"), "credentials");
    if (!credentials)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(secret, members[i].key);
        if (value && df_json_set_str(credentials, members[i].member, value->valuestring, err) < 0)
            return -1;
    }
    if (df_json_bool(m->task, "spec.source.secretRef.forModules", false) &&
        df_json_add_bool(credentials, "forModules", true, err) < 0)
        return -1;
    /* Git servers ignore the user name beside a token; all of them document or accept oauth2. */
    bool alone = df_json_at(credentials, "password") && !df_json_at(credentials, "username");
    return alone ? df_json_add_str(credentials, "username", "oauth2", err) : 0;
}

static int add_secret(struct making *m, const struct df_secret_place *p, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    if (p->by == DF_SECRET_OF_INTEGRATION)
        return add_integration(m, p->entry, err);
    if (get_secret(m, p->name, p->path, &secret, err) < 0)
        return -1;
    return p->by == DF_SECRET_LISTED ? add_secret_keys(m, p->entry, secret, err)
                                     : add_credentials(m, secret, err);
}

static int add_secrets(struct making *m, struct df_err *err)
{
    struct df_secret_place p;
    if (!df_json_object_at(m->doc, "files"))
        return df_fail_oom(err);
    for (size_t i = 0; df_secret_place_at(df_json_at(m->task, "spec"), i, &p); i++)
        if (add_secret(m, &p, err) < 0)
            return -1;
    return 0;
}

/* ---- the state ---- */

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

/* Finds out whether there is a managed state. Fails if it cannot be read: tofu would only say that
 * the server answered with 500. */
static int find_managed(struct making *m, bool *ret, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size;
    struct df_err why = {0};
    const char *uid = df_json_str(m->task, "spec.executorRef.uid");
    *ret = df_state_open(m->s->states, uid, 0, &fd, &size, &why) == 0;
    if (*ret || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "executor %s", df_json_str(m->task, "spec.executorRef.name"));
}

static bool may_hold_resources(struct making *m)
{
    DF_SHARED const cJSON *executor = NULL;
    return df_store_look(m->s->store, DF_KIND_EXECUTOR,
                         df_json_str(m->task, "spec.executorRef.name"), &executor, NULL) == 0 &&
           (df_json_bool(executor, "status.mayHoldResources", false) ||
            df_streq(df_json_str(executor, "status.state"), "provisioned"));
}

/* A df_store_visit: adds the lineage of another executor. */
static int add_others_lineage(const cJSON *executor, void *arg, struct df_err *err)
{
    const char *lineage = df_json_str(executor, "status.stateLineage");
    return lineage ? df_json_set_str(arg, lineage, df_json_str(executor, "metadata.name"), err) : 0;
}

/* For a step that finds a state which dayfly does not store: a command and the outputs must be of
 * the executor's own, or, if no run has used one yet, of no other executor's
 * (control/runs/lineage.h). A dry run reads such a state without a lock: by its lineage the runner
 * knows that it has read it. */
static int add_lineage(struct making *m, struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    const char *name = df_json_str(m->task, "spec.executorRef.name");
    if (df_storage_is_managed(m->task) || df_json_at(m->task, "spec.planFrom"))
        return 0;
    if (df_store_look(m->s->store, DF_KIND_EXECUTOR, name, &executor, err) < 0)
        return -1;
    if (df_json_at(executor, "status.stateLineage"))
        return copy(m->doc, "stateLineage", executor, "status.stateLineage", err);
    if (df_json_bool(m->task, "spec.dryRun", false))
        return 0;
    cJSON *others = df_json_object_at(m->doc, "othersLineages");
    return others
               ? df_store_each(m->s->store, DF_KIND_EXECUTOR, NULL, add_others_lineage, others, err)
               : df_fail_oom(err);
}

/* For an apply: the managed state as it is now. The plan may be of an older one. */
static int add_current(struct making *m, cJSON *state, struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    struct df_err why = {0};
    if (!df_json_at(m->task, "spec.planFrom"))
        return 0;
    if (df_state_meta(m->s->states, df_json_str(m->task, "spec.executorRef.uid"), 0, &meta, &why) <
        0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (df_json_int(meta, "size", 0) == 0) /* deleted */
        return 0;
    return copy(state, "lineage", meta, "lineage", err) < 0
               ? -1
               : copy(state, "serial", meta, "serial", err);
}

/* Says whether there is a managed state, and whether the module's backend is to be overridden: that
 * is intended, too, if the executor already has a state in the storage that it selects, from a run
 * or an adoption. */
static int add_existing(struct making *m, cJSON *state, struct df_err *err)
{
    bool wanted = df_json_bool(m->task, "spec.storage.overrideBackend", false), found = false;
    if (df_streq(df_json_str(m->task, "spec.storage.type"), "module"))
        return 0;
    bool is_managed = df_storage_is_managed(m->task);
    if (!is_managed)
        found = may_hold_resources(m);
    else if (find_managed(m, &found, err) < 0)
        return -1;
    if (is_managed && (df_json_add_bool(state, "exists", found, err) < 0 ||
                       (found && add_current(m, state, err) < 0)))
        return -1;
    return wanted || found ? df_json_add_bool(state, "overrideBackend", true, err) : 0;
}

/* Adds where a state is: the executor's, or the one to which it moves. */
static int add_storage(struct making *m, const cJSON *storage, cJSON *state, struct df_err *err)
{
    const char *type = df_json_str(storage, "type");
    if (!type || df_streq(type, "managed"))
        return add_managed_state(m, state, err);
    if (df_json_add_str(state, "type", type, err) < 0 ||
        copy(state, "config", storage, "config", err) < 0)
        return -1;
    cJSON *config = df_json_object_at(state, "config");
    const char *key = df_storage_path_key(type);
    return config && key ? df_json_set_str(config, key, df_json_str(storage, "path"), err) : 0;
}

/* The keys of a whole secret and the variables of an integration are known only now, and a move has
 * a second storage. */
static int check_redirects(const struct making *m, struct df_err *err)
{
    static const char *const storages[] = {"spec.storage", "spec.moveTo"};
    static const char *const maps[] = {"environment", "secretEnvironment", "sealed.environment"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(storages); i++)
        for (size_t k = 0; k < DF_ARRAY_SIZE(maps); k++)
            if (df_redirect_check(df_json_at(m->task, storages[i]), df_json_at(m->doc, maps[k]),
                                  "InvalidStep", err) < 0)
                return -1;
    return 0;
}

static int add_state(struct making *m, struct df_err *err)
{
    const cJSON *target = df_json_at(m->task, "spec.moveTo");
    cJSON *state = df_json_object_at(m->doc, "state");
    if (!state)
        return df_fail_oom(err);
    if (add_existing(m, state, err) < 0 || add_lineage(m, err) < 0 ||
        add_storage(m, df_json_at(m->task, "spec.storage"), state, err) < 0)
        return -1;
    if (!target)
        return 0;
    cJSON *moved = df_json_object_at(m->doc, "moveTo");
    return moved ? add_storage(m, target, moved, err) : df_fail_oom(err);
}

/* ---- kinds of steps ---- */

static int make_run_step(struct making *m, struct df_err *err)
{
    return add_run(m, err) < 0 || add_expected(m, err) < 0 ||
                   df_policies_order(m->s->config->policies, m->task, m->doc, err) < 0 ||
                   add_tools(m, err) < 0 || add_providers(m, err) < 0 || add_source(m, err) < 0 ||
                   add_environment(m, err) < 0 || add_secrets(m, err) < 0 ||
                   check_redirects(m, err) < 0 || df_sealed_check(m->s, m->task, m->doc, err) < 0 ||
                   add_state(m, err) < 0
               ? -1
               : 0;
}

/* The runner makes source, environment and state of what the upstream says. */
static int make_upstream_step(struct making *m, struct df_err *err)
{
    cJSON *part = NULL;
    if (add_tools(m, err) < 0 || add_providers(m, err) < 0 ||
        m->s->upstream->step_part(m->s, m->task, &part, err) < 0)
        return -1;
    return df_json_add(m->doc, df_task_kind(m->task)->member, part, err);
}

/* ---- what a standby runner may get ready ---- */

/* Of a source that needs credentials nothing is said. */
static int add_of_plan(cJSON *doc, const cJSON *plan, struct df_err *err)
{
    cJSON *expected = df_json_object_at(doc, "expected");
    if (!expected)
        return df_fail_oom(err);
    if (!df_json_at(plan, "spec.source.secretRef") &&
        copy(doc, "source", plan, "spec.source", err) < 0)
        return -1;
    return copy(doc, "runtime", plan, "spec.runtime", err) < 0 ? -1
                                                               : copy_found(expected, plan, err);
}

int df_step_preparation(const struct df_config *config, const cJSON *plan, cJSON **ret,
                        struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *tools = NULL;
    if (!doc)
        return df_fail_oom(err);
    if (df_step_tools(config, true, &tools, err) < 0 || df_json_add(doc, "tools", tools, err) < 0 ||
        (plan && add_of_plan(doc, plan, err) < 0))
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}

int df_step_document(struct df_spawner *s, const cJSON *task, const struct df_step_tokens *tokens,
                     cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = cJSON_CreateObject();
    bool is_own = !df_task_kind(task)->member;
    struct making m = {s, task, tokens, doc, is_own ? df_task_spec : s->upstream->spec};
    if (!doc)
        return df_fail_oom(err);
    if (add_identity(&m, err) < 0 ||
        (is_own ? make_run_step(&m, err) : make_upstream_step(&m, err)) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}
