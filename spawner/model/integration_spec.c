/*
 * The fields of an Integration with their rules, then the role that it names, then what the tool
 * needs to exchange a token.
 */
#include "spawner/model/integration_spec.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/model/rows.h"

#define EVERY "*"
#define DEFAULT_REGION "us-east-1"
enum { LEAST_S = 900, MOST_S = 12 * 3600, DEFAULT_S = 3600 }; /* of a session, as AWS has it */

/* ---- fields ---- */

static void check_arn(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *arn = value->valuestring;
    if (!df_starts_with(arn, "arn:") || !strstr(arn, ":role/"))
        df_fault(f, path, "\"%.80s\" is not the ARN of a role (arn:aws:iam::ACCOUNT:role/NAME)",
                 arn);
}

static void check_session(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    struct df_err err = {0};
    int64_t us = 0;
    if (df_duration_parse(value->valuestring, &us, &err) < 0)
        df_fault(f, path, "%s", err.message);
    else if (us < (int64_t)LEAST_S * 1000000 || us > (int64_t)MOST_S * 1000000)
        df_fault(f, path, "\"%.40s\" is not from 15m to 12h", value->valuestring);
}

#define NO_REGION "is not a region (1 to 32 of a-z, 0-9 and -, as eu-central-1)"

static void check_region(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!df_aws_region_is_good(value->valuestring))
        df_fault(f, path, "\"%.40s\" " NO_REGION, value->valuestring);
}

static void check_policy(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    DF_JSON cJSON *policy = NULL;
    const char *text = value->valuestring;
    if (df_json_parse(text, strlen(text), &policy, NULL) < 0 || !cJSON_IsObject(policy))
        df_fault(f, path, "is not a policy in JSON");
}

static void check_executor(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!df_streq(value->valuestring, EVERY))
        df_rule_name(value, path, f);
}

static void check_executors(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (df_json_has_string(value, EVERY) && cJSON_GetArraySize(value) > 1)
        df_fault(f, path, "\"*\" is every executor, and stands alone");
}

static const struct df_field secret_ref[] = {NAME("name", .flags = DF_REQUIRED), {0}};
static const struct df_field assume_role[] = {
    STRING("roleArn", 2048, .flags = DF_REQUIRED, .rule = check_arn),
    STRING("externalId", 1224),
    STRING("sessionPolicy", 8192, .flags = DF_LINES, .rule = check_policy),
    STRING("duration", 32, .rule = check_session),
    STRING("region", 32, .rule = check_region),
    {0},
};
static const struct df_field web_identity[] = {
    STRING("roleArn", 2048, .flags = DF_REQUIRED, .rule = check_arn),
    STRING("audience", 1024, .fallback = "\"sts.amazonaws.com\""),
    STRING("region", 32, .rule = check_region),
    {0},
};
static const struct df_field workload_identity[] = {
    STRING("clientId", 64, .flags = DF_REQUIRED),
    STRING("tenantId", 64, .flags = DF_REQUIRED),
    STRING("subscriptionId", 64, .flags = DF_REQUIRED),
    STRING("audience", 1024, .fallback = "\"api://AzureADTokenExchange\""),
    {0},
};
static const struct df_field federation[] = {
    STRING("projectId", 64, .flags = DF_REQUIRED),
    STRING("provider", 1024, .flags = DF_REQUIRED),
    STRING("serviceAccount", 320),
    STRING("audience", 1024),
    STRING("tokenUrl", 1024),
    {0},
};
static const struct df_field executor_name = STRING(NULL, DF_LIMIT_NAME, .rule = check_executor);

const struct df_field df_integration_rows[] = {
    WORD("provider", df_integration_providers, .flags = DF_REQUIRED),
    {.name = "description", .type = DF_TYPE_STRING, .flags = DF_LINES, .max = 4096},
    LIST("executors", &executor_name, DF_LIMIT_SECRET_EXECUTORS, .rule = check_executors),
    OBJECT("secretRef", secret_ref),
    OBJECT("assumeRole", assume_role),
    OBJECT("webIdentity", web_identity),
    OBJECT("workloadIdentity", workload_identity),
    OBJECT("federation", federation),
    {0},
};

/* A variable that gets a member of the identity, the path of the token, or a fixed value. */
struct variable {
    const char *name, *member, *fixed;
    bool is_token, is_session;
};

