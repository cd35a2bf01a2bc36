/*
 * config.c - df_config_load() at the end of the file sets the defaults, applies file, environment
 * and flags in this order, and then checks the values and their combinations. The keys are in
 * keys.c; file.c reads the file.
 */
#include "spawner/config/config.h"

#include <ctype.h>
#include <errno.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/kube/kube.h"
#include "common/oauth/openid.h"
#include "spawner/config/keys.h"
#include "spawner/model/engine_kinds.h"
#include "spawner/model/instance.h"
#include "spawner/model/model.h"
#include "spawner/model/placement.h"

/* ---- environment and flags ---- */

/* tools.cacheDirectory -> DAYFLY_TOOLS_CACHE_DIRECTORY; false if out is too small. */
static bool env_name(const char *key, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "DAYFLY_");
    for (; *key; key++) {
        if (n + 3 > size)
            return false;
        if (isupper((unsigned char)*key))
            out[n++] = '_';
        out[n++] = *key == '.' ? '_' : (char)toupper((unsigned char)*key);
    }
    out[n] = '\0';
    return true;
}

static const char *get_env(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* True if the entry begins like the variables of this key's section (DAYFLY_SERVER_TLS_). */
static bool is_of_section(const char *entry, const char *key)
{
    char section[64], name[128];
    const char *dot = strrchr(key, '.');
    if (!dot)
        return false;
    (void)snprintf(section, sizeof(section), "%.*s", (int)(dot + 1 - key), key);
    return env_name(section, name, sizeof(name)) && strncmp(entry, name, strlen(name)) == 0;
}

/* True for a variable that begins like those of a section and belongs to no key: its name is
 * misspelt. Other variables that begin with DAYFLY_ may be meant for clients, or set by Kubernetes
 * for a Service named dayfly. */
static bool is_misspelt(const char *entry)
{
    char name[128];
    bool ours = false;
    for (size_t i = 0; i < df_key_count; i++) {
        if (!env_name(df_keys[i].name, name, sizeof(name)))
            DF_BUG("the key %s is too long", df_keys[i].name);
        size_t n = strlen(name);
        if (strncmp(entry, name, n) == 0 && entry[n] == '=')
            return false;
        ours |= is_of_section(entry, df_keys[i].name);
    }
    return ours;
}

static int read_environment(struct df_config *c, char *const *env, const char *base,
                            struct df_err *err)
{
    char name[128];
    for (char *const *entry = env; *entry; entry++)
        if (is_misspelt(*entry))
            return df_fail(err, DF_ERR_USER,
                           "%.*s: there is no such key (see "
                           "docs/configuration.md)",
                           (int)strcspn(*entry, "="), *entry);
    for (size_t i = 0; i < df_key_count; i++) {
        (void)env_name(df_keys[i].name, name, sizeof(name));
        const char *value = get_env(env, name);
        if (!df_str_empty(value) && df_key_set(c, &df_keys[i], value, base, err) < 0)
            return df_err_wrap(err, "%s", name);
    }
    return 0;
}

static int read_overrides(struct df_config *c, const struct df_strs *overrides, const char *base,
                          struct df_err *err)
{
    for (size_t i = 0; overrides && i < overrides->len; i++) {
        const char *text = overrides->items[i];
        size_t n = strcspn(text, "=");
        DF_FREE char *name = strndup(text, n);
        if (!name)
            return df_fail_oom(err);
        const struct df_key *k = df_key_find(name);
        if (!k || text[n] != '=')
            return df_fail(err, DF_ERR_USER,
                           "%.64s: there is no such key (key=value; see "
                           "docs/configuration.md)",
                           text);
        if (df_key_set(c, k, text + n + 1, base, err) < 0)
            return df_err_wrap(err, "%s", name);
    }
    return 0;
}

/* ---- defaults and checks ---- */

static int set_defaults(struct df_config *c, struct df_err *err)
{
    c->log_json = !isatty(STDERR_FILENO);
    for (size_t i = 0; i < df_key_count; i++)
        if (df_keys[i].fallback && df_key_set(c, &df_keys[i], df_keys[i].fallback, "/", err) < 0)
            return df_err_wrap(err, "default of %s", df_keys[i].name);
    return 0;
}

int df_config_home_path(char *const *env, const char *variable, const char *below_home,
                        const char *name, char **ret, struct df_err *err)
{
    const char *base = get_env(env, variable), *home = get_env(env, "HOME");
    /* The XDG specification says that relative paths must be ignored. */
    if (!df_str_empty(base) && *base == '/')
        *ret = df_strf("%s/%s", base, name);
    else if (!df_str_empty(home))
        *ret = df_strf("%s/%s/%s", home, below_home, name);
    else
        return 0;
    return *ret ? 0 : df_fail_oom(err);
}

static int fill_directories(struct df_config *c, char *const *env, struct df_err *err)
{
    if (!c->data_directory && df_config_home_path(env, "XDG_STATE_HOME", ".local/state", "dayfly",
                                                  &c->data_directory, err) < 0)
        return -1;
    if (!c->data_directory)
        return df_fail(err, DF_ERR_USER,
                       "dataDirectory: is required when neither XDG_STATE_HOME nor HOME is set");
    if (!c->tool_cache_directory &&
        df_config_home_path(env, "XDG_CACHE_HOME", ".cache", "dayfly/tools",
                            &c->tool_cache_directory, err) < 0)
        return -1;
    if (!c->tool_cache_directory)
        c->tool_cache_directory = df_fs_join(c->data_directory, "tools");
    return c->tool_cache_directory ? 0 : df_fail_oom(err);
}

static int check_url(const char *name, const char *url, struct df_err *err)
{
    if (!url || df_starts_with(url, "https://") || df_starts_with(url, "http://127.0.0.1") ||
        df_starts_with(url, "http://localhost") || df_starts_with(url, "file:///"))
        return 0;
    return df_fail(err, DF_ERR_USER, "%s: \"%.100s\" must be an https:// or file:/// URL", name,
                   url);
}

/* Accepts host:port and [v6]:port. *ret_loopback: true if no other machine can reach it. */
static int check_listen(const char *listen, bool *ret_loopback, struct df_err *err)
{
    const char *colon = listen ? strrchr(listen, ':') : NULL;
    int64_t port;
    if (!colon || df_parse_i64(colon + 1, 0, 65535, &port, NULL) < 0)
        return df_fail(err, DF_ERR_USER, "listen: \"%.64s\" must be address:port", listen);
    size_t n = (size_t)(colon - listen);
    *ret_loopback = (n == 9 && strncmp(listen, "localhost", n) == 0) ||
                    (n > 4 && strncmp(listen, "127.", 4) == 0) ||
                    (n == 5 && strncmp(listen, "[::1]", n) == 0);
    return 0;
}

bool df_config_has_tls(const struct df_config *c)
{
    return c->tls_cert_file || c->tls_names.len;
}

const char *df_config_namespace(const struct df_config *c, const struct df_kube *kube)
{
    if (c->kube_namespace)
        return c->kube_namespace;
    return kube ? df_kube_namespace(kube) : NULL;
}

/* Wildcards are refused, because a spawner has only one name, or a few. */
static int check_tls_names(const struct df_config *c, struct df_err *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:";
    for (size_t i = 0; i < c->tls_names.len; i++) {
        const char *name = c->tls_names.items[i];
        if (strspn(name, allowed) != strlen(name) || strlen(name) > DF_LIMIT_HOST)
            return df_fail(err, DF_ERR_USER,
                           "server.tls.names: \"%.64s\" is not a host name or address", name);
    }
    return 0;
}

static int check_tls(const struct df_config *c, struct df_err *err)
{
    bool files = c->tls_cert_file || c->tls_key_file;
    if (files && !(c->tls_cert_file && c->tls_key_file))
        return df_fail(err, DF_ERR_USER,
                       "server.tls: certFile and keyFile are set together or not at all");
    if (files && c->tls_names.len)
        return df_fail(err, DF_ERR_USER,
                       "server.tls: names are for a certificate that dayfly makes itself; leave "
                       "them out with certFile");
    if (c->tls_secret && !c->tls_names.len)
        return df_fail(
            err, DF_ERR_USER,
            "server.tls.secret: keeps an authority of dayfly's own; set server.tls.names");
    if (c->tls_ca_file && !files)
        return df_fail(err, DF_ERR_USER, "server.tls.caFile: is of use with certFile only");
    if (files && !c->advertise_url)
        return df_fail(err, DF_ERR_USER,
                       "advertiseUrl: is required with server.tls.certFile: runners and clients "
                       "check the certificate against its host");
    if (df_config_has_tls(c) && c->advertise_url && !df_starts_with(c->advertise_url, "https://"))
        return df_fail(err, DF_ERR_USER,
                       "advertiseUrl: \"%.100s\" must be an https:// URL, because "
                       "the server speaks TLS",
                       c->advertise_url);
    return check_tls_names(c, err);
}

static int check_claim(const struct df_config *c, struct df_err *err)
{
    if (c->claim_jwks_url && !c->claim_issuer)
        return df_fail(err, DF_ERR_USER, "claim.issuer: is required with claim.jwksUrl");
    if (c->claim_ca_file && !c->claim_jwks_url)
        return df_fail(err, DF_ERR_USER, "claim.caFile: is of use with claim.jwksUrl only");
    return 0;
}

static int check_kubernetes(const struct df_config *c, struct df_err *err)
{
    if (c->kube_step_space && !df_is_dns_label(c->kube_step_space))
        return df_fail(
            err, DF_ERR_USER,
            "kubernetes.stepNamespace: \"%.64s\" is not a name of a namespace: use at most "
            "63 lower-case letters, digits and \"-\"",
            c->kube_step_space);
    if (!df_is_dns_subdomain(c->workflow_account))
        return df_fail(
            err, DF_ERR_USER,
            "workflows.serviceAccount: \"%.64s\" is not a name of a service account: use "
            "lower-case letters, digits, \"-\" and \".\"",
            c->workflow_account);
    if (c->kube_ahead_s && !c->kube_apply_ahead)
        return df_fail(err, DF_ERR_USER,
                       "kubernetes.applyAheadFor: is of use with kubernetes.applyAhead: true only");
    if (c->elects && (!c->runs_pods || c->runs_here))
        return df_fail(err, DF_ERR_USER, "election.enabled: is of use with the engine job only");
    return c->kube_placement ? df_placement_check(c->kube_placement, "kubernetes.placement", err)
                             : 0;
}

/* http:// is accepted, because in a cluster the State Service usually has no TLS. A token, however,
 * is sent only over TLS or to this machine. */
static int check_state_service(const struct df_config *c, struct df_err *err)
{
    const char *url = c->state_service_url, *protocol = c->state_service_protocol;
    bool is_https = url && df_starts_with(url, "https://");
    if (!df_streq(protocol, "events") && !df_streq(protocol, "put"))
        return df_fail(err, DF_ERR_USER,
                       "stateService.protocol: \"%.64s\" is neither events nor put", protocol);
    if (url && !is_https && !df_starts_with(url, "http://"))
        return df_fail(err, DF_ERR_USER,
                       "stateService.url: \"%.100s\" must be an http:// or https:// URL", url);
    if (url && !is_https && c->state_service_token_file && !df_url_is_safe(url))
        return df_fail(err, DF_ERR_USER,
                       "stateService.url: \"%.100s\" must be an https:// URL, because a token is "
                       "sent there",
                       url);
    return 0;
}

/* The names go into the audit trail, which has room for DF_LIMIT_CALLER characters. */
static int check_accounts(const struct df_config *c, struct df_err *err)
{
    for (const cJSON *a = c->accounts ? c->accounts->child : NULL; a; a = a->next) {
        enum df_role role;
        const char *slash = strchr(a->string, '/');
        if (!slash || slash == a->string || !slash[1] || strlen(a->string) > DF_LIMIT_CALLER)
            return df_fail(err, DF_ERR_USER,
                           "auth.serviceAccounts: \"%.64s\" must be namespace/name, at most %d "
                           "characters",
                           a->string, DF_LIMIT_CALLER);
        if (df_role_parse(cJSON_IsString(a) ? a->valuestring : "", &role, err) < 0)
            return df_err_wrap(err, "auth.serviceAccounts: %s", a->string);
    }
    return 0;
}

static int check_oidc(const struct df_config *c, struct df_err *err)
{
    const char *issuer = c->oidc.issuer;
    bool accounts_only = df_grants_name_accounts(c->grants) && !df_grants_name_people(c->grants);
    if (!issuer && (!c->grants || accounts_only))
        return 0;
    if (!issuer || !c->oidc.audience || !c->grants)
        return df_fail(err, DF_ERR_USER,
                       "%s: is required: people sign in with auth.oidc.issuer, the URL of their "
                       "OpenID provider, auth.oidc.audience, the client id that tokens are for, "
                       "and auth.grants, who may do what",
                       !issuer             ? "auth.oidc.issuer"
                       : !c->oidc.audience ? "auth.oidc.audience"
                                           : "auth.grants");
    return df_openid_check_issuer("auth.oidc.issuer", issuer, err);
}

bool df_config_has_callers(const struct df_config *c)
{
    return c->token_file || c->accounts || c->grants;
}

static int fill_approval(struct df_config *c, struct df_err *err)
{
    struct df_err why = {0};
    if (df_role_parse(c->approval_skips, &c->approval.skips, &why) < 0 ||
        c->approval.skips < DF_ROLE_WRITE)
        return df_fail(err, DF_ERR_USER,
                       "approval.autoApprove: \"%.64s\" is neither write nor admin",
                       c->approval_skips);
    return 0;
}

static int check_loopback(const struct df_config *c, struct df_err *err)
{
    if (df_streq(c->auth_loopback, "token") || df_streq(c->auth_loopback, "open"))
        return 0;
    return df_fail(err, DF_ERR_USER, "auth.loopback: \"%.64s\" is neither token nor open",
                   c->auth_loopback);
}

static int check_creator(const struct df_config *c, struct df_err *err)
{
    if (df_preset_verbs(c->creator))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "auth.creator: \"%.64s\" is not a preset: read, plan, write, approver or admin",
                   c->creator);
}

