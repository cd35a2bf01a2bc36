/*
 * step.h - one step from its handoff to its result: `dayfly-runner step`.
 *
 * The step comes from a spawner (docs/step-protocol.md), or from a step document in a file, with a
 * directory for the report. The handoff of a spawner is read from a descriptor; in a pod it is a
 * file, and the document is claimed with the pod's token or mounted as a Secret. Another platform
 * can start this program with a step of its own (work.h).
 *
 * The step's directory <dir>:
 *   work/            checkout, secrets, spool, HOME of tofu; secrets are removed at the end
 *   result.json      the result document, written atomically
 *   tofu.pid         "<pid> <start time> <boot id>" of the latest tofu
 *   errored.tfstate  a state that could be stored nowhere else
 *
 * Thread rule: main thread.
 */
#ifndef DF_STEP_H
#define DF_STEP_H

#include "common/base/err.h"

struct df_work; /* work.h */

#define DF_STEP_POD_DIR "/work"
#define DF_HANDOFF_MAX ((size_t)65536) /* bytes of a handoff */

struct df_step_options {
    int handoff_fd;                /* descriptor with the handoff; or -1 */
    const char *handoff_file;      /* file with the handoff, in a pod; or NULL */
    const char *file;              /* step document; with report_dir; or NULL */
    const char *report_dir;        /* created if absent */
    const struct df_work *starter; /* instead: whose step started this program; or NULL */
    /* <dir>; NULL: DF_STEP_POD_DIR in a pod, else a temporary one, removed at the end. */
    const char *work_dir;
};

/* Runs the step and returns the exit code of the process (exit.h), after the result was delivered
 * or left in <dir>/result.json. A failure before the step was received is logged. */
int df_step(const struct df_step_options *o);

#endif
