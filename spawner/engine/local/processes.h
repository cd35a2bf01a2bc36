/*
 * processes.h - finds the living processes of a step in /proc.
 *
 * The processes of a step are its runner, which leads a session of its own, all processes in that
 * session, and tofu, whose identity the runner writes to a file. An identity ("<pid> <start time>
 * <boot id>") stays correct after a restart of the spawner, and if the pid is used again. Thread
 * rule: any thread.
 */
#ifndef DF_ENGINE_PROCESSES_H
#define DF_ENGINE_PROCESSES_H

#include <sys/types.h>

#include "common/base/err.h"

struct df_identity {
    pid_t pid;
    uint64_t start; /* field 22 of /proc/<pid>/stat */
};

/* The identity of a process, also of one that has ended and is not reaped yet. NOT_FOUND: there is
 * no process with this pid. */
int df_identity_of(pid_t pid, struct df_identity *ret, struct df_err *err) DF_MUST_CHECK;

/* Writes and reads the file of an identity. NOT_FOUND: there is no file, or it is from an earlier
 * boot, whose processes are all gone. */
int df_identity_write(const char *path, const struct df_identity *id, struct df_err *err);
int df_identity_read(const char *path, struct df_identity *ret, struct df_err *err) DF_MUST_CHECK;

/* Is exactly this process alive? A zombie is not. */
bool df_identity_lives(const struct df_identity *id);

/* Opens a pidfd of exactly this process; -1: it is gone. The caller closes it. */
int df_identity_open(const struct df_identity *id, int *ret_pidfd,
                     struct df_err *err) DF_MUST_CHECK;

/* Counts the living processes in the session of which this process is or was the leader. sig != 0:
 * also sends them this signal. */
int df_session_signal(const struct df_identity *leader, int sig, size_t *ret_living,
                      struct df_err *err) DF_MUST_CHECK;

/* The leader of a session, other than our own process, with exactly this argument. Arguments can be
 * read of every process of this user; the open files of a runner cannot, because it is not
 * dumpable. NOT_FOUND: there is none. */
int df_session_with_argument(const char *argument, pid_t *ret, struct df_err *err) DF_MUST_CHECK;

#endif
