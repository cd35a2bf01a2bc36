/*
 * run.h - requests a run and follows it. Thread rule: main thread.
 */
#ifndef DF_CLI_RUN_H
#define DF_CLI_RUN_H

#include "spawner/cli/cli.h"

/* Posts body to executors/<executor>/<what> and follows the run to its end, unless --detach is
 * given. Returns the exit code, or -1. signals_fd: of df_signals_open(), called before the
 * connection was made. */
int df_request_run(struct df_cli *cli, const char *executor, const char *what, const cJSON *body,
                   int signals_fd, struct df_err *err);

/* The same for a command on the state, as a run of `runs`: body gets the variables of the options
 * and of the shell first (caller.h). */
int df_request_state_run(struct df_cli *cli, const char *executor, cJSON *body, int signals_fd,
                         struct df_err *err);

/* In state_run.c: releases the lock of a state that is not managed, by a run with the tool's
 * force-unlock. id: of the lock; NULL: the lock that the executor's latest StateLocked run
 * found. */
int df_state_unlock_elsewhere(struct df_cli *cli, const char *executor, const char *id,
                              struct df_err *err);
/* Lists, or puts back, a version of a state that is in a bucket, by a run. */
int df_state_list_elsewhere(struct df_cli *cli, const char *executor, struct df_err *err);
int df_state_rollback_elsewhere(struct df_cli *cli, const char *executor, const char *version,
                                struct df_err *err);
/* The same for an errored state: a run stores it where the executor's state is. step: its uid. */
int df_state_push_errored_elsewhere(struct df_cli *cli, const char *executor, const char *step,
                                    struct df_err *err);

#endif
