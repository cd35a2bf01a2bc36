/*
 * recipe.h - the table of actions: the steps of a run with this action, and its result. A run walks
 * the steps in their order: whoever handles steps iterates, and names none. The first step finds
 * out what there is to do. docs/objects.md describes actions and steps. Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_RECIPE_H
#define DF_RECIPE_H

#include "common/json/json.h"
#include "spawner/model/names.h"

#define DF_RECIPE_STEPS 4

struct df_recipe_step {
    const char *name;    /* suffix of the TaskAction's name: "plan" */
    const char *action;  /* spec.action of its TaskAction: "plan-destroy" */
    bool plans;          /* makes a plan, which the policies judge */
    bool writes;         /* may change the state */
    bool asks;           /* starts only when it is approved */
    const char *plan_of; /* name of the step whose plan it applies; NULL: none */
};

struct df_recipe {
    struct df_recipe_step steps[DF_RECIPE_STEPS];
    size_t count;
    bool takes_turn;      /* one after the other, under the state's lock; else beside any other */
    const char *leads_to; /* the executor's state after a success; NULL: unchanged */
    const char *reason;   /* of a run that executed all steps; NULL: that of its last step */
    const char *idle_reason, *idle_message; /* of a run whose plan has no changes */
};

/* The action of the run. USER InvalidDocument if this version does not know the action: a newer
 * version may have accepted the run. The message names the key, its value and the known actions. */
int df_run_action(const cJSON *run, enum df_action *ret, struct df_err *err) DF_MUST_CHECK;

/* The rows (recipes.c), by action. */
extern const struct df_recipe df_recipes[];

/* The recipe of an action. Constant data. */
const struct df_recipe *df_recipe_for(enum df_action action);
/* The recipe of the run's action; an empty recipe, without steps, if the action is unknown. */
const struct df_recipe *df_recipe_of(const cJSON *run);

/* The index of the step that applies the plan of the first; count: there is none. */
size_t df_recipe_apply(const struct df_recipe *recipe);

/* Does a step of it wait for an approval? */
bool df_recipe_asks(const struct df_recipe *recipe);

/* Does the run wait until it is the first of its executor? One that only reads does not: it takes
 * no lock and plans the state as it is stored. A run of an unknown action may write. */
bool df_run_takes_turn(const cJSON *run);

/* The actions of all steps, ended by NULL (recipes.c). */
extern const char *const df_step_actions[];
/* The step with this action; an empty step, which writes nothing, if there is none. Steps of the
 * same action are the same in each recipe. */
const struct df_recipe_step *df_recipe_step_for(const char *action);
/* The same of a TaskAction. */
const struct df_recipe_step *df_recipe_step_of(const cJSON *task);

/* Did a step that writes begin: is it in status.steps? */
bool df_run_may_have_written(const cJSON *run);

/* The entry of status.steps for steps[at] of the run's recipe; or NULL. Borrowed. */
const cJSON *df_run_step(const cJSON *run, size_t at);

#endif
