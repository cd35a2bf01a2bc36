/* outputs.h - the outputs of a module, as `tofu output` shows them. */
#ifndef DF_CLI_OUTPUTS_H
#define DF_CLI_OUTPUTS_H

#include "spawner/cli/cli.h"

/* {name: {value, type, sensitive}}; a sensitive output has no value. */
int df_outputs_fetch(struct df_cli *cli, const char *executor, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* Appends "name = value" lines in the order of outputs; "<sensitive>" if there is no value. */
int df_outputs_text(const cJSON *outputs, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
