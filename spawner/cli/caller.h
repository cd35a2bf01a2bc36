/*
 * caller.h - passes variables and credentials of the caller's shell to a run.
 *
 * If the service runs only for its own user (df_connection_shell()), a run gets the variables that
 * caller.environment names, the credentials below ~/.aws, ~/.config/gcloud and ~/.azure, and
 * ~/.tofurc or ~/.terraformrc (common/providers/cli_file.h). A service for several users gets only
 * what --env names, and never the tool's own configuration. All values go into the request's
 * `secrets`, which are not stored in any document. Thread rule: main thread.
 */
#ifndef DF_CLI_CALLER_H
#define DF_CLI_CALLER_H

#include "spawner/cli/cli.h"

/* Checks --env, before anything is changed. Class USER for a variable that is not set or a file
 * that cannot be read, and if the shell or --env selects a workspace of the tool other than the
 * default one: the run would use another state than the caller expects. */
int df_caller_check(const struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* Adds the values to the body of a request for a run of this executor, and prints one line with
 * their names. With --no-env it adds nothing. Leaves out variables that the executor sets. */
int df_caller_add(struct df_cli *cli, const cJSON *executor, cJSON *body,
                  struct df_err *err) DF_MUST_CHECK;

#endif
