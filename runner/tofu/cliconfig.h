/*
 * cliconfig.h - the CLI configuration that tofu and terraform read through TF_CLI_CONFIG_FILE.
 *
 * Made from the step document's `providers`: filesystemMirror, networkMirror, ociMirror,
 * credentials {host: token}. With a mirror, providers come only from mirrors. The plugin cache is
 * init's alone (plugin_stage.h). Written in the JSON form that both tools read. On a laptop it is
 * the caller's own (common/providers/cli_file.h), unless `providers` says something. Thread rule:
 * any thread.
 */
#ifndef DF_CLICONFIG_H
#define DF_CLICONFIG_H

#include "common/json/json.h"

/* Replaces path (mode 0600). providers NULL: an empty configuration, so that the tool does not read
 * the one of the user. of_caller: the text of the caller's; or NULL. */
int df_cliconfig_write(const cJSON *providers, const char *of_caller, const char *path,
                       struct df_err *err) DF_MUST_CHECK;

/* True if `providers` has a mirror or a token, so that the caller's configuration is not used. */
bool df_cliconfig_is_own(const cJSON *providers);

#endif
