/*
 * The sources of tokens (an application with a federated token or a secret, a managed identity),
 * then the choice among all credentials.
 */
#include "common/azure/credentials.h"

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/http/http.h"
#include "common/oauth/oauth.h"

#define WHAT "credentials of Azure"
#define STORAGE "https%3A%2F%2Fstorage.azure.com%2F"
#define SLASH "%2F"
#define MANAGER "https%3A%2F%2Fmanagement.azure.com%2F"
#define JWT_BEARER "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"

struct df_azure_credentials {
    struct df_token_cache cache;
    char *key; /* that was given; or NULL */
};

void df_azure_grant_wipe(struct df_azure_grant *g)
{
    df_str_wipe(&g->text);
}

static const char *env_of(const char *name)
{
    const char *value = getenv(name);
    return df_str_empty(value) ? NULL : value;
}

static const char *env_or(const char *name, const char *otherwise)
{
    const char *value = env_of(name);
    return value ? value : otherwise;
}

static const char *needed(const char *name, const char *with, struct df_err *err)
{
    const char *value = env_of(name);
    if (!value)
        (void)df_fail(err, DF_ERR_USER, "%s is set, but %s is not", with, name);
    return value;
}

/* ---- an application ---- */

/* The file is replaced by the cluster now and then. */
static int read_assertion(const char *path, char **ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OAUTH_ANSWER);
    if (df_fs_read(path, &text, err) < 0)
        return df_err_wrap(err, "AZURE_FEDERATED_TOKEN_FILE");
    if (text.len)
        text.data[strcspn(text.data, "\r\n")] = '\0';
    return df_check_alloc(*ret = df_url_escape(df_buf_str(&text)), err);
}

/* Who asks for what. Borrowed. */
struct asking {
    const char *client, *tenant, *resource; /* resource: escaped */
};

/* proof: "client_secret=" or "client_assertion=" and its escaped value. */
static int ask_authority(const struct asking *a, const char *proof, struct df_token *t,
                         struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf body = DF_BUF_INIT(4 * DF_LIMIT_OAUTH_ANSWER);
    DF_SECRET_JSON cJSON *answer = NULL;
    const char *host = env_or("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com");
    DF_FREE char *id = df_url_escape(a->client);
    DF_FREE char *tenant = df_url_escape(a->tenant);
    if (!id || !tenant)
        return df_fail_oom(err);
    DF_FREE char *url = df_strf("%.*s/%s/oauth2/v2.0/token",
                                (int)(strlen(host) - df_ends_with(host, "/")), host, tenant);
    (void)df_buf_addf(&body, "grant_type=client_credentials&client_id=%s&scope=%s%s.default&%s", id,
                      a->resource, df_ends_with(a->resource, SLASH) ? "" : SLASH, proof);
    if (df_buf_check(&body, err) < 0)
        return -1;
    const struct df_oauth_question q = {
        WHAT, url, NULL, "application/x-www-form-urlencoded", df_buf_str(&body), false};
    return df_oauth_ask(&q, &answer, err) < 0 ? -1 : df_oauth_take(answer, WHAT, t, err);
}

/* escaped is taken. */
static int prove(const struct asking *a, const char *as, char *escaped, struct df_token *t,
                 struct df_err *err)
{
    char *proof = escaped ? df_strf("%s%s", as, escaped) : NULL;
    int result = proof ? ask_authority(a, proof, t, err) : df_fail_oom(err);
    df_str_wipe(&proof);
    df_str_wipe(&escaped);
    return result;
}

/* The application that the environment names. */
static int find_application(const char *resource, const char *with, struct asking *ret,
                            struct df_err *err)
{
    const char *client = needed("AZURE_CLIENT_ID", with, err);
    const char *tenant = client ? needed("AZURE_TENANT_ID", with, err) : NULL;
    *ret = (struct asking){client, tenant, resource};
    return tenant ? 0 : -1;
}

static int get_by_federation(const char *resource, const char *path, struct df_token *t,
                             struct df_err *err)
{
    char *assertion = NULL;
    struct asking a;
    if (find_application(resource, "AZURE_FEDERATED_TOKEN_FILE", &a, err) < 0 ||
        read_assertion(path, &assertion, err) < 0)
        return -1;
    return prove(&a, "client_assertion_type=" JWT_BEARER "&client_assertion=", assertion, t, err);
}

