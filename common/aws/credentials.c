/*
 * The sources of keys in their order (the table at the end of the sources), then the cache in front
 * of them.
 */
#include "common/aws/credentials.h"

#include "common/aws/profile.h"
#include "common/aws/sts.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/token_cache.h"
#include "common/http/http.h"
#include "common/json/json.h"

enum { METADATA_MS = 2000, SOURCE_MS = 10000 };

struct df_aws_credentials {
    char *region;             /* NULL: the keys were given, and there are no others */
    struct df_aws_keys given; /* all NULL with a region */
    struct df_token_cache cache;
};

static const char *env_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return df_str_empty(value) ? otherwise : value;
}

static bool is_set(const char *name)
{
    return *env_or(name, "");
}

/* ---- static keys and profiles --------------------------------------------------------------- */

static bool has_static(void)
{
    return is_set("AWS_ACCESS_KEY_ID") && is_set("AWS_SECRET_ACCESS_KEY");
}

static int get_static(const char *region, struct df_aws_keys *k, struct df_err *err)
{
    (void)region;
    if (df_str_set(&k->access_key, env_or("AWS_ACCESS_KEY_ID", ""), err) < 0 ||
        df_str_set(&k->secret_key, env_or("AWS_SECRET_ACCESS_KEY", ""), err) < 0)
        return -1;
    return df_str_set(&k->token, env_or("AWS_SESSION_TOKEN", NULL), err);
}

static char *profile_path(void)
{
    const char *file = env_or("AWS_SHARED_CREDENTIALS_FILE", NULL);
    return file ? strdup(file) : df_strf("%s/.aws/credentials", env_or("HOME", "/"));
}

static bool has_profile(void)
{
    DF_FREE char *path = profile_path();
    return is_set("AWS_PROFILE") || (path && access(path, R_OK) == 0);
}

static int get_profile(const char *region, struct df_aws_keys *k, struct df_err *err)
{
    DF_FREE char *path = profile_path();
    (void)region;
    return path ? df_aws_profile_read(path, env_or("AWS_PROFILE", "default"), k, err)
                : df_fail_oom(err);
}

/* ---- web identity ---------------------------------------------------------------------------- */

static bool has_web_identity(void)
{
    return is_set("AWS_WEB_IDENTITY_TOKEN_FILE") && is_set("AWS_ROLE_ARN");
}

/* Reads a token's file, which its issuer replaces now and then. */
static int read_token(const char *path, struct df_buf *out, struct df_err *err)
{
    if (df_fs_read(path, out, err) < 0)
        return -1;
    while (out->len && strchr("\r\n", out->data[out->len - 1]))
        out->data[--out->len] = '\0';
    return 0;
}

static int print_assumption(struct df_buf *out, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_AWS_TOKEN);
    if (read_token(env_or("AWS_WEB_IDENTITY_TOKEN_FILE", ""), &token, err) < 0)
        return df_err_wrap(err, "AWS_WEB_IDENTITY_TOKEN_FILE");
    DF_FREE char *role = df_url_escape(env_or("AWS_ROLE_ARN", ""));
    DF_FREE char *session = df_url_escape(env_or("AWS_ROLE_SESSION_NAME", "dayfly"));
    char *jwt = df_url_escape(df_buf_str(&token));
    if (role && session && jwt)
        (void)df_buf_addf(out, "&RoleArn=%s&RoleSessionName=%s&WebIdentityToken=%s", role, session,
                          jwt);
    df_str_wipe(&jwt);
    return role && session && out->len ? df_buf_check(out, err) : df_fail_oom(err);
}

static int get_web_identity(const char *region, struct df_aws_keys *k, struct df_err *err)
{
    const struct df_sts sts = {.region = region};
    DF_CLEANUP(df_buf_wipe) struct df_buf arguments = DF_BUF_INIT(4 * DF_LIMIT_AWS_TOKEN);
    if (print_assumption(&arguments, err) < 0)
        return -1;
    return df_sts_keys(&sts, "AssumeRoleWithWebIdentity", &arguments, k, err);
}

/* ---- containers and instances ---------------------------------------------------------------- */

/* Through no proxy: it would see the token, and could answer with keys of its own. header: NULL, or
 * one with a token. */
