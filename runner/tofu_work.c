/* The row of a run of dayfly: the stages of its actions, and the last line of its log. */
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

static void note_end(const struct df_context *c, bool is_known)
{
    if (is_known)
        (void)df_output_note(c->output, "dayfly: %s", c->outcome.reason);
    else
        (void)df_output_note(c->output, "dayfly: %s: %s", c->outcome.reason, c->outcome.message);
}

const struct df_work df_tofu_work = {.recipes = recipes,
                                     .memory_limit = "placement.resources.limits.memory",
                                     .logs_source = true,
                                     .checks_calls = true,
                                     .note_end = note_end};
