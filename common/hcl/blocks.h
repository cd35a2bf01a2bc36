/* blocks.h - how both syntaxes add blocks to a module. Internal to common/hcl. */
#ifndef DF_HCL_BLOCKS_H
#define DF_HCL_BLOCKS_H

#include "common/hcl/hcl.h"

/* Adds a block whose type is a copy of n bytes. NULL on failure. Borrowed: valid until the next
 * block. */
struct df_hcl_block *df_hcl_add(struct df_hcl_module *m, const char *file, unsigned line,
                                const char *type, size_t n, struct df_err *err);

/* True if the module keeps the attributes of such a block. */
bool df_hcl_keeps_attributes(const struct df_hcl_block *b);
/* True for blocks within `terraform {}` that are listed, too. */
bool df_hcl_is_state_block(const char *type, size_t n);
/* value NULL: an expression. */
int df_hcl_add_attribute(struct df_hcl_block *b, const char *name, size_t name_len,
                         const char *value, size_t value_len, struct df_err *err) DF_MUST_CHECK;
/* True if a quoted text has no escapes and templates. */
bool df_hcl_is_plain(const char *text, size_t n);

int df_hcl_scan_native(const char *file, const char *text, size_t n, struct df_hcl_module *m,
                       struct df_err *err) DF_MUST_CHECK;
int df_hcl_scan_json(const char *file, const char *text, size_t n, struct df_hcl_module *m,
                     struct df_err *err) DF_MUST_CHECK;

#endif
