/*
 * input.h - what an action gets from outside: the environment, the mounted files, the secrets.
 *
 * Contract: contracts/platform.md §1. Nothing here talks to the API server. All strings are owned
 * by the struct; optional ones are NULL when they are absent. Thread rule: immutable once loaded.
 */
#ifndef DF_PLATFORM_INPUT_H
#define DF_PLATFORM_INPUT_H

#include "common/base/log.h"
#include "common/json/json.h"
#include "common/kube/config.h"
#include "common/yaml/yaml.h"
#include "runner/platform/faults.h"

enum df_platform_action { DF_PLATFORM_DEPLOY, DF_PLATFORM_VALIDATE, DF_PLATFORM_TEARDOWN };
/* "deploy", "validate", "teardown". */
extern const char *const df_platform_action_names[3];

enum df_scope_kind { DF_SCOPE_PLATFORM, DF_SCOPE_STACK, DF_SCOPE_APP };
struct df_scope {
    enum df_scope_kind kind;
    char *name; /* of the stack or app; NULL: the whole platform */
    char *text; /* as it was given: "stack:foundation" */
};

struct df_trace_ids {
    /* Lower-case hex. parent: the caller's span, "" without one; own: the action's root span. */
    char trace[33], parent[17], own[17];
};

struct df_platform_input {
    enum df_platform_action action;
    /* The environment. */
    char *environment; /* development, staging, production */
    struct df_scope scope;
    bool dry_run;
    bool deletes_volumes; /* PV_POLICY=delete */
    char *confirmation;
    char *expected_commit; /* what gitRevision has to lead to; NULL: anything */
    int64_t timeout_ms;    /* of the whole action; 0: none */
    struct df_trace_ids trace;
    char *metrics_addr, *metrics_textfile, *pushgateway_url;
    char *otlp_endpoint, *alertmanager_url;
    char *report_path;      /* "/report/report.json": the Markdown stands beside it; or NULL */
    char *termination_path; /* /dev/termination-log, if it is there; or NULL */

    /* environment.yaml */
    char *name, *domain, *git_repository, *git_revision, *cluster_name;
    char *argocd_namespace, *workflows_namespace;
    int64_t sync_ms, health_ms, backoff_ms;
    int max_attempts;

    char *dag; /* text of dag.yaml as it is mounted; NULL: that of the repository counts */
    size_t dag_len;
    char *dag_path; /* where dag is from, for messages; NULL without one */
    cJSON *health;  /* `components` of health.yaml: component -> criteria; NULL: none */
    struct df_yaml_lines *health_lines;

    /* Paths of secrets and folders; NULL: not mounted. */
    char *secrets_dir, *manifests_dir;
    char *registry_file; /* below secrets_dir */

    struct df_kube_config kube;
};

/* Where the files are; NULL: /config, /secrets, /manifests, and the folder of the pod's service
 * account. */
struct df_input_places {
    const char *config, *secrets, *manifests, *service_account;
};

/* Reads all and names every fault. ret must be zero; the caller frees it, also on failure. -1 only
 * for what is no fault of the input (memory). Warnings are logged. KUBECONFIG_DATA is wiped in the
 * environment, so that no child gets it: a second call finds none. */
int df_input_load(enum df_platform_action action, const struct df_input_places *places,
                  struct df_platform_input *ret, struct df_faults *faults,
                  struct df_err *err) DF_MUST_CHECK;
void df_input_free(struct df_platform_input *in);

/* True for a commit of 40 or 64 hex digits: a revision that cannot move. */
bool df_input_is_pinned(const struct df_platform_input *in);

/* True of a dry run of an action that writes. */
static inline bool df_input_only_shows(const struct df_platform_input *in)
{
    return in->dry_run && in->action != DF_PLATFORM_VALIDATE;
}

#endif