static int check_retention(const struct df_config *c, struct df_err *err)
{
    return !c->retain_audit_s || c->retain_audit_s >= DF_AUDIT_LEAST_SECONDS
               ? 0
               : df_fail(
                     err, DF_ERR_USER,
                     "retention.audit: must be 0s (for ever) or at least %dh: who did what must "
                     "stay for a week",
                     DF_AUDIT_LEAST_SECONDS / 3600);
}

/* A pod reads the directory through this service, and tofu reads mirrors over TLS only. */
static int check_mirror(const struct df_config *c, struct df_err *err)
{
    if (!c->mirror_directory)
        return c->mirror_registries.len
                   ? df_fail(err, DF_ERR_USER,
                             "providers.mirror.registries: needs providers.mirror.directory, where "
                             "what they have is kept")
                   : 0;
    if (c->mirror_registries.len && !df_config_has_tls(c))
        return df_fail(err, DF_ERR_USER,
                       "providers.mirror.registries: needs server.tls, because tofu and terraform "
                       "take providers over https only");
    if (c->network_mirror || c->filesystem_mirror || c->oci_mirror)
        return df_fail(err, DF_ERR_USER,
                       "providers.mirror.directory: leave it out with providers.filesystemMirror, "
                       "providers.networkMirror and providers.ociMirror: steps get one mirror");
    if (c->runs_pods && !df_config_has_tls(c))
        return df_fail(err, DF_ERR_USER,
                       "providers.mirror.directory: needs server.tls, because tofu and terraform "
                       "take providers over https only");
    return 0;
}