static int get_text(const char *method, const char *url, const char *header, int64_t timeout_ms,
                    struct df_buf *out, struct df_err *err)
{
    const struct df_http_options options = {.connect_ms = timeout_ms, .proxy = ""};
    DF_HTTP struct df_http *h = NULL;
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    DF_CLEANUP(df_strs_wipe) struct df_strs headers = {0};
    if (header && df_strs_add(&headers, header) < 0)
        return df_strs_check(&headers, err);
    struct df_http_request req = DF_HTTP_REQUEST(method, url);
    req.headers = &headers;
    req.timeout_ms = timeout_ms;
    req.max_response = DF_LIMIT_AWS_TOKEN;
    if (df_http_new(&options, &h, err) < 0 || df_http_send(h, &req, &res, err) < 0 ||
        df_http_check(&res, "credentials of AWS", err) < 0)
        return -1;
    (void)df_buf_add(out, df_buf_str(&res.body), res.body.len);
    explicit_bzero(res.body.data, res.body.len);
    return df_buf_check(out, err);
}

static int take_document(const struct df_buf *text, struct df_aws_keys *k, struct df_err *err)
{
    DF_SECRET_JSON cJSON *document = NULL;
    if (df_json_parse(df_buf_str(text), text->len, &document, err) < 0)
        return -1;
    const char *expires = df_json_str(document, "Expiration");
    if (expires && df_time_parse(expires, &k->expires_us, err) < 0)
        return -1;
    if (df_str_set(&k->access_key, df_json_str(document, "AccessKeyId"), err) < 0 ||
        df_str_set(&k->secret_key, df_json_str(document, "SecretAccessKey"), err) < 0)
        return -1;
    return df_str_set(&k->token, df_json_str(document, "Token"), err);
}

static bool has_container(void)
{
    return is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI") ||
           is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
}

static int get_container(const char *region, struct df_aws_keys *k, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_AWS_TOKEN);
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_AWS_TOKEN);
    DF_CLEANUP(df_buf_wipe) struct df_buf header = DF_BUF_INIT(2 * DF_LIMIT_AWS_TOKEN);
    DF_FREE char *relative =
        df_strf("http://169.254.170.2%s", env_or("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", ""));
    const char *file = env_or("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", NULL);
    (void)region;
    if (!relative)
        return df_fail_oom(err);
    if (file && read_token(file, &token, err) < 0)
        return df_err_wrap(err, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *value = token.len ? token.data : env_or("AWS_CONTAINER_AUTHORIZATION_TOKEN", "");
    (void)df_buf_addf(&header, "Authorization: %s", value);
    if (get_text("GET", env_or("AWS_CONTAINER_CREDENTIALS_FULL_URI", relative),
                 *value ? df_buf_str(&header) : NULL, SOURCE_MS, &text, err) < 0)
        return -1;
    return take_document(&text, k, err);
}

static bool has_instance(void)
{
    return !df_streq(env_or("AWS_EC2_METADATA_DISABLED", ""), "true");
}

static int get_metadata(const char *path, const char *header, struct df_buf *out,
                        struct df_err *err)
{
    DF_FREE char *url =
        df_strf("%s/latest/%s",
                env_or("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254"), path);
    if (!url)
        return df_fail_oom(err);
    bool is_token = df_streq(path, "api/token");
    return get_text(is_token ? "PUT" : "GET", url, header, METADATA_MS, out, err);
}

static int get_instance(const char *region, struct df_aws_keys *k, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_AWS_TOKEN);
    DF_CLEANUP(df_buf_wipe) struct df_buf header = DF_BUF_INIT(2 * DF_LIMIT_AWS_TOKEN);
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_AWS_TOKEN);
    DF_BUF struct df_buf role = DF_BUF_INIT(DF_KIB);
    (void)region;
    if (get_metadata("api/token", "X-aws-ec2-metadata-token-ttl-seconds: 300", &token, err) < 0)
        return -1;
    (void)df_buf_addf(&header, "X-aws-ec2-metadata-token: %s", df_buf_str(&token));
    if (get_metadata("meta-data/iam/security-credentials/", df_buf_str(&header), &role, err) < 0)
        return -1;
    DF_FREE char *path = df_strf("meta-data/iam/security-credentials/%.*s",
                                 (int)strcspn(df_buf_str(&role), "\r\n"), df_buf_str(&role));
    if (df_check_alloc(path, err) < 0 || get_metadata(path, df_buf_str(&header), &text, err) < 0)
        return -1;
    return take_document(&text, k, err);
}

/* ---- the chain ------------------------------------------------------------------------------- */

