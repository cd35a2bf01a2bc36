/*
 * fetch.h - what the three kinds of sources share. Internal to runner/source.
 */
#ifndef DF_SOURCE_FETCH_H
#define DF_SOURCE_FETCH_H

#include "runner/source/spec.h"

struct df_fetch {
    const struct df_source_spec *spec;
    const char *commit;      /* git: this one and no other; NULL: whatever tag or branch says */
    const char *checkout;    /* existing, empty */
    const char *private_dir; /* existing, 0700; its content is removed afterwards */
    int log_fd;              /* or -1 */
    const volatile bool *stop;
};

/* A line for people. */
void df_fetch_note(const struct df_fetch *f, const char *fmt, ...) DF_PRINTF(2, 3);

/* A file that only we may read, in the private dir; the caller frees its path. */
int df_fetch_private_file(const struct df_fetch *f, const char *name, const char *text, char **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Each fills f->checkout. git also gives the commit that it is now at. */
int df_fetch_directory(const struct df_fetch *f, struct df_err *err) DF_MUST_CHECK;
int df_fetch_archive(const struct df_fetch *f, struct df_err *err) DF_MUST_CHECK;
int df_fetch_git(const struct df_fetch *f, char ret_commit[65], struct df_err *err) DF_MUST_CHECK;

#endif
