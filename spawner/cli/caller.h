/*
 * caller.h - what a run is given of the shell that it is asked for from.
 *
 * Where the service runs for this shell alone (inside of this process, or of another `dayfly` that
 * is no `dayfly serve`), a run gets the variables that caller.environment names and the credentials
 * below ~/.aws, ~/.config/gcloud and ~/.azure. A service gets what --env names, and nothing else.
 * All of it goes into the request's `secrets`, which no document holds.
 */
#ifndef DF_CLI_CALLER_H
#define DF_CLI_CALLER_H

#include "spawner/cli/cli.h"

/* USER when the shell or --env selects another workspace than the default one: the run would have
 * another state than the caller thinks. To be asked before anything is changed. */
int df_caller_check(const struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* Adds it to the body of a request for a run of this executor, and says in one line what was added:
 * names alone. --no-env: nothing is added. What the executor sets itself is left out. */
int df_caller_add(struct df_cli *cli, const cJSON *executor, cJSON *body,
                  struct df_err *err) DF_MUST_CHECK;

#endif
