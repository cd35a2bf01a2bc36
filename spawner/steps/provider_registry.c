#include "spawner/steps/provider_registry.h"

#include "common/crypto/crypto.h"
#include "common/http/download.h"

void df_provider_registry_close(struct df_provider_registry *r)
{
    df_http_free(r->http);
    free(r->base);
    *r = (struct df_provider_registry){0};
}

void df_provider_package_free(struct df_provider_package *p)
{
    free(p->url);
    *p = (struct df_provider_package){0};
}

static int get_json(struct df_http *http, const char *url, cJSON **ret, struct df_err *err)
{
    const struct df_download d = {.url = url, .fd = -1};
    DF_BUF struct df_buf text = {0};
    if (df_download(http, &d, &text, err) < 0)
        return -1;
    return df_json_parse(df_buf_str(&text), text.len, ret, err) < 0 ? df_err_wrap(err, "%s", url)
                                                                    : 0;
}

/* A reference of the host's documents; https only. The caller frees. */
static int resolve(const char *host, const char *reference, char **ret, struct df_err *err)
{
    bool is_path = reference && *reference == '/';
    if (!is_path && (!reference || !df_starts_with(reference, "https://")))
        return df_fail(err, DF_ERR_SYSTEM,
                       "the registry %s names \"%.100s\" instead of an https URL", host,
                       reference ? reference : "");
    *ret = is_path ? df_strf("https://%s%s", host, reference) : strdup(reference);
    return *ret ? 0 : df_fail_oom(err);
}

static int discover(struct df_provider_registry *r, const char *host, const char *name,
                    struct df_err *err)
{
    DF_FREE char *url = df_strf("https://%s/.well-known/terraform.json", host);
    DF_FREE char *service = NULL;
    DF_JSON cJSON *found = NULL;
    if (!url)
        return df_fail_oom(err);
    if (get_json(r->http, url, &found, err) < 0)
        return -1;
    const cJSON *providers = cJSON_GetObjectItemCaseSensitive(found, "providers.v1");
    if (resolve(host, cJSON_GetStringValue(providers), &service, err) < 0)
        return -1;
    r->base = df_strf("%s%s%s", service, df_ends_with(service, "/") ? "" : "/", name);
    return r->base ? 0 : df_fail_oom(err);
}

int df_provider_registry_open(const char *source, const char *ca_file,
                              struct df_provider_registry *ret, struct df_err *err)
{
    const struct df_http_options options = {.ca_file = ca_file, .follow_redirects = true};
    DF_PROVIDER_REGISTRY struct df_provider_registry r = {0};
    DF_FREE char *host = strndup(source, strcspn(source, "/"));
    if (!host)
        return df_fail_oom(err);
    if (df_http_new(&options, &r.http, err) < 0 ||
        discover(&r, host, source + strlen(host) + 1, err) < 0)
        return -1;
    *ret = r;
    r = (struct df_provider_registry){0};
    return 0;
}

int df_provider_registry_versions(struct df_provider_registry *r, cJSON **ret, struct df_err *err)
{
    DF_FREE char *url = df_strf("%s/versions", r->base);
    DF_JSON cJSON *answer = NULL;
    if (!url)
        return df_fail_oom(err);
    if (get_json(r->http, url, &answer, err) < 0)
        return -1;
    *ret = cJSON_DetachItemFromObjectCaseSensitive(answer, "versions");
    return *ret ? 0 : df_fail(err, DF_ERR_SYSTEM, "%s lists no versions", url);
}

int df_provider_registry_package(struct df_provider_registry *r,
                                 const struct df_provider_archive *a,
                                 struct df_provider_package *ret, struct df_err *err)
{
    const char *underscore = strchr(a->platform, '_');
    DF_FREE char *url = df_strf("%s/%s/download/%.*s/%s", r->base, a->version,
                                (int)(underscore - a->platform), a->platform, underscore + 1);
    DF_JSON cJSON *answer = NULL;
    if (!url)
        return df_fail_oom(err);
    if (get_json(r->http, url, &answer, err) < 0)
        return -1;
    const char *sha256 = df_json_str(answer, "shasum");
    if (!sha256 || strspn(sha256, "0123456789abcdef") != DF_SHA256_HEX - 1 ||
        sha256[DF_SHA256_HEX - 1])
        return df_fail(err, DF_ERR_SYSTEM, "%s names no SHA-256", url);
    const char *authority = r->base + strlen("https://");
    DF_FREE char *host = strndup(authority, strcspn(authority, "/"));
    struct df_provider_package p = {0};
    if (!host)
        return df_fail_oom(err);
    if (resolve(host, df_json_str(answer, "download_url"), &p.url, err) < 0)
        return -1;
    df_copy(p.sha256, sizeof(p.sha256), sha256);
    *ret = p;
    return 0;
}

int df_provider_registry_download(struct df_provider_registry *r,
                                  const struct df_provider_package *p, int fd, int64_t max_bytes,
                                  struct df_err *err)
{
    const struct df_download d = {.url = p->url, .fd = fd, .max_bytes = max_bytes};
    char found[DF_SHA256_HEX];
    if (df_download(r->http, &d, NULL, err) < 0 || df_sha256_file_hex(fd, found, NULL, err) < 0)
        return -1;
    return df_streq(found, p->sha256)
               ? 0
               : df_fail(err, DF_ERR_DENIED,
                         "%s has SHA-256 %s, but its registry names %s: it was changed on its way",
                         p->url, found, p->sha256);
}