static int check_awx(const struct df_config *c, struct df_err *err)
{
    const struct {
        const char *key, *value;
    } needed[] = {{"ansible.apiUrl", c->awx.url},
                  {"ansible.tokenSecretRef.name", c->awx.secret},
                  {"ansible.tokenSecretRef.key", c->awx.secret_key}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(needed); i++) {
        if (c->asks_awx && df_str_empty(needed[i].value))
            return df_fail(err, DF_ERR_USER, "%s: is required for the engine ansible",
                           needed[i].key);
    }
    return 0;
}

static int check_whole(const struct df_config *c, struct df_err *err)
{
    bool loopback = false;
    if (check_listen(c->listen, &loopback, err) < 0 || check_loopback(c, err) < 0 ||
        check_url("tools.index.opentofu", c->tool_index_opentofu, err) < 0 ||
        check_url("tools.index.terraform", c->tool_index_terraform, err) < 0 ||
        check_url("providers.networkMirror", c->network_mirror, err) < 0 ||
        check_url("claim.jwksUrl", c->claim_jwks_url, err) < 0 || check_tls(c, err) < 0 ||
        check_claim(c, err) < 0 || check_accounts(c, err) < 0 || check_oidc(c, err) < 0 ||
        check_creator(c, err) < 0 || check_kubernetes(c, err) < 0 || check_awx(c, err) < 0 ||
        check_mirror(c, err) < 0 || check_retention(c, err) < 0 ||
        check_state_service(c, err) < 0 || df_classes_check(c->classes, err) < 0 ||
        df_workspaces_check(c->workspaces, c->classes, err) < 0)
        return -1;
    if (!loopback && !df_config_has_callers(c))
        return df_fail(
            err, DF_ERR_USER,
            "auth.tokenFile, auth.serviceAccounts or auth.grants: is required, because listen (%s) "
            "is "
            "not a loopback address; `dayfly token-file create --name NAME --role admin "
            "--token-file "
            "FILE` makes such a file",
            c->listen);
    return 0;
}

