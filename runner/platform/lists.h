/*
 * lists.h - all objects of a resource, and all resources of a group. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_LISTS_H
#define DF_PLATFORM_LISTS_H

#include "runner/platform/platform.h"

/* The caller owns *ret, an array in the server's order, which is that of namespace and name,
 * without managedFields. labels: a selector, or NULL. df_kind_is_absent(): the server has no such
 * resource; LIMIT: there are more than DF_LIMIT_PLATFORM_LIST. */
int df_list_objects(struct df_platform *p, const struct df_kube_at *at, const char *labels,
                    cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The resources of a group and version ("apps/v1", "v1") that can be listed, by name: an array of
 * {name, kind, namespaced}, as the API server says it. The caller owns *ret.
 * df_kind_is_absent(): there is no such group. */
int df_list_resources(struct df_platform *p, const char *api_version, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;

extern const struct df_kube_resource df_namespaces;
/* Adds the namespaces of the components in scope that have one, each once, in the DAG's order. */
int df_list_namespaces(const struct df_platform *p, struct df_strs *to,
                       struct df_err *err) DF_MUST_CHECK;

#endif
