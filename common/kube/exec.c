/*
 * Credentials from an exec plug-in of a kubeconfig: its input, its output, and how it is executed.
 * Read df_kube_exec_run() at the end.
 */
#include <errno.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "common/json/json.h"
#include "common/kube/credentials.h"
#include "common/process/process.h"

enum {
    EARLY_MS = 10000, /* credentials are renewed this long before they expire */
    TAIL = 400        /* bytes of a plug-in's stderr in a message */
};

/* ---- input ----------------------------------------------------------------------------------- */

static int add_ca(cJSON *cluster, const struct df_kube_config *c, struct df_err *err)
{
    if (!c->ca_pem && !c->ca_file)
        return 0;
    DF_FREE char *pem = NULL;
    if (!c->ca_pem && df_kube_read_secret(c->ca_file, DF_LIMIT_KUBE_PEM, &pem, err) < 0)
        return -1;
    const char *text = c->ca_pem ? c->ca_pem : pem;
    DF_BUF struct df_buf digits = DF_BUF_INIT(2 * DF_LIMIT_KUBE_PEM);
    if (df_base64_encode(text, strlen(text), false, &digits, err) < 0)
        return -1;
    return df_json_add_str(cluster, "certificate-authority-data", df_buf_str(&digits), err);
}

static int add_cluster(cJSON *spec, const struct df_kube_config *c, struct df_err *err)
{
    cJSON *cluster = df_json_object_at(spec, "cluster");
    if (df_json_put(cluster, err, DF_STR("server", c->server),
                    DF_STR("tls-server-name", c->tls_server_name),
                    DF_STR("proxy-url", c->proxy_url)) < 0)
        return -1;
    if (c->insecure && df_json_add_bool(cluster, "insecure-skip-tls-verify", true, err) < 0)
        return -1;
    return add_ca(cluster, c, err);
}

/* Builds KUBERNETES_EXEC_INFO. */
static int make_info(const struct df_kube_config *c, char **ret, struct df_err *err)
{
    DF_JSON cJSON *info = cJSON_CreateObject();
    if (df_json_put(info, err, DF_STR("apiVersion", c->exec.api_version),
                    DF_STR("kind", "ExecCredential")) < 0)
        return -1;
    cJSON *spec = df_json_object_at(info, "spec");
    if (df_json_add_bool(spec, "interactive", false, err) < 0)
        return -1;
    if (c->exec.provide_cluster_info && add_cluster(spec, c, err) < 0)
        return -1;
    return df_check_alloc(*ret = df_json_print(info), err);
}

static int make_environment(const struct df_kube_config *c, struct df_strs *env, struct df_err *err)
{
    DF_FREE char *info = NULL;
    if (make_info(c, &info, err) < 0)
        return -1;
    /* By contract plug-ins read the settings of their cloud from the environment. */
    for (char **e = environ; *e; e++)
        (void)df_strs_add(env, *e);
    for (size_t i = 0; i < c->exec.env.len; i++) {
        const char *item = c->exec.env.items[i], *equals = strchr(item, '=');
        DF_FREE char *name = strndup(item, (size_t)(equals - item));
        if (!name)
            return df_fail_oom(err);
        (void)df_strs_set_env(env, name, equals + 1);
    }
    (void)df_strs_set_env(env, "KUBERNETES_EXEC_INFO", info);
    return df_strs_check(env, err);
}

/* ---- output ---------------------------------------------------------------------------------- */

static int take_member(const cJSON *answer, const char *path, char **ret, struct df_err *err)
{
    const char *value = df_json_str(answer, path);
    *ret = df_str_empty(value) ? NULL : strdup(value);
    return !df_str_empty(value) && !*ret ? df_fail_oom(err) : 0;
}

static int take_expiry(const cJSON *answer, struct df_kube_credential *ret, struct df_err *err)
{
    const char *text = df_json_str(answer, "status.expirationTimestamp");
    int64_t until_us = 0;
    ret->until_ms = INT64_MAX;
    if (!text)
        return 0;
    if (df_time_parse(text, &until_us, err) < 0)
        return df_err_wrap(err, "status.expirationTimestamp");
    ret->until_ms = df_mono_ms() + (until_us - df_real_us()) / 1000 - EARLY_MS;
    return 0;
}

static int take_answer(const struct df_kube_exec *x, const struct df_buf *out,
                       struct df_kube_credential *ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *answer = NULL;
    if (df_json_parse(df_buf_str(out), out->len, &answer, NULL) < 0 || !cJSON_IsObject(answer))
        return df_fail(err, DF_ERR_RETRY, "its answer is not a JSON object");
    const char *version = df_json_str(answer, "apiVersion");
    if (!df_streq(version, x->api_version))
        return df_fail(err, DF_ERR_USER,
                       "it answers with apiVersion \"%s\", the kubeconfig says %s",
                       version ? version : "", x->api_version);
    if (take_expiry(answer, ret, err) < 0 ||
        take_member(answer, "status.token", &ret->token, err) < 0 ||
        take_member(answer, "status.clientCertificateData", &ret->cert_pem, err) < 0 ||
        take_member(answer, "status.clientKeyData", &ret->key_pem, err) < 0)
        return -1;
    if (!ret->cert_pem != !ret->key_pem)
        return df_fail(err, DF_ERR_USER, "it gives a certificate or a key without the other");
    if (!ret->token && !ret->cert_pem)
        return df_fail(err, DF_ERR_USER, "it gives neither token nor certificate");
    return 0;
}

/* ---- execution ------------------------------------------------------------------------------- */

static int run_plugin(const struct df_kube_config *c, const struct df_strs *env,
                      const volatile bool *stop, struct df_buf *out, struct df_err *err)
{
    DF_STRS struct df_strs argv = {0};
    (void)df_strs_add(&argv, c->exec.command);
    for (size_t i = 0; i < c->exec.args.len; i++)
        (void)df_strs_add(&argv, c->exec.args.items[i]);
    if (df_strs_check(&argv, err) < 0)
        return -1;
    struct df_process_options o =
        DF_PROCESS_OPTIONS((const char *const *)argv.items, (const char *const *)env->items);
    o.stop = stop;
    DF_BUF struct df_buf tail = DF_BUF_INIT(TAIL);
    int code = 0;
    if (df_process_run(&o, DF_TIMEOUT_KUBE_EXEC_MS, out, &tail, &code, err) < 0) {
        if (err && err->cls == DF_ERR_NOT_FOUND)
            return df_fail(err, DF_ERR_USER, "there is no such program%s%s",
                           c->exec.install_hint ? ": " : "",
                           c->exec.install_hint ? c->exec.install_hint : "");
        return -1;
    }
    if (code != 0)
        return df_fail(err, DF_ERR_RETRY, "it ended with exit code %d: %s", code,
                       df_buf_str(&tail));
    return 0;
}

int df_kube_exec_run(const struct df_kube_config *config, const volatile bool *stop,
                     struct df_kube_credential *ret, struct df_err *err)
{
    DF_STRS struct df_strs env = {0};
    DF_CLEANUP(df_buf_wipe) struct df_buf out = DF_BUF_INIT(DF_LIMIT_KUBE_CREDENTIAL);
    struct df_err why = {0};
    if (make_environment(config, &env, &why) == 0 &&
        run_plugin(config, &env, stop, &out, &why) == 0 &&
        take_answer(&config->exec, &out, ret, &why) == 0)
        return 0;
    return df_fail(err, why.cls, "exec plug-in %s: %s", config->exec.command, why.message);
}
