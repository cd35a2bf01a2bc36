/*
 * pipeline.h - one step on its way: source, toolchain, workspace, init, the action, collect.
 *
 * It knows neither where the step came from nor where its report goes (step.c). What it finds out
 * is added to `result` as it becomes known, so that a step that fails half-way says how far it
 * came. Thread rule: main thread.
 */
#ifndef DF_PIPELINE_H
#define DF_PIPELINE_H

#include "runner/report/output.h"
#include "runner/report/report.h"
#include "runner/source/source.h"
#include "runner/stop.h"
#include "runner/tofu/command.h"
#include "runner/tofu/toolchain.h"
#include "runner/tofu/workspace.h"

enum df_step_action { DF_STEP_PLAN, DF_STEP_PLAN_DESTROY, DF_STEP_APPLY };

/* Exit codes of the runner (design 5.8). */
enum { DF_EXIT_OK, DF_EXIT_FAILED, DF_EXIT_PARTIAL, DF_EXIT_INVALID, DF_EXIT_TIMEOUT };

/* Nobody but a foreign tofu can hold the lock while a step runs: a short wait, then say who it is.
 */
#define DF_LOCK_TIMEOUT "-lock-timeout=5s"

/* How a step that did its work ended. */
struct df_outcome {
    char reason[48];
    char message[1024];
};

struct df_pipeline {
    /* Borrowed. */
    const cJSON *doc; /* the step document */
    struct df_report *report;
    struct df_output *output;
    struct df_stop *stop;
    const struct df_dirs *dirs;
    const char *step_dir; /* what outlives the work directory: tofu.pid, a state without a home */
    int64_t deadline_ms;  /* of df_mono_ms(): the step's time limit */
    /* Owned. */
    cJSON *result; /* of docs/step-protocol.md, growing */
    enum df_step_action action;
    struct df_source_result source;
    struct df_tool tool;
    struct df_workspace workspace;
    char *pid_path, *fifo_path;
    struct df_commander commander;
    bool partial; /* something changed before it failed */
};

void df_pipeline_free(struct df_pipeline *p);

/* Runs the step. Failures carry the reason of the run's status; what was asked to stop is
 * Canceled or TimedOut. */
int df_pipeline_run(struct df_pipeline *p, struct df_outcome *ret,
                    struct df_err *err) DF_MUST_CHECK;

/* ---- for the actions (plan.c, apply.c) ---- */

/* Adds {name, at} (real time) to the timeline and sends it together with what is known by then. */
int df_pipeline_mark(struct df_pipeline *p, const char *name, int64_t at_us,
                     struct df_err *err) DF_MUST_CHECK;
int df_pipeline_init(struct df_pipeline *p, bool lock_readonly, struct df_err *err) DF_MUST_CHECK;
/* Does this tool print text and events at once (-json-into, since OpenTofu 1.12)? */
bool df_pipeline_prints_both(const struct df_pipeline *p);
/* How plan and apply of this tool tell their events; adds the argument for it. */
enum df_command_events df_pipeline_events(const struct df_pipeline *p, struct df_strs *args);
/* "tofu plan", for messages. Returns out. */
const char *df_pipeline_command_name(const struct df_pipeline *p, const char *command,
                                     char out[32]);
/* Adds planSummary. */
int df_pipeline_add_summary(struct df_pipeline *p, struct df_err *err) DF_MUST_CHECK;

int df_plan(struct df_pipeline *p, struct df_outcome *ret, struct df_err *err) DF_MUST_CHECK;
int df_apply(struct df_pipeline *p, struct df_outcome *ret, struct df_err *err) DF_MUST_CHECK;

#endif
