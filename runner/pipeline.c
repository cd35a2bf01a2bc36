/*
 * The table recipes[] lists the stages of each action; read it first. A stage adds to the context
 * what later stages need. The first failure ends the step.
 */
#include "runner/pipeline.h"

#include <errno.h>

#include "runner/apply.h"
#include "runner/emptied.h"
#include "runner/plan.h"
#include "runner/prepare.h"
#include "runner/state_command.h"
#include "runner/terrakube/apply.h"
#include "runner/terrakube/begin.h"
#include "runner/terrakube/plan.h"

typedef int stage_fn(struct df_context *c, struct df_err *err);

static const struct recipe {
    const char *action;  /* of the step document */
    bool destroys;       /* plan: with -destroy */
    stage_fn *stages[7]; /* ended by NULL */
} recipes[] = {
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
};

static const struct recipe *find_recipe(const char *action, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(recipes); i++) {
        if (df_streq(action, recipes[i].action))
            return &recipes[i];
    }
    (void)df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                         "action: \"%.40s\" is not plan, plan-destroy, apply or state",
                         action ? action : "");
    return NULL;
}

static int run_stages(struct df_context *c, struct df_err *err)
{
    const struct recipe *recipe = find_recipe(df_json_str(c->doc, "action"), err);
    if (!recipe)
        return -1;
    c->destroys = recipe->destroys;
    for (stage_fn *const *stage = recipe->stages; *stage; stage++) {
        if ((*stage)(c, err) < 0)
            return -1;
    }
    return 0;
}

/* If the step was told to stop, that is the reason of its failure. */
static int explain_stop(const struct df_context *c, struct df_err *err)
{
    struct df_err why = *err;
    switch (df_stop_cause(c->stop)) {
    case DF_STOP_SIGNAL:
    case DF_STOP_OVER:
        return df_fail_reason(err, DF_ERR_USER, "Canceled", "canceled: %s", why.message);
    case DF_STOP_TIMEOUT:
        return df_fail_reason(
            err, DF_ERR_USER, "TimedOut", "did not end within %lld s and was stopped: %s",
            (long long)df_json_int(c->doc, "timeoutSeconds", DF_TIMEOUT_STEP_SECONDS), why.message);
    case DF_STOP_NONE:
        break;
    }
    return -1;
}

int df_pipeline_run(struct df_context *c, struct df_err *err)
{
    struct df_err why = {0};
    int result = run_stages(c, &why);
    if (result == 0)
        return 0;
    if (why.os_errno == ENOSPC || why.os_errno == EDQUOT)
        (void)snprintf(why.reason, sizeof why.reason, "DiskFull");
    (void)df_err_reason(&why, "RunnerFailed");
    (void)explain_stop(c, &why);
    return df_err_pass(err, &why);
}
