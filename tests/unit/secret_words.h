/*
 * secret_words.h - the real API server, and its Secrets, for test programs that a pytest file runs:
 * KUBECONFIG names the cluster, NAMESPACE a namespace of the program's own. Include behind
 * cmocka.h.
 */
#ifndef DF_TEST_SECRET_WORDS_H
#define DF_TEST_SECRET_WORDS_H

#include "common/http/http.h"
#include "common/kube/kube.h"

static const char *name_space;

/* First of all, before any thread. */
static inline bool find_cluster(void)
{
    name_space = getenv("NAMESPACE");
    return name_space && df_http_global_init(NULL) == 0;
}

/* One client a process: connections do not survive a fork. */
static inline struct df_kube *client(void)
{
    static struct df_kube *kube;
    static pid_t owner;
    struct df_err err = {0};
    DF_KUBE_CONFIG struct df_kube_config config = {0};
    if (owner == getpid())
        return kube;
    if (df_kube_config_load(&(struct df_kube_config_options){0}, &config, &err) < 0 ||
        df_kube_new(&config, &kube, &err) < 0)
        fail_msg("%s", err.message);
    owner = getpid();
    return kube;
}

static int add_name(void *arg, const cJSON *object, struct df_err *err)
{
    (void)df_strs_add(arg, df_kube_name(object));
    return df_strs_check(arg, err);
}

/* The names of those with this label ("key" or "key=value"). */
static inline void list_secrets(const char *labels, struct df_strs *ret)
{
    struct df_err err = {0};
    struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = name_space, .metadata_only = true};
    struct df_kube_select select = {.labels = labels};
    struct df_kube_sink sink = {NULL, add_name, ret};
    if (df_kube_list(client(), &at, &select, 0, &sink, &err) < 0)
        fail_msg("%s", err.message);
}

static inline size_t count_secrets(const char *labels)
{
    DF_STRS struct df_strs names = {0};
    list_secrets(labels, &names);
    return names.len;
}

static inline struct df_kube_at secret(const char *name)
{
    return (struct df_kube_at){
        .resource = &df_kube_secrets, .name_space = name_space, .name = name};
}

static inline void delete_secret(const char *name)
{
    struct df_kube_at at = secret(name);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err err = {0};
    if (df_kube_delete(client(), &at, &o, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void delete_secrets(const char *labels)
{
    DF_STRS struct df_strs names = {0};
    list_secrets(labels, &names);
    for (size_t i = 0; i < names.len; i++)
        delete_secret(names.items[i]);
}

#endif
