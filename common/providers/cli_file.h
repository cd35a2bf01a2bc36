/*
 * cli_file.h - the CLI configuration of a person's tofu or terraform: ~/.tofurc or ~/.terraformrc,
 * or the file of TF_CLI_CONFIG_FILE, and the tokens of `tofu login`. Thread rule: main thread, as
 * it reads the environment.
 */
#ifndef DF_PROVIDERS_CLI_FILE_H
#define DF_PROVIDERS_CLI_FILE_H

#include "common/base/strs.h"

#define DF_CLI_FILE_VARIABLE "TF_CLI_CONFIG_FILE"

struct df_cli_file {
    char *text;           /* NULL: there is none. It may have tokens: wipe it */
    struct df_strs names; /* what was read, as people write it: "~/.tofurc" */
    const char *missing;  /* the file of the variable, if it cannot be read; borrowed; or NULL */
    bool has_mirror;      /* it says where providers come from */
    bool has_helper;      /* a credentials_helper, which a step does not find */
};
#define DF_CLI_FILE DF_CLEANUP(df_cli_file_free)
void df_cli_file_free(struct df_cli_file *f);

/* Reads what the tool would read. is_terraform: what OpenTofu alone knows is left out. named: the
 * file instead; NULL: that of TF_CLI_CONFIG_FILE, else those below HOME. Where the variable's file
 * cannot be read, there is none, as for the tool. The plugin cache is taken
 * out: a step has its own. Class USER for a named file that cannot be read, or one that is no
 * configuration; LIMIT beyond DF_LIMIT_CLI_FILE. */
int df_cli_file_read(bool is_terraform, const char *named, struct df_cli_file *ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
