/*
 * workflow_log.h - the log of a workflow: what its engine says that it has printed is copied into
 * the stored log of the step, while it runs and when it has ended. Thread rule: the worker that has
 * the document's key.
 */
#ifndef DF_CONTROL_WORKFLOW_LOG_H
#define DF_CONTROL_WORKFLOW_LOG_H

#include "spawner/control/task_pass.h"

/* For the hook after_observe: copies what is new, if it is time to. A running workflow is read at
 * growing intervals, one that has ended until all is stored, at most for 20 seconds. */
int df_workflow_keep_log(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

#endif
