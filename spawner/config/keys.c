/*
 * keys.c - the table of configuration keys and the parsers of their values. Read the table first.
 */
#include "spawner/config/keys.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/model/allow_rule.h"
#include "spawner/model/policy.h"
#include "spawner/model/secret_source.h"
#include "spawner/model/workflow.h"

#define WEEK (7 * 24 * 3600)
#define KEY(key, kind, field, text)                                                                \
    {                                                                                              \
        .name = (key), .type = (kind), .offset = offsetof(struct df_config, field),                \
        .fallback = (text)                                                                         \
    }
#define SECRET(key, kind, field)                                                                   \
    {                                                                                              \
        .name = (key), .type = (kind), .offset = offsetof(struct df_config, field),                \
        .is_secret = true                                                                          \
    }
#define RANGE(key, kind, field, text, low, high)                                                   \
    {                                                                                              \
        .name = (key), .type = (kind), .offset = offsetof(struct df_config, field),                \
        .fallback = (text), .min = (low), .max = (high)                                            \
    }
#define RULE(role, level, field)                                                                   \
    {                                                                                              \
        .name = "placement.allow." role "." level, .type = DF_KEY_OBJECT,                          \
        .offset = offsetof(struct df_config, field), .check = df_allow_rule_check                  \
    }

/* The variables that `dayfly run` passes from its shell to the run. */
#define CALLER_ENVIRONMENT                                                                         \
    "AWS_*:ARM_*:AZURE_*:GOOGLE_*:CLOUDSDK_*:TF_VAR_*:TF_TOKEN_*:GITHUB_TOKEN:GH_TOKEN:"           \
    "GITLAB_TOKEN:BITBUCKET_TOKEN:CLOUDFLARE_API_TOKEN:DIGITALOCEAN_TOKEN:"                        \
    "DIGITALOCEAN_ACCESS_TOKEN:HCLOUD_TOKEN:LINODE_TOKEN:SCW_*:OS_*:VAULT_ADDR:"                   \
    "VAULT_TOKEN:VAULT_NAMESPACE:DD_API_KEY:DD_APP_KEY:DD_HOST:DATADOG_API_KEY:"                   \
    "DATADOG_APP_KEY:DATADOG_HOST:FASTLY_API_KEY:NEW_RELIC_API_KEY:PAGERDUTY_TOKEN:"               \
    "SSH_AUTH_SOCK"