static int get_by_secret(const char *resource, const char *secret, struct df_token *t,
                         struct df_err *err)
{
    struct asking a;
    if (find_application(resource, "AZURE_CLIENT_SECRET", &a, err) < 0)
        return -1;
    return prove(&a, "client_secret=", df_url_escape(secret), t, err);
}

int df_azure_check_application(const struct df_azure_application *a, struct df_err *err)
{
    const struct asking asking = {a->client, a->tenant, MANAGER};
    DF_TOKEN t = {0};
    return prove(&asking, "client_secret=", df_url_escape(a->secret), &t, err);
}

/* ---- a managed identity ---- */

static int get_by_identity(const char *resource, struct df_token *t, struct df_err *err)
{
    const char *endpoint = env_of("IDENTITY_ENDPOINT"), *client = env_of("AZURE_CLIENT_ID");
    const char *metadata = env_or("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://169.254.169.254");
    DF_SECRET_JSON cJSON *answer = NULL;
    DF_FREE char *id = client ? df_url_escape(client) : NULL;
    DF_FREE char *which = id ? df_strf("&client_id=%s", id) : strdup("");
    DF_FREE char *header = df_strf("X-IDENTITY-HEADER: %s", env_or("IDENTITY_HEADER", ""));
    if (!header || !which || (client && !id))
        return df_fail_oom(err);
    DF_FREE char *url =
        endpoint
            ? df_strf("%s?api-version=2019-08-01&resource=%s%s", endpoint, resource, which)
            : df_strf("%.*s/metadata/identity/oauth2/token?api-version=2018-02-01&resource=%s%s",
                      (int)(strlen(metadata) - df_ends_with(metadata, "/")), metadata, resource,
                      which);
    const struct df_oauth_question q = {WHAT, url,  endpoint ? header : "Metadata: true",
                                        NULL, NULL, true};
    return df_oauth_ask(&q, &answer, err) < 0 ? -1 : df_oauth_take(answer, WHAT, t, err);
}

/* ---- the choice ---- */

static int fetch_for(const char *resource, struct df_token *ret, struct df_err *err)
{
    const char *file = env_of("AZURE_FEDERATED_TOKEN_FILE"),
               *secret = env_of("AZURE_CLIENT_SECRET");
    return file     ? get_by_federation(resource, file, ret, err)
           : secret ? get_by_secret(resource, secret, ret, err)
                    : get_by_identity(resource, ret, err);
}

static int fetch_token(void *arg, struct df_token *ret, struct df_err *err)
{
    (void)arg;
    return fetch_for(STORAGE, ret, err);
}

int df_azure_token(const char *resource, char **ret, struct df_err *err)
{
    DF_TOKEN token = {0};
    if (fetch_for(resource, &token, err) < 0)
        return -1;
    *ret = DF_TAKE(token.text);
    return 0;
}

int df_azure_credentials_get(struct df_azure_credentials *c, struct df_azure_grant *ret,
                             struct df_err *err)
{
    const char *key = c->key ? c->key : env_of("AZURE_STORAGE_KEY");
    const char *sas = env_of("AZURE_STORAGE_SAS_TOKEN");
    ret->kind = key ? DF_AZURE_KEY : sas ? DF_AZURE_SAS : DF_AZURE_TOKEN;
    if (ret->kind != DF_AZURE_TOKEN)
        return df_str_set(&ret->text, key ? key : *sas == '?' ? sas + 1 : sas, err);
    DF_TOKEN token = {0};
    if (df_token_cache_get(&c->cache, NULL, &token, err) < 0)
        return -1;
    ret->text = DF_TAKE(token.text);
    return 0;
}

void df_azure_credentials_refused(struct df_azure_credentials *c, const struct df_azure_grant *g)
{
    if (g->kind == DF_AZURE_TOKEN)
        df_token_cache_forget(&c->cache, g->text);
}

int df_azure_credentials_new(struct df_azure_credentials **ret, struct df_err *err)
{
    struct df_azure_credentials *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    df_token_cache_init(&c->cache, fetch_token, NULL);
    *ret = c;
    return 0;
}

int df_azure_credentials_given(const char *key, struct df_azure_credentials **ret,
                               struct df_err *err)
{
    struct df_azure_credentials *c = NULL;
    if (df_azure_credentials_new(&c, err) < 0)
        return -1;
    if (df_str_set(&c->key, key, err) < 0) {
        df_azure_credentials_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void df_azure_credentials_free(struct df_azure_credentials *c)
{
    if (!c)
        return;
    df_str_wipe(&c->key);
    df_token_cache_free(&c->cache);
    free(c);
}
