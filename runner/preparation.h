/*
 * preparation.h - what a standby runner gets ready while it waits for its step: the source, if it
 * needs no credentials, and the tool.
 *
 * A thread fetches both as the step would, into the step's directories. No code of a module runs.
 * The step then finds the tool in the cache of tools and checks it as any other; it takes the
 * source only with commit and digest of the plan. Whatever failed is done again by the step. Thread
 * rule: main thread.
 */
#ifndef DF_RUNNER_PREPARATION_H
#define DF_RUNNER_PREPARATION_H

#include "runner/source/source.h"
#include "runner/stop.h"
#include "runner/tofu/workspace.h"

struct df_preparation; /* opaque */

/* Begins. doc: the members tools, runtime, source and expected of the step document, as far as they
 * are known; owned from now on, also after a failure. dirs: of the step; borrowed. */
int df_preparation_start(cJSON *doc, const struct df_dirs *dirs, struct df_preparation **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Stops it. NULL is fine. */
void df_preparation_free(struct df_preparation *p);

/* Before the claimed step touches its directories: waits until what belongs to this step is ready,
 * or until the step is told to stop; stops what belongs to another one. Once. */
void df_preparation_end(struct df_preparation *p, const cJSON *step, const struct df_stop *stop);

/* *ret_taken: *ret is the source of the ended preparation, of which no file has changed since, and
 * *ret_log_fd has the lines of its fetch, borrowed from p; p NULL or without a source that is the
 * plan's: false, and the checkout is empty. */
int df_preparation_take_source(struct df_preparation *p, bool *ret_taken,
                               struct df_source_result *ret, int *ret_log_fd,
                               struct df_err *err) DF_MUST_CHECK;

#endif
