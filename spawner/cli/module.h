/*
 * module.h - resolves the first word of `dayfly run` (a directory, a file, a URL or an executor) to
 * an executor; creates the executor if necessary. Thread rule: main thread.
 */
#ifndef DF_CLI_MODULE_H
#define DF_CLI_MODULE_H

#include "spawner/cli/cli.h"

/* True for the URL of a repository or archive: "https://...", "file://...", "git@host:path". */
bool df_module_is_url(const char *word);

/* spec.source for a directory, file or URL with --branch, --tag, --commit, --folder, --sha256. A
 * directory is copied as it is, unless one of the first three options asks for git. Class USER if
 * the path does not exist or the options contradict each other. */
int df_module_source(const char *word, const struct df_args *args, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* The name of the executor for the word and the options of the command line; the caller frees. An
 * executor of this source is created, or updated if the options differ. body: the request of the
 * run, with its action; NULL: no run is requested. A dry-run does not update an existing executor:
 * its options are added to body. A destroy creates none: there may be no executor of the name.
 * CONFLICT if the word is both an executor and a directory, unless they are the same module. */
int df_module_executor(struct df_cli *cli, cJSON *body, char **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* The executor of this name; *ret: NULL if there is none, else for the caller to delete. */
int df_module_get_executor(struct df_cli *cli, const char *name, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;

#endif
