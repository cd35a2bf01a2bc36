#include "spawner/steps/errored.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/model/labels.h"
#include "spawner/model/recipe.h"
#include "spawner/model/state_command.h"
#include "spawner/steps/step_auth.h"

int df_step_put_errored_state(struct df_spawner *s, const char *uid, const char *token,
                              const char *path, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    if (df_step_open(s, uid, token, &task, err) < 0)
        return -1;
    return df_state_keep_errored(s->states, df_json_str(task, "spec.executorRef.uid"), uid, path,
                                 err);
}

/* ---- what came after it ---- */

static int64_t made_at(const cJSON *task)
{
    int64_t us;
    const char *text = df_json_str(task, "metadata.creationTimestamp");
    return text && df_time_parse(text, &us, NULL) == 0 ? us : 0;
}

/* A df_store_visit: fails if this step changed the state after the step `arg`. */
static int check_later(const cJSON *task, void *arg, struct df_err *err)
{
    const cJSON *errored = arg;
    if (made_at(task) <= made_at(errored) || !df_recipe_step_of(task)->writes ||
        !df_json_bool(task, "status.hasChanges", false))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateRefused",
                          "step %s has changed the state after %s, whose errored state would undo "
                          "that: bring what the state lacks into it with `dayfly state import`",
                          df_json_str(task, "metadata.name"),
                          df_json_str(errored, "metadata.name"));
}

int df_errored_state_check(struct df_spawner *s, const char *step, struct df_err *err)
{
    DF_JSON cJSON *errored = NULL;
    struct df_err why = {0};
    if (df_store_get_by_uid(s->store, DF_KIND_TASK_ACTION, step, &errored, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    DF_FREE char *label =
        df_strf(DF_LABEL_EXECUTOR "=%s", df_json_str(errored, "spec.executorRef.name"));
    return label ? df_store_each(s->store, DF_KIND_TASK_ACTION, label, check_later, errored, err)
                 : df_fail_oom(err);
}

/* ---- the push ---- */

int df_step_get_errored_state(struct df_spawner *s, const char *uid, const char *token, int *ret_fd,
                              int64_t *ret_size, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    if (df_step_open(s, uid, token, &task, err) < 0)
        return -1;
    const char *step = df_state_command_pushes(task);
    if (!step)
        return df_fail(err, DF_ERR_NOT_FOUND, "this step pushes no errored state");
    if (df_errored_state_check(s, step, err) < 0)
        return -1;
    return df_state_open_errored(s->states, df_json_str(task, "spec.executorRef.uid"), step, ret_fd,
                                 ret_size, err);
}

void df_step_drop_errored_state(struct df_spawner *s, const cJSON *task)
{
    struct df_err err = {0};
    const char *step = df_state_command_pushes(task);
    if (step && df_json_int(task, "status.exitCode", -1) == 0 &&
        df_state_drop_errored(s->states, df_json_str(task, "spec.executorRef.uid"), step, &err) < 0)
        df_warn("the errored state of step %s stays, though it is stored: %s", step, err.message);
}
