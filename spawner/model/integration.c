/*
 * integration.c - one table: for each provider its keys and the variables that they become. Below
 * it are the function that applies a row, and the rule of spec.integrations.
 */
#include "spawner/model/integration.h"

#include "common/crypto/crypto.h"
#include "spawner/model/rules.h"

#define MAX_KEYS 8

/* One key of a provider's secret. */
struct key {
    const char *name;
    const char *variables[2]; /* that get its value, or the path of its file */
    const char *file;         /* that gets its value; or NULL */
    bool lines;               /* the file must end with a newline: ssh refuses a key without */
    bool binary;              /* the file gets the bytes of which the value is base64 */
    const char *fallback;     /* value of an absent key; NULL: it is required, unless optional */
    bool optional;
};

struct provider {
    const char *name;
    struct key keys[MAX_KEYS + 1];
    /* A variable with a fixed value, by which the provider finds its files. */
    const char *variable, *value;
    const char *either[2]; /* optional keys, of which the secret has exactly one; or NULL */
};

/* Host keys are always checked: a secret without known_hosts is refused. */
#define SSH_PROVIDER(provider)                                                                     \
    {                                                                                              \
        .name = (provider),                                                                        \
        .keys = {{"ssh-privatekey", .file = "ssh_key", .lines = true},                             \
                 {"known_hosts", .file = "known_hosts", .lines = true}},                           \
        .variable = "GIT_SSH_COMMAND",                                                             \
        .value = "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes "                      \
                 "-o 'UserKnownHostsFile=\"@files/known_hosts\"' -o IdentitiesOnly=yes "           \
                 "-i '@files/ssh_key'"                                                             \
    }

static const struct provider providers[] = {
    {.name = "aws",
     .keys = {{"aws_access_key_id", {"AWS_ACCESS_KEY_ID"}},
              {"aws_secret_access_key", {"AWS_SECRET_ACCESS_KEY"}},
              {"aws_session_token", {"AWS_SESSION_TOKEN"}, .optional = true},
              {"aws_account", {"AWS_ACCOUNT"}, .optional = true},
              {"aws_default_region", {"AWS_REGION"}, .fallback = "us-east-1"}}},
    {.name = "azurerm",
     .keys = {{"client_id", {"ARM_CLIENT_ID", "AZURE_CLIENT_ID"}},
              {"client_secret", {"ARM_CLIENT_SECRET", "AZURE_CLIENT_SECRET"}, .optional = true},
              {"client_certificate",
               {"ARM_CLIENT_CERTIFICATE_PATH", "AZURE_CLIENT_CERTIFICATE_PATH"},
               .file = "azure_client_certificate.pfx",
               .binary = true,
               .optional = true},
              {"client_certificate_password",
               {"ARM_CLIENT_CERTIFICATE_PASSWORD", "AZURE_CLIENT_CERTIFICATE_PASSWORD"},
               .optional = true},
              {"tenant_id", {"ARM_TENANT_ID", "AZURE_TENANT_ID"}},
              {"subscription_id", {"ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID"}}},
     .either = {"client_secret", "client_certificate"}},
    {.name = "gcp",
     .keys = {{"service_account_key",
               {"GOOGLE_APPLICATION_CREDENTIALS"},
               .file = "gcp_service_account_key.json"},
              {"gcp_project_id", {"GOOGLE_PROJECT"}}}},
    {.name = "mongodb_atlas",
     .keys = {{"org_id", {"MONGODB_ATLAS_ORG_ID"}},
              {"public_key", {"MONGODB_ATLAS_PUBLIC_KEY"}},
              {"private_key", {"MONGODB_ATLAS_PRIVATE_KEY"}}}},
    {.name = "datadog",
     .keys = {{"api_url", {"DD_HOST"}}, {"api_key", {"DD_API_KEY"}}, {"app_key", {"DD_APP_KEY"}}}},
    {.name = "github", .keys = {{"token", {"GITHUB_TOKEN"}}}},
    {.name = "gitlab",
     .keys = {{"server_url", {"GITLAB_SERVER_URL"}, .fallback = "https://gitlab.com"},
              {"token", {"GITLAB_TOKEN"}}}},
    {.name = "bitbucket", .keys = {{"user", {"BITBUCKET_USER"}}, {"key", {"BITBUCKET_KEY"}}}},
    {.name = "azure_devops",
     .keys = {{"token", {"AZURE_TOKEN"}}, {"organization", {"AZURE_ORGANIZATION"}}}},
    SSH_PROVIDER("github_ssh"),
    SSH_PROVIDER("bitbucket_ssh"),
    SSH_PROVIDER("azure_devops_ssh"),
};

const char *const df_integration_providers[] = {
    "aws",           "azurerm",          "gcp",       "mongodb_atlas", "datadog",
    "github",        "gitlab",           "bitbucket", "azure_devops",  "github_ssh",
    "bitbucket_ssh", "azure_devops_ssh", NULL};

static const struct provider *find_provider(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(providers); i++)
        if (df_streq(providers[i].name, name))
            return &providers[i];
    return NULL;
}

static bool reads_key(const struct provider *p, const char *name)
{
    for (const struct key *k = p->keys; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return true;
    return false;
}

static int refuse_foreign_keys(const struct provider *p, const cJSON *secret, struct df_err *err)
{
    for (const cJSON *m = secret->child; m; m = m->next)
        if (!reads_key(p, m->string))
            return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                  "integration %s does not know the key \"%.64s\" of its secret",
                                  p->name, m->string);
    return 0;
}

