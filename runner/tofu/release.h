/*
 * release.h - downloads a release of tofu or terraform once, verified, into the cache directory.
 *
 * tools.index.<name> is the URL (https, http or file) of either
 * - a releases index, ending in ".json": {"versions": {"1.9.0": {"shasums": "…",
 *   "builds": [{"os", "arch", "filename", "url"}]}}}; url and shasums may be relative; or
 * - a mirror directory: <base>/<version>/<program>_<version>_<os>_<arch>.zip beside
 *   <program>_<version>_SHA256SUMS (or SHA256SUMS); it cannot be listed, so that the version must
 * be exact. The program lands as <cacheDirectory>/<SHA-256 of the zip>/<program>, complete or not
 * at all; several writers at once are safe. Thread rule: any thread.
 */
#ifndef DF_TOFU_RELEASE_H
#define DF_TOFU_RELEASE_H

#include "runner/tofu/toolchain.h"

/* NOT_FOUND: no index is configured, or no release satisfies the constraint. Reason ToolChecksum:
 * it is not what SHA256SUMS names. *ret: the program's path, for the caller to free. */
int df_release_fetch(const struct df_tool_request *r, const struct df_constraint *constraint,
                     char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
