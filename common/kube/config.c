#include "common/kube/config.h"

#include "common/base/fs.h"
#include "common/kube/kubeconfig.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

void df_kube_config_free(struct df_kube_config *c)
{
    char **all[] = {
        &c->source,     &c->server,          &c->name_space,       &c->ca_file,
        &c->ca_pem,     &c->tls_server_name, &c->proxy_url,        &c->token,
        &c->token_file, &c->cert_file,       &c->cert_pem,         &c->key_file,
        &c->key_pem,    &c->exec.command,    &c->exec.api_version, &c->exec.install_hint};
    for (size_t i = 0; i < DF_ARRAY_SIZE(all); i++)
        df_str_wipe(all[i]);
    df_strs_free(&c->exec.args);
    df_strs_wipe(&c->exec.env);
    *c = (struct df_kube_config){0};
}

static const char *env_value(const char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=' && (*env)[n + 1])
            return *env + n + 1;
    return NULL;
}

/* ---- in a pod ------------------------------------------------------------------------------- */

/* Returns the first line of a small file; NULL if it does not exist. */
static char *read_word(const char *path)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_KIB);
    if (df_fs_read(path, &b, NULL) < 0 || !b.len)
        return NULL;
    return strndup(b.data, strcspn(b.data, "\r\n"));
}

static int load_service_account(const char *directory, const char *host, const char *port,
                                struct df_kube_config *ret, struct df_err *err)
{
    /* In a URL an IPv6 address needs brackets. */
    const char *open = strchr(host, ':') ? "[" : "", *close = *open ? "]" : "";
    DF_FREE char *name_space = df_fs_join(directory, "namespace");
    ret->source = strdup("the pod's service account");
    ret->server = df_strf("https://%s%s%s:%s", open, host, close, port ? port : "443");
    ret->token_file = df_fs_join(directory, "token");
    ret->ca_file = df_fs_join(directory, "ca.crt");
    ret->name_space = name_space ? read_word(name_space) : NULL;
    if (!ret->name_space)
        ret->name_space = strdup("default");
    if (!name_space || !ret->source || !ret->server || !ret->token_file || !ret->ca_file ||
        !ret->name_space)
        return df_fail_oom(err);
    return 0;
}

/* ---- choosing the source --------------------------------------------------------------------- */

static int load_source(const struct df_kube_config_options *o, struct df_kube_config *c,
                       struct df_err *err)
{
    const char *const *env = o->env ? o->env : (const char *const *)environ;
    const char *kubeconfig = env_value(env, "KUBECONFIG"), *home = env_value(env, "HOME");
    if (o->kubeconfig)
        return df_kubeconfig_load(o->kubeconfig, true, o->context, c, err);
    if (kubeconfig)
        return df_kubeconfig_load(kubeconfig, false, o->context, c, err);
    DF_FREE char *at_home = home ? df_strf("%s/.kube/config", home) : NULL;
    if (home && !at_home)
        return df_fail_oom(err);
    if (at_home && df_fs_exists(at_home))
        return df_kubeconfig_load(at_home, true, o->context, c, err);
    const char *directory = o->service_account ? o->service_account : SERVICE_ACCOUNT;
    const char *host = env_value(env, "KUBERNETES_SERVICE_HOST");
    if (!host)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "no cluster is configured: KUBECONFIG is not set, %s does not exist, and "
                       "this is not a pod (KUBERNETES_SERVICE_HOST is not set)",
                       at_home ? at_home : "~/.kube/config");
    DF_FREE char *token = df_fs_join(directory, "token");
    if (!token)
        return df_fail_oom(err);
    if (!df_fs_exists(token))
        return df_fail(err, DF_ERR_USER,
                       "this pod has no service account token (%s); set "
                       "automountServiceAccountToken: true in its spec",
                       token);
    return load_service_account(directory, host, env_value(env, "KUBERNETES_SERVICE_PORT"), c, err);
}

int df_kube_config_load(const struct df_kube_config_options *o, struct df_kube_config *ret,
                        struct df_err *err)
{
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    if (load_source(o, &c, err) < 0)
        return -1;
    *ret = c;
    c = (struct df_kube_config){0};
    return 0;
}

/* ---- files named in the configuration -------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

int df_kube_read_secret(const char *path, size_t max, char **ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf b = DF_BUF_INIT(max);
    if (df_fs_read(path, &b, err) < 0)
        return -1;
    const char *from = df_buf_str(&b), *to = from + strlen(from);
    while (is_space(*from))
        from++;
    while (to > from && is_space(to[-1]))
        to--;
    if (to == from)
        return df_fail(err, DF_ERR_USER, "%s is empty", path);
    char *text = strndup(from, (size_t)(to - from));
    if (!text)
        return df_fail_oom(err);
    *ret = text;
    return 0;
}