static const struct source {
    const char *name;
    const char *words; /* for messages: where the keys come from */
    bool (*offered)(void);
    int (*get)(const char *region, struct df_aws_keys *k, struct df_err *err);
} sources[] = {
    {"keys in the environment", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment",
     has_static, get_static},
    {"web identity", "the web identity of AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE",
     has_web_identity, get_web_identity},
    {"profile", "a profile", has_profile, get_profile},
    {"container credentials",
     "the credentials of the container (AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI)",
     has_container, get_container},
    {"instance metadata", "the metadata service of the instance", has_instance, get_instance},
};

static const struct source *find_source(void)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(sources); i++)
        if (sources[i].offered())
            return &sources[i];
    return NULL;
}

void df_aws_credentials_source(const struct df_aws_credentials *c, struct df_buf *out)
{
    const struct source *s = c->region ? find_source() : NULL;
    DF_FREE char *path = profile_path();
    if (!c->region)
        (void)df_buf_adds(out, "the configuration");
    else if (!s)
        (void)df_buf_adds(out, "nowhere");
    else if (s->get == get_profile)
        (void)df_buf_addf(out, "the profile \"%s\" of %s", env_or("AWS_PROFILE", "default"),
                          path ? path : "~/.aws/credentials");
    else
        (void)df_buf_adds(out, s->words);
}

static int copy_keys(const struct df_aws_keys *from, struct df_aws_keys *to, struct df_err *err)
{
    to->expires_us = from->expires_us;
    if (df_str_set(&to->access_key, from->access_key, err) < 0 ||
        df_str_set(&to->secret_key, from->secret_key, err) < 0)
        return -1;
    return df_str_set(&to->token, from->token, err);
}

static int find_keys(const char *region, struct df_aws_keys *k, struct df_err *err)
{
    const struct source *s = find_source();
    if (!s)
        return df_fail(err, DF_ERR_USER,
                       "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                       "AWS_PROFILE, or give the pod an identity");
    if (s->get(region, k, err) < 0)
        return df_err_wrap(err, "AWS credentials (%s)", s->name);
    if (df_str_empty(k->access_key) || df_str_empty(k->secret_key))
        return df_fail(err, DF_ERR_USER, "AWS credentials (%s): the answer has no keys", s->name);
    return 0;
}

static int fetch_keys(void *arg, struct df_token *ret, struct df_err *err)
{
    const struct df_aws_credentials *c = arg;
    DF_AWS_KEYS k = {0};
    if ((c->region ? find_keys(c->region, &k, err) : copy_keys(&c->given, &k, err)) < 0)
        return -1;
    ret->id = DF_TAKE(k.access_key);
    ret->text = DF_TAKE(k.secret_key);
    ret->session = DF_TAKE(k.token);
    df_token_ends(ret, k.expires_us ? k.expires_us : INT64_MAX);
    return 0;
}

int df_aws_credentials_get(struct df_aws_credentials *c, struct df_aws_keys *ret,
                           struct df_err *err)
{
    DF_TOKEN t = {0};
    if (df_token_cache_get(&c->cache, NULL, &t, err) < 0)
        return -1;
    int64_t expires_us = t.until_us == INT64_MAX ? 0 : t.until_us;
    *ret = (struct df_aws_keys){DF_TAKE(t.id), DF_TAKE(t.text), DF_TAKE(t.session), expires_us};
    return 0;
}

/* A file may be half written, a source away: then the next refusal asks once more. */
bool df_aws_credentials_refused(struct df_aws_credentials *c, const struct df_aws_keys *keys)
{
    const struct df_token refused = {
        .text = keys->secret_key, .id = keys->access_key, .session = keys->token};
    return c->region && df_token_cache_renew(&c->cache, &refused, DF_AWS_ASK_AGAIN_MS);
}

/* Either with a region or with keys. */
static int new_credentials(const char *region, const struct df_aws_keys *given,
                           struct df_aws_credentials **ret, struct df_err *err)
{
    struct df_aws_credentials *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    df_token_cache_init(&c->cache, fetch_keys, c);
    if (df_str_set(&c->region, region, err) < 0 || copy_keys(given, &c->given, err) < 0) {
        df_aws_credentials_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

int df_aws_credentials_new(const char *region, struct df_aws_credentials **ret, struct df_err *err)
{
    static const struct df_aws_keys none = {0};
    return new_credentials(region, &none, ret, err);
}

int df_aws_credentials_given(const struct df_aws_keys *keys, struct df_aws_credentials **ret,
                             struct df_err *err)
{
    return new_credentials(NULL, keys, ret, err);
}

void df_aws_credentials_free(struct df_aws_credentials *c)
{
    if (!c)
        return;
    df_aws_keys_wipe(&c->given);
    df_token_cache_free(&c->cache);
    free(c->region);
    free(c);
}