const struct df_key df_keys[] = {
    SECRET("dataDirectory", DF_KEY_PATH, data_directory),
    KEY("listen", DF_KEY_STRING, listen, "127.0.0.1:8030"),
    KEY("advertiseUrl", DF_KEY_STRING, advertise_url, NULL),
    KEY("server.livez.listen", DF_KEY_STRING, livez_listen, NULL),
    KEY("server.tls.certFile", DF_KEY_PATH, tls_cert_file, NULL),
    SECRET("server.tls.keyFile", DF_KEY_PATH, tls_key_file),
    KEY("server.tls.caFile", DF_KEY_PATH, tls_ca_file, NULL),
    KEY("server.tls.names", DF_KEY_WORDS, tls_names, NULL),
    KEY("server.tls.secret", DF_KEY_STRING, tls_secret, NULL),
    KEY("claim.issuer", DF_KEY_STRING, claim_issuer, NULL),
    KEY("claim.jwksUrl", DF_KEY_STRING, claim_jwks_url, NULL),
    KEY("claim.caFile", DF_KEY_PATH, claim_ca_file, NULL),
    SECRET("auth.tokenFile", DF_KEY_PATH, token_file),
    KEY("auth.loopback", DF_KEY_STRING, auth_loopback, "token"),
    KEY("auth.serviceAccounts", DF_KEY_OBJECT, accounts, NULL),
    KEY("auth.oidc.issuer", DF_KEY_STRING, oidc.issuer, NULL),
    KEY("auth.oidc.audience", DF_KEY_STRING, oidc.audience, NULL),
    KEY("auth.oidc.caFile", DF_KEY_PATH, oidc.ca_file, NULL),
    KEY("auth.oidc.usernameClaim", DF_KEY_STRING, oidc.user_claim, "sub"),
    KEY("auth.oidc.usernamePrefix", DF_KEY_STRING, oidc.user_prefix, NULL),
    KEY("auth.oidc.groupsClaim", DF_KEY_STRING, oidc.groups_claim, "groups"),
    KEY("auth.oidc.groupsPrefix", DF_KEY_STRING, oidc.groups_prefix, NULL),
    KEY("auth.oidc.scopes", DF_KEY_STRING, oidc.scopes, NULL),
    {.name = "auth.grants",
     .type = DF_KEY_OBJECT,
     .offset = offsetof(struct df_config, grants),
     .check = df_grants_check},
    KEY("auth.creator", DF_KEY_STRING, creator, "write"),
    KEY("store", DF_KEY_STRING, store, "sqlite"),
    {.name = "vault.sources",
     .type = DF_KEY_OBJECT,
     .offset = offsetof(struct df_config, secret_sources),
     .check = df_secret_sources_check},
    KEY("blobs.location", DF_KEY_STRING, blob_location, NULL),
    KEY("blobs.move", DF_KEY_BOOL, blob_move, "false"),
    KEY("blobs.takeOver", DF_KEY_STRING, blob_take_over, NULL),
    SECRET("blobs.keyFiles", DF_KEY_PATHS, blob_key_files),
    KEY("blobs.keyCommand", DF_KEY_WORDS, blob_key_command, NULL),
    KEY("blobs.s3.region", DF_KEY_STRING, s3_region, NULL),
    KEY("blobs.s3.endpoint", DF_KEY_STRING, s3_endpoint, NULL),
    KEY("blobs.s3.caFile", DF_KEY_PATH, s3_ca_file, NULL),
    KEY("blobs.s3.pathStyle", DF_KEY_BOOL, s3_path_style, "false"),
    KEY("blobs.gs.endpoint", DF_KEY_STRING, gcs_endpoint, NULL),
    KEY("blobs.gs.caFile", DF_KEY_PATH, gcs_ca_file, NULL),
    KEY("blobs.gs.anonymous", DF_KEY_BOOL, gcs_anonymous, "false"),
    KEY("blobs.azblob.endpoint", DF_KEY_STRING, azblob_endpoint, NULL),
    KEY("blobs.azblob.caFile", DF_KEY_PATH, azblob_ca_file, NULL),
    KEY("engines", DF_KEY_WORDS, engines, NULL),
    KEY("engine", DF_KEY_STRING, engine, NULL),
    KEY("engine.local.isolation", DF_KEY_STRING, isolation, NULL),
    SECRET("engine.local.identityTokenFile", DF_KEY_PATH, identity_token_file),
    KEY("runner.path", DF_KEY_PATH, runner_path, NULL),
    KEY("runner.keepFailed", DF_KEY_BOOL, keep_failed, "false"),
    SECRET("kubernetes.kubeconfig", DF_KEY_PATH, kube_config),
    KEY("kubernetes.context", DF_KEY_STRING, kube_context, NULL),
    KEY("kubernetes.namespace", DF_KEY_STRING, kube_namespace, NULL),
    KEY("kubernetes.stepNamespace", DF_KEY_STRING, kube_step_space, NULL),
    KEY("kubernetes.image", DF_KEY_STRING, kube_image, NULL),
    KEY("kubernetes.webhook", DF_KEY_STRING, kube_webhook, NULL),
    RANGE("kubernetes.jobLife", DF_KEY_SECONDS, kube_ttl_s, "1h", 0, 13 * WEEK),
    KEY("kubernetes.applyAhead", DF_KEY_BOOL, kube_apply_ahead, "false"),
    RANGE("kubernetes.applyAheadFor", DF_KEY_SECONDS, kube_ahead_s, "0s", 0, 24 * 3600),
    KEY("kubernetes.placement", DF_KEY_OBJECT, kube_placement, NULL),
    RULE("write", "executor", allow[DF_ALLOW_WRITE][DF_ALLOW_EXECUTOR]),
    RULE("write", "run", allow[DF_ALLOW_WRITE][DF_ALLOW_RUN]),
    RULE("write", "workflow", allow[DF_ALLOW_WRITE][DF_ALLOW_WORKFLOW]),
    RULE("write", "terrakube", allow[DF_ALLOW_WRITE][DF_ALLOW_TERRAKUBE]),
    RULE("admin", "executor", allow[DF_ALLOW_ADMIN][DF_ALLOW_EXECUTOR]),
    RULE("admin", "run", allow[DF_ALLOW_ADMIN][DF_ALLOW_RUN]),
    RULE("admin", "workflow", allow[DF_ALLOW_ADMIN][DF_ALLOW_WORKFLOW]),
    KEY("workflows.serviceAccount", DF_KEY_STRING, workflow_account, DF_WORKFLOW_SERVICE_ACCOUNT),
    KEY("ansible.apiUrl", DF_KEY_STRING, awx.url, NULL),
    KEY("ansible.tokenSecretRef.name", DF_KEY_STRING, awx.secret, NULL),
    KEY("ansible.tokenSecretRef.key", DF_KEY_STRING, awx.secret_key, NULL),
    KEY("ansible.tokenSecretRef.namespace", DF_KEY_STRING, awx.secret_namespace, NULL),
    RANGE("ansible.organizationId", DF_KEY_WHOLE, awx.organization, "1", 1, INT32_MAX),
    KEY("ansible.caFile", DF_KEY_PATH, awx.ca_file, NULL),
    KEY("ansible.insecure", DF_KEY_BOOL, awx.insecure, "false"),
    KEY("placement.never.serviceAccounts", DF_KEY_WORDS, never.accounts, NULL),
    KEY("placement.never.secrets", DF_KEY_WORDS, never.secrets, NULL),
    KEY("placement.never.claims", DF_KEY_WORDS, never.claims, NULL),
    KEY("election.enabled", DF_KEY_BOOL, elects, "false"),
    KEY("election.lease", DF_KEY_STRING, election_lease, "dayfly"),
    KEY("election.address", DF_KEY_STRING, election_address, NULL),
    RANGE("election.leaseDuration", DF_KEY_SECONDS, election_lease_s, "15s", 3, 600),
    RANGE("control.workers", DF_KEY_WHOLE, workers, "32", 1, DF_LIMIT_WORKERS),
    RANGE("control.maxSystemFailures", DF_KEY_WHOLE, max_system_failures, "3", 0, 100),
    RANGE("limits.steps", DF_KEY_WHOLE, limit_steps, "8", 1, DF_LIMIT_STEPS),
    RANGE("limits.perNamespace", DF_KEY_WHOLE, limit_per_namespace, "10000", 1, DF_LIMIT_STEPS),
    RANGE("retention.runs", DF_KEY_WHOLE, retain_runs, "100", 0, 1000000),
    RANGE("retention.workflows", DF_KEY_WHOLE, retain_workflows, "1000", 0, 1000000),
    RANGE("retention.stateVersions", DF_KEY_WHOLE, retain_versions, "100", 0, 1000000),
    RANGE("retention.revisions", DF_KEY_WHOLE, retain_revisions, "50", 0, 1000000),
    RANGE("retention.age", DF_KEY_SECONDS, retain_age_s, "0s", 0, 520 * WEEK),
    RANGE("retention.logs", DF_KEY_SECONDS, retain_logs_s, "0s", 0, 520 * WEEK),
    RANGE("retention.audit", DF_KEY_SECONDS, retain_audit_s, "17520h", 0, 520 * WEEK),
    RANGE("retention.auditEntries", DF_KEY_WHOLE, retain_entries, "0", 0, 100000000),
    KEY("approval.separateApprover", DF_KEY_BOOL, approval.separate, "false"),
    RANGE("approval.requiredApprovals", DF_KEY_WHOLE, approval.required, "1", 1,
          DF_LIMIT_APPROVALS),
    KEY("approval.autoApprove", DF_KEY_STRING, approval_skips, "admin"),
    RANGE("approval.reminder", DF_KEY_SECONDS, approval.reminder_s, "0s", 0, WEEK),
    {.name = "policies",
     .type = DF_KEY_OBJECT,
     .offset = offsetof(struct df_config, policies),
     .check = df_policies_check},
    KEY("classes", DF_KEY_OBJECT, classes, NULL),
    KEY("workspaces", DF_KEY_OBJECT, workspaces, NULL),
    KEY("stateService.url", DF_KEY_STRING, state_service_url, NULL),
    KEY("stateService.protocol", DF_KEY_STRING, state_service_protocol, "events"),
    SECRET("stateService.tokenFile", DF_KEY_PATH, state_service_token_file),
    KEY("stateService.caFile", DF_KEY_PATH, state_service_ca_file, NULL),
    KEY("stateService.project", DF_KEY_STRING, state_service_project, NULL),
    KEY("stateService.domain", DF_KEY_STRING, state_service_domain, "default"),
    KEY("terrakube.listen", DF_KEY_STRING, upstream_listen, NULL),
    KEY("terrakube.requireToken", DF_KEY_BOOL, terrakube_requires_token, "true"),
    RANGE("terrakube.steps", DF_KEY_WHOLE, terrakube_steps, "0", 0, DF_LIMIT_STEPS),
    RANGE("terrakube.deadline", DF_KEY_SECONDS, terrakube_deadline_s, "6h", 1, WEEK),
    KEY("tools.directories", DF_KEY_PATHS, tool_directories, NULL),
    KEY("tools.searchPath", DF_KEY_BOOL, tool_search_path, "true"),
    KEY("tools.cacheDirectory", DF_KEY_PATH, tool_cache_directory, NULL),
    KEY("tools.index.opentofu", DF_KEY_STRING, tool_index_opentofu, NULL),
    KEY("tools.index.terraform", DF_KEY_STRING, tool_index_terraform, NULL),
    KEY("tools.caFile", DF_KEY_PATH, tool_ca_file, NULL),
    KEY("caller.environment", DF_KEY_WORDS, caller_environment, CALLER_ENVIRONMENT),
    KEY("caller.files", DF_KEY_BOOL, caller_files, "true"),
    KEY("providers.pluginCacheDirectory", DF_KEY_PATH, plugin_cache_directory, NULL),
    RANGE("providers.pluginCacheMaxMiB", DF_KEY_WHOLE, plugin_cache_max_mib, "20480", 1, 1 << 30),
    KEY("providers.filesystemMirror", DF_KEY_PATH, filesystem_mirror, NULL),
    KEY("providers.networkMirror", DF_KEY_STRING, network_mirror, NULL),
    KEY("providers.ociMirror", DF_KEY_STRING, oci_mirror, NULL),
    KEY("providers.mirror.directory", DF_KEY_PATH, mirror_directory, NULL),
    KEY("providers.mirror.registries", DF_KEY_WORDS, mirror_registries, NULL),
    RANGE("providers.mirror.maxMiB", DF_KEY_WHOLE, mirror_max_mib, "20480", 1, 1 << 30),
    KEY("providers.mirror.caFile", DF_KEY_PATH, mirror_ca_file, NULL),
    SECRET("providers.credentialsFile", DF_KEY_PATH, registry_credentials_file),
    RANGE("timeouts.plan", DF_KEY_SECONDS, timeout_plan_s, "1h", 1, WEEK),
    RANGE("timeouts.apply", DF_KEY_SECONDS, timeout_apply_s, "1h", 1, WEEK),
    RANGE("timeouts.grace", DF_KEY_SECONDS, timeout_grace_s, "15m", 1, WEEK),
    RANGE("timeouts.pending", DF_KEY_SECONDS, timeout_pending_s, "2m", 1, WEEK),
    RANGE("timeouts.planLife", DF_KEY_SECONDS, plan_life_s, "168h", 60, 13 * WEEK),
    KEY("log.level", DF_KEY_LEVEL, log_level, "info"),
    KEY("log.format", DF_KEY_FORMAT, log_json, NULL),
};

