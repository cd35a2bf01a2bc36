/*
 * fetch.h - the three kinds of fetch, and the functions that they share. Internal to runner/source.
 */
#ifndef DF_SOURCE_FETCH_H
#define DF_SOURCE_FETCH_H

#include "common/process/wall.h"
#include "runner/source/spec.h"

struct df_source_advice; /* source.h */

struct df_fetch {
    const struct df_source_spec *spec;
    const char *commit;      /* git: exactly this one; NULL: that of the tag or branch */
    const char *checkout;    /* existing, empty */
    const char *private_dir; /* existing, 0700; emptied after the fetch */
    int log_fd;              /* or -1 */
    const volatile bool *stop;
    const struct df_wall *hidden, *git_wall; /* as in struct df_source_request, as is the next */
    const struct df_source_advice *advice;
};

/* Writes a line for people to log_fd. */
void df_fetch_note(const struct df_fetch *f, const char *fmt, ...) DF_PRINTF(2, 3);

/* Refuses what the source names on this machine if it is hidden, or has something hidden in it. fd:
 * as df_wall_touches_hidden() takes it. Class DENIED, reason SourceRefused. */
int df_fetch_check_shown(const struct df_fetch *f, int fd, struct df_err *err) DF_MUST_CHECK;

/* Creates a file (0600) in the private directory; the caller frees its path. */
int df_fetch_private_file(const struct df_fetch *f, const char *name, const char *text, char **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Each fills f->checkout. git also returns the commit. */
int df_fetch_directory(const struct df_fetch *f, struct df_err *err) DF_MUST_CHECK;
int df_fetch_archive(const struct df_fetch *f, struct df_err *err) DF_MUST_CHECK;
int df_fetch_git(const struct df_fetch *f, char ret_commit[65], struct df_err *err) DF_MUST_CHECK;

#endif
