/*
 * progress.h - shows the steps of a run in the right order.
 *
 * Documents and log come from two streams that are not synchronized. The start of a step is shown
 * before the first line of its log, and its end after the last line. Thread rule: main thread.
 */
#ifndef DF_CLI_PROGRESS_H
#define DF_CLI_PROGRESS_H

#include "spawner/cli/follow/view.h"
#include "spawner/model/recipe.h"

struct df_progress_step {
    char name[24];     /* "plan": as in the run's status.steps */
    cJSON *final;      /* its TaskAction after its end; owned */
    char obstacle[80]; /* what it waits for, as last shown */
    bool log_complete;
    bool started, ended; /* start and end were shown */
};

struct df_progress {
    struct df_view *view;                           /* borrowed */
    struct df_progress_step steps[DF_RECIPE_STEPS]; /* in the order in which they were seen */
    size_t count;
};

void df_progress_init(struct df_progress *p, struct df_view *view);
void df_progress_free(struct df_progress *p);

/* Processes the current version of a TaskAction. */
void df_progress_task(struct df_progress *p, const cJSON *task);

/* Processes a piece of the log of this TaskAction, and the end of that log. */
void df_progress_log(struct df_progress *p, const char *task_name, const cJSON *piece);
void df_progress_log_complete(struct df_progress *p, const char *task_name);

/* True if the start of this TaskAction was shown, or if it is no step of a run. */
bool df_progress_knows(struct df_progress *p, const char *task_name);

/* Does not show the steps of this run that have ended. */
void df_progress_skip_past(struct df_progress *p, const cJSON *run);

/* True if there is a step, and all were shown to their end, or skipped. */
bool df_progress_is_complete(const struct df_progress *p);

#endif
