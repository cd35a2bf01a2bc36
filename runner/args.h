/*
 * args.h - arguments that several commands of the tool share. Thread rule: main thread.
 */
#ifndef DF_RUNNER_ARGS_H
#define DF_RUNNER_ARGS_H

#include "runner/context.h"

/* While a step runs only a foreign tofu can hold the lock: wait briefly, then name its holder. */
#define DF_LOCK_TIMEOUT "-lock-timeout=5s"

/* How plan and apply of this tool give their events; adds the argument that asks for them. */
enum df_command_events df_args_add_events(const struct df_context *c, struct df_strs *args);
/* No memory: see df_strs_check(). */
void df_args_add_all(struct df_strs *args, const struct df_strs *from);

#endif
