/*
 * work.h - whose step it is: what differs between a step of a run of dayfly and one that another
 * system gave. Each has a row. step.c finds it once, from the step document, and the context has
 * it: who needs to know something asks the row, and never which row it is.
 *
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_WORK_H
#define DF_RUNNER_WORK_H

#include "runner/context.h"

typedef int df_stage(struct df_context *c, struct df_err *err);

/* The stages of an action of the step document. */
struct df_step_recipe {
    const char *action;
    bool destroys;       /* plan: with -destroy */
    df_stage *stages[7]; /* ended by NULL */
};

/* The data of a row, `data`, is its own: start() or open() makes it, close() frees it. */
struct df_work {
    /* The member of the step document that makes the step one of this row; NULL: none does. */
    const char *member;
    const char *runtime;                            /* the same of its runtime.name */
    const struct df_step_recipe *recipes;           /* ended by {0} */
    const char *memory_limit;                       /* what a person raises */
    const struct df_source_advice *source_advice;   /* NULL: that of dayfly */
    const struct df_failure_advice *failure_advice; /* NULL: that of dayfly */
    bool logs_source;                               /* the log tells of each source */
    bool checks_calls; /* modules that the module calls must be in its source */

    /* Of an upstream that starts this program itself, without a command; or NULL, all of them. */
    const char *usage; /* when it does; a paragraph of the help */
    bool (*is_starter)(void);
    /* Reads the step from the environment of this process, before any other thread. */
    int (*start)(void **ret_data, struct df_err *err);
    /* The report of the step. It hands out the step document. */
    int (*connect)(void *data, const struct df_dirs *dirs, struct df_report **ret,
                   struct df_err *err);
    /* The step could not be begun here. */
    void (*tell_unstarted)(void *data, const char *why);
    /* Of the process, instead of `code` of the step; data NULL: start() failed. */
    int (*exit_code)(const void *data, int code);

    /* Of a step that the service hands out: completes the document; *report becomes part of the new
     * one, which replaces it. NULL: nothing is to be done. */
    int (*open)(cJSON *doc, const struct df_dirs *dirs, struct df_report **report, void **ret_data,
                struct df_err *err);
    void (*close)(void *data); /* after the report is freed */

    /* Writes the last lines of the log, from c->outcome. is_known: the step succeeded, or the tool
     * has said why it failed. NULL: one with the reason. */
    void (*note_end)(const struct df_context *c, bool is_known);
};

/* The row of this step; df_tofu_work, if no other has it. */
const struct df_work *df_work_of(const cJSON *doc);

/* The row that started this program; NULL: none did. */
const struct df_work *df_work_starter(void);

/* The rows, ended by NULL. */
extern const struct df_work *const df_works[];

/* Steps of a run of dayfly: plan, plan-destroy, apply, state (tofu_work.c). */
extern const struct df_work df_tofu_work;
/* The same of a platform: plan, plan-destroy, apply (platform_work.c). */
extern const struct df_work df_platform_work;

#endif
