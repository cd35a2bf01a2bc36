/*
 * config.h - the service's configuration: defaults, then a YAML file, then the environment
 * (DAYFLY_*), then flags. A later source overrides the earlier ones.
 *
 * Unknown keys are errors that name the key and its line. Every string is owned by the struct.
 * docs/configuration.md lists the keys; `make docs` makes its table from that in keys.c. The
 * environment variable of `tools.cacheDirectory` is DAYFLY_TOOLS_CACHE_DIRECTORY. A relative path
 * in the file is relative to the file's directory; one in the environment or in a flag, to the
 * working directory.
 */
#ifndef DF_CONFIG_H
#define DF_CONFIG_H

#include "common/base/log.h"
#include "common/base/strs.h"
#include "common/json/json.h"
#include "spawner/model/allow_rule.h"
#include "spawner/model/approval.h"
#include "spawner/model/grant.h"

struct df_config {
    char *data_directory;     /* dataDirectory; default $XDG_STATE_HOME/dayfly (or
                                 ~/.local/state/dayfly) */
    char *listen;             /* listen; "127.0.0.1:8030" for serve; "127.0.0.1:0" embedded */
    char *advertise_url;      /* advertiseUrl: the URL for runners; default http://<listen> */
    char *livez_listen;       /* server.livez.listen: a second address, for /livez alone; or NULL */
    char *tls_cert_file;      /* server.tls.certFile, PEM chain; with tls_key_file */
    char *tls_key_file;       /* server.tls.keyFile */
    char *tls_ca_file;        /* server.tls.caFile: the CA that clients trust; NULL: the system's */
    struct df_strs tls_names; /* server.tls.names: TLS with a certificate by dayfly, for these */
    char *tls_secret;         /* server.tls.secret: the Secret where replicas share the authority */
    char *claim_issuer;       /* claim.issuer of pods' tokens; default: the one the cluster names */
    char *claim_jwks_url;     /* claim.jwksUrl; default: the cluster's API server */
    char *claim_ca_file;      /* claim.caFile, for claim.jwksUrl */
    char *token_file;         /* auth.tokenFile; if listen is not loopback, it or the last three */
    char *auth_loopback;      /* auth.loopback: without these "token" (local_token.h) or "open" */
    cJSON *accounts;          /* auth.serviceAccounts: {"namespace/name": role}; or NULL */
    struct df_openid oidc;    /* auth.oidc.* */
    cJSON *grants;            /* auth.grants, as model/grant.h says; or NULL */
    char *creator;            /* auth.creator: a preset, which who made an executor has on it */
    char *runner_path;        /* runner.path; default: beside this program, then PATH */
    char *store;              /* store; "sqlite" or "kubernetes" */
    struct df_strs engines;   /* engines: all that are opened; default "local" */
    char *engine;             /* engine: the only one; once loaded the first of engines, which new
                                 steps get */
    char *isolation;          /* engine.local.isolation: "auto", "strict" or "none"; default: strict
                                 for a service with tokens, else auto */
    char
        *identity_token_file; /* engine.local.identityTokenFile: the identity token (a JWT) that the
                                  integrations of steps of the engine local exchange; or NULL */
    /* Traits that one of engines has (model/engine_kinds.h). */
    bool needs_cluster, runs_here, runs_pods, runs_pipelines, asks_awx;
    bool in_cluster;    /* store is kubernetes: it has documents, secrets and blobs */
    bool blob_move;     /* blobs.move; false */
    bool s3_path_style; /* blobs.s3.pathStyle; false */
    bool gcs_anonymous; /* blobs.gs.anonymous; false */

    cJSON *secret_sources; /* vault.sources: {name: source} (model/secret_source.h); or NULL */

    char *blob_location;  /* blobs.location: "s3://bucket/prefix", "gs://..." or
                                      "azblob://account/container/prefix"; NULL: with the store */
    char *blob_take_over; /* blobs.takeOver: the installation whose place it was; or NULL */
    struct df_strs blob_key_files;   /* blobs.keyFiles: the first seals, all open */
    struct df_strs blob_key_command; /* blobs.keyCommand: program and arguments; prints keys */
    char *s3_region;                 /* blobs.s3.region; default: AWS_REGION, us-east-1 */
    char *s3_endpoint;               /* blobs.s3.endpoint; NULL: AWS's */
    char *s3_ca_file;                /* blobs.s3.caFile */
    char *gcs_endpoint;              /* blobs.gs.endpoint; NULL: Google\'s */
    char *gcs_ca_file;               /* blobs.gs.caFile */
    char *azblob_endpoint;           /* blobs.azblob.endpoint; NULL: Azure's */
    char *azblob_ca_file;            /* blobs.azblob.caFile */

