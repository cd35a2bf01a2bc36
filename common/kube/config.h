/*
 * config.h - where the API server is and who we are: kubeconfig files or the pod's own account.
 *
 * Contract: kubectl's (k8s.io/client-go/tools/clientcmd). KUBECONFIG names files separated by
 * colons; those that do not exist are passed over; of a cluster, user or context that several files
 * name, and of current-context, the first file's counts, whole. Relative paths are taken from the
 * directory of the file they stand in. Without KUBECONFIG: ~/.kube/config; where there is none: the
 * service account of the pod. Files that keys name (certificates, tokens) are not read here but
 * when a connection needs them (credentials.h), because they rotate.
 *
 * Every string is owned by the struct and NULL when it was not given. It holds secrets: freeing
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
    char *server;     /* "https://10.0.0.1:6443", no slash at its end */
    char *name_space; /* never NULL: "default" when nothing names one */
    char *ca_file, *ca_pem;
    char *tls_server_name;
    char *proxy_url;
    bool insecure; /* insecure-skip-tls-verify */

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
 * what is not spoken here (basic auth, auth-provider, impersonation). NOT_FOUND when nothing at all
 * says where a cluster is. */
int df_kube_config_load(const struct df_kube_config_options *o, struct df_kube_config *ret,
                        struct df_err *err) DF_MUST_CHECK;
void df_kube_config_free(struct df_kube_config *c);
#define DF_KUBE_CONFIG DF_CLEANUP(df_kube_config_free)

/* The text of a file that a key names, of at most `max` bytes, without the white space around it;
 * the caller wipes and frees. */
int df_kube_read_secret(const char *path, size_t max, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
