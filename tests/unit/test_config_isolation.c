/* What the configuration hides from steps of this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_words.h"
#include "spawner/config/keys.h"

/* The keys whose files and directories a step may see: who adds a key decides. */
static const char *const open_keys[] = {
    "server.tls.certFile",
    "server.tls.caFile",
    "claim.caFile",
    "auth.oidc.caFile",
    "ansible.caFile",
    "blobs.s3.caFile",
    "blobs.gs.caFile",
    "blobs.azblob.caFile",
    "runner.path",
    "stateService.caFile",
    "tools.directories",
    "tools.cacheDirectory",
    "tools.caFile",
    "providers.pluginCacheDirectory",
    "providers.filesystemMirror",
    "providers.mirror.directory",
    "providers.mirror.caFile",
};

static bool is_open(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(open_keys); i++)
        if (df_streq(open_keys[i], name))
            return true;
    return false;
}

static void each_key_with_a_path_is_a_secret_or_open(void **state)
{
    (void)state;
    for (size_t i = 0; i < df_key_count; i++) {
        const struct df_key *k = &df_keys[i];
        bool has_path = k->type == DF_KEY_PATH || k->type == DF_KEY_PATHS;
        if (k->is_secret && !has_path)
            fail_msg("%s is a secret without a path", k->name);
        if (has_path && k->is_secret == is_open(k->name))
            fail_msg("%s: is it a secret?", k->name);
    }
}

static const char *const settings[] = {
    "dataDirectory=/data",
    "advertiseUrl=https://x:8030",
    "server.tls.certFile=/tls/crt",
    "server.tls.keyFile=/tls/key",
    "auth.tokenFile=/tokens",
    "blobs.location=s3://bucket/prefix",
    "blobs.keyFiles=/keys/1:/keys/2",
    "engine.local.identityTokenFile=/identity",
    "kubernetes.kubeconfig=/kubeconfig",
    "stateService.url=https://x/",
    "stateService.tokenFile=/state-token",
    "providers.credentialsFile=/registries",
    "vault.sources={\"a\":{\"type\":\"files\",\"directory\":\"/mounted\",\"executors\":[]}}",
};
#define ALWAYS                                                                                     \
    "'/data','/tls/key','/tokens','/keys/1','/keys/2','/identity','/kubeconfig','/state-token',"   \
    "'/registries','/mounted','/h/.config/dayfly/logins.json'"

static cJSON *isolation_with(const char *mode, char **environment)
{
    DF_STRS struct df_strs overrides = {0};
    struct df_config c;
    struct df_err err = {0};
    cJSON *isolation = NULL;
    char **before = environ;
    for (size_t i = 0; i < DF_ARRAY_SIZE(settings); i++)
        assert_int_equal(df_strs_add(&overrides, settings[i]), 0);
    assert_int_equal(df_strs_addf(&overrides, "engine.local.isolation=%s", mode), 0);
    environ = environment;
    if (df_config_load(NULL, environment, &overrides, &c, &err) < 0 ||
        df_config_isolation(&c, &isolation, &err) < 0)
        fail_msg("%s", err.message);
    environ = before;
    df_config_free(&c);
    return isolation;
}

static void what_the_service_was_given_is_hidden(void **state)
{
    char *environment[] = {(char[]){"HOME=/h"},
                           (char[]){"KUBECONFIG=/kube/1:/kube/2"},
                           (char[]){"GOOGLE_APPLICATION_CREDENTIALS=/gcp"},
                           (char[]){"AWS_SHARED_CREDENTIALS_FILE=relative"},
                           (char[]){"AZURE_FEDERATED_TOKEN_FILE="},
                           NULL};
    (void)state;
    DF_JSON cJSON *automatic = isolation_with("auto", environment);
    assert_json(automatic, "{'mode': 'auto', 'hidden': [" ALWAYS "]}", "auto");
    DF_JSON cJSON *strict = isolation_with("strict", environment);
    assert_json(strict, "{'mode': 'strict', 'hidden': [" ALWAYS ",'/gcp','/kube/1','/kube/2']}",
                "strict");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_with_a_path_is_a_secret_or_open),
        cmocka_unit_test(what_the_service_was_given_is_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
