/*
 * credentials.h - what is in /secrets, for those who need it: the repository's credentials for
 * Argo CD, the pull secret for each namespace. Values go from a file into a Secret and nowhere
 * else. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_CREDENTIALS_H
#define DF_PLATFORM_CREDENTIALS_H

#include "runner/platform/platform.h"

#define DF_PULL_SECRET "dayfly-registry"

/* The namespace, made if it is absent, and with registry/.dockerconfigjson the Secret
 * "dayfly-registry" in it, which its default account pulls images with. Without that file a
 * namespace is made only for what bootstrap installs: those of components are Argo CD's affair. */
int df_credentials_namespace(struct df_platform *p, const char *name_space,
                             struct df_err *err) DF_MUST_CHECK;

/* The name of the Secret by which Argo CD reads gitRepository. The caller frees it; NULL: no
 * memory. */
char *df_credentials_repository_name(const struct df_platform_input *in) DF_MUST_CHECK;

/* True if /secrets/git has something for that Secret. */
bool df_credentials_has_repository(const struct df_platform_input *in);

/* The Secret by which Argo CD reads gitRepository; nothing if there are no credentials. */
int df_credentials_repository(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

/* *ret: whether that Secret is there, and of this environment. */
int df_credentials_find(struct df_platform *p, bool *ret, struct df_err *err) DF_MUST_CHECK;

/* Deletes that Secret, if it is there. */
int df_credentials_remove(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

/* Gives argocd-secret a new key for Argo CD's signatures, if it has none. The manifests own the
 * Secret and have no key, so it is not applied, which would take it away at the next deploy, but
 * patched. */
int df_credentials_argocd_key(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

/* The `source` document by which the repository is fetched here. The caller wipes *ret. */
int df_credentials_source(const struct df_platform_input *in, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

#endif
