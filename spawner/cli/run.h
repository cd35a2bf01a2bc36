/*
 * run.h - a run that is asked for and followed. Thread rule: main thread.
 */
#ifndef DF_CLI_RUN_H
#define DF_CLI_RUN_H

#include "spawner/cli/cli.h"

/* POST of body to executors/<executor>/<what>, then with the run to its end, or not with --detach:
 * the exit code. signals_fd: of df_signals_open(), from before the connection was made. */
int df_request_run(struct df_cli *cli, const char *executor, const char *what, const cJSON *body,
                   int signals_fd, struct df_err *err);

/* state_run.c: releases the lock of a state that is not managed, in a run with the tool's own
 * force-unlock. id: NULL is the lock that the executor's runs failed at last. */
int df_state_unlock_elsewhere(struct df_cli *cli, const char *executor, const char *id,
                              struct df_err *err);

#endif
