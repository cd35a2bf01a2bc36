/* The row of a run of dayfly: the stages of its actions. */
#include "runner/apply.h"
#include "runner/emptied.h"
#include "runner/plan.h"
#include "runner/prepare.h"
#include "runner/state_command.h"
#include "runner/work.h"

static const struct df_step_recipe recipes[] = {
    {.action = "plan",
     .stages = {df_prepare_source, df_prepare_tool, df_configuration_check, df_prepare_workspace,
                df_prepare_secrets, df_plan}},
    {.action = DF_ACTION_PLAN_DESTROY,
     .destroys = true,
     .stages = {df_prepare_source, df_prepare_tool, df_prepare_workspace, df_prepare_secrets,
                df_plan}},
    {.action = "apply",
     .stages = {df_prepare_source, df_prepare_tool, df_prepare_workspace, df_prepare_secrets,
                df_apply}},
    {.action = "state",
     .stages = {df_prepare_source, df_prepare_tool, df_prepare_workspace, df_prepare_secrets,
                df_state_command}},
    {0}};

const struct df_work df_tofu_work = {.recipes = recipes,
                                     .memory_limit = "placement.resources.limits.memory",
                                     .logs_source = true,
                                     .checks_calls = true};
