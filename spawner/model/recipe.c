#include "spawner/model/recipe.h"

#include "spawner/model/accepted.h"

#define PLAN(command)                                                                              \
    {                                                                                              \
        .name = "plan", .action = (command)                                                        \
    }
#define APPLY                                                                                      \
    {                                                                                              \
        .name = "apply", .action = "apply", .writes = true, .asks = true, .plan_of = "plan"        \
    }

const char *const df_step_actions[] = {"plan", "plan-destroy", "apply", "state", NULL};

static const struct df_recipe recipes[] = {
    [DF_ACTION_PROVISION] = {.steps = {PLAN("plan"), APPLY},
                             .count = 2,
                             .taken = 2,
                             .takes_turn = true,
                             .leads_to = "provisioned",
                             .reason = "Applied",
                             .idle_reason = "NoChanges",
                             .idle_message = "there was nothing to change"},
    [DF_ACTION_DRY_RUN] = {.steps = {PLAN("plan"), APPLY},
                           .count = 2,
                           .taken = 1,
                           .reason = "Planned"},
    [DF_ACTION_DESTROY] = {.steps = {PLAN("plan-destroy"), APPLY},
                           .count = 2,
                           .taken = 2,
                           .takes_turn = true,
                           .leads_to = "destroyed",
                           .reason = "Destroyed",
                           .idle_reason = "Destroyed",
                           .idle_message = "there was nothing to destroy"},
    [DF_ACTION_STATE] = {.steps = {{.name = "state", .action = "state", .writes = true}},
                         .count = 1,
                         .taken = 1,
                         .takes_turn = true},
};

int df_run_action(const cJSON *run, enum df_action *ret, struct df_err *err)
{
    const char *name = df_json_str(run, "spec.action");
    struct df_err why = {0};
    if (df_action_parse(name ? name : "", ret, &why) == 0)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, DF_REASON_REFUSED, "spec.action: %s", why.message);
}

const struct df_recipe *df_recipe_for(enum df_action action)
{
    return &recipes[action];
}

const struct df_recipe *df_recipe_of(const cJSON *run)
{
    static const struct df_recipe none = {.takes_turn = true};
    enum df_action action;
    struct df_err unknown = {0};
    return df_run_action(run, &action, &unknown) < 0 ? &none : &recipes[action];
}

bool df_run_takes_turn(const cJSON *run)
{
    return df_recipe_of(run)->takes_turn;
}

const struct df_recipe_step *df_recipe_step_for(const char *action)
{
    static const struct df_recipe_step none = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(recipes); i++)
        for (size_t at = 0; at < recipes[i].count; at++)
            if (df_streq(recipes[i].steps[at].action, action))
                return &recipes[i].steps[at];
    return &none;
}

const struct df_recipe_step *df_recipe_step_of(const cJSON *task)
{
    return df_recipe_step_for(df_json_str(task, "spec.action"));
}

const cJSON *df_run_step(const cJSON *run, size_t at)
{
    const struct df_recipe *recipe = df_recipe_of(run);
    const cJSON *step;
    if (at >= recipe->count)
        return NULL;
    cJSON_ArrayForEach (step, df_json_at(run, "status.steps")) {
        if (df_streq(df_json_str(step, "name"), recipe->steps[at].name))
            return step;
    }
    return NULL;
}

bool df_run_may_have_written(const cJSON *run)
{
    const struct df_recipe *recipe = df_recipe_of(run);
    for (size_t at = 0; at < recipe->count; at++)
        if (recipe->steps[at].writes && df_run_step(run, at))
            return true;
    return false;
}