/* The only place that decides which store is opened. */
static int fill_store(struct df_config *c, struct df_err *err)
{
    c->in_cluster = df_streq(c->store, "kubernetes");
    if (!c->in_cluster && !df_streq(c->store, "sqlite"))
        return df_fail(err, DF_ERR_USER, "store: \"%.64s\" is neither sqlite nor kubernetes",
                       c->store);
    return 0;
}

/* The location is shown in logs and kept in backups. What a query says is not: it may be a
 * signature that opens the container. */
static int check_location(const char *location, struct df_err *err)
{
    size_t n = strcspn(location, "?#");
    if (location[n])
        return df_fail(err, DF_ERR_USER,
                       "blobs.location: \"%.*s\" has a query behind it, and a location has none: a "
                       "shared access signature is the variable AZURE_STORAGE_SAS_TOKEN",
                       (int)(n < 100 ? n : 100), location);
    if (df_starts_with(location, "s3://") || df_starts_with(location, "gs://") ||
        df_starts_with(location, "azblob://"))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "blobs.location: \"%.100s\" must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or "
                   "azblob://ACCOUNT/CONTAINER/PREFIX; the prefix may be left out",
                   location);
}

/* These would have no effect, and whoever set them believes that they have one. */
static int check_no_location(const struct df_config *c, struct df_err *err)
{
    const struct {
        const char *key, *words;
        bool is_set;
    } rows[] = {
        {"blobs.move", "the place to which states, plans and logs shall go", c->blob_move},
        {"blobs.takeOver", "the bucket that was another installation's", c->blob_take_over},
        {"blobs.keyFiles", "the bucket in which they seal everything", c->blob_key_files.len},
        {"blobs.keyCommand", "the bucket in which its keys seal everything",
         c->blob_key_command.len},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        if (rows[i].is_set)
            return df_fail(err, DF_ERR_USER,
                           "%s: is of use with blobs.location only: set that to %s, or leave this "
                           "out",
                           rows[i].key, rows[i].words);
    return 0;
}

/* The region is AWS's own variable, unless it is configured. */
static int fill_blobs(struct df_config *c, char *const *env, struct df_err *err)
{
    const char *region = get_env(env, "AWS_REGION");
    if ((c->blob_location ? check_location(c->blob_location, err) : check_no_location(c, err)) < 0)
        return -1;
    if (!c->s3_region)
        c->s3_region = strdup(df_str_empty(region) ? "us-east-1" : region);
    return c->s3_region ? 0 : df_fail_oom(err);
}

static int fail_unknown_engine(const char *key, const char *name, struct df_err *err)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_KIB);
    df_engine_names(&names, " nor ");
    return df_fail(err, DF_ERR_USER, "%s: \"%.64s\" is neither %s", key, name, df_buf_str(&names));
}

