/*
 * step.h - one step from its hand-over to its result: `dayfly-runner step`.
 *
 * Two homes: a spawner that hands the step out (docs/step-protocol.md), or a step document in a
 * file with a directory for the report. In a pod the hand-over lies in a file; the document is
 * claimed with the pod's token, or lies in a mounted Secret. The step's directory, <dir>:
 * <dir>/work/        checkout, secrets, spool, HOME of tofu; secrets are removed at the end
 * <dir>/result.json  the result document, complete or not there <dir>/tofu.pid     "<pid> <start
 * time>" of the tofu that runs or ran last <dir>/errored.tfstate  a state that could be stored
 * nowhere else Thread rule: main thread.
 */
#ifndef DF_STEP_H
#define DF_STEP_H

#include "common/base/err.h"

#define DF_STEP_POD_DIR "/work"
#define DF_HANDOFF_MAX ((size_t)65536) /* bytes of a hand-over */

struct df_step_options {
    int handoff_fd;           /* the hand-over is read from it; or -1 */
    const char *handoff_file; /* the same in a pod; or NULL */
    const char *file;         /* step document; with report_dir; or NULL */
    const char *report_dir;   /* made when absent */
    const char *work_dir; /* <dir>; NULL: DF_STEP_POD_DIR in a pod, else a temporary one, removed at
                             the end */
};

/* Runs the step; the exit code of the process (DF_EXIT_...), after the result was delivered or
 * left in <dir>/result.json. What went wrong before there was a step is logged. */
int df_step(const struct df_step_options *o);

#endif
