/*
 * pipeline.h - the stages of a step, by its action: source, tool, workspace, init, the command,
 * collect.
 *
 * The pipeline knows neither where the step came from nor where its report goes (step.c).
 * Thread rule: main thread.
 */
#ifndef DF_PIPELINE_H
#define DF_PIPELINE_H

#include "runner/context.h"

/* Runs the step and sets c->outcome. A failure carries the reason of the run's status; that of a
 * step that was told to stop is Canceled or TimedOut. */
int df_pipeline_run(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
