/*
 * mounts.h - the other names that a path has because something is mounted twice: a bind mount, a
 * volume at two places, the whole disk somewhere else. Thread rule: any thread.
 */
#ifndef DF_MOUNTS_H
#define DF_MOUNTS_H

#include "common/base/strs.h"

struct df_mount {
    char *device;      /* "254:0" */
    char *root, *real; /* what of its file system is there, and where */
};
struct df_mounts {
    struct df_mount *rows;
    size_t len;
};
#define DF_MOUNTS DF_CLEANUP(df_mounts_free)

/* The mounts that this process sees. */
int df_mounts_read(struct df_mounts *ret, struct df_err *err) DF_MUST_CHECK;
void df_mounts_free(struct df_mounts *m);

/* Adds the other places where this file or directory, or a part of the directory, can be found.
 * real: a real path. Sticky: the caller checks ret. */
void df_mounts_other_names(const struct df_mounts *m, const char *real, struct df_strs *ret);

#endif
