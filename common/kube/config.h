/*
 * config.h - address and credentials of the API server: kubeconfig files or the pod's service
 * account.
 *
 * Follows kubectl (k8s.io/client-go/tools/clientcmd). KUBECONFIG names files separated by colons;
 * missing ones are skipped. If several files name the same cluster, user or context, or
 * current-context, the first file's entry is used, without merging. Relative paths start at the
 * directory of the file that contains them. Without KUBECONFIG: ~/.kube/config; if it does not
 * exist, the service account of the pod. Files that the configuration names (certificates, tokens)
 * are not read here but when a connection needs them (credentials.h), because they rotate.
 *
 * Every string is owned by the struct and is NULL if it is not set. It contains secrets: freeing
 * wipes them. Thread rule: immutable once loaded, any thread may read.
 */
#ifndef DF_KUBE_CONFIG_H
#define DF_KUBE_CONFIG_H

#include "common/base/strs.h"

struct df_kube_exec {
    char *command;     /* NULL: there is no plug-in */
    char *api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
    char *install_hint;
    struct df_strs args;
    struct df_strs env; /* "NAME=value": added to the program's own environment */
    bool provide_cluster_info;
};

struct df_kube_config {
    char *source;     /* for messages: "/home/a/.kube/config (context "prod")", "the pod's service
                         account" */
    char *server;     /* "https://10.0.0.1:6443", without a trailing slash */
    char *name_space; /* never NULL; "default" if none is configured */
    char *ca_file, *ca_pem;
    char *tls_server_name;
    char *proxy_url;
    bool insecure;          /* insecure-skip-tls-verify */
    const char *user_agent; /* for audit logs; borrowed; NULL: as of struct df_http_options */

    char *token, *token_file;
    char *cert_file, *cert_pem;
    char *key_file, *key_pem;
    struct df_kube_exec exec;
};

struct df_kube_config_options {
    const char *kubeconfig;      /* one file, instead of KUBECONFIG; or NULL */
    const char *context;         /* instead of current-context; or NULL */
    const char *const *env;      /* NULL-terminated; NULL: the program's own */
    const char *service_account; /* directory with token, ca.crt and namespace; NULL:
                                    /var/run/secrets/kubernetes.io/serviceaccount */
};

/* Class USER names file, key and the way out: a file that is no kubeconfig, an unknown context,
 * a login that is not supported (basic auth, auth-provider, impersonation). NOT_FOUND when nothing
 * says where a cluster is. */
int df_kube_config_load(const struct df_kube_config_options *o, struct df_kube_config *ret,
                        struct df_err *err) DF_MUST_CHECK;
void df_kube_config_free(struct df_kube_config *c);
#define DF_KUBE_CONFIG DF_CLEANUP(df_kube_config_free)

/* The text of a file that a key names, of at most `max` bytes, without the white space around it;
 * the caller wipes and frees. */
int df_kube_read_secret(const char *path, size_t max, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
