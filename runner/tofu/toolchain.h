/*
 * toolchain.h - finds the tofu or terraform that a step asks for.
 *
 * Looked for in tools.directories (`<dir>/tofu`, `<dir>/<anything>/tofu`), in PATH if
 * tools.searchPath, and among what was downloaded before into tools.cacheDirectory: the highest
 * version that satisfies the constraint. Only when none does, the release is downloaded
 * (release.h). A program's name and version are what its `version` command says; that is asked once
 * and kept in
 * `<cacheDirectory>/versions` for the same path, size, mtime and inode.
 * Thread rule: any thread; many processes may share one cache directory.
 */
#ifndef DF_TOOLCHAIN_H
#define DF_TOOLCHAIN_H

#include "common/json/json.h"
#include "runner/tofu/version.h"

enum df_tool_kind { DF_TOOL_OPENTOFU, DF_TOOL_TERRAFORM };
/* "opentofu", "terraform"; the program's file: "tofu", "terraform". */
const char *df_tool_kind_name(enum df_tool_kind kind);
const char *df_tool_kind_program(enum df_tool_kind kind);
int df_tool_kind_parse(const char *name, enum df_tool_kind *ret, struct df_err *err) DF_MUST_CHECK;

struct df_tool_request {
    enum df_tool_kind kind;
    const char *constraint; /* NULL: any release */
    const cJSON *tools;     /* the member of the step document */
    const char *path_env;   /* PATH to search, or NULL */
    const volatile bool *stop;
};

struct df_tool {
    enum df_tool_kind kind;
    struct df_version version;
    char *path; /* owned; absolute */
};
void df_tool_free(struct df_tool *t);

/* Reason ToolMissing (with what was looked for, where, and what was found) or ToolChecksum. */
int df_toolchain_find(const struct df_tool_request *r, struct df_tool *ret,
                      struct df_err *err) DF_MUST_CHECK;

#endif
