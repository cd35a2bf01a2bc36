/*
 * signals.h - SIGINT, SIGTERM and SIGHUP as something to poll, for commands that have to act on
 * them.
 */
#ifndef DF_CLI_SIGNALS_H
#define DF_CLI_SIGNALS_H

#include "common/base/err.h"

/* Blocks the three and returns a descriptor that becomes readable when one comes. Call it before
 * any thread starts, so that all inherit the mask. Owned by the caller. */
int df_signals_open(int *ret_fd, struct df_err *err) DF_MUST_CHECK;

/* The number of a signal that came since the last call, or 0. Never blocks. */
int df_signals_take(int fd);

/* Gives the three their ordinary effect on this process back: the next one kills it. */
void df_signals_release(void);

#endif
