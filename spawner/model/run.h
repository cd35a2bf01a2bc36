/*
 * run.h - the pure decision about a Run: what comes next. docs/architecture.md draws its phases.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_RUN_H
#define DF_MODEL_RUN_H

#include "common/json/json.h"
#include "spawner/model/approval.h"
#include "spawner/model/recipe.h"

/* The words of status.phase. */
#define DF_RUN_PHASES "Pending|Running|WaitingApproval|Succeeded|Failed|Canceled|Discarded"

/* Is the phase Succeeded, Failed, Canceled or Discarded? Such a run never changes again. */
bool df_run_is_final(const cJSON *run);
const char *df_run_phase(const cJSON *run); /* never NULL; "Pending" at first */

/* The action of its first step (recipe.h): a dry-run of an executor in state destroy plans what a
 * destroy would, unless a destroy is only under way. Borrowed literal; NULL if the run's action is
 * unknown. */
const char *df_run_first_action(const cJSON *run, const cJSON *executor);

enum df_run_next {
    DF_RUN_WAIT,        /* nothing to do until something changes, or until wake_us */
    DF_RUN_STEP,        /* create the TaskAction of steps[step] of its recipe */
    DF_RUN_ASK,         /* set phase WaitingApproval: steps[step] asks */
    DF_RUN_REMIND,      /* set remindedAt: the run has waited for its approval for long */
    DF_RUN_CANCEL_STEP, /* pass the cancel on to the live TaskAction */
    DF_RUN_END_LOST,    /* end the processes of the step whose TaskAction was deleted */
    DF_RUN_FINISH       /* set the final phase, reason and message given in the verdict */
};

struct df_run_verdict {
    enum df_run_next next;
    size_t step;       /* STEP, ASK */
    int64_t wake_us;   /* WAIT, REMIND, END_LOST: look again at this real time; 0: after a change */
    const char *phase; /* FINISH: the final phase; borrowed literal */
    char reason[48];
    char message[1024]; /* also of WAIT: what it waits for; or "" */
};

/* Everything that the decision depends on. All borrowed. */
struct df_run_view {
    const cJSON *run;
    const cJSON *executor;               /* NULL: deleted */
    const cJSON *steps[DF_RECIPE_STEPS]; /* the TaskActions of the steps of its recipe; NULL: not
                                            created yet. If the action is unknown: steps[0] is any
                                            step that has not ended */
    bool is_first;   /* the oldest unfinished run of its executor, or it takes no turn */
    bool lost_lives; /* a process of its lost step (df_run_lost_step()) still lives */
    struct df_approval_rules approval;
    const cJSON *beside; /* the run that status.beside names (beside.h); or NULL */
};

/* The one decision about a run. No step is created for a run of an unknown action; the run fails
 * once no step of it is under way. A step is created once: never if its TaskAction exists, or if
 * status.steps says that it existed. Therefore a TaskAction is created first and noted in
 * status.steps afterwards. A run whose TaskAction was deleted ends when no process of that step
 * lives. A run waits for its approval until the plan expires. */
struct df_run_verdict df_run_next(const struct df_run_view *view, int64_t now_us);

/* Is this TaskAction a step of the run? Another one may have the name of its step: a workflow, or a
 * step of an earlier run with its name. */
bool df_run_has_step(const cJSON *run, const cJSON *task);

/* The TaskAction of the latest step that was created; NULL: none. Borrowed. */
const cJSON *df_run_latest(const struct df_run_view *view);

/* Its row of the run's recipe. It says nothing, asks for nothing and writes nothing if there is no
 * step, or the action is unknown. Constant data. */
const struct df_recipe_step *df_run_latest_row(const struct df_run_view *view);

/* The TaskAction of the step that applies the plan of the first; NULL: not created yet, or the
 * recipe has no such step. Borrowed. */
const cJSON *df_run_apply(const struct df_run_view *view);

/* The entry of status.steps of the latest step, if that step was created and its TaskAction does
 * not exist any more: somebody deleted it and removed its finalizer. Else NULL. Borrowed. */
const cJSON *df_run_lost_step(const struct df_run_view *view);

/* Has this step ended and left a state that its runner could not hand over, and that may still be
 * kept from the files that its engine has? Until then its run goes on. */
bool df_run_awaits_state(const cJSON *step);

/* When the changed run is to be written; 0: now. The tool of its first step, and the source that
 * comes with it, change no phase: they are written with what does, or a second after the step is
 * initialized. before: as it is stored. */
int df_run_due_us(const cJSON *before, const cJSON *run, const cJSON *first, int64_t now_us,
                  int64_t *ret, struct df_err *err) DF_MUST_CHECK;

/* Undoes a final phase that somebody wrote into the status of an unfinished run: sets the phase
 * that its steps show, and removes the end. */
int df_run_reopen(cJSON *run, struct df_err *err) DF_MUST_CHECK;

#endif
