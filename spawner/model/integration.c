/*
 * integration.c - one table: for each provider its keys and the variables that they become. Below
 * it are the function that applies a row, and the rule of spec.integrations.
 */
#include "spawner/model/integration.h"

#include "spawner/model/rules.h"

#define MAX_KEYS 7

/* One key of a provider's secret. */
struct key {
    const char *name;
    const char *variables[2]; /* that get its value */
    const char *file;         /* that gets its value; or NULL */
    bool lines;               /* the file must end with a newline: ssh refuses a key without */
    const char *fallback;     /* value of an absent key; NULL: it is required, unless optional */
    bool optional;
};

struct provider {
    const char *name;
    struct key keys[MAX_KEYS + 1];
    /* A variable with a fixed value, by which the provider finds its files. */
    const char *variable, *value;
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
              {"client_secret", {"ARM_CLIENT_SECRET", "AZURE_CLIENT_SECRET"}},
              {"tenant_id", {"ARM_TENANT_ID", "AZURE_TENANT_ID"}},
              {"subscription_id", {"ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID"}}}},
    {.name = "gcp",
     .keys = {{"service_account_key", .file = "gcp_service_account_key.json"},
              {"gcp_project_id", {"GOOGLE_PROJECT"}}},
     .variable = "GOOGLE_APPLICATION_CREDENTIALS",
     .value = "@files/gcp_service_account_key.json"},
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

static int set_variable(const struct provider *p, const char *name, const char *value,
                        cJSON *environment, struct df_err *err)
{
    if (cJSON_GetObjectItemCaseSensitive(environment, name))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "integration %s sets %s, which something else sets, too", p->name,
                              name);
    return df_json_add_str(environment, name, value, err);
}

static int add_file(cJSON *files, const struct key *k, const char *value, struct df_err *err)
{
    bool lacks_end = k->lines && !df_ends_with(value, "\n");
    char *text = df_strf("%s%s", value, lacks_end ? "\n" : "");
    int result = text ? df_json_set_str(files, k->file, text, err) : df_fail_oom(err);
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    return result;
}

static int apply_key(const struct provider *p, const struct key *k, const cJSON *secret,
                     cJSON *environment, cJSON *files, struct df_err *err)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(secret, k->name);
    const char *value = cJSON_IsString(member) ? member->valuestring : k->fallback;
    if (df_str_empty(value))
        return k->optional ? 0
                           : df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                            "integration %s: its secret lacks the key %s", p->name,
                                            k->name);
    for (size_t i = 0; i < DF_ARRAY_SIZE(k->variables) && k->variables[i]; i++)
        if (set_variable(p, k->variables[i], value, environment, err) < 0)
            return -1;
    return k->file ? add_file(files, k, value, err) : 0;
}

int df_integration_apply(const char *provider, const cJSON *secret, cJSON *environment,
                         cJSON *files, struct df_err *err)
{
    const struct provider *p = find_provider(provider);
    if (!p)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "there is no integration \"%.64s\"",
                              provider);
    if (refuse_foreign_keys(p, secret, err) < 0)
        return -1;
    for (const struct key *k = p->keys; k->name; k++)
        if (apply_key(p, k, secret, environment, files, err) < 0)
            return -1;
    return p->variable ? set_variable(p, p->variable, p->value, environment, err) : 0;
}

/* ---- spec.integrations ---- */

static const char *first_variable(const struct provider *p)
{
    return p->variable ? p->variable : p->keys[0].variables[0];
}

/* Refuses two integrations of one provider or with the same variable: one would silently override
 * the other. */
void df_rule_integrations(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int index = 0;
    for (const cJSON *item = value->child; item; item = item->next) {
        const struct df_path here = {path, NULL, index++};
        const struct provider *p = find_provider(df_json_str(item, "provider"));
        for (const cJSON *old = value->child; old != item; old = old->next) {
            const struct provider *q = find_provider(df_json_str(old, "provider"));
            if (df_streq(first_variable(p), first_variable(q))) {
                df_fault(f, &here, "%s and %s exclude each other: both set %s", q->name, p->name,
                         first_variable(p));
                break;
            }
        }
    }
}
