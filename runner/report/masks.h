/*
 * masks.h - what a step masks: the values that are known when it begins, and what certain files
 * hold at any time.
 *
 * An identity token is a file, which is renewed while the step runs. The tool and the module's code
 * read it when they like, so every content that they could have read is masked until the step's
 * end. Whoever shows something calls df_masks_renew() before: what a process has shown, it had
 * read, and then it is in the file or in an earlier reading of it. A content that is replaced
 * between two readings is missed, therefore the files are read every DF_MASKS_RENEW_MS at least
 * (command.c). Thread rule: one thread.
 */
#ifndef DF_REPORT_MASKS_H
#define DF_REPORT_MASKS_H

#include "common/redact/redact.h"

enum { DF_MASKS_RENEW_MS = 1000 };

struct df_masks; /* opaque */

/* values and files (paths; NULL: none) are copied. Class USER if a file cannot be read. */
int df_masks_new(const struct df_strs *values, const struct df_strs *files, struct df_masks **ret,
                 struct df_err *err) DF_MUST_CHECK;
void df_masks_free(struct df_masks *m);

/* Other values from now on; contents of files stay. */
int df_masks_replace(struct df_masks *m, const struct df_strs *values,
                     struct df_err *err) DF_MUST_CHECK;

/* Reads the files. *ret_changed: one has a content that is new, and df_masks_set() has all that it
 * had and that content. A file that is not there holds nothing that a process could read. Class
 * LIMIT if what is there cannot be masked; it must not be shown then. */
int df_masks_renew(struct df_masks *m, bool *ret_changed, struct df_err *err) DF_MUST_CHECK;

/* Writes values, and all contents, to a file (0600). */
int df_masks_save(const struct df_masks *m, const struct df_strs *values, const char *path,
                  struct df_err *err) DF_MUST_CHECK;
/* Adds those of such a file; they take effect at the next df_masks_renew(). */
int df_masks_add(struct df_masks *m, const char *path, struct df_err *err) DF_MUST_CHECK;

/* Masks this value, too (copied), until the step's end; it takes effect at the next
 * df_masks_renew(). */
int df_masks_add_value(struct df_masks *m, const char *value, struct df_err *err) DF_MUST_CHECK;

/* True if there are files. */
bool df_masks_may_change(const struct df_masks *m);

/* Valid until the second change from now. */
const struct df_redact_set *df_masks_set(const struct df_masks *m);

#endif
