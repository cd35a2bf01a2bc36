/*
 * machine.c - checks of this machine, or of the spawner's own pod: data directory, token files,
 * State Service, the address for runners, the certificate. Each section ends with its checks,
 * df_check_...(): read these first.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/crypto/certificate.h"
#include "common/crypto/chain.h"
#include "common/http/http.h"
#include "spawner/doctor/checks.h"
#include "spawner/identity/oidc.h"
#include "spawner/identity/tokens.h"
#include "spawner/store/documents/unclean.h"

#define LITTLE_BYTES (64.0 * 1024 * 1024) /* one state and its journal may need that much */
#define SOON_BYTES (1024.0 * 1024 * 1024) /* logs and plans of one day */
#define ANSWER_MS 10000
#define SOON_US ((int64_t)14 * 24 * 3600 * 1000000)
#define UNCLEAN_US ((int64_t)7 * 24 * 3600 * 1000000) /* an older end is no longer a warning */

/* ---- the data directory ---- */

/* The path itself, or the nearest directory above it that exists: the path may be created only at
 * the first start. */
static char *existing_part(const char *path)
{
    char *part = strdup(path);
    while (part && !df_fs_exists(part) && strrchr(part, '/') != part && strrchr(part, '/'))
        *strrchr(part, '/') = '\0';
    return part;
}

static int try_to_write(const char *directory, struct df_err *err)
{
    DF_FREE char *file = df_strf("%s/.dayfly-doctor-XXXXXX", directory);
    if (!file)
        return df_fail_oom(err);
    DF_CLOSE int fd = mkstemp(file);
    if (fd < 0)
        return df_fail_errno(err, errno, "create a file in %s", directory);
    (void)unlink(file);
    if (df_fs_write_all(fd, file, strlen(file), err) < 0)
        return -1;
    return fsync(fd) < 0 ? df_fail_errno(err, errno, "write to %s", directory) : 0;
}

int df_doctor_try_directory(const char *path, struct df_err *err)
{
    DF_FREE char *directory = existing_part(path);
    return directory ? try_to_write(directory, err) : df_fail_oom(err);
}

static int check_free_space(struct df_doctor_context *p, const char *directory, struct df_err *err)
{
    struct statvfs fs;
    if (statvfs(directory, &fs) < 0)
        return df_fail_errno(err, errno, "%s", directory);
    double free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    double mib = free_bytes / (1024 * 1024);
    if (free_bytes < SOON_BYTES)
        df_finding(p, free_bytes < LITTLE_BYTES ? DF_LEVEL_FAIL : DF_LEVEL_WARN,
                   "%s has %.0f MiB left for states, plans and logs: enlarge its volume",
                   p->config.data_directory, mib);
    else
        df_finding(p, DF_LEVEL_OK, "%s can be written and has %.0f MiB left",
                   p->config.data_directory, mib);
    return 0;
}

/* Warns if the data directory belongs to another user: either user may create files there that the
 * other one cannot open. */
static void check_owner(struct df_doctor_context *p, const struct stat *st)
{
    bool is_laptop = p->config.runs_here && !p->config.in_cluster;
    if (!is_laptop || st->st_uid == geteuid())
        return;
    const struct passwd *owner = getpwuid(st->st_uid);
    df_finding(p, DF_LEVEL_WARN,
               "%s belongs to %s (user %u), and this is user %u: use it as one user, or set "
               "dataDirectory",
               p->config.data_directory, owner ? owner->pw_name : "a user without a name",
               (unsigned)st->st_uid, (unsigned)geteuid());
}

static void report_unclean_ends(struct df_doctor_context *p)
{
    struct df_unclean all;
    int64_t at_us = 0;
    df_unclean_read(p->config.data_directory, &all);
    bool is_old =
        df_time_parse(all.noticed_at, &at_us, NULL) == 0 && df_real_us() - at_us > UNCLEAN_US;
    if (all.count)
        df_finding(p, is_old ? DF_LEVEL_OK : DF_LEVEL_WARN,
                   "%lld %s ended without stopping, the last one (%s) before %s: look at its log "
                   "for \"fatal signal\", and at the kernel's for a lack of memory",
                   (long long)all.count, all.count == 1 ? "process" : "processes", all.command,
                   all.noticed_at);
}

static void report_holder(struct df_doctor_context *p)
{
    struct df_holder holder;
    if (df_holder_find(p->config.data_directory, &holder))
        df_finding(p, DF_LEVEL_OK, "%s is in use by process %d (%s)", p->config.data_directory,
                   (int)holder.pid, holder.command);
}

