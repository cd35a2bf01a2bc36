/*
 * work_dir.h - the working directory of a local step. All steps of an executor use the same path,
 * so that paths in plans and outputs do not change from run to run.
 *
 * <root>/at/<executor>/work  the directory, while a step uses it
 * <root>/at/<executor>/step  link to that step's directory
 * <root>/<uid>/work          link to the directory
 * <root>/<uid>/at            link to <root>/at/<executor>
 *
 * Before another step gets the path, and before its step is removed, the directory is moved to
 * <root>/<uid>/work. So the files of a step stay available, and the next step never finds them. A
 * step that is still running keeps the path, and the next one works in its own <root>/<uid>/work.
 * If the runner has written its result and is only exiting, the next step waits for it.
 * Thread rule: calls about one root are serialised by the engine.
 */
#ifndef DF_ENGINE_WORK_DIR_H
#define DF_ENGINE_WORK_DIR_H

#include "spawner/engine/local/step_dir.h"

/* Creates an empty d->work. Waits up to DF_TIMEOUT_RUNNER_EXIT_MS for a runner that is exiting.
 * d->top must exist, without any of the files above. executor: a name; NULL: the step has no
 * executor and works below d->top. */
int df_work_dir_make(const struct df_step_dir *d, const char *executor,
                     struct df_err *err) DF_MUST_CHECK;

/* Releases the path: d->work becomes a directory of its own. Success if it is one already. */
int df_work_dir_release(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

#endif
