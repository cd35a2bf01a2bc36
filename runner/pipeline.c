/*
 * The stages of each action stand in the row of the step's work (tofu_work.c). A stage adds to the
 * context what later stages need. The first failure ends the step.
 */
#include "runner/pipeline.h"

#include <errno.h>

#include "runner/work.h"

static const struct df_step_recipe *find_recipe(const struct df_context *c, struct df_err *err)
{
    const char *action = df_json_str(c->doc, "action");
    for (const struct df_step_recipe *r = c->work->recipes; r->action; r++) {
        if (df_streq(action, r->action))
            return r;
    }
    (void)df_fail_reason(
        err, DF_ERR_USER, "InvalidStep",
        "action: \"%.40s\" is not one of plan, plan-destroy, apply, state, validate",
        action ? action : "");
    return NULL;
}

static int run_stages(struct df_context *c, struct df_err *err)
{
    const struct df_step_recipe *recipe = find_recipe(c, err);
    if (!recipe)
        return -1;
    c->destroys = recipe->destroys;
    for (df_stage *const *stage = recipe->stages; *stage; stage++) {
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
