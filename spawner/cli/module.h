/*
 * module.h - what the word behind `dayfly run` means: a directory, a file, a URL or an executor;
 * and the executor that stands for it.
 */
#ifndef DF_CLI_MODULE_H
#define DF_CLI_MODULE_H

#include "spawner/cli/cli.h"

/* A git or archive URL, "https://...", "file://...", "git@host:path"? */
bool df_module_is_url(const char *word);

/* A DNS label made of the last part of a URL and the folder in it ("infra-net"); hashed: with 8 hex
 * of the SHA-256 of both behind it. */
int df_module_name(const char *url, const char *folder, bool hashed, char ret[64],
                   struct df_err *err) DF_MUST_CHECK;

/* spec.source for a directory, file or URL with --branch, --tag, --commit, --folder, --sha256. A
 * directory is taken as it lies there, unless one of the first three asks for git. Class USER when
 * there is no such directory or the options contradict each other. */
int df_module_source(const char *word, const struct df_args *args, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* The name of the executor for the word and options of the command line: an existing one, or one
 * that is made or brought up to date for this source. body: the request of the run, with its
 * action; what a dry-run says instead of an executor that exists is added there. NULL: no run is
 * asked for. A word that is both an executor and a directory is CONFLICT unless they are the same
 * module. The caller frees the name. */
int df_module_executor(struct df_cli *cli, cJSON *body, char **ret,
                       struct df_err *err) DF_MUST_CHECK;

#endif