const size_t df_key_count = DF_ARRAY_SIZE(df_keys);

const struct df_key *df_key_find(const char *name)
{
    for (size_t i = 0; i < df_key_count; i++)
        if (strcmp(df_keys[i].name, name) == 0)
            return &df_keys[i];
    return NULL;
}

void *df_key_member(struct df_config *c, const struct df_key *k)
{
    return (char *)c + k->offset;
}

static int replace_string(char **s, char *value, struct df_err *err)
{
    if (!value)
        return df_fail_oom(err);
    free(*s);
    *s = value;
    return 0;
}

static char *absolute(const char *path, const char *base)
{
    return *path == '/' ? strdup(path) : df_fs_join(base, path);
}

int df_key_add_item(struct df_strs *v, const struct df_key *k, const char *text, const char *base,
                    struct df_err *err)
{
    char *item = k->type == DF_KEY_PATHS ? absolute(text, base) : strdup(text);
    return df_strs_take(v, item) < 0 ? df_fail_oom(err) : 0;
}

static int set_list(struct df_strs *v, const struct df_key *k, const char *text, const char *base,
                    struct df_err *err)
{
    df_strs_free(v);
    while (*text) {
        size_t n = strcspn(text, ":");
        DF_FREE char *one = strndup(text, n);
        if (!one)
            return df_fail_oom(err);
        if (n && df_key_add_item(v, k, one, base, err) < 0)
            return -1;
        text += n + (text[n] == ':');
    }
    return 0;
}

