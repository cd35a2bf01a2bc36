/*
 * holder.h - which process holds a data directory: its lock file says so in one line, "4711 dayfly
 * run". The lock itself is flock(2) on that file; the line is for people, and for clients that must
 * not touch the lock. Thread rule: any thread.
 */
#ifndef DF_HOLDER_H
#define DF_HOLDER_H

#include "common/base/err.h"

#define DF_HOLDER_COMMAND 64

struct df_holder {
    pid_t pid;
    char command[DF_HOLDER_COMMAND]; /* "dayfly run": the program and its sub-command, no values */
};

/* Writes this process into the lock file that it holds. */
int df_holder_write(int lock_fd, struct df_err *err) DF_MUST_CHECK;

/* Takes the line away, before the lock is given back. */
void df_holder_clear(int lock_fd);

/* The living process that the lock file of this directory names; false when there is none, or when
 * it cannot be told. */
bool df_holder_find(const char *data_directory, struct df_holder *ret);

#endif