static const struct variable of_aws[] = {
    {.name = "AWS_ROLE_ARN", .member = "roleArn"},
    {.name = "AWS_WEB_IDENTITY_TOKEN_FILE", .is_token = true},
    {.name = "AWS_ROLE_SESSION_NAME", .is_session = true},
    {.name = "AWS_REGION", .member = "region", .fixed = DEFAULT_REGION},
    {0},
};
static const struct variable of_azurerm[] = {
    {.name = "ARM_CLIENT_ID", .member = "clientId"},
    {.name = "ARM_TENANT_ID", .member = "tenantId"},
    {.name = "ARM_SUBSCRIPTION_ID", .member = "subscriptionId"},
    {.name = "ARM_USE_OIDC", .fixed = "true"},
    {.name = "ARM_OIDC_TOKEN_FILE_PATH", .is_token = true},
    {.name = "AZURE_CLIENT_ID", .member = "clientId"},
    {.name = "AZURE_TENANT_ID", .member = "tenantId"},
    {.name = "AZURE_SUBSCRIPTION_ID", .member = "subscriptionId"},
    {.name = "AZURE_FEDERATED_TOKEN_FILE", .is_token = true},
    {0},
};
#define GCP_FILE "gcp_wif_credential_config.json"
static const struct variable of_gcp[] = {
    {.name = "GOOGLE_PROJECT", .member = "projectId"},
    {.name = "GOOGLE_APPLICATION_CREDENTIALS", .fixed = "@files/" GCP_FILE},
    {0},
};

/* The ways to credentials besides the keys of a secret, and whose they are. */
static const struct way {
    const char *member, *provider;
    const struct variable *variables; /* by which the tool exchanges a token; NULL: it has none, and
                                       * a secret may stand beside it */
} ways[] = {
    {"assumeRole", "aws", NULL},
    {"webIdentity", "aws", of_aws},
    {"workloadIdentity", "azurerm", of_azurerm},
    {"federation", "gcp", of_gcp},
};

static const struct way *find_way(const cJSON *spec)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(ways); i++)
        if (cJSON_HasObjectItem(spec, ways[i].member))
            return &ways[i];
    return NULL;
}

void df_rule_integration(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const struct way *first = find_way(value);
    const char *provider = df_json_str(value, "provider");
    bool has_secret = cJSON_HasObjectItem(value, "secretRef");
    for (size_t i = 0; i < DF_ARRAY_SIZE(ways); i++) {
        const struct df_path here = {path, ways[i].member, 0};
        if (!cJSON_HasObjectItem(value, ways[i].member))
            continue;
        if (!df_streq(ways[i].provider, provider))
            df_fault(f, &here, "is for the provider %s", ways[i].provider);
        if (&ways[i] != first)
            df_fault(f, &here, "stands beside %s: an integration has one identity", first->member);
        if (has_secret && ways[i].variables)
            df_fault(f, &here, "stands beside secretRef: it needs no keys");
    }
    if (!first && !has_secret)
        df_fault(f, path, "needs secretRef, or an identity");
}

int df_integration_use(const cJSON *doc, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *use = cJSON_CreateObject();
    const cJSON *list = df_json_at(doc, "spec.executors");
    if (list && !df_json_has_string(list, EVERY) &&
        df_json_add(use, "executors", cJSON_Duplicate(list, true), err) < 0)
        return -1;
    if (df_json_add_str(use, "owner", df_json_str(doc, "status.owner"), err) < 0)
        return -1;
    return df_check_alloc(*ret = DF_TAKE(use), err);
}

bool df_integration_has_identity(const cJSON *spec)
{
    const struct way *w = find_way(spec);
    return w && (w->variables || !cJSON_HasObjectItem(spec, "secretRef"));
}

/* ---- a role ---- */

void df_integration_role_free(struct df_integration_role *r)
{
    free(r->owned_arn);
    *r = (struct df_integration_role){0};
}

int df_integration_region(const cJSON *role, const cJSON *secret, const char **ret,
                          struct df_err *err)
{
    const char *region = df_json_str(role, "region");
    if (!region)
        region = df_json_str(secret, "aws_default_region");
    if (!df_str_empty(region) && !df_aws_region_is_good(region))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "integration aws: its region, or the key aws_default_region of its "
                              "secret, " NO_REGION);
    *ret = df_str_empty(region) ? DEFAULT_REGION : region;
    return 0;
}

static int role_of_spec(const cJSON *role, const cJSON *secret, struct df_integration_role *r,
                        struct df_err *err)
{
    const char *duration = df_json_str(role, "duration");
    int64_t us = (int64_t)DEFAULT_S * 1000000;
    if (duration && df_duration_parse(duration, &us, err) < 0)
        return -1;
    r->role = (struct df_aws_role){.arn = df_json_str(role, "roleArn"),
                                   .external_id = df_json_str(role, "externalId"),
                                   .policy = df_json_str(role, "sessionPolicy"),
                                   .duration_s = us / 1000000};
    return df_integration_region(role, secret, &r->region, err);
}

static int role_of_secret(const cJSON *secret, struct df_integration_role *r, struct df_err *err)
{
    const char *name = df_json_str(secret, "aws_assumed_role_name");
    const char *account = df_json_str(secret, "aws_account");
    const char *seconds = df_json_str(secret, "aws_session_duration");
    int64_t duration_s = DEFAULT_S;
    struct df_err why = {0};
    if (df_str_empty(name))
        return 0;
    if (df_str_empty(account))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "integration aws: its secret has aws_assumed_role_name, and lacks "
                              "the key aws_account");
    if (!df_str_empty(seconds) && df_parse_i64(seconds, LEAST_S, MOST_S, &duration_s, &why) < 0)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "integration aws: the key aws_session_duration is not a number of "
                              "seconds from %d to %d",
                              LEAST_S, MOST_S);
    if (df_integration_region(NULL, secret, &r->region, err) < 0)
        return -1;
    r->owned_arn = df_strf("arn:aws:iam::%s:role/%s", account, name);
    if (!r->owned_arn)
        return df_fail_oom(err);
    r->role = (struct df_aws_role){.arn = r->owned_arn, .duration_s = duration_s};
    return 0;
}

