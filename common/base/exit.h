/*
 * exit.h - the exit codes of both programs: of a runner for its step, of a command for its run.
 *
 * docs/cli.md and docs/step-protocol.md describe them to users.
 */
#ifndef DF_BASE_EXIT_H
#define DF_BASE_EXIT_H

enum df_exit {
    DF_EXIT_OK = 0,
    DF_EXIT_FAILURE = 1,      /* failed, declined, denied, not found */
    DF_EXIT_PARTIAL = 2,      /* something was changed, then it failed or was canceled */
    DF_EXIT_PLAN_CHANGES = 2, /* of plan --detailed-exitcode: the plan has changes */
    DF_EXIT_INPUT = 3,        /* invalid arguments or document; nothing was changed */
    DF_EXIT_TIMEOUT = 4,
    DF_EXIT_INTERRUPTED = 130 /* Ctrl-C; the command did not wait for the run */
};

#endif
