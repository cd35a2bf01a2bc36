/*
 * release.h - downloads a release of tofu or terraform once, verified, into the cache directory.
 *
 * tools.index.<name> is the URL (https, http or file) of either
 *   - a releases index, ending in ".json": {"versions": {"1.9.0": {"shasums": "…", "builds":
 *     [{"os", "arch", "filename", "url"}]}}}; url and shasums may be relative; or the form of
 *     GitHub: [{"name": "v1.9.0", "assets": [{"name", "browser_download_url"}]}]; or
 *   - a mirror directory: <base>/<version>/<program>_<version>_<os>_<arch>.zip beside
 *     <program>_<version>_SHA256SUMS (or SHA256SUMS). It cannot be listed, so the version must be
 *     exact.
 *
 * The program is installed as <cacheDirectory>/<SHA-256 of the zip>/<program>, atomically; several
 * runners may do so at once. Thread rule: any thread.
 */
#ifndef DF_TOFU_RELEASE_H
#define DF_TOFU_RELEASE_H

#include "common/http/http.h"
#include "runner/tofu/range.h"
#include "runner/tofu/tool.h"

/* NOT_FOUND: no index is configured, or no release satisfies the constraint. Reason ToolChecksum:
 * the digest is not that of SHA256SUMS. *ret: the program's path, for the caller to free. */
int df_release_fetch(const struct df_tool_request *r, const struct df_constraint *constraint,
                     char **ret, struct df_err *err) DF_MUST_CHECK;

/* ---- the parts of it ---- */

/* What to download, and from where. All owned. */
struct df_release {
    char version[DF_VERSION_TEXT];
    char *file;    /* name of the zip, as in SHA256SUMS */
    char *url;     /* of the zip */
    char *sums[2]; /* URLs of SHA256SUMS, tried in this order; NULL: the index names none */
};
void df_release_free(struct df_release *r);
#define DF_RELEASE DF_CLEANUP(df_release_free)

/* The highest version of the index at url (either form) that the range allows and that has a build
 * for this machine. NOT_FOUND: there is none. */
int df_release_choose(struct df_http *http, const char *url, const struct df_tool_request *r,
                      const struct df_range *range, struct df_release *ret,
                      struct df_err *err) DF_MUST_CHECK;

/* Downloads and installs it in r->tools.cacheDirectory. Without SHA256SUMS whatever comes is taken:
 * the caller decides. *ret: the program's path, for the caller to free. */
int df_release_install(struct df_http *http, const struct df_release *release,
                       const struct df_tool_request *r, char **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* Installs the program in a directory tmp of mkdtemp(3) within the cache as
 * <cache>/<digest>/<program>, with its record, and removes tmp. digest: of the program or of what
 * it came in; 64 hex digits. */
int df_release_publish(const char *cache, const char *tmp, const char *program, const char *digest,
                       struct df_err *err) DF_MUST_CHECK;

#endif
