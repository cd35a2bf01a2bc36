/*
 * packages.h - links the provider packages that a lock file names, if this machine has them: what
 * `init` does with a plugin cache or an unpacked mirror.
 *
 * A package is a directory <host>/<namespace>/<type>/<version>/<os>_<arch> below one of these: what
 * `init` of the plan in this pod installed, and providers.pluginCacheDirectory and
 * providers.filesystemMirror of the step document. The plan's code and other steps may write there,
 * so each package must have one of the "h1:" digests that the lock file names for this provider;
 * the tool compares them once more when it starts. Thread rule: one thread.
 */
#ifndef DF_PACKAGES_H
#define DF_PACKAGES_H

#include "common/json/json.h"
#include "runner/tofu/plugin_use.h"

/* Makes <module_dir>/.terraform/providers by the .terraform.lock.hcl of the module; installed: a
 * directory that need not exist; providers: of the step document. *ret_count: how many packages it
 * linked. On failure some may be linked: NOT_FOUND if a package is not here, CONFLICT if it has
 * another digest, USER if the lock file is not as the tool writes it. */
int df_packages_link(const char *module_dir, const char *installed, const cJSON *providers,
                     struct df_plugin_uses *uses, int *ret_count, struct df_err *err) DF_MUST_CHECK;

#endif
