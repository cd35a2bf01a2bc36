/*
 * summary.h - how a run ended: one line, its outputs, and the exit code; or all of it as one JSON
 * document.
 */
#ifndef DF_CLI_SUMMARY_H
#define DF_CLI_SUMMARY_H

#include "spawner/cli/cli.h"

/* Prints how this run (as last seen) ended, for people or as -o says. note: the last line of the
 * runner in the log that the person has seen, or "": what it says is not printed again. Returns the
 * exit code that belongs to the run, or -1. */
int df_summary_print(struct df_cli *cli, const cJSON *run, const char *note,
                     struct df_err *err) DF_MUST_CHECK;

/* Its TaskActions, in order of creation: an array. */
int df_summary_tasks(struct df_cli *cli, const char *run, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* {"run", "steps", "planSummary", "outputs"}: docs/cli.md. */
int df_summary_document(const cJSON *run, const cJSON *tasks, const cJSON *outputs, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;

#endif
