/*
 * varvalues.h - the values of sensitive variables in variable files, to be masked. Thread rule: one
 * thread.
 */
#ifndef DF_VARVALUES_H
#define DF_VARVALUES_H

#include "common/base/strs.h"
#include "common/hcl/hcl.h"

/* Adds the values to `to`. Reads the files that the tool loads automatically from the module's
 * directory, and those that arguments name ("-var-file=FILE", relative to that directory). From
 * JSON it takes every string and number, from HCL every string and heredoc, and a number directly
 * after the name. Ignores absent and malformed files: the tool reports them. Class LIMIT: a file is
 * too large to be checked; class SYSTEM: it cannot be read. The caller wipes `to`. */
int df_varvalues_collect(const char *module_dir, const struct df_strs *arguments,
                         const struct df_hcl_module *module, struct df_strs *to,
                         struct df_err *err) DF_MUST_CHECK;

#endif
