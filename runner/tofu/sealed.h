/*
 * sealed.h - the member `sealed` of a step document: values of the run that no document of the
 * service holds. {environment: {NAME: text}, variables: {name: JSON}, files: {NAME.tfvars: text},
 * cliConfig: text of the caller's ~/.tofurc, plain: [names of values that are not secret]}. Thread
 * rule: one thread.
 */
#ifndef DF_SEALED_H
#define DF_SEALED_H

#include "common/base/strs.h"
#include "common/hcl/hcl.h"
#include "common/json/json.h"

/* True if the block declares a sensitive variable. */
bool df_sealed_is_sensitive(const struct df_hcl_block *b);

/* True if `plain` names this variable or member of the environment. */
bool df_sealed_is_plain(const cJSON *step, const char *name);

/* Adds the strings and numbers in a value, at any depth (the parser caps it). */
int df_sealed_add_leaves(struct df_strs *to, const cJSON *value, struct df_err *err) DF_MUST_CHECK;

/* Adds every value to mask: those of environment and variables, and each string and number in them.
 * Leaves out values that `plain` names: of the environment always, of variables (and TF_VAR_*) if
 * the module is given and does not declare them sensitive. */
int df_sealed_secrets(const cJSON *step, const struct df_hcl_module *module, struct df_strs *to,
                      struct df_err *err) DF_MUST_CHECK;

/* Adds the environment, which overrides that of the step; TF_VAR_* only if the step does not set
 * them. */
int df_sealed_environment(const cJSON *step, struct df_strs *env, struct df_err *err) DF_MUST_CHECK;

/* If the directory of AWS_CONFIG_FILE has the tokens of `aws sso login`, links them into the step's
 * home: AWS libraries look only there. */
int df_sealed_link_home(const cJSON *step, const char *home, struct df_err *err) DF_MUST_CHECK;

/* Each writes files (0600) below secret_dir and adds "-var-file=..." for each. */
int df_sealed_files(const cJSON *step, const char *secret_dir, struct df_strs *args,
                    struct df_err *err) DF_MUST_CHECK;
int df_sealed_variables(const cJSON *step, const char *secret_dir, struct df_strs *args,
                        struct df_err *err) DF_MUST_CHECK;

#endif
