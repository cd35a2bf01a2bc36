/*
 * prepare.h - the stages that every action begins with, in this order. Thread rule: main thread.
 */
#ifndef DF_RUNNER_PREPARE_H
#define DF_RUNNER_PREPARE_H

#include "runner/context.h"

/* Fetches the source. For an apply it must be the planned one: reason SourceChanged. */
int df_prepare_source(struct df_context *c, struct df_err *err) DF_MUST_CHECK;
/* Finds the tool. For an apply it must be the planned version: reason ToolVersionChanged. */
int df_prepare_tool(struct df_context *c, struct df_err *err) DF_MUST_CHECK;
/* Writes the backend, variables, credentials and environment that the tool gets. */
int df_prepare_workspace(struct df_context *c, struct df_err *err) DF_MUST_CHECK;
/* Refuses documents that contain sensitive values (df_secrets_check()). Then masks the sensitive
 * values in variable files, and no longer masks plain values (tofu/sealed.h) of variables that the
 * module does not declare sensitive. */
int df_prepare_secrets(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
