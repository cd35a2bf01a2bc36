/*
 * holder.h - the process that holds a data directory, as one line in the directory's lock file:
 * "4711 dayfly run". The lock itself is flock(2) on that file; the line is for people, and for
 * clients that must not touch the lock. Thread rule: any thread.
 */
#ifndef DF_HOLDER_H
#define DF_HOLDER_H

#include "common/base/err.h"

#define DF_HOLDER_COMMAND 64

struct df_holder {
    pid_t pid;
    char command[DF_HOLDER_COMMAND]; /* "dayfly run": the program and its sub-command, no values */
};

/* Writes the line of this process into the lock file. The caller holds the lock. */
int df_holder_write(int lock_fd, struct df_err *err) DF_MUST_CHECK;

/* Removes the line. Call it before the lock is released. */
void df_holder_clear(int lock_fd);

/* The process that held the directory before this one and ended without removing its line: it was
 * killed or crashed. False if there is none. The caller holds the lock and calls it before
 * df_holder_write(). */
bool df_holder_left_behind(int lock_fd, struct df_holder *ret);

/* Finds the live process that the directory's lock file names. False if there is none or if it
 * cannot be determined. */
bool df_holder_find(const char *data_directory, struct df_holder *ret);

#endif
