/*
 * platform.h - an executor whose runtime is `platform`: dayfly-platform deploys and tears down what
 * a repository describes (docs/platform.md). It has no state, so what is about a module and its
 * state is refused. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_PLATFORM_H
#define DF_MODEL_PLATFORM_H

#include "spawner/model/schema.h"

/* doc: an Executor or a TaskAction. */
bool df_platform_is(const cJSON *doc);

/* What only a module has, in the spec of an Executor. old: what it replaces; or NULL. */
void df_platform_check_executor(const cJSON *doc, const cJSON *old, const struct df_path *root,
                                struct df_faults *f);
/* The same of a Run of this executor. secrets: of the request; or NULL. USER InvalidDocument,
 * CONFLICT WrongState. */
int df_platform_check_run(const cJSON *run, const cJSON *secrets, const cJSON *executor,
                          struct df_err *err) DF_MUST_CHECK;

/* Fails: what was asked for is about a state. CONFLICT WrongState. */
int df_platform_refuse_state(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#endif
