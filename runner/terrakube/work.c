#include "runner/terrakube/work.h"

#include "runner/terrakube/advice.h"
#include "runner/terrakube/apply.h"
#include "runner/terrakube/begin.h"
#include "runner/terrakube/door.h"
#include "runner/terrakube/outcome.h"
#include "runner/terrakube/plan.h"
#include "runner/terrakube/report.h"
#include "runner/terrakube/service.h"

static const struct df_step_recipe recipes[] = {
    {.action = "terrakube-plan",
     .stages = {df_terrakube_begin, df_terrakube_ready, df_terrakube_plan}},
    {.action = "terrakube-plan-destroy",
     .destroys = true,
     .stages = {df_terrakube_begin, df_terrakube_ready, df_terrakube_plan}},
    {.action = "terrakube-apply",
     .stages = {df_terrakube_begin, df_terrakube_admit, df_terrakube_ready, df_terrakube_apply}},
    {.action = "terrakube-destroy",
     .stages = {df_terrakube_begin, df_terrakube_admit, df_terrakube_ready, df_terrakube_destroy}},
    {.action = "terrakube-scripts", .stages = {df_terrakube_begin, df_terrakube_run_scripts}},
    {0}};

static int connect_api(void *data, const struct df_dirs *dirs, struct df_report **ret,
                       struct df_err *err)
{
    struct df_terrakube_opened *o = data;
    return df_terrakube_report_new(&o->flow, dirs, NULL, ret, err);
}

static void tell_unstarted(void *data, const char *why)
{
    struct df_terrakube_opened *o = data;
    df_terrakube_tell_unstarted(&o->flow, why);
}

const struct df_work df_terrakube_work = {
    .member = "terrakube",
    .recipes = recipes,
    .memory_limit = "EPHEMERAL_MEMORY_LIMIT",
    .source_advice = &df_terrakube_source_advice,
    .failure_advice = &df_terrakube_failure_advice,
    .usage = "Without a command and with EphemeralFlagBatch=true in its environment it is the "
             "ephemeral\nexecutor of Terrakube (docs/terrakube.md); else it prints this.\n",
    .is_starter = df_terrakube_door_is_ours,
    .start = df_terrakube_door,
    .connect = connect_api,
    .tell_unstarted = tell_unstarted,
    .exit_code = df_terrakube_door_exit_code,
    .open = df_terrakube_join,
    .close = df_terrakube_close,
    .note_end = df_terrakube_note_end};
