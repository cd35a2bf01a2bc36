/*
 * cluster_words.h - the real API server for test programs that a pytest file runs:
 * KUBECONFIG names the cluster, NAMESPACE a namespace of the program's own. Include behind
 * cmocka.h.
 */
#ifndef DF_TEST_CLUSTER_WORDS_H
#define DF_TEST_CLUSTER_WORDS_H

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

static inline struct df_kube_at object_at(const struct df_kube_resource *resource, const char *name)
{
    return (struct df_kube_at){.resource = resource, .name_space = name_space, .name = name};
}

/* The names of those with this label ("key" or "key=value"). */
static inline void list_names(const struct df_kube_resource *resource, const char *labels,
                              struct df_strs *ret)
{
    struct df_err err = {0};
    struct df_kube_at at = object_at(resource, NULL);
    struct df_kube_select select = {.labels = labels};
    struct df_kube_sink sink = {NULL, add_name, ret};
    at.metadata_only = true;
    if (df_kube_list(client(), &at, &select, 0, &sink, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void delete_object(const struct df_kube_resource *resource, const char *name)
{
    struct df_kube_at at = object_at(resource, name);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err err = {0};
    if (df_kube_delete(client(), &at, &o, &err) < 0)
        fail_msg("%s", err.message);
}

/* How many there were. */
static inline size_t delete_objects(const struct df_kube_resource *resource, const char *labels)
{
    DF_STRS struct df_strs names = {0};
    list_names(resource, labels, &names);
    for (size_t i = 0; i < names.len; i++)
        delete_object(resource, names.items[i]);
    return names.len;
}

#endif