    char *kube_config;      /* kubernetes.kubeconfig; default: KUBECONFIG, ~/.kube/config, the
                              pod's own account */
    char *kube_context;     /* kubernetes.context */
    char *kube_namespace;   /* kubernetes.namespace of the service; default: the configuration's */
    char *kube_step_space;  /* kubernetes.stepNamespace of the Jobs; NULL: the service's */
    char *kube_image;       /* kubernetes.image of the runner */
    char *workflow_account; /* workflows.serviceAccount: of those that name none */
    struct {                /* ansible.*: the AWX of the engine ansible */
        char *url;          /* apiURL */
        char *secret, *secret_key, *secret_namespace; /* tokenSecretRef; namespace NULL: that of
                                                         the service */
        int64_t organization;                         /* organizationID; 1 */
        char *ca_file;                                /* caFile: PEM; NULL: the system's */
        bool insecure;                                /* insecure: any certificate; false */
    } awx;
    char *kube_webhook;    /* kubernetes.webhook: the installation has the webhook and the policy of
                              this name, so that stamps are believed (model/stamp.h); or NULL */
    int64_t kube_ttl_s;    /* kubernetes.jobLife: how long ended Jobs are kept */
    cJSON *kube_placement; /* kubernetes.placement: of every step; or NULL */

    cJSON *allow[DF_ALLOW_ROLES][DF_ALLOW_LEVELS]; /* placement.allow.*; NULL: the defaults */
    struct df_never never; /* placement.never.*: more than the service knows by itself */

    int64_t kube_ahead_s;     /* kubernetes.applyAheadFor: while a person is asked; 0: not at all */
    bool kube_apply_ahead;    /* kubernetes.applyAhead; false */
    bool elects;              /* election.enabled: several replicas, one of which leads */
    char *election_lease;     /* election.lease: name of the Lease; "dayfly" */
    char *election_address;   /* election.address: this replica's URL for the others; default:
                                 POD_IP and the port of listen */
    int64_t election_lease_s; /* election.leaseDuration; 15s */

    int64_t workers; /* control.workers; 32 */
    /* control.maxSystemFailures: how many runners a step may lose; 3; 0 means 3 */
    int64_t max_system_failures;

    int64_t limit_steps;         /* limits.steps: at the same time; 8 */
    int64_t limit_per_namespace; /* limits.perNamespace; 10000 */

    int64_t retain_runs;      /* retention.runs: ended ones of each executor; 100; 0: all */
    int64_t retain_workflows; /* retention.workflows: ended ones; 1000; 0: all */
    int64_t retain_versions;  /* retention.stateVersions: of each executor; 100; 0: all */
    int64_t retain_revisions; /* retention.revisions: of each executor; 50; 0: all */
    int64_t retain_age_s;     /* retention.age: of ended runs and workflows; 0: any */
    int64_t retain_logs_s;    /* retention.logs: of ended steps; 0: as long as their run */
    int64_t retain_audit_s;   /* retention.audit: of the audit trail on disk; 2 years; 0: any */
    int64_t retain_entries;   /* retention.auditEntries: of that; 0: any number */

    struct df_approval_rules approval; /* approval.* */
    char *approval_skips;              /* approval.autoApprove as configured; "admin" */

    cJSON *policies;   /* policies, as model/policy.h says; or NULL */
    cJSON *classes;    /* classes: {name: {limit, placement}}; or NULL */
    cJSON *workspaces; /* workspaces: {executor: {class, environment, placement}}; or NULL */

    char *state_service_url;        /* stateService.url; NULL: no State Service */
    char *state_service_protocol;   /* stateService.protocol: "events" or "put" */
    char *state_service_token_file; /* stateService.tokenFile */
    char *state_service_ca_file;    /* stateService.caFile */
    char *state_service_project;    /* stateService.project; NULL: a document's namespace */
    char *state_service_domain;     /* stateService.domain; "default" */

    char *upstream_listen;         /* terrakube.listen: plain HTTP, where Terrakube's API finds its
                                      executor; or NULL */
    bool terrakube_requires_token; /* terrakube.requireToken; true */
    int64_t terrakube_steps;       /* terrakube.steps: unfinished ones at most */
    int64_t terrakube_deadline_s;  /* terrakube.deadline of a step */