int df_integration_role_of(const cJSON *spec, const cJSON *secret, struct df_integration_role *ret,
                           struct df_err *err)
{
    const cJSON *role = df_json_at(spec, "assumeRole");
    *ret = (struct df_integration_role){0};
    return role ? role_of_spec(role, secret, ret, err) : role_of_secret(secret, ret, err);
}

int df_integration_keys(const cJSON *secret, struct df_aws_keys *ret, struct df_err *err)
{
    DF_AWS_KEYS k = {0};
    if (df_str_set(&k.access_key, df_json_str(secret, "aws_access_key_id"), err) < 0 ||
        df_str_set(&k.secret_key, df_json_str(secret, "aws_secret_access_key"), err) < 0 ||
        df_str_set(&k.token, df_json_str(secret, "aws_session_token"), err) < 0)
        return -1;
    if (df_str_empty(k.access_key) || df_str_empty(k.secret_key))
        return df_fail_reason(
            err, DF_ERR_USER, "InvalidStep", "integration aws: its secret lacks the key %s",
            df_str_empty(k.access_key) ? "aws_access_key_id" : "aws_secret_access_key");
    *ret = k;
    k = (struct df_aws_keys){0};
    return 0;
}

int df_integration_assumed(const struct df_integration_role *r, const struct df_aws_keys *keys,
                           const cJSON *secret, cJSON **ret, struct df_err *err)
{
    return df_check_alloc(
        *ret = df_json_object(DF_STR("aws_access_key_id", keys->access_key),
                              DF_STR("aws_secret_access_key", keys->secret_key),
                              DF_STR("aws_session_token", keys->token),
                              DF_STR("aws_account", df_json_str(secret, "aws_account")),
                              DF_STR("aws_default_region", r->region)),
        err);
}

/* ---- exchanging a token ---- */

const char *df_integration_audience(const cJSON *spec, char **made)
{
    const struct way *w = find_way(spec);
    const cJSON *identity = w ? df_json_at(spec, w->member) : NULL;
    const char *audience = df_json_str(identity, "audience");
    *made = NULL;
    if (!identity || audience || !w->variables)
        return audience;
    /* What Google expects, unless the provider allows others. */
    *made = df_strf("https:%s", df_json_str(identity, "provider"));
    return *made;
}

static int set_variables(const struct way *w, const cJSON *identity, const char *token_file,
                         const char *session, const struct df_integration_places *to,
                         struct df_err *err)
{
    for (const struct variable *v = w->variables; v->name; v++) {
        const char *value = v->member ? df_json_str(identity, v->member) : NULL;
        value = v->is_token ? token_file : v->is_session ? session : value ? value : v->fixed;
        if (df_integration_set(w->provider, v->name, value, to, err) < 0)
            return -1;
    }
    return 0;
}

/* Google's file of the type external_account: it holds no secret, only the path of the token. */
static int add_credential_config(const cJSON *federation_spec, const char *token_file,
                                 const struct df_integration_places *to, struct df_err *err)
{
    DF_JSON cJSON *config = cJSON_CreateObject();
    const char *account = df_json_str(federation_spec, "serviceAccount");
    const char *url = df_json_str(federation_spec, "tokenUrl");
    DF_FREE char *impersonation =
        account ? df_strf("https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/%s"
                          ":generateAccessToken",
                          account)
                : NULL;
    if (account && !impersonation)
        return df_fail_oom(err);
    if (df_json_put(config, err, DF_STR("type", "external_account"),
                    DF_STR("audience", df_json_str(federation_spec, "provider")),
                    DF_STR("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
                    DF_STR("token_url", url ? url : "https://sts.googleapis.com/v1/token"),
                    DF_STR("service_account_impersonation_url", impersonation)) < 0 ||
        df_json_add_str(df_json_object_at(config, "credential_source"), "file", token_file, err) <
            0)
        return -1;
    DF_FREE char *text = df_json_print(config);
    return df_json_put(to->files, err, DF_STR_ALLOC(GCP_FILE, text));
}

int df_integration_identity(const cJSON *spec, const char *token_file, const char *session,
                            const struct df_integration_places *to, struct df_err *err)
{
    const struct way *w = find_way(spec);
    const cJSON *identity = w ? df_json_at(spec, w->member) : NULL;
    if (!identity || !w->variables)
        DF_BUG("an integration without a token is asked for its variables");
    if (w->variables == of_gcp && add_credential_config(identity, token_file, to, err) < 0)
        return -1;
    return set_variables(w, identity, token_file, session, to, err);
}
