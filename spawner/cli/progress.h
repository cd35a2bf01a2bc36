/*
 * progress.h - the steps of a run, shown in the order in which they make sense.
 *
 * What happens is told by two streams that do not wait for each other: documents and log. A step is
 * said to run before its first line of log, and to have ended behind its last one. Thread rule:
 * main thread.
 */
#ifndef DF_CLI_PROGRESS_H
#define DF_CLI_PROGRESS_H

#include "spawner/cli/view.h"

#define DF_PROGRESS_STEPS 3

struct df_progress_step {
    const char *name;  /* "plan", "apply", "state": as in the run's status.steps */
    cJSON *final;      /* its TaskAction in its final shape; owned */
    char obstacle[80]; /* what it was last said to wait for */
    bool log_complete;
    bool started, ended; /* that was shown */
};

struct df_progress {
    struct df_view *view; /* borrowed */
    struct df_progress_step steps[DF_PROGRESS_STEPS];
};

void df_progress_init(struct df_progress *p, struct df_view *view);
void df_progress_free(struct df_progress *p);

/* A TaskAction as it is now. */
void df_progress_task(struct df_progress *p, const cJSON *task);

/* A piece of the log of this TaskAction, and that there is no more of it. */
void df_progress_log(struct df_progress *p, const char *task_name, const char *text);
void df_progress_log_complete(struct df_progress *p, const char *task_name);

/* Has this TaskAction been shown to run? What belongs to no step of a run counts as shown. */
bool df_progress_knows(const struct df_progress *p, const char *task_name);

/* Leaves out the steps that this run has behind it. */
void df_progress_skip_past(struct df_progress *p, const cJSON *run);

/* Was the plan, or everything of it, shown? */
bool df_progress_plan_shown(const struct df_progress *p);

#endif
