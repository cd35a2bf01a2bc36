/* commands.h - the functions of the commands in commands.c; cli.h has their rules. */
#ifndef DF_CLI_COMMANDS_H
#define DF_CLI_COMMANDS_H

#include "spawner/cli/cli.h"

extern const struct df_command df_commands[]; /* ends with a name of NULL */

int df_cmd_run(struct df_cli *cli, struct df_err *err);
int df_cmd_plan(struct df_cli *cli, struct df_err *err);
int df_cmd_destroy(struct df_cli *cli, struct df_err *err);
int df_cmd_serve(struct df_cli *cli, struct df_err *err);
int df_cmd_create(struct df_cli *cli, struct df_err *err);
int df_cmd_apply(struct df_cli *cli, struct df_err *err);
int df_cmd_set(struct df_cli *cli, struct df_err *err);
int df_cmd_abandon(struct df_cli *cli, struct df_err *err);
int df_cmd_delete(struct df_cli *cli, struct df_err *err);
int df_cmd_recreate(struct df_cli *cli, struct df_err *err);
int df_cmd_get(struct df_cli *cli, struct df_err *err);
int df_cmd_describe(struct df_cli *cli, struct df_err *err);
int df_cmd_edit(struct df_cli *cli, struct df_err *err);
int df_cmd_diff(struct df_cli *cli, struct df_err *err);
int df_cmd_logs(struct df_cli *cli, struct df_err *err);
int df_cmd_approve(struct df_cli *cli, struct df_err *err);
int df_cmd_discard(struct df_cli *cli, struct df_err *err);
int df_cmd_cancel(struct df_cli *cli, struct df_err *err);
int df_cmd_outputs(struct df_cli *cli, struct df_err *err);
int df_cmd_state_list(struct df_cli *cli, struct df_err *err);
int df_cmd_state_show(struct df_cli *cli, struct df_err *err);
int df_cmd_state_rollback(struct df_cli *cli, struct df_err *err);
int df_cmd_state_push(struct df_cli *cli, struct df_err *err);
int df_cmd_state_pull(struct df_cli *cli, struct df_err *err);
int df_cmd_state_mv(struct df_cli *cli, struct df_err *err);
int df_cmd_state_rm(struct df_cli *cli, struct df_err *err);
int df_cmd_state_import(struct df_cli *cli, struct df_err *err);
int df_cmd_state_migrate(struct df_cli *cli, struct df_err *err);
int df_cmd_state_exec(struct df_cli *cli, struct df_err *err);
int df_cmd_state_lock(struct df_cli *cli, struct df_err *err);
int df_cmd_state_unlock(struct df_cli *cli, struct df_err *err);
int df_cmd_state_errored(struct df_cli *cli, struct df_err *err);
int df_cmd_state_push_errored(struct df_cli *cli, struct df_err *err);
int df_cmd_state_discard_errored(struct df_cli *cli, struct df_err *err);
int df_cmd_integration_test(struct df_cli *cli, struct df_err *err);
int df_cmd_secret_set(struct df_cli *cli, struct df_err *err);
int df_cmd_secret_allow(struct df_cli *cli, struct df_err *err);
int df_cmd_secret_list(struct df_cli *cli, struct df_err *err);
int df_cmd_secret_delete(struct df_cli *cli, struct df_err *err);
int df_cmd_why(struct df_cli *cli, struct df_err *err);
int df_cmd_audit_verify(struct df_cli *cli, struct df_err *err);
int df_cmd_gc(struct df_cli *cli, struct df_err *err);
int df_cmd_storage_usage(struct df_cli *cli, struct df_err *err);
int df_cmd_backup(struct df_cli *cli, struct df_err *err);
int df_cmd_restore(struct df_cli *cli, struct df_err *err);
int df_cmd_mirror(struct df_cli *cli, struct df_err *err);
int df_cmd_doctor(struct df_cli *cli, struct df_err *err);
int df_cmd_token_create(struct df_cli *cli, struct df_err *err);
int df_cmd_token_list(struct df_cli *cli, struct df_err *err);
int df_cmd_token_revoke(struct df_cli *cli, struct df_err *err);
int df_cmd_token_file_create(struct df_cli *cli, struct df_err *err);
int df_cmd_token_file_list(struct df_cli *cli, struct df_err *err);
int df_cmd_token_file_revoke(struct df_cli *cli, struct df_err *err);
int df_cmd_login(struct df_cli *cli, struct df_err *err);
int df_cmd_logout(struct df_cli *cli, struct df_err *err);
int df_cmd_access(struct df_cli *cli, struct df_err *err);
int df_cmd_whoami(struct df_cli *cli, struct df_err *err);
int df_cmd_version(struct df_cli *cli, struct df_err *err);
int df_cmd_completion(struct df_cli *cli, struct df_err *err);
int df_cmd_help(struct df_cli *cli, struct df_err *err);

#endif
