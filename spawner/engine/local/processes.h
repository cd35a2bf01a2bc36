/*
 * processes.h - which processes of a step live, told from /proc.
 *
 * A step's processes are its runner, which leads a session of its own, everything in that session,
 * and tofu, which the runner names. Identities survive pid re-use and restarts of the spawner:
 * "<pid> <start time> <boot id>" in a small file. Thread rule: any thread.
 */
#ifndef DF_ENGINE_PROCESSES_H
#define DF_ENGINE_PROCESSES_H

#include <sys/types.h>

#include "common/base/err.h"

struct df_identity {
    pid_t pid;
    uint64_t start; /* field 22 of /proc/<pid>/stat */
};

/* The identity of a living process. NOT_FOUND when there is none. */
int df_identity_of(pid_t pid, struct df_identity *ret, struct df_err *err) DF_MUST_CHECK;

/* Writes and reads the file. NOT_FOUND: no such file, or it is of an earlier boot, whose processes
 * are all gone. */
int df_identity_write(const char *path, const struct df_identity *id, struct df_err *err);
int df_identity_read(const char *path, struct df_identity *ret, struct df_err *err) DF_MUST_CHECK;

bool df_identity_lives(const struct df_identity *id);

/* A pidfd of exactly this process; -1 when it is gone. */
int df_identity_open(const struct df_identity *id, int *ret_pidfd,
                     struct df_err *err) DF_MUST_CHECK;

/* How many processes live in the session that this process leads or led. sig != 0: each of them
 * gets it. */
int df_session_signal(const struct df_identity *leader, int sig, size_t *ret_living,
                      struct df_err *err) DF_MUST_CHECK;

/* The process that has this file open, other than ourselves. NOT_FOUND when nobody has. */
int df_process_holding(const char *path, pid_t *ret, struct df_err *err) DF_MUST_CHECK;

#endif
