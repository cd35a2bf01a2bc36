/*
 * lockfile.h - reads .terraform.lock.hcl, in which tofu and terraform record the providers that
 * they selected for a module. Thread rule: any thread.
 */
#ifndef DF_PROVIDERS_LOCKFILE_H
#define DF_PROVIDERS_LOCKFILE_H

#include "common/base/strs.h"

#define DF_LOCKFILE ".terraform.lock.hcl"

struct df_locked_provider {
    char *source;          /* "registry.opentofu.org/hashicorp/aws": host, namespace and type */
    char *version;         /* "5.0.1" */
    struct df_strs hashes; /* "h1:..." of unpacked packages, "zh:..." of archives; any platform */
};

struct df_lockfile {
    struct df_locked_provider *providers;
    size_t len;
};
#define DF_LOCKED DF_CLEANUP(df_lockfile_free)
void df_lockfile_free(struct df_lockfile *l);

/* Reads the lock file in a module's directory; a module without one has no locked providers. Class
 * USER, naming the line, for a source or version that cannot be a path's part, or a provider
 * without a version. LIMIT beyond DF_LIMIT_LOCKFILE or DF_LIMIT_LOCKED_PROVIDERS. */
int df_lockfile_read(const char *module_dir, struct df_lockfile *ret,
                     struct df_err *err) DF_MUST_CHECK;

/* The provider of this source; NULL: it is not locked. Borrowed. */
const struct df_locked_provider *df_lockfile_find(const struct df_lockfile *l, const char *source);

/* True if the text has three parts, none of which leads elsewhere as the part of a path. */
bool df_provider_is_source(const char *text);
/* True for digits, letters, '.', '-' and '+' that begin with a digit. */
bool df_provider_is_version(const char *text);

#endif
