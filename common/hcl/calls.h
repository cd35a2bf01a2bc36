/*
 * calls.h - the local modules that a module calls, directly or through others: `source = "../net"`.
 * Thread rule: any thread.
 */
#ifndef DF_HCL_CALLS_H
#define DF_HCL_CALLS_H

#include "common/hcl/hcl.h"

/* Borrowed for the call. */
struct df_hcl_call {
    const char *directory; /* of the module that calls */
    const char *name;      /* of the block */
    const char *source;    /* as written: "../net" */
    const char *target;    /* absolute, without "." and ".."; it need not exist */
    const char *file;      /* name in directory */
    unsigned line;
};

/* Calls visit for each local module that the module in directory calls, and then for those that the
 * called ones call. Each directory is read once; one that is absent or no directory calls nothing.
 * directory: absolute, without links. visit returns 0, or -1 with err to end the search. Class
 * LIMIT beyond DF_LIMIT_LOCAL_MODULES, or as df_hcl_scan(). */
int df_hcl_calls(const char *directory, enum df_hcl_tool tool,
                 int (*visit)(void *arg, const struct df_hcl_call *call, struct df_err *err),
                 void *arg, struct df_err *err) DF_MUST_CHECK;

/* True for a source that names a directory relative to the module. */
bool df_hcl_is_local(const char *source);

/* path relative to directory as an absolute path, without "." and ".."; the caller frees, NULL on
 * no memory. Links are not resolved, as the tools do not resolve them. directory: absolute. */
char *df_hcl_path(const char *directory, const char *path);

#endif
