/*
 * work_dir.h - the directory that a local step works in: under one path for all steps of an
 * executor, so that paths in plans and outputs stay what they are from run to run.
 *
 * <root>/at/<executor>/work  the directory, while a step has it
 * <root>/at/<executor>/step  link to that step's directory
 * <root>/<uid>/work          link to the directory
 * <root>/<uid>/at            link to <root>/at/<executor>
 *
 * Before another step gets the path, and before its step is removed, the directory is moved to
 * <root>/<uid>/work: what a step left is found there, and never by the next step. A step that is
 * still at work keeps the path, and the next one works in its own <root>/<uid>/work. A runner that
 * has written its result only has to exit: the next step waits for that.
 * Thread rule: calls about one root are serialised by the engine.
 */
#ifndef DF_ENGINE_WORK_DIR_H
#define DF_ENGINE_WORK_DIR_H

#include "spawner/engine/local/step_dir.h"

/* Makes d->work, empty. Waits up to DF_TIMEOUT_RUNNER_EXIT_MS for a runner that exits. d->top exists, and nothing below it that is named above. executor: a name,
 * or NULL for a step without one, which works below d->top. */
int df_work_dir_make(const struct df_step_dir *d, const char *executor,
                     struct df_err *err) DF_MUST_CHECK;

/* The path is free again; d->work is a directory of its own. Twice is success. */
int df_work_dir_give_back(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

#endif