int df_check_data_directory(struct df_doctor_context *p, struct df_err *err)
{
    static const char remedy[] = "mount a volume there that this user may write to";
    struct stat st;
    DF_FREE char *directory = existing_part(p->config.data_directory);
    if (!directory)
        return df_fail_oom(err);
    if (stat(directory, &st) == 0 && !S_ISDIR(st.st_mode))
        return df_fail(err, DF_ERR_USER, "%s: %s is not a directory: correct dataDirectory",
                       p->config.data_directory, directory);
    struct df_err why = {0};
    if (try_to_write(directory, &why) < 0)
        return df_fail(err, DF_ERR_USER, "%s: %s: %s", p->config.data_directory, why.message,
                       remedy);
    if (stat(p->config.data_directory, &st) == 0)
        check_owner(p, &st);
    report_holder(p);
    report_unclean_ends(p);
    return check_free_space(p, directory, err);
}

/* ---- tokens, credentials, State Service ---- */

static int check_admin(struct df_doctor_context *p, const char *path, struct df_err *err)
{
    struct df_tokens *tokens = NULL;
    bool any = false;
    if (df_tokens_open(path, &tokens, err) < 0)
        return -1;
    int result = df_auth_check_admin(p->config.accounts, p->config.grants, tokens, &any, err);
    df_tokens_close(tokens);
    if (result == 0 && !any)
        df_finding(p, DF_LEVEL_WARN, DF_AUTH_NO_ADMIN);
    return result;
}

int df_check_tokens(struct df_doctor_context *p, struct df_err *err)
{
    const char *path = p->config.token_file;
    struct stat st;
    if (df_config_has_callers(&p->config) && check_admin(p, path, err) < 0)
        return -1;
    if (!path)
        return 0;
    if (stat(path, &st) < 0)
        return df_fail_errno(err, errno, "auth.tokenFile %s", path);
    if (st.st_mode & 022)
        return df_fail(err, DF_ERR_USER,
                       "auth.tokenFile %s: others may write to it and could add a token: chmod 600",
                       path);
    if (st.st_mode & 004)
        df_finding(p, DF_LEVEL_WARN,
                   "auth.tokenFile %s: everybody on this machine may read it: chmod 600, or "
                   "defaultMode 0440 of its volume",
                   path);
    else
        df_finding(p, DF_LEVEL_OK, "auth.tokenFile %s is valid", path);
    return 0;
}

int df_check_openid(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_openid *provider = &p->config.oidc;
    struct df_oidc *oidc = NULL;
    if (!provider->issuer)
        return 0;
    if (df_oidc_new(provider, &oidc, err) < 0)
        return -1;
    int result = df_oidc_ask(oidc, err);
    df_oidc_free(oidc);
    if (result == 0)
        df_finding(p, DF_LEVEL_OK, "the OpenID provider %s answers, and its keys are available",
                   provider->issuer);
    return result;
}

int df_check_credentials(struct df_doctor_context *p, struct df_err *err)
{
    cJSON *hosts = NULL;
    if (!p->config.registry_credentials_file)
        return 0;
    if (df_config_credentials(&p->config, &hosts, err) < 0)
        return -1;
    int count = cJSON_GetArraySize(hosts);
    df_finding(p, DF_LEVEL_OK, "providers.credentialsFile has %d host%s", count,
               count == 1 ? "" : "s");
    df_json_wipe(hosts);
    return 0;
}

/* A State Service that does not answer delays no step, so that is only a warning. */
int df_check_state_service(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_config *c = &p->config;
    const struct df_http_options o = {.ca_file = c->state_service_ca_file};
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    DF_HTTP struct df_http *http = NULL;
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    struct df_http_request req = DF_HTTP_REQUEST("GET", c->state_service_url);
    struct df_err why = {0};
    req.timeout_ms = ANSWER_MS;
    if (!c->state_service_url)
        return 0;
    if (c->state_service_token_file && df_fs_read(c->state_service_token_file, &token, err) < 0)
        return df_err_wrap(err, "stateService.tokenFile");
    if (df_http_new(&o, &http, err) < 0)
        return -1;
    if (df_http_send(http, &req, &answer, &why) < 0)
        df_finding(p, DF_LEVEL_WARN, "%s: transitions wait until it answers", why.message);
    else
        df_finding(p, DF_LEVEL_OK, "%s answers", c->state_service_url);
    return 0;
}