static int add_engine(struct df_config *c, struct df_strs *named, const char *key, const char *name,
                      struct df_err *err)
{
    const struct df_engine_kind *kind = df_engine_kind_of(name);
    if (!kind)
        return fail_unknown_engine(key, name, err);
    if (df_strs_has(named, name))
        return df_fail(err, DF_ERR_USER, "engines: \"%.64s\" is named twice", name);
    c->needs_cluster |= kind->needs_cluster;
    c->runs_here |= kind->runs_here;
    c->runs_pods |= kind->runs_pods;
    c->runs_pipelines |= kind->runs_pipelines;
    c->asks_awx |= kind->asks_awx;
    (void)df_strs_add(named, name);
    return df_strs_check(named, err);
}

/* Merges the keys engines and engine, which is the short form for one. The only place that decides
 * which engines are opened. */
static int fill_engines(struct df_config *c, struct df_err *err)
{
    const char *key = c->engine ? "engine" : "engines";
    DF_STRS struct df_strs named = {0};
    if (c->engine && c->engines.len)
        return df_fail(err, DF_ERR_USER, "engine and engines are both set: keep one of them");
    if (!c->engines.len)
        (void)df_strs_add(&c->engines, c->engine ? c->engine : df_engine_kinds[0].name);
    if (df_strs_check(&c->engines, err) < 0)
        return -1;
    for (size_t i = 0; i < c->engines.len; i++)
        if (add_engine(c, &named, key, c->engines.items[i], err) < 0)
            return -1;
    free(c->engine);
    c->engine = NULL;
    for (size_t i = 0; i < c->engines.len; i++)
        if (df_engine_kind_of(c->engines.items[i])->takes_runs)
            return df_check_alloc(c->engine = strdup(c->engines.items[i]), err);
    return df_fail(err, DF_ERR_USER, "%s: \"%s\" runs no plans and applies: add local or job", key,
                   c->engines.items[0]);
}

