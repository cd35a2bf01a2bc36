#include "spawner/model/recipe.h"

#include "spawner/model/accepted.h"

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
    return &df_recipes[action];
}

const struct df_recipe *df_recipe_of(const cJSON *run)
{
    static const struct df_recipe none = {.takes_turn = true};
    enum df_action action;
    struct df_err unknown = {0};
    return df_run_action(run, &action, &unknown) < 0 ? &none : df_recipe_for(action);
}

size_t df_recipe_apply(const struct df_recipe *recipe)
{
    size_t at = 0;
    while (at < recipe->count && !recipe->steps[at].plan_of)
        at++;
    return at;
}

bool df_recipe_asks(const struct df_recipe *recipe)
{
    for (size_t at = 0; at < recipe->count; at++)
        if (recipe->steps[at].asks)
            return true;
    return false;
}

bool df_run_takes_turn(const cJSON *run)
{
    return df_recipe_of(run)->takes_turn;
}

const struct df_recipe_step *df_recipe_step_for(const char *action)
{
    static const struct df_recipe_step none = {0};
    for (size_t i = 0; df_actions[i]; i++)
        for (size_t at = 0; at < df_recipes[i].count; at++)
            if (df_streq(df_recipes[i].steps[at].action, action))
                return &df_recipes[i].steps[at];
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
