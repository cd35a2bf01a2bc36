/*
 * release.h - downloads a release of tofu or terraform once, verified, into the cache directory.
 *
 * tools.index.<name> is the URL (https, http or file) of either
 *   - a releases index, ending in ".json": {"versions": {"1.9.0": {"shasums": "…",
 *     "builds": [{"os", "arch", "filename", "url"}]}}}; url and shasums may be relative; or
 *   - a mirror directory: <base>/<version>/<program>_<version>_<os>_<arch>.zip beside
 *     <program>_<version>_SHA256SUMS (or SHA256SUMS). It cannot be listed, so the version must be
 *     exact.
 *
 * The program is installed as <cacheDirectory>/<SHA-256 of the zip>/<program>, atomically; several
 * runners may do so at once. Thread rule: any thread.
 */
#ifndef DF_TOFU_RELEASE_H
#define DF_TOFU_RELEASE_H

#include "runner/tofu/tool.h"

/* NOT_FOUND: no index is configured, or no release satisfies the constraint. Reason ToolChecksum:
 * the digest is not that of SHA256SUMS. *ret: the program's path, for the caller to free. */
int df_release_fetch(const struct df_tool_request *r, const struct df_constraint *constraint,
                     char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