/* ---- where runners find the spawner ---- */

/* The URL that the service gives to runners. If it chooses a free port, the URL that it has written
 * into its endpoint file. */
static char *server_url(const struct df_config *c)
{
    DF_FREE char *file = df_fs_join(c->data_directory, "endpoint");
    DF_BUF struct df_buf url = DF_BUF_INIT(DF_KIB);
    if (c->advertise_url)
        return strdup(c->advertise_url);
    if (df_ends_with(c->listen, ":0") && file && df_fs_read(file, &url, NULL) == 0)
        return strndup(df_buf_str(&url), strcspn(df_buf_str(&url), "\n"));
    return df_strf("%s://%s", df_config_has_tls(c) ? "https" : "http", c->listen);
}

/* Without server.tls.caFile the CA file is the one that the service writes; it does not exist
 * before the first start. */
int df_find_server(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_config *c = &p->config;
    p->url = server_url(c);
    p->ca_file = c->tls_ca_file ? strdup(c->tls_ca_file) : df_fs_join(c->data_directory, "ca.pem");
    if (!p->url || !p->ca_file)
        return df_fail_oom(err);
    if (!c->tls_ca_file && !df_fs_exists(p->ca_file)) {
        free(p->ca_file);
        p->ca_file = NULL;
    }
    return 0;
}

static bool is_everywhere(const char *host)
{
    return df_streq(host, "0.0.0.0") || df_streq(host, "::") || df_str_empty(host);
}

static bool is_loopback(const char *host)
{
    return df_streq(host, "localhost") || df_streq(host, "::1") || df_starts_with(host, "127.");
}

int df_check_address(struct df_doctor_context *p, struct df_err *err)
{
    DF_FREE char *host = df_url_host(p->url);
    if (!host)
        return df_fail_oom(err);
    if (is_loopback(host) || is_everywhere(host))
        return df_fail(err, DF_ERR_USER,
                       "runners are to reach the spawner at %s, which leads a pod to itself: "
                       "set advertiseUrl to the URL of its Service, and listen to an address that "
                       "pods reach",
                       p->url);
    if (!df_starts_with(p->url, "https://"))
        df_finding(
            p, DF_LEVEL_WARN,
            "%s is not https: states and secrets cross the network in the clear; set server.tls",
            p->url);
    else
        df_finding(p, DF_LEVEL_OK, "runners get the URL %s", p->url);
    return 0;
}

/* ---- TLS ---- */

static int check_files(struct df_doctor_context *p, int64_t *ret_until_us, struct df_err *err)
{
    const struct df_config *c = &p->config;
    DF_BUF struct df_buf cert = DF_BUF_INIT(DF_LIMIT_CA), ca = DF_BUF_INIT(DF_LIMIT_CA);
    DF_CLEANUP(df_buf_wipe) struct df_buf key = DF_BUF_INIT(DF_LIMIT_CA);
    DF_FREE char *host = df_url_host(p->url);
    if (df_check_alloc(host, err) < 0 || df_fs_read(c->tls_cert_file, &cert, err) < 0 ||
        df_fs_read(c->tls_key_file, &key, err) < 0 ||
        (c->tls_ca_file && df_fs_read(c->tls_ca_file, &ca, err) < 0) ||
        df_certificate_check_pair(df_buf_str(&cert), df_buf_str(&key), err) < 0)
        return -1;
    return df_chain_check(df_buf_str(&cert), c->tls_ca_file ? df_buf_str(&ca) : NULL, host,
                          df_real_us(), ret_until_us, err);
}

int df_check_tls(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_config *c = &p->config;
    int64_t until_us = 0;
    char until[DF_TIME_LEN];
    if (!df_config_has_tls(c))
        return 0;
    if (!c->tls_cert_file) {
        df_finding(p, DF_LEVEL_OK, "dayfly creates and renews its certificate itself");
        return 0;
    }
    if (check_files(p, &until_us, err) < 0)
        return df_err_wrap(err, "runners would reject server.tls.certFile %s", c->tls_cert_file);
    (void)df_time_format(until_us, until);
    bool soon = until_us < df_real_us() + SOON_US;
    df_finding(p, soon ? DF_LEVEL_WARN : DF_LEVEL_OK, "server.tls.certFile is valid until %.10s%s",
               until, soon ? ": renew it" : "");
    return 0;
}
