/*
 * provider_registry.h - asks registries of providers (the provider registry protocol of tofu and
 * terraform) for versions and packages. It verifies TLS and SHA-256; signatures of packages it does
 * not. Thread rule: one registry, one thread.
 */
#ifndef DF_STEPS_PROVIDER_REGISTRY_H
#define DF_STEPS_PROVIDER_REGISTRY_H

#include "common/http/http.h"
#include "spawner/steps/provider_index.h"

struct df_provider_registry {
    struct df_http *http;
    char *base; /* "https://host/v1/providers/namespace/type" */
};
#define DF_PROVIDER_REGISTRY DF_CLEANUP(df_provider_registry_close)
void df_provider_registry_close(struct df_provider_registry *r);

/* Finds the registry of a source by its host's service discovery. ca_file: PEM, or NULL. */
int df_provider_registry_open(const char *source, const char *ca_file,
                              struct df_provider_registry *ret, struct df_err *err) DF_MUST_CHECK;

/* The array `versions` of the registry: {version, platforms: [{os, arch}]}. The caller deletes. */
int df_provider_registry_versions(struct df_provider_registry *r, cJSON **ret,
                                  struct df_err *err) DF_MUST_CHECK;

/* Where an archive is, and its SHA-256. */
struct df_provider_package {
    char *url;
    char sha256[65];
};
void df_provider_package_free(struct df_provider_package *p);
int df_provider_registry_package(struct df_provider_registry *r,
                                 const struct df_provider_archive *a,
                                 struct df_provider_package *ret, struct df_err *err) DF_MUST_CHECK;

/* Downloads it into the file, and compares it with its SHA-256. DENIED: it is another one; LIMIT:
 * it has more than max_bytes. */
int df_provider_registry_download(struct df_provider_registry *r,
                                  const struct df_provider_package *p, int fd, int64_t max_bytes,
                                  struct df_err *err) DF_MUST_CHECK;

#endif
