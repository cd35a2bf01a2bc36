/* widen.h - gives a run of a directory what its module needs besides that directory (reach.h).
 * Thread rule: main thread. */
#ifndef DF_CLI_WIDEN_H
#define DF_CLI_WIDEN_H

#include "spawner/cli/cli.h"

/* df_reach_widen(); prints a note about a path that may be needed and does not come along. Class
 * USER also where steps must see nothing besides their source, and with a service for others, which
 * may be such a one: there the module must not choose what is copied, and needs another one. name:
 * of the executor, for messages. */
int df_widen_source(const struct df_cli *cli, const char *name, const cJSON *source, cJSON **ret,
                    char **ret_why, struct df_err *err) DF_MUST_CHECK;

/* Gives the executor of a directory a wider source, if its module needs one or a person named one,
 * and says so. named: a source of the same module; or NULL. A dry-run does so, too: the executor
 * stays what it is, and without that no run of it has an end. */
int df_widen_executor(struct df_cli *cli, const cJSON *executor, const cJSON *named,
                      struct df_err *err) DF_MUST_CHECK;

#endif