/* A service with tokens runs the modules of several people. */
static int fill_isolation(struct df_config *c, struct df_err *err)
{
    static const char *const modes[] = {"auto", "strict", "none"};
    if (!c->isolation)
        c->isolation = strdup(df_config_has_callers(c) ? "strict" : "auto");
    for (size_t i = 0; c->isolation && i < DF_ARRAY_SIZE(modes); i++)
        if (df_streq(c->isolation, modes[i]))
            return 0;
    return !c->isolation ? df_fail_oom(err)
                         : df_fail(err, DF_ERR_USER,
                                   "engine.local.isolation: \"%.64s\" is neither auto, strict nor "
                                   "none",
                                   c->isolation);
}

static bool is_same_list(const struct df_strs *a, const struct df_strs *b)
{
    for (size_t i = 0; a->len == b->len && i < a->len; i++)
        if (!df_streq(a->items[i], b->items[i]))
            return false;
    return a->len == b->len;
}

/* The default is meant for a shell of one's own: with it, the operator has named nothing for the
 * callers of a service. */
static int note_callers(struct df_config *c, struct df_err *err)
{
    struct df_config plain = {0};
    const struct df_key *k = df_key_find("caller.environment");
    int result = df_key_set(&plain, k, k->fallback, "/", err);
    c->caller_is_named = !is_same_list(&c->caller_environment, &plain.caller_environment);
    df_config_free(&plain);
    return result;
}

static int fill(struct df_config *c, const char *file, char *const *env,
                const struct df_strs *overrides, struct df_err *err)
{
    DF_FREE char *here = getcwd(NULL, 0);
    if (!here)
        return df_fail_errno(err, errno, "working directory");
    if (set_defaults(c, err) < 0 || (file && df_config_read_file(c, file, err) < 0) ||
        read_environment(c, env, here, err) < 0 || read_overrides(c, overrides, here, err) < 0 ||
        fill_directories(c, env, err) < 0 || fill_store(c, err) < 0 ||
        fill_blobs(c, env, err) < 0 || fill_engines(c, err) < 0 || fill_approval(c, err) < 0 ||
        fill_isolation(c, err) < 0 || note_callers(c, err) < 0 ||
        df_config_fill_terrakube(c, env, err) < 0)
        return -1;
    return check_whole(c, err);
}

/* A file that is absent or closed to us is a wrong configuration like one with a wrong key. */
static int config_is_wrong(struct df_err *err)
{
    if (err && (err->cls == DF_ERR_NOT_FOUND || err->cls == DF_ERR_DENIED))
        err->cls = DF_ERR_USER;
    return -1;
}

int df_config_load(const char *file, char *const *env, const struct df_strs *overrides,
                   struct df_config *ret, struct df_err *err)
{
    struct df_config c = {0};
    if (fill(&c, file, env, overrides, err) < 0) {
        df_config_free(&c);
        return config_is_wrong(err);
    }
    *ret = c;
    return 0;
}

void df_config_free(struct df_config *c)
{
    for (size_t i = 0; i < df_key_count; i++) {
        if (df_keys[i].type == DF_KEY_STRING || df_keys[i].type == DF_KEY_PATH)
            free(*(char **)df_key_member(c, &df_keys[i]));
        else if (df_keys[i].type == DF_KEY_PATHS || df_keys[i].type == DF_KEY_WORDS)
            df_strs_free(df_key_member(c, &df_keys[i]));
        else if (df_keys[i].type == DF_KEY_OBJECT)
            cJSON_Delete(*(cJSON **)df_key_member(c, &df_keys[i]));
    }
    *c = (struct df_config){0};
}
