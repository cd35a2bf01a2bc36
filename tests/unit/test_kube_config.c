#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/kube/credentials.h"
#include "tests/unit/scratch.h"

static char *write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
    char *path = df_fs_join(dir, name);
    struct df_err err = {0};
    if (df_fs_write(path, text, strlen(text), mode, &err) < 0)
        fail_msg("%s", err.message);
    return path;
}

static int load(const char *kubeconfig, const char *context, struct df_kube_config *ret,
                struct df_err *err)
{
    struct df_kube_config_options o = {.kubeconfig = kubeconfig, .context = context};
    return df_kube_config_load(&o, ret, err);
}

static void must_load(const char *kubeconfig, const char *context, struct df_kube_config *ret)
{
    struct df_err err = {0};
    if (load(kubeconfig, context, ret, &err) < 0)
        fail_msg("%s", err.message);
}

/* "-----BEGIN X-----" in base64. */
#define PEM "LS0tLS1CRUdJTiBYLS0tLS0="

#define CONFIG                                                                                     \
    "apiVersion: v1\n"                                                                             \
    "kind: Config\n"                                                                               \
    "preferences: {}\n"                                                                            \
    "current-context: dev\n"                                                                       \
    "clusters:\n"                                                                                  \
    "- name: one\n"                                                                                \
    "  cluster: {server: 'https://one:6443/', certificate-authority: ca.crt, tls-server-name: "    \
    "api.one, proxy-url: 'http://proxy:3128'}\n"                                                   \
    "- name: two\n"                                                                                \
    "  cluster: {server: 'https://two', certificate-authority-data: " PEM "}\n"                    \
    "- name: open\n"                                                                               \
    "  cluster: {server: 'https://open', insecure-skip-tls-verify: true}\n"                        \
    "users:\n"                                                                                     \
    "- name: alice\n"                                                                              \
    "  user: {token: t0ken, tokenFile: /var/token}\n"                                              \
    "- name: bob\n"                                                                                \
    "  user: {client-certificate-data: " PEM ", client-key: keys/bob.key}\n"                       \
    "- name: eve\n"                                                                                \
    "  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, args: "      \
    "[get, token], env: [{name: A, value: b}], installHint: try it, provideClusterInfo: true, "    \
    "interactiveMode: IfAvailable}}\n"                                                             \
    "contexts:\n"                                                                                  \
    "- name: dev\n"                                                                                \
    "  context: {cluster: one, user: alice, namespace: build}\n"                                   \
    "- name: prod\n"                                                                               \
    "  context: {cluster: two, user: bob}\n"                                                       \
    "- name: plug\n"                                                                               \
    "  context: {cluster: open, user: eve}\n"                                                      \
    "- name: nobody\n"                                                                             \
    "  context: {cluster: open}\n"

static void a_context_brings_cluster_user_and_namespace(void **state)
{
    const char *dir = *state;
    DF_FREE char *path = write_file(dir, "config", CONFIG, 0600);
    DF_FREE char *ca = df_fs_join(dir, "ca.crt");
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    must_load(path, NULL, &c);
    assert_string_equal(c.server, "https://one:6443");
    assert_string_equal(c.name_space, "build");
    assert_string_equal(c.ca_file, ca);
    assert_string_equal(c.tls_server_name, "api.one");
    assert_string_equal(c.proxy_url, "http://proxy:3128");
    assert_string_equal(c.token, "t0ken");
    assert_string_equal(c.token_file, "/var/token");
    assert_false(c.insecure);
    assert_null(c.cert_pem);
    assert_null(c.exec.command);
    assert_non_null(strstr(c.source, "(context \"dev\")"));
}

static void another_context_can_be_chosen(void **state)
{
    const char *dir = *state;
    DF_FREE char *path = write_file(dir, "config", CONFIG, 0600);
    DF_FREE char *key = df_fs_join(dir, "keys/bob.key");
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    must_load(path, "prod", &c);
    assert_string_equal(c.server, "https://two");
    assert_string_equal(c.name_space, "default");
    assert_string_equal(c.ca_pem, "-----BEGIN X-----");
    assert_string_equal(c.cert_pem, "-----BEGIN X-----");
    assert_string_equal(c.key_file, key);
    assert_null(c.token);
    df_kube_config_free(&c);
    must_load(path, "nobody", &c);
    assert_true(c.insecure);
    assert_null(c.token);
}

