/*
 * script_env.h - the environment of a command of Terrakube (scripts.h). Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_SCRIPT_ENV_H
#define DF_RUNNER_TERRAKUBE_SCRIPT_ENV_H

#include "runner/terrakube/scripts.h"

/* base: the environment of the tool, which has that of the workspace; tool: its program; token: the
 * terrakubeToken. The caller wipes *ret. Makes the *.sh of the directory executable, as Terrakube
 * does. */
int df_terrakube_script_env(const struct df_terrakube_scripts *s, const struct df_strs *base,
                            const char *tool, const char *token, struct df_strs *ret,
                            struct df_err *err) DF_MUST_CHECK;

/* Adds the directories below root that have a file with this ending (".groovy"). */
int df_terrakube_directories_of(const char *root, const char *ending, struct df_strs *ret,
                                struct df_err *err) DF_MUST_CHECK;

#endif
