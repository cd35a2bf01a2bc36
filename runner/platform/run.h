/*
 * run.h - one action from its input to its report and exit code. Thread rule: main thread, before
 * any other thread exists.
 */
#ifndef DF_PLATFORM_RUN_H
#define DF_PLATFORM_RUN_H

#include "runner/platform/input.h"

/* Returns the exit code. */
int df_platform_run(enum df_platform_action action, const struct df_input_places *places);

#endif
