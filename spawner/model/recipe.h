/*
 * recipe.h - what a run of an action is made of: a table of its steps, and of what they lead to.
 * docs/objects.md describes actions and steps. Thread rule: pure functions, any thread.
 */
#ifndef DF_RECIPE_H
#define DF_RECIPE_H

#include "spawner/model/model.h"

#define DF_RECIPE_STEPS 2

struct df_recipe_step {
    const char *name;    /* its TaskAction is named after it: "plan" */
    const char *action;  /* spec.action of its TaskAction: "plan-destroy" */
    bool writes;         /* it may change the state */
    bool asks;           /* its plan must be approved before it begins */
    const char *plan_of; /* name of the step whose plan it carries out; NULL: it has none */
};

struct df_recipe {
    struct df_recipe_step steps[DF_RECIPE_STEPS];
    size_t count;
    size_t taken;         /* how many of them a run takes: a dry-run ends with its plan */
    const char *leads_to; /* the executor's state after a success; NULL: as it was */
    const char *reason;   /* of a run that took all steps; NULL: that of its last step */
    const char *idle_reason, *idle_message; /* of one whose plan has no changes */
};

const struct df_recipe *df_recipe_for(enum df_action action);
/* Of the run's action; that of a provision when it has none that is known. */
const struct df_recipe *df_recipe_of(const cJSON *run);

/* The step with this action; one that writes nothing when there is none. */
const struct df_recipe_step *df_recipe_step_for(const char *action);
/* The same of a TaskAction. */
const struct df_recipe_step *df_recipe_step_of(const cJSON *task);

/* What the run's status says of its steps[at]; or NULL. Borrowed. */
const cJSON *df_run_step(const cJSON *run, size_t at);

#endif
