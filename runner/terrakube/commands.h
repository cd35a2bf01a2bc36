/*
 * commands.h - the commands of the tool that several stages of Terrakube share. Thread rule: main
 * thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_COMMANDS_H
#define DF_RUNNER_TERRAKUBE_COMMANDS_H

#include "runner/context.h"

/* Runs a command that prints events, with the variables that scripts left; *ret_code: its exit
 * code. */
int df_terrakube_command_run(struct df_context *c, const struct df_strs *args,
                             enum df_command_events events, int *ret_code,
                             struct df_err *err) DF_MUST_CHECK;
/* Runs a command whose stdout is a new file (0600). A stop does not end it: what it reads is worth
 * more than the seconds. */
int df_terrakube_command_save(struct df_context *c, const char *const *args, const char *path,
                              struct df_err *err) DF_MUST_CHECK;

/* A document that the tool printed into a file, with secrets masked, for the UI. The caller
 * deletes. NULL if it cannot be read: rows of the UI are not worth the step. */
cJSON *df_terrakube_shown(const struct df_context *c, const char *path);

/* The failure of the command as an error, with the reason word. Returns -1. */
int df_terrakube_command_fail(struct df_context *c, const char *command, const char *reason,
                              struct df_err *err);

/* Runs the commands of onFailure, unless the step must stop; their own failure is a note. Returns
 * -1. */
int df_terrakube_on_failure(struct df_context *c);

#endif
