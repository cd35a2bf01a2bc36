/*
 * hiding.h - hides the secrets of a service in a wall: the only place that does, for every mode.
 *
 * A wall shows of the machine everything, or a list of paths. Whatever it shows, it shows without
 * the secrets below it, under each name that it shows them by. Thread rule: any thread.
 */
#ifndef DF_TOFU_HIDING_H
#define DF_TOFU_HIDING_H

#include "common/base/strs.h"
#include "common/process/wall.h"

/* What has to be hidden so that nobody sees these secrets: their real paths, those of directories
 * whole, and other places where the same is mounted. The folder of a file is hidden with it if it
 * holds nothing but files, and nothing that `own` shows: what covers a file alone is gone as soon
 * as the file is replaced, and then a step that runs sees the new one. own NULL: without folders.
 * ret: empty. */
int df_hiding_find(const struct df_strs *secrets, const struct df_wall *own, struct df_strs *ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Appends what hides them on the whole machine, and what keeps the directories above them where
 * they are: the next wall looks for the secrets there. To be the first of a wall. */
int df_hiding_everywhere(struct df_wall *w, const struct df_strs *found,
                         struct df_err *err) DF_MUST_CHECK;

/* Appends an entry that shows, and what hides them below it. What is hidden itself, or is below a
 * hidden directory, is shown. */
int df_hiding_show(struct df_wall *w, enum df_wall_access access, const char *path,
                   const struct df_strs *found, struct df_err *err) DF_MUST_CHECK;

#endif
