/*
 * no_init.h - a plan without `init`, of a module for which `init` would only note the backend: no
 * provider but those built in, no other modules, the managed state. Starting the tool takes longer
 * than anything that such an `init` does.
 *
 * The note is the same for each such module; each version of the tool has its own. An image has
 * that of its tool (image_records.h). Otherwise the first `init` of a version leaves it in
 * `<tools.cacheDirectory>/notes`. It is checked like one that was just made, because others may
 * write there. If the tool asks for an `init` nevertheless, it has changed nothing and gets it.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_NO_INIT_H
#define DF_RUNNER_NO_INIT_H

#include "runner/context.h"

/* Runs `init` as df_init(), or puts its note in place. *ret_without: there was no `init`. */
int df_init_or_not(struct df_context *c, bool *ret_without, struct df_err *err) DF_MUST_CHECK;

/* True if a plan without `init` failed because the tool wants one. */
bool df_init_is_wanted(const struct df_context *c);

/* `init`, after all. */
int df_init_after_all(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
