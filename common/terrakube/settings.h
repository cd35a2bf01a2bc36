/*
 * settings.h - what Terrakube's executor is told by its environment (TerrakubeRedisHostname,
 * TerraformStateType, ...), from either layout of its chart: all in one Secret, or split into a
 * Secret and a ConfigMap. Contract: section 4 of the executor's application.properties, 2.22 to
 * 2.34. Thread rule: read only once made.
 */
#ifndef DF_TERRAKUBE_SETTINGS_H
#define DF_TERRAKUBE_SETTINGS_H

#include "common/base/strs.h"

enum df_terrakube_state {
    DF_TERRAKUBE_STATE_LOCAL, /* LocalTerraformStateImpl */
    DF_TERRAKUBE_STATE_AWS,
    DF_TERRAKUBE_STATE_AZURE,
    DF_TERRAKUBE_STATE_GCP,
    DF_TERRAKUBE_STATE_API /* ApiTerraformStateImpl: the http backend of the API, since 2.34 */
};

/* All strings owned; NULL: not given, or empty, or Spring's literal "${...}". */
struct df_terrakube_settings {
    char *api_url;         /* AzBuilderApiUrl: of the JSON:API, log and context */
    char *public_url;      /* TerrakubeApiUrl: of links and ~/.terraformrc */
    char *internal_secret; /* InternalSecret, base64 */
    char *registry_domain; /* TerrakubeRegistryDomain */
    char *terraform_releases_url,
        *tofu_releases_url; /* CustomTerraformReleasesUrl, CustomTofuReleasesUrl */
    char *tools_repository, *tools_branch;
    enum df_terrakube_state state;
    struct {
        char *access_key, *secret_key, *bucket, *region, *endpoint;
        bool include_keys, role_auth, use_lockfile;
    } aws;
    struct {
        char *resource_group, *account, *container, *access_key;
        char *endpoint; /* AzureEndpoint, of the Blob service: ours, not in Terrakube */
    } azure;
    struct {
        char *credentials; /* JSON, decoded */
        char *bucket, *project;
        char *endpoint; /* GcpEndpoint: ours, not in Terrakube */
    } gcp;
    struct {
        char *host, *user, *password;
        char *ca_pem; /* the truststore's, else as below */
        int port;
        bool tls;
        int64_t timeout_ms;
        struct df_strs cluster_nodes, sentinels; /* "host:port" */
        int max_redirects;
        char *sentinel_primary, *sentinel_user, *sentinel_password;
    } redis;
    /* What HTTPS is checked with, PEM: the system's bundle and the authorities below
     * SERVICE_BINDING_ROOT. NULL: there are none, the system's own are enough. */
    char *ca_pem;
    char *home;         /* HOME: below it LocalTerraformStateImpl keeps its files */
    bool is_pod_of_api; /* EphemeralFlagBatch: Terrakube's API made this pod */
    bool log_via_api;   /* LogViaApi: then redis.host may be NULL, and nothing is sent there */
    bool colour;        /* TerrakubeEnableColorOutput, default true */
    bool acknowledges;  /* not ExecutorFlagDisableAcknowledge */
    bool is_secured;    /* TerrakubeEnableSecurity */
    /* DAYFLY_TERRAKUBE_HTTP_CREDENTIALS, ours: an operator lets credentials of sources go over
     * http */
    bool http_credentials;
};

/* env: "NAME=VALUE" of the container. USER, reason SettingMissing or SettingInvalid: names the
 * variable, the object of Terrakube's chart that has it, and how it gets from there to this
 * environment: a pod of the API, or the service. */
int df_terrakube_settings_read(const struct df_strs *env, struct df_terrakube_settings *ret,
                               struct df_err *err) DF_MUST_CHECK;
void df_terrakube_settings_free(struct df_terrakube_settings *s); /* wipes secrets */
/* Do they name a Redis, in one of its three forms? */
bool df_terrakube_has_redis(const struct df_terrakube_settings *s);

/* Does the reader take this variable, and from anywhere (not HOME, which is the container's
 * own)? */
bool df_terrakube_is_setting(const char *name);

/* Is it one of the platform's own: a secret, or what leads to its Redis or its storage? Code of a
 * user must not get it. The addresses of the API, which scripts use, are none. */
bool df_terrakube_is_platform_variable(const char *name);

#endif