static int refuse_both(const struct provider *p, const cJSON *secret, struct df_err *err)
{
    const char *const *keys = p->either;
    if (!keys[0] ||
        !df_str_empty(df_json_str(secret, keys[0])) != !df_str_empty(df_json_str(secret, keys[1])))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "integration %s: its secret needs exactly one of the keys %s and %s",
                          p->name, keys[0], keys[1]);
}

int df_integration_set(const char *provider, const char *name, const char *value,
                       const struct df_integration_places *to, struct df_err *err)
{
    if (cJSON_GetObjectItemCaseSensitive(to->environment, name))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "integration %s sets %s, which something else sets, too", provider,
                              name);
    return df_json_add_str(to->environment, name, value, err);
}

static int check_base64(const struct provider *p, const struct key *k, const char *value,
                        struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf bytes = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    if (df_base64_decode(value, strlen(value), false, &bytes, NULL) == 0 && bytes.len)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "integration %s: the key %s is not base64 in one line (base64 -w0 FILE)",
                          p->name, k->name);
}

static int add_file(const struct provider *p, const struct key *k, const char *value,
                    const struct df_integration_places *to, struct df_err *err)
{
    bool lacks_end = k->lines && !df_ends_with(value, "\n");
    if (k->binary)
        return check_base64(p, k, value, err) < 0
                   ? -1
                   : df_json_set_str(to->binary, k->file, value, err);
    char *text = df_strf("%s%s", value, lacks_end ? "\n" : "");
    int result = df_json_put(to->files, err, DF_STR_ALLOC(k->file, text));
    df_str_wipe(&text);
    return result;
}

static int apply_key(const struct provider *p, const struct key *k, const cJSON *secret,
                     const struct df_integration_places *to, struct df_err *err)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(secret, k->name);
    const char *value = cJSON_IsString(member) ? member->valuestring : k->fallback;
    DF_FREE char *path = k->file ? df_strf("@files/%s", k->file) : NULL;
    if (k->file && !path)
        return df_fail_oom(err);
    if (df_str_empty(value))
        return k->optional ? 0
                           : df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                            "integration %s: its secret lacks the key %s", p->name,
                                            k->name);
    for (size_t i = 0; i < DF_ARRAY_SIZE(k->variables) && k->variables[i]; i++)
        if (df_integration_set(p->name, k->variables[i], path ? path : value, to, err) < 0)
            return -1;
    return k->file ? add_file(p, k, value, to, err) : 0;
}

int df_integration_apply(const char *provider, const cJSON *secret,
                         const struct df_integration_places *to, struct df_err *err)
{
    const struct provider *p = find_provider(provider);
    if (!p)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "there is no integration \"%.64s\"",
                              provider);
    if (refuse_foreign_keys(p, secret, err) < 0)
        return -1;
    for (const struct key *k = p->keys; k->name; k++)
        if (apply_key(p, k, secret, to, err) < 0)
            return -1;
    if (refuse_both(p, secret, err) < 0)
        return -1;
    return p->variable ? df_integration_set(p->name, p->variable, p->value, to, err) : 0;
}

/* ---- spec.integrations ---- */

static const char *first_variable(const struct provider *p)
{
    return p->variable ? p->variable : p->keys[0].variables[0];
}

const char *df_integration_conflict(const char *provider, const char *other)
{
    const struct provider *p = find_provider(provider), *q = find_provider(other);
    return p && q && df_streq(first_variable(p), first_variable(q)) ? first_variable(p) : NULL;
}

/* An entry names an integration, or has a provider and a secret of its own. */
static void check_form(const cJSON *item, const struct df_path *path, struct df_faults *f)
{
    static const char *const own[] = {"provider", "secretRef"};
    bool is_named = cJSON_HasObjectItem(item, "name");
    for (size_t i = 0; i < DF_ARRAY_SIZE(own); i++) {
        const struct df_path here = {path, own[i], 0};
        if (is_named && cJSON_HasObjectItem(item, own[i]))
            df_fault(f, &here,
                     "is not for an entry with the name of an integration, which says it");
        else if (!is_named && !cJSON_HasObjectItem(item, own[i]))
            df_fault(f, &here, "is required, unless the entry has the name of an integration");
    }
}

static void check_pair(const cJSON *item, const cJSON *old, const struct df_path *path,
                       struct df_faults *f)
{
    const char *p = df_json_str(item, "provider"), *q = df_json_str(old, "provider");
    const char *name = df_json_str(item, "name"), *variable = df_integration_conflict(p, q);
    if (name && df_streq(name, df_json_str(old, "name")))
        df_fault(f, path, "is the integration %s a second time", name);
    if (variable)
        df_fault(f, path, "%s and %s exclude each other: both set %s", q, p, variable);
}

/* Refuses two integrations of one provider or with the same variable: one would silently override
 * the other. The provider of a named one is known to the service alone
 * (requests/integrations.h). */
void df_rule_integrations(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int index = 0, faults = f->count;
    for (const cJSON *item = value->child; item; item = item->next) {
        const struct df_path here = {path, NULL, index++};
        check_form(item, &here, f);
        for (const cJSON *old = value->child; old != item && f->count == faults; old = old->next)
            check_pair(item, old, &here, f);
    }
}
