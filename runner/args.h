/*
 * args.h - arguments that several commands of the tool share. Thread rule: main thread.
 */
#ifndef DF_RUNNER_ARGS_H
#define DF_RUNNER_ARGS_H

#include "runner/context.h"

/* While a step runs, only a tofu that dayfly did not start can hold the lock. A long wait would not
 * help: the command fails soon, and its error names the holder. */
#define DF_LOCK_TIMEOUT "-lock-timeout=5s"

/* Adds the argument that makes plan or apply print events, and returns where they are printed. */
enum df_command_events df_args_add_events(const struct df_context *c, struct df_strs *args);
/* Adds -no-color, unless the tool shall colour its text. */
void df_args_add_colour(const struct df_context *c, struct df_strs *args);
/* Appends all items of from. If there is no memory, df_strs_check() reports it. */
void df_args_add_all(struct df_strs *args, const struct df_strs *from);

#endif