    struct df_strs tool_directories; /* tools.directories */
    char *tool_cache_directory;      /* tools.cacheDirectory; default <cache home>/dayfly/tools */
    char *tool_index_opentofu;       /* tools.index.opentofu: URL (https or file) */
    char *tool_index_terraform;      /* tools.index.terraform */
    char *tool_ca_file;              /* tools.caFile */

    struct df_strs caller_environment; /* caller.environment: names, or prefixes with * */
    bool tool_search_path;             /* tools.searchPath; true */
    bool caller_files;                 /* caller.files; true */
    bool caller_is_named;              /* not a key: caller.environment is not the default */

    char *plugin_cache_directory;     /* providers.pluginCacheDirectory */
    int64_t plugin_cache_max_mib;     /* providers.pluginCacheMaxMiB: 20480 */
    char *filesystem_mirror;          /* providers.filesystemMirror */
    char *network_mirror;             /* providers.networkMirror */
    char *oci_mirror;                 /* providers.ociMirror */
    char *mirror_directory;           /* providers.mirror.directory */
    struct df_strs mirror_registries; /* providers.mirror.registries: hosts, with their ports */
    int64_t mirror_max_mib;           /* providers.mirror.maxMiB: 20480 */
    char *mirror_ca_file;             /* providers.mirror.caFile */
    char *registry_credentials_file;  /* providers.credentialsFile: YAML host: token, mode 0600 */

    int64_t timeout_plan_s;    /* timeouts.plan; 1h */
    int64_t timeout_apply_s;   /* timeouts.apply; 1h */
    int64_t timeout_grace_s;   /* timeouts.grace; 15m */
    int64_t timeout_pending_s; /* timeouts.pending; 2m */
    int64_t plan_life_s;       /* timeouts.planLife; 168h */

    enum df_log_level log_level; /* log.level; info */
    bool log_json;               /* log.format: json|text; json if stderr is no terminal */
    bool keep_failed;            /* runner.keepFailed */
    bool embedded;               /* not a key: set by `dayfly run` without a server */
    bool only_answers;           /* not a key: no control loop; for reading without a server */
};

/* file may be NULL. env: a NULL-terminated environment. overrides: "key=value" from flags, or NULL.
 * A list in a variable or a flag is separated by colons. Class USER; the message names the place:
 * file and line, the variable, or the flag. */
int df_config_load(const char *file, char *const *env, const struct df_strs *overrides,
                   struct df_config *ret, struct df_err *err) DF_MUST_CHECK;
void df_config_free(struct df_config *c);

/* *ret: a path of this user: <variable>/<name>, or <HOME>/<below_home>/<name>. Unchanged if neither
 * is set. */
int df_config_home_path(char *const *env, const char *variable, const char *below_home,
                        const char *name, char **ret, struct df_err *err) DF_MUST_CHECK;

/* What callers may set in a placement (placement.allow). Borrowed from both. */
struct df_allow df_config_allow(const struct df_config *c, const struct df_never *never);

/* What no step may have: placement.never, the authority of server.tls.secret, the token of
 * ansible.tokenSecretRef, the accounts of this namespace that are admins, and the account of the
 * service itself ("namespace/name", or NULL). The caller frees *ret. */
int df_config_never(const struct df_config *c, const char *name_space, const char *account,
                    struct df_never *ret, struct df_err *err) DF_MUST_CHECK;

struct df_kube;
/* The namespace of the service: kubernetes.namespace, or that of the cluster's configuration.
 * Borrowed from both. NULL: kube is NULL, and nobody said. */
const char *df_config_namespace(const struct df_config *c, const struct df_kube *kube);

/* True if callers have tokens of their own, and no call is taken without one. */
bool df_config_has_callers(const struct df_config *c);

/* True if the server has TLS. */
bool df_config_has_tls(const struct df_config *c);

/* runner.path, else the program dayfly-runner beside this one, else that in PATH. The caller frees;
 * NULL: there is none, or no memory. */
char *df_config_runner(const struct df_config *c);

/* What steps of the engine `local` may see of this machine, as their handoff says it
 * (docs/step-protocol.md): the mode, and all that is the service's alone. Not for `none`. The
 * caller deletes *ret. */
int df_config_isolation(const struct df_config *c, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Reads providers.credentialsFile into {"host": "token", ...}; {} if none is configured. Refuses a
 * file that others may read. *ret contains secrets: delete it with df_json_wipe(). */
int df_config_credentials(const struct df_config *c, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* For df_config_home_path(): where the file of `dayfly login` is, which no step sees. */
#define DF_LOGINS_PLACE "XDG_CONFIG_HOME", ".config", "dayfly/logins.json"

#endif