static int set_bool(bool *b, const char *text, const char *yes, const char *no, struct df_err *err)
{
    if (!df_streq(text, yes) && !df_streq(text, no))
        return df_fail(err, DF_ERR_USER, "\"%.64s\" is neither %s nor %s", text, yes, no);
    *b = df_streq(text, yes);
    return 0;
}

static int set_seconds(int64_t *seconds, const char *text, const struct df_key *k,
                       struct df_err *err)
{
    int64_t us = 0;
    if (df_duration_parse(text, &us, err) < 0)
        return -1;
    if (us < k->min * 1000000 || us > k->max * 1000000)
        return df_fail(err, DF_ERR_USER, "\"%.64s\" is not from %llds to %lldh", text,
                       (long long)k->min, (long long)k->max / 3600);
    *seconds = us / 1000000;
    return 0;
}

static int set_object(cJSON **object, const struct df_key *k, const char *text, struct df_err *err)
{
    DF_JSON cJSON *tree = NULL;
    if (df_json_parse(text, strlen(text), &tree, err) < 0)
        return -1;
    if (!cJSON_IsObject(tree))
        return df_fail(err, DF_ERR_USER, "must be a mapping");
    if (k->check && k->check(tree, err) < 0)
        return -1;
    cJSON_Delete(*object);
    *object = DF_TAKE(tree);
    return 0;
}

