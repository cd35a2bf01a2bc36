/*
 * model.h - the validation of Executor, Run and TaskAction, and the pure decisions about them: no
 * I/O, no clock, no store. docs/objects.md describes the documents. Thread rule: pure functions,
 * any thread.
 *
 * Includes the decisions: names.h, storage.h, executor.h, policy.h, run.h, task.h. The fields are
 * in tables.h.
 */
#ifndef DF_MODEL_H
#define DF_MODEL_H

#include "common/base/strs.h"
#include "spawner/model/executor.h"
#include "spawner/model/kinds.h"
#include "spawner/model/names.h"
#include "spawner/model/policy.h"
#include "spawner/model/run.h"
#include "spawner/model/storage.h"
#include "spawner/model/task.h"

/* Checks a document that a client sent (no status allowed; metadata only name, namespace, labels,
 * annotations, and resourceVersion). Every fault is found; the message lists them, each with its
 * path ("spec.source.url: is required"). Class USER, reason InvalidDocument. Defaults are filled
 * in, apiVersion and kind too. old == NULL for a create; else frozen fields are compared. */
int df_model_admit(enum df_kind kind, cJSON *doc, const cJSON *old,
                   struct df_err *err) DF_MUST_CHECK;

/* The member of `secrets` with the text of the caller's CLI configuration of the tool. */
#define DF_SEALED_CLI_CONFIG "cliConfig"

/* Checks the member `secrets` of a request for a run: names, types and sizes. Messages never
 * contain a value. USER InvalidDocument. */
int df_model_check_secrets(cJSON *secrets, struct df_err *err) DF_MUST_CHECK;

/* The first variable of the environment of a run, an object, that only an admin may give it: it is
 * not known as harmless, and not in named (names, or prefixes with *), which may be NULL. NULL:
 * there is none. Borrowed. */
const char *df_model_admins_variable(const cJSON *environment, const struct df_strs *named);
/* The first variable of the same provider (AWS_*) as one of own, the variables that the executor
 * sets: keys of somebody else's account would take its secrets there. The rest as above. */
const char *df_model_foreign_variable(const cJSON *environment, const cJSON *own,
                                      const struct df_strs *named);

#endif
