/*
 * follow.h - follows a run until it ends or waits for a person: shows its log and its progress,
 * asks for approval, cancels the run on Ctrl-C, and reconnects when the server went away.
 * Thread rule: main thread.
 */
#ifndef DF_CLI_FOLLOW_H
#define DF_CLI_FOLLOW_H

#include "spawner/cli/cli.h"
#include "spawner/cli/follow/view.h"

struct df_follow_options {
    bool ask;       /* a person can be asked; else end where one would be asked */
    bool ours;      /* this command created the run: the first Ctrl-C cancels it */
    bool skip_past; /* do not show the steps that have ended before */
    int signals_fd; /* of df_signals_open() */
};

enum df_follow_end {
    DF_FOLLOW_FINAL,   /* the run has ended */
    DF_FOLLOW_WAITING, /* it waits for approval: nobody can be asked, or others have to approve */
    DF_FOLLOW_LEFT     /* the person left; the run continues */
};

/* ret_run: the run as last seen, for the caller to delete. Fails with class RETRY if the server
 * could not be found again in time; the message says how to follow the run again. */
int df_follow_run(struct df_cli *cli, struct df_view *view, const char *run,
                  const struct df_follow_options *o, enum df_follow_end *ret_end, cJSON **ret_run,
                  struct df_err *err) DF_MUST_CHECK;

/* The exit code for a run in its final phase. tasks: its TaskActions, an array. */
enum df_exit df_run_exit(const cJSON *run, const cJSON *tasks);

#endif
