#include "spawner/model/task_kinds.h"

#include "spawner/model/workflow.h"

/* The first one takes what no other has. */
static const struct df_task_kind kinds[DF_TASK_KINDS] = {
    [DF_TASK_STEP] = {DF_TASK_STEP, NULL, .has_managed_state = true, .comparison = "dry-run"},
    [DF_TASK_WORKFLOW] = {DF_TASK_WORKFLOW, DF_ACTION_WORKFLOW, .has_managed_state = true,
                          .comparison = "dry-run"},
    [DF_TASK_TERRAKUBE] = {DF_TASK_TERRAKUBE, DF_ACTION_TERRAKUBE, "terrakube", .may_create = true,
                           .comparison = "new plan"},
};

const struct df_task_kind *df_task_kind(const cJSON *task)
{
    const char *action = df_json_str(task, "spec.action");
    for (size_t i = 1; action && i < DF_ARRAY_SIZE(kinds); i++) {
        if (df_streq(action, kinds[i].action))
            return &kinds[i];
    }
    return &kinds[DF_TASK_STEP];
}

const cJSON *df_task_of_upstream(const cJSON *task)
{
    const char *member = df_task_kind(task)->member;
    return member ? df_json_at(df_json_at(task, "spec"), member) : NULL;
}
