/*
 * manifests.h - the objects of a folder with YAML files. Thread rule: any thread.
 */
#ifndef DF_PLATFORM_MANIFESTS_H
#define DF_PLATFORM_MANIFESTS_H

#include "common/json/json.h"

/* Reads every .yaml, .yml and .json of the folder, in the order of their names; what a List has
 * counts as if it stood there. Namespaces and definitions (CRDs) come first. Values of Secrets are
 * in the tree: wipe it. NOT_FOUND: there is no such folder. */
int df_manifests_read(const char *folder, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A definition: after it is applied its kind is known only a moment later. */
bool df_manifest_is_definition(const cJSON *object);

#endif
