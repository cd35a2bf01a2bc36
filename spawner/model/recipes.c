/* What the service can do with an executor: the rows of recipe.h. */
#include "spawner/model/recipe.h"

#define PLAN(command)                                                                              \
    {                                                                                              \
        .name = "plan", .action = (command), .plans = true                                         \
    }
#define APPLY                                                                                      \
    {                                                                                              \
        .name = "apply", .action = "apply", .writes = true, .asks = true, .plan_of = "plan"        \
    }

const char *const df_step_actions[] = {"plan", "plan-destroy", "apply", "state", "validate", NULL};

const struct df_recipe df_recipes[] = {
    [DF_ACTION_PROVISION] = {.steps = {PLAN("plan"), APPLY},
                             .count = 2,
                             .takes_turn = true,
                             .leads_to = "provisioned",
                             .reason = "Applied",
                             .idle_reason = "NoChanges",
                             .idle_message = "there was nothing to change"},
    [DF_ACTION_DRY_RUN] = {.steps = {PLAN("plan")},
                           .count = 1,
                           .reason = "Planned",
                           .idle_reason = "NoChanges"},
    [DF_ACTION_DESTROY] = {.steps = {PLAN("plan-destroy"), APPLY},
                           .count = 2,
                           .takes_turn = true,
                           .leads_to = "destroyed",
                           .reason = "Destroyed",
                           .idle_reason = "Destroyed",
                           .idle_message = "there was nothing to destroy"},
    [DF_ACTION_STATE] = {.steps = {{.name = "state", .action = "state", .writes = true}},
                         .count = 1,
                         .takes_turn = true},
    [DF_ACTION_VALIDATE] = {.steps = {{.name = "validate", .action = "validate"}}, .count = 1},
};
