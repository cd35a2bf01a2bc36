/*
 * toolchain.h - finds the tofu or terraform that a step asks for.
 *
 * It takes the highest version that satisfies the constraint from tools.directories (`<dir>/tofu`,
 * `<dir>/<anything>/tofu`), from PATH if tools.searchPath, and from earlier downloads in
 * tools.cacheDirectory. If there is none, it downloads a release (release.h). The version of each
 * program is cached in `<cacheDirectory>/versions`, by path, size, mtime and inode; an image may
 * have a record of it (image_records.h). A program of the cache that is not the one of its record
 * (installed.h) fails the search. Thread rule: any thread; many processes may share one cache
 * directory.
 */
#ifndef DF_TOOLCHAIN_H
#define DF_TOOLCHAIN_H

#include "runner/tofu/tool.h"

/* Reason ToolMissing (with constraint, places and what was found there), ToolChecksum, or
 * InvalidStep as of df_step_wall_make(). */
int df_toolchain_find(const struct df_tool_request *r, struct df_tool *ret,
                      struct df_err *err) DF_MUST_CHECK;

/* For a step that names no tool; ignores the kind of the request. OpenTofu if it is installed, else
 * Terraform if it is, else the first of them that can be downloaded. Reasons as above. */
int df_toolchain_find_any(const struct df_tool_request *r, struct df_tool *ret,
                          struct df_err *err) DF_MUST_CHECK;

/* The tool that a step document names, by its members runtime, tools and expected. An apply needs
 * exactly the version that made the plan: no other one reads its plan file. how: stop, is_local and
 * wall; the rest is the step's. Reasons as above. */
int df_toolchain_of_step(const cJSON *step, const struct df_tool_request *how, struct df_tool *ret,
                         struct df_err *err) DF_MUST_CHECK;

#endif
