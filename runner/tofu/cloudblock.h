/*
 * cloudblock.h - does a module keep its state in a `cloud` block?
 *
 * Our backend override would silently win over such a block, and the state behind it would look
 * empty: that must be said before anything is planned. This reads just enough of the language to
 * tell blocks from comments, strings and heredocs; a file that does not parse is tofu's to complain
 * about. Thread rule: any thread.
 */
#ifndef DF_CLOUDBLOCK_H
#define DF_CLOUDBLOCK_H

#include "common/base/err.h"

/* In the native syntax. Any bytes may be given. */
bool df_hcl_has_cloud_block(const char *text, size_t n);

/* Looks at the module's *.tf, *.tofu and their .json forms. Class USER naming the file when there
 * is a block. */
int df_cloudblock_refuse(const char *module_dir, struct df_err *err) DF_MUST_CHECK;

#endif
