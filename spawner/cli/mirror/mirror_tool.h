/*
 * mirror_tool.h - downloads packages of providers with the tool's own `providers mirror`, which
 * verifies the signatures of their registries, and reads archives. Thread rule: one thread.
 */
#ifndef DF_CLI_MIRROR_TOOL_H
#define DF_CLI_MIRROR_TOOL_H

#include "common/providers/lockfile.h"
#include "spawner/cli/mirror/mirror_store.h"

/* The tool of this name ("opentofu", "terraform"), or OpenTofu, else Terraform if it is NULL. *ret:
 * its path, for the caller to free. NOT_FOUND: it is not in PATH. */
int df_mirror_tool_find(const char *name, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Downloads one package into the directory `into`, which is emptied first. */
int df_mirror_tool_fetch(const char *tool, const struct df_mirror_store *s,
                         const struct df_mirror_package *p, const char *into,
                         struct df_err *err) DF_MUST_CHECK;

/* Makes a lock file of the archive of this package below root, a filesystem mirror, with `providers
 * lock`. */
int df_mirror_tool_lock(const char *tool, const struct df_mirror_store *s, const char *root,
                        const struct df_mirror_package *p, struct df_lockfile *ret,
                        struct df_err *err) DF_MUST_CHECK;

/* Downloads what the configuration of a module without a lock file requires, for all platforms. It
 * writes nothing into the module's directory. */
int df_mirror_tool_fetch_module(const char *tool, const struct df_mirror_store *s,
                                const char *module, const struct df_strs *platforms,
                                const char *into, struct df_err *err) DF_MUST_CHECK;

#endif