static void a_plug_in_is_taken_with_all_it_needs(void **state)
{
    const char *dir = *state;
    DF_FREE char *path = write_file(dir, "config", CONFIG, 0600);
    DF_FREE char *command = df_fs_join(dir, "bin/login");
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    must_load(path, "plug", &c);
    assert_string_equal(c.exec.command, command);
    assert_int_equal(c.exec.args.len, 2);
    assert_string_equal(c.exec.args.items[1], "token");
    assert_string_equal(df_strs_get_env(&c.exec.env, "A"), "b");
    assert_string_equal(c.exec.install_hint, "try it");
    assert_true(c.exec.provide_cluster_info);
}

static void of_several_files_the_first_that_names_a_thing_counts_whole(void **state)
{
    const char *dir = *state;
    DF_FREE char *sub = df_fs_join(dir, "sub");
    assert_int_equal(mkdir(sub, 0700), 0);
    DF_FREE char *first =
        write_file(dir, "first",
                   "users: [{name: alice, user: {client-certificate: a.crt, client-key: a.key}}]\n"
                   "current-context: ''\n",
                   0600);
    DF_FREE char *second = write_file(
        sub, "second",
        "current-context: dev\n"
        "users: [{name: alice, user: {token: never}}]\n"
        "clusters: [{name: one, cluster: {server: 'https://second', certificate-authority: c}}]\n"
        "contexts: [{name: dev, context: {cluster: one, user: alice}}]\n",
        0600);
    DF_FREE char *third = write_file(dir, "third", CONFIG, 0600);
    DF_FREE char *empty = write_file(dir, "empty", "", 0600);
    DF_FREE char *variable =
        df_strf("KUBECONFIG=%s:%s/missing::%s:%s:%s", first, dir, second, empty, third);
    DF_FREE char *cert = df_fs_join(dir, "a.crt"), *ca = df_fs_join(sub, "c");
    const char *env[] = {variable, NULL};
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    struct df_err err = {0};
    struct df_kube_config_options o = {.env = env};
    if (df_kube_config_load(&o, &c, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(c.server, "https://second");
    assert_string_equal(c.ca_file, ca);
    assert_string_equal(c.cert_file, cert);
    assert_null(c.token);
    /* What only the third file has is there, too. */
    o.context = "prod";
    df_kube_config_free(&c);
    if (df_kube_config_load(&o, &c, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(c.server, "https://two");
}

#define ONE(cluster, user)                                                                         \
    "current-context: c\n"                                                                         \
    "contexts: [{name: c, context: {cluster: k, user: u}}]\n"                                      \
    "clusters: [{name: k, cluster: " cluster "}]\n"                                                \
    "users: [{name: u, user: " user "}]\n"
#define GOOD "{server: 'https://x'}"

static void a_bad_kubeconfig_is_refused_by_file_key_and_way_out(void **state)
{
    static const struct {
        const char *text, *message; /* behind "kubeconfig <path>: " */
    } cases[] = {
        {"[]", "must be a mapping with clusters, users and contexts"},
        {"a: [", "bad YAML at 2:1: "},
        {"{}", "no current-context; set it with `kubectl config use-context NAME` (there are: "
               "none)"},
        {"contexts: [{name: a}, {name: b}]", "no current-context; set it with `kubectl config "
                                             "use-context NAME` (there are: a, b)"},
        {"current-context: x\ncontexts: [{name: a}]", "there is no context \"x\" (there are: a)"},
        {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]",
         "context \"c\": \"cluster\" must name one of the clusters"},
        {"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: "
         "[{name: k, cluster: " GOOD "}]",
         "context \"c\": \"user\" must name one of the users"},
        {ONE("{}", "{}"), "cluster \"k\": \"server\" is missing: the API server's URL"},
        {ONE("7", "{}"), "cluster \"k\": \"cluster\" must be a mapping"},
        {ONE("{server: 'one:6443'}", "{}"), "cluster \"k\": \"server\" must begin with https://"},
        {ONE("{server: 7}", "{}"), "cluster \"k\": \"server\" must be a string; put it in quotes"},
        {ONE("{server: 'https://x', certificate-authority-data: '%%%'}", "{}"),
         "cluster \"k\": \"certificate-authority-data\" must be base64 of a PEM text"},
        {ONE("{server: 'https://x', certificate-authority-data: aGVsbG8=}", "{}"),
         "cluster \"k\": \"certificate-authority-data\" must be base64 of a PEM text"},
        {ONE("{server: 'https://x', insecure-skip-tls-verify: 'yes'}", "{}"),
         "cluster \"k\": \"insecure-skip-tls-verify\" must be true or false"},
        {ONE("{server: 'https://x', insecure-skip-tls-verify: true, certificate-authority: c}",
             "{}"),
         "cluster \"k\": \"insecure-skip-tls-verify\" contradicts the certificate authority"},
        {ONE(GOOD, "{token: 12345}"), "user \"u\": \"token\" must be a string; put it in quotes"},
        {ONE(GOOD, "{username: a, password: hunter2}"),
         "user \"u\": \"username\" is basic auth, which Kubernetes gave up in 1.19"},
        {ONE(GOOD, "{auth-provider: {name: gcp}}"),
         "user \"u\": \"auth-provider\" was taken out of Kubernetes in 1.26"},
        {ONE(GOOD, "{token: t, as: root}"), "user \"u\": \"as\" is impersonation"},
        {ONE(GOOD, "{client-certificate: c}"),
         "user \"u\": \"client-key\" is missing beside its counterpart"},
        {ONE(GOOD, "{client-key-data: " PEM "}"),
         "user \"u\": \"client-certificate\" is missing beside its counterpart"},
        {ONE(GOOD, "{exec: {apiVersion: client.authentication.k8s.io/v1}}"),
         "user \"u\": \"exec.command\" is missing"},
        {ONE(GOOD, "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}"),
         "user \"u\": \"exec.apiVersion\" must be client.authentication.k8s.io/v1 or v1beta1"},
        {ONE(GOOD, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
                   "interactiveMode: Always}}"),
         "user \"u\": \"exec.interactiveMode\" is Always, but nobody is there to answer"},
        {ONE(GOOD, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: [1]}}"),
         "user \"u\": \"exec.args\" must be a list of strings"},
        {ONE(GOOD, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [a]}}"),
         "user \"u\": \"exec.env\" must be a list of {name, value}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *path = write_file(*state, "config", cases[i].text, 0600);
        DF_FREE char *start = df_strf("kubeconfig %s: %s", path, cases[i].message);
        DF_KUBE_CONFIG struct df_kube_config c = {0};
        struct df_err err = {0};
        assert_int_equal(load(path, NULL, &c, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!df_starts_with(err.message, start))
            fail_msg("%s\ninstead of\n%s", err.message, start);
        assert_null(strstr(err.message, "hunter2"));
    }
}

static void a_kubeconfig_over_the_cap_is_refused(void **state)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_KUBECONFIG);
    while (text.len <= DF_LIMIT_KUBECONFIG)
        (void)df_buf_adds(&text, "# filler\n");
    DF_FREE char *path = write_file(*state, "config", df_buf_str(&text), 0600);
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    struct df_err err = {0};
    assert_int_equal(load(path, NULL, &c, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void more_files_than_the_cap_are_refused(void **state)
{
    DF_FREE char *path = write_file(*state, "config", CONFIG, 0600);
    DF_BUF struct df_buf variable = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&variable, "KUBECONFIG=");
    for (int i = 0; i <= DF_LIMIT_KUBECONFIG_FILES; i++)
        (void)df_buf_addf(&variable, "%s:", path);
    const char *env[] = {variable.data, NULL};
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    struct df_err err = {0};
    struct df_kube_config_options o = {.env = env};
    assert_int_equal(df_kube_config_load(&o, &c, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

/* ---- where it is looked for -------------------------------------------------------------------
 */

static void a_pod_uses_its_service_account(void **state)
{
    const char *dir = *state;
    DF_FREE char *token = write_file(dir, "token", "t", 0600);
    DF_FREE char *name_space = write_file(dir, "namespace", "flights\n", 0600);
    DF_FREE char *ca = df_fs_join(dir, "ca.crt");
    static const struct {
        const char *host, *port, *server;
    } cases[] = {
        {"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=6443",
         "https://10.96.0.1:6443"},
        {"KUBERNETES_SERVICE_HOST=fd00::1", "X=", "https://[fd00::1]:443"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const char *env[] = {"HOME=/nonexistent", cases[i].host, cases[i].port, NULL};
        struct df_kube_config_options o = {.env = env, .service_account = dir};
        DF_KUBE_CONFIG struct df_kube_config c = {0};
        struct df_err err = {0};
        if (df_kube_config_load(&o, &c, &err) < 0)
            fail_msg("%s", err.message);
        assert_string_equal(c.server, cases[i].server);
        assert_string_equal(c.name_space, "flights");
        assert_string_equal(c.token_file, token);
        assert_string_equal(c.ca_file, ca);
    }
}

static void a_pod_without_a_token_is_told_what_to_set(void **state)
{
    const char *env[] = {"KUBERNETES_SERVICE_HOST=10.96.0.1", NULL};
    struct df_kube_config_options o = {.env = env, .service_account = *state};
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    struct df_err err = {0};
    assert_int_equal(df_kube_config_load(&o, &c, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "automountServiceAccountToken: true"));
}

static void without_any_cluster_the_ways_to_one_are_named(void **state)
{
    (void)state;
    const char *env[] = {"HOME=/nonexistent", "KUBECONFIG=", NULL};
    struct df_kube_config_options o = {.env = env};
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    struct df_err err = {0};
    assert_int_equal(df_kube_config_load(&o, &c, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_string_equal(err.message,
                        "no cluster is configured: KUBECONFIG is not set, "
                        "/nonexistent/.kube/config does not exist, and this is not a pod "
                        "(KUBERNETES_SERVICE_HOST is not set)");
}

/* ---- exec plug-ins ----------------------------------------------------------------------------
 */

struct plug {
    struct df_kube_config config;
    struct df_kube_credentials *credentials;
};

static void plug_open(struct plug *p, const char *dir, const char *script)
{
    DF_FREE char *body = df_strf("#!/bin/sh\ncd '%s'\necho run >>runs\n%s\n", dir, script);
    *p = (struct plug){0};
    p->config.source = strdup("a test");
    p->config.server = strdup("https://x");
    p->config.ca_pem = strdup("PEM");
    p->config.exec.command = write_file(dir, "plug-in", body, 0700);
    p->config.exec.api_version = strdup("client.authentication.k8s.io/v1");
    p->config.exec.install_hint = strdup("get it there");
    p->config.exec.provide_cluster_info = true;
    (void)df_strs_add(&p->config.exec.args, "an arg");
    (void)df_strs_add(&p->config.exec.env, "A=b");
    assert_int_equal(df_kube_credentials_new(&p->config, &p->credentials, NULL), 0);
}

static void plug_close(struct plug *p)
{
    df_kube_credentials_free(p->credentials);
    df_kube_config_free(&p->config);
}

static size_t runs(const char *dir)
{
    DF_FREE char *path = df_fs_join(dir, "runs");
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    return b.len / strlen("run\n");
}

#define ANSWER(status)                                                                             \
    "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","       \
    "\"status\":" status "}'"

static void a_plug_in_is_told_of_the_cluster_and_gives_a_token(void **state)
{
    const char *dir = *state;
    struct plug p;
    plug_open(&p, dir,
              "printf '%s|%s|%s' \"$1\" \"$A\" \"$KUBERNETES_EXEC_INFO\" >told\n" ANSWER(
                  "{\"token\":\"t0ken\"}"));
    DF_KUBE_CREDENTIAL struct df_kube_credential c = {0};
    struct df_err err = {0};
    if (df_kube_credentials_get(p.credentials, 0, NULL, &c, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(c.token, "t0ken");
    assert_null(c.cert_pem);
    DF_FREE char *path = df_fs_join(dir, "told");
    DF_BUF struct df_buf told = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &told, NULL), 0);
    assert_string_equal(df_buf_str(&told),
                        "an arg|b|{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                        "\"ExecCredential\",\"spec\":{\"interactive\":false,\"cluster\":{"
                        "\"server\":\"https://x\",\"certificate-authority-data\":\"UEVN\"}}}");
    plug_close(&p);
}

static void a_plug_in_runs_again_only_when_it_must(void **state)
{
    struct plug p;
    plug_open(&p, *state,
              ANSWER("{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\","
                     "\"expirationTimestamp\":\"2999-01-01T00:00:00Z\"}"));
    DF_KUBE_CREDENTIAL struct df_kube_credential a = {0}, b = {0}, c = {0};
    struct df_err err = {0};
    assert_int_equal(df_kube_credentials_get(p.credentials, 0, NULL, &a, &err), 0);
    assert_string_equal(a.cert_pem, "C");
    assert_string_equal(a.key_pem, "K");
    /* Who has them already gets no copy. */
    assert_int_equal(df_kube_credentials_get(p.credentials, a.generation, NULL, &b, &err), 0);
    assert_null(b.cert_pem);
    assert_int_equal(b.generation, a.generation);
    assert_int_equal(runs(*state), 1);
    df_kube_credentials_refused(p.credentials, a.generation);
    assert_int_equal(df_kube_credentials_get(p.credentials, a.generation, NULL, &c, &err), 0);
    assert_string_equal(c.cert_pem, "C");
    assert_int_equal(runs(*state), 2);
    /* Somebody else's refusal of the old ones is no news. */
    df_kube_credentials_refused(p.credentials, a.generation);
    df_kube_credential_free(&b);
    assert_int_equal(df_kube_credentials_get(p.credentials, c.generation, NULL, &b, &err), 0);
    assert_int_equal(runs(*state), 2);
    plug_close(&p);
}

static void what_a_plug_in_gave_is_renewed_when_it_expires(void **state)
{
    struct plug p;
    plug_open(&p, *state,
              ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"}"));
    DF_KUBE_CREDENTIAL struct df_kube_credential a = {0}, b = {0};
    assert_int_equal(df_kube_credentials_get(p.credentials, 0, NULL, &a, NULL), 0);
    assert_int_equal(df_kube_credentials_get(p.credentials, a.generation, NULL, &b, NULL), 0);
    assert_int_not_equal(a.generation, b.generation);
    assert_int_equal(runs(*state), 2);
    plug_close(&p);
}

static void a_plug_in_that_fails_is_told_by_name(void **state)
{
    static const struct {
        const char *script, *message;
        enum df_err_class cls;
    } cases[] = {
        {"echo 'log in first' >&2; exit 3", "it ended with exit code 3: log in first",
         DF_ERR_RETRY},
        {"echo hello", "its answer is not a JSON object", DF_ERR_RETRY},
        {"echo '{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}'",
         "it answers with apiVersion \"client.authentication.k8s.io/v1beta1\", the kubeconfig says "
         "client.authentication.k8s.io/v1",
         DF_ERR_USER},
        {ANSWER("{}"), "it gives neither token nor certificate", DF_ERR_USER},
        {ANSWER("{\"clientKeyData\":\"K\"}"), "it gives a certificate or a key without the other",
         DF_ERR_USER},
        {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}"), "status.expirationTimestamp",
         DF_ERR_USER},
        {"head -c 1100000 /dev/zero", "", DF_ERR_LIMIT},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct plug p;
        plug_open(&p, *state, cases[i].script);
        DF_FREE char *start = df_strf("credentials of a test: exec plug-in %s: %s",
                                      p.config.exec.command, cases[i].message);
        DF_KUBE_CREDENTIAL struct df_kube_credential c = {0};
        struct df_err err = {0};
        assert_int_equal(df_kube_credentials_get(p.credentials, 0, NULL, &c, &err), -1);
        if (!df_starts_with(err.message, start))
            fail_msg("%s\ninstead of\n%s", err.message, start);
        assert_int_equal(err.cls, cases[i].cls);
        plug_close(&p);
    }
}

static void a_plug_in_that_is_not_there_comes_with_its_hint(void **state)
{
    struct plug p;
    plug_open(&p, *state, "");
    free(p.config.exec.command);
    p.config.exec.command = strdup("/nonexistent/plug-in");
    DF_KUBE_CREDENTIAL struct df_kube_credential c = {0};
    struct df_err err = {0};
    assert_int_equal(df_kube_credentials_get(p.credentials, 0, NULL, &c, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "there is no such program: get it there"));
    plug_close(&p);
}

/* ---- files that rotate ------------------------------------------------------------------------
 */

static int64_t jump_us;

static int64_t jumping(void)
{
    return jump_us;
}

static int no_random(void *bytes, size_t n)
{
    memset(bytes, 0, n);
    return 0;
}

static void a_token_file_is_read_again_after_a_minute(void **state)
{
    static const struct df_clock clock = {jumping, jumping, no_random};
    jump_us = 1000000000;
    df_clock_install(&clock);
    DF_FREE char *path = write_file(*state, "token", "first\n", 0600);
    struct df_kube_config config = {.source = strdup("a test"), .token_file = strdup(path)};
    struct df_kube_credentials *credentials = NULL;
    assert_int_equal(df_kube_credentials_new(&config, &credentials, NULL), 0);
    DF_KUBE_CREDENTIAL struct df_kube_credential a = {0}, b = {0}, c = {0};
    assert_int_equal(df_kube_credentials_get(credentials, 0, NULL, &a, NULL), 0);
    assert_string_equal(a.token, "first");
    DF_FREE char *again = write_file(*state, "token", "second\n", 0600);
    jump_us += (DF_KUBE_CREDENTIAL_LIFE_MS - 1) * (int64_t)1000;
    assert_int_equal(df_kube_credentials_get(credentials, a.generation, NULL, &b, NULL), 0);
    assert_int_equal(b.generation, a.generation);
    jump_us += 1000;
    assert_int_equal(df_kube_credentials_get(credentials, a.generation, NULL, &c, NULL), 0);
    assert_string_equal(c.token, "second");
    df_kube_credentials_free(credentials);
    df_kube_config_free(&config);
    df_clock_install(NULL);
}

static void a_token_or_certificate_over_its_cap_is_refused(void **state)
{
    static const size_t caps[] = {DF_LIMIT_TOKEN, DF_LIMIT_KUBE_PEM};
    for (size_t i = 0; i < DF_ARRAY_SIZE(caps); i++) {
        DF_BUF struct df_buf text = DF_BUF_INIT(2 * DF_MIB);
        char *fill = df_buf_reserve(&text, caps[i] + 1);
        memset(fill, 'x', caps[i] + 1);
        text.len = caps[i] + 1;
        text.data[text.len] = '\0';
        DF_FREE char *path = write_file(*state, "secret", text.data, 0600);
        struct df_kube_config config = {.source = strdup("a test")};
        if (i == 0)
            config.token_file = strdup(path);
        else
            config.cert_file = strdup(path);
        struct df_kube_credentials *credentials = NULL;
        assert_int_equal(df_kube_credentials_new(&config, &credentials, NULL), 0);
        DF_KUBE_CREDENTIAL struct df_kube_credential c = {0};
        struct df_err err = {0};
        assert_int_equal(df_kube_credentials_get(credentials, 0, NULL, &c, &err), -1);
        assert_int_equal(err.cls, DF_ERR_LIMIT);
        assert_null(strstr(err.message, "xxx"));
        df_kube_credentials_free(credentials);
        df_kube_config_free(&config);
    }
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_context_brings_cluster_user_and_namespace),
        IN_SCRATCH(another_context_can_be_chosen),
        IN_SCRATCH(a_plug_in_is_taken_with_all_it_needs),
        IN_SCRATCH(of_several_files_the_first_that_names_a_thing_counts_whole),
        IN_SCRATCH(a_bad_kubeconfig_is_refused_by_file_key_and_way_out),
        IN_SCRATCH(a_kubeconfig_over_the_cap_is_refused),
        IN_SCRATCH(more_files_than_the_cap_are_refused),
        IN_SCRATCH(a_pod_uses_its_service_account),
        IN_SCRATCH(a_pod_without_a_token_is_told_what_to_set),
        cmocka_unit_test(without_any_cluster_the_ways_to_one_are_named),
        IN_SCRATCH(a_plug_in_is_told_of_the_cluster_and_gives_a_token),
        IN_SCRATCH(a_plug_in_runs_again_only_when_it_must),
        IN_SCRATCH(what_a_plug_in_gave_is_renewed_when_it_expires),
        IN_SCRATCH(a_plug_in_that_fails_is_told_by_name),
        IN_SCRATCH(a_plug_in_that_is_not_there_comes_with_its_hint),
        IN_SCRATCH(a_token_file_is_read_again_after_a_minute),
        IN_SCRATCH(a_token_or_certificate_over_its_cap_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
