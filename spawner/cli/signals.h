/*
 * signals.h - a descriptor for SIGINT, SIGTERM and SIGHUP, for commands that handle these signals
 * in poll(2). A SIGHUP that is ignored, as under nohup, stays so. Thread rule: main thread.
 */
#ifndef DF_CLI_SIGNALS_H
#define DF_CLI_SIGNALS_H

#include "common/base/err.h"

/* Blocks the three signals and returns a descriptor that is readable while one is pending. Call it
 * before any thread starts, so that all threads inherit the mask. The caller owns the
 * descriptor. */
int df_signals_open(int *ret_fd, struct df_err *err) DF_MUST_CHECK;

/* Takes one pending signal and returns its number, or 0 if there is none. Never blocks. */
int df_signals_take(int fd);

/* Unblocks the three signals: the next one ends this process. */
void df_signals_release(void);

/* A signal that comes this soon after another one repeats it and does not count as the second:
 * timeout(1) sends its signal to the process and then to its group, and a terminal that closes
 * sends SIGHUP twice. */
#define DF_SIGNALS_SAME_MS 500

/* As df_signals_release(), but signals of the next DF_SIGNALS_SAME_MS are dropped. Returns at
 * once. */
void df_signals_release_later(void);

#endif
