/*
 * document.h - a job of Terrakube as a step document (docs/step-protocol.md). Thread rule: pure
 * function, any thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_DOCUMENT_H
#define DF_RUNNER_TERRAKUBE_DOCUMENT_H

#include "runner/terrakube/flow.h"

/* What the payload, the settings and the environment say; source, state and tool are added by the
 * stages. secret_dir: of the step, where its `files` will be. The caller wipes *ret. */
int df_terrakube_document(const struct df_terrakube *t, const char *secret_dir, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* The same, added to a document of the service, whose own members stay. */
int df_terrakube_document_complete(const struct df_terrakube *t, const char *secret_dir, cJSON *doc,
                                   struct df_err *err) DF_MUST_CHECK;

#endif
