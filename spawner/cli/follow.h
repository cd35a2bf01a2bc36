/*
 * follow.h - goes with a run until it ends or waits for a person: shows its log and its turns, asks
 * for approval, passes Ctrl-C on as a cancel, finds the server again when it went away.
 * Thread rule: main thread.
 */
#ifndef DF_CLI_FOLLOW_H
#define DF_CLI_FOLLOW_H

#include "spawner/cli/cli.h"
#include "spawner/cli/view.h"

struct df_follow_options {
    bool ask;       /* there is a person to ask; else stop where one would be asked */
    bool ours;      /* this command made the run: the first Ctrl-C cancels it */
    bool skip_past; /* do not show again the steps that have ended before */
    int signals_fd; /* of df_signals_open() */
};

enum df_follow_end {
    DF_FOLLOW_FINAL,   /* the run has ended */
    DF_FOLLOW_WAITING, /* it waits for approval, and there is nobody to ask */
    DF_FOLLOW_LEFT     /* the person left; the run goes on */
};

/* ret_run: the run as it was last seen, for the caller to delete. Fails with class RETRY when the
 * server could not be found again in time; the message says how to come back. */
int df_follow_run(struct df_cli *cli, struct df_view *view, const char *run,
                  const struct df_follow_options *o, enum df_follow_end *ret_end, cJSON **ret_run,
                  struct df_err *err) DF_MUST_CHECK;

/* The exit code that belongs to a run in its final phase. tasks: its TaskActions, an array. */
enum df_exit df_run_exit(const cJSON *run, const cJSON *tasks);

#endif
