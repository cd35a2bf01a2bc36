/*
 * context.h - the data that the stages of one step share: the step document, the findings of
 * earlier stages, and the log and the report. pipeline.h runs the stages.
 *
 * A stage takes the context and returns 0, or -1 with the reason for the run's status. It adds its
 * findings to `result` at once, so that a step that fails reports how far it came.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_CONTEXT_H
#define DF_RUNNER_CONTEXT_H

#include "runner/preparation.h"
#include "runner/report/output.h"
#include "runner/report/report.h"
#include "runner/source/kept.h"
#include "runner/stop.h"
#include "runner/tofu/command.h"
#include "runner/tofu/failure.h"
#include "runner/tofu/isolation.h"
#include "runner/tofu/plugin_use.h"
#include "runner/tofu/tool.h"
#include "runner/tofu/varfiles.h"
#include "runner/tofu/workspace.h"

/* Also in the header of a bundle: the apply reads there that the plan destroys. */
#define DF_ACTION_PLAN_DESTROY "plan-destroy"

struct df_work; /* work.h */

/* How a step ended: a reason word, and a sentence for people. */
struct df_outcome {
    char reason[48];
    char message[1024];
};

struct df_context {
    /* Borrowed. */
    const cJSON *doc; /* the step document */
    struct df_report *report;
    struct df_output *output;
    struct df_masks *masks; /* of output; other values once the module is known */
    struct df_stop *stop;
    struct df_preparation *preparation; /* what was got ready before the claim; or NULL */
    const struct df_dirs *dirs;
    const char *step_dir; /* outlives the work directory: tofu.pid, errored.tfstate */
    const struct df_isolation *isolation;
    const struct df_work *work; /* whose step it is */
    void *work_data;            /* of that row; or NULL */
    int64_t deadline_ms;        /* of df_mono_ms(): the step's time limit */
    bool destroys;              /* the action plans a destroy */
    bool has_plugins;           /* plan, apply: the module has providers that are not built in */
    bool is_kept;               /* apply: source and providers of its plan are in this pod */
    bool is_coloured;           /* the tool colours its text */
    bool is_init_quiet;         /* the text of `init` is shown only if it failed */
    /* Owned. */
    cJSON *result; /* of docs/step-protocol.md, growing */
    struct df_source_result source;
    struct df_plugin_uses plugin_uses; /* packages of the plugin cache */
    struct df_kept_source kept;        /* plan whose pod stays: the source as it was fetched */
    struct df_tool tool;
    struct df_workspace workspace;
    struct df_varfiles varfiles;
    char *pid_path, *fifo_path;
    struct df_step_wall wall;
    struct df_commander commander;
    struct df_outcome outcome;
    bool has_outputs; /* the state that the tool stored is whole: its outputs are the run's */
    bool partial;     /* the apply changed something before the step failed */
    struct df_failure logged; /* the error of a failed command, which is in the log already */
};

void df_context_free(struct df_context *c);

/* The wall of the step's commands, if its isolation is on. */
struct df_step_wall_request df_context_wall(const struct df_context *c);

/* For the apply after its plan in this pod: keeps the source and the packages that are in use,
 * with is_kept, and frees the rest. What is borrowed is NULL then. */
int df_context_renew(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* Adds {name, at} (real time) to the timeline, and reports it together with source and tool if they
 * are known. */
int df_context_mark(struct df_context *c, const char *name, int64_t at_us,
                    struct df_err *err) DF_MUST_CHECK;
/* Adds planSummary to the result. */
int df_context_add_summary(struct df_context *c, struct df_err *err) DF_MUST_CHECK;
void df_context_set_outcome(struct df_context *c, const char *reason, const char *fmt, ...)
    DF_PRINTF(3, 4);

#endif
