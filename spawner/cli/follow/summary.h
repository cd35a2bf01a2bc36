/*
 * summary.h - prints how a run ended, as text or as one JSON document. Thread rule: main thread.
 */
#ifndef DF_CLI_SUMMARY_H
#define DF_CLI_SUMMARY_H

#include "spawner/cli/cli.h"

/* Prints how this run (as last seen) ended, as text or in the format of -o. note: the runner's last
 * line in the log that was shown, or ""; the text does not repeat it. Returns the exit code for the
 * run, or -1. */
int df_summary_print(struct df_cli *cli, const cJSON *run, const char *note,
                     struct df_err *err) DF_MUST_CHECK;

/* The TaskActions of a run in order of creation: an array. */
int df_summary_tasks(struct df_cli *cli, const char *run, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* {"run", "steps", "planSummary", "outputs"}: docs/cli.md. */
int df_summary_document(const cJSON *run, const cJSON *tasks, const cJSON *outputs, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;

#endif
