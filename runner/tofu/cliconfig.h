/*
 * cliconfig.h - the CLI configuration that tofu and terraform read through TF_CLI_CONFIG_FILE.
 *
 * Made from the step document's `providers`: filesystemMirror, networkMirror, ociMirror,
 * credentials {host: token}. With a mirror, providers come only from mirrors. The plugin cache is init's alone
 * (plugin_stage.h). Written in the JSON form that both tools read. Thread rule: any thread.
 */
#ifndef DF_CLICONFIG_H
#define DF_CLICONFIG_H

#include "common/json/json.h"

/* Replaces path (mode 0600). providers NULL: an empty configuration, so that the tool does not read
 * the one of the user. */
int df_cliconfig_write(const cJSON *providers, const char *path, struct df_err *err) DF_MUST_CHECK;

#endif