int df_key_set(struct df_config *c, const struct df_key *k, const char *text, const char *base,
               struct df_err *err)
{
    switch (k->type) {
    case DF_KEY_STRING:
    case DF_KEY_PATH:
        if (!*text)
            return df_fail(err, DF_ERR_USER, "is empty; leave it out");
        return replace_string(df_key_member(c, k),
                              k->type == DF_KEY_PATH ? absolute(text, base) : strdup(text), err);
    case DF_KEY_PATHS:
    case DF_KEY_WORDS:
        return set_list(df_key_member(c, k), k, text, base, err);
    case DF_KEY_BOOL:
        return set_bool(df_key_member(c, k), text, "true", "false", err);
    case DF_KEY_FORMAT:
        return set_bool(df_key_member(c, k), text, "json", "text", err);
    case DF_KEY_WHOLE:
        return df_parse_i64(text, k->min, k->max, df_key_member(c, k), err);
    case DF_KEY_SECONDS:
        return set_seconds(df_key_member(c, k), text, k, err);
    case DF_KEY_LEVEL:
        return df_log_level_parse(text, df_key_member(c, k), err);
    case DF_KEY_OBJECT:
        return set_object(df_key_member(c, k), k, text, err);
    }
    DF_BUG("type of %s", k->name);
}
