/*
 * torn.h - a dry run takes no lock. Where dayfly keeps the state, it is read as a whole; but the
 * tool's backend `local` writes its file in place: it is empty, then a part, then whole. Then the
 * state is read again. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TORN_H
#define DF_RUNNER_TORN_H

#include "runner/context.h"

bool df_is_dry_run(const struct df_context *c);

/* Was the plan file made of no state, or of another, although the executor has one? */
bool df_torn_plan(const struct df_context *c, const char *plan);

/* Did the tool fail because what it read is no state? error: its own words. */
bool df_torn_text(const struct df_context *c, const char *error);

/* Waits before the next try, and says so in the log. False: there is none. */
bool df_torn_again(const struct df_context *c, int tries);

#endif
