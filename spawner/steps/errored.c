#include "spawner/steps/errored.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/model/errored_states.h"
#include "spawner/model/labels.h"
#include "spawner/model/recipe.h"
#include "spawner/model/state_command.h"
#include "spawner/steps/step_auth.h"

/* ---- what the executor names ---- */

/* {step, run, at}; without run if its step was removed. */
static int describe_kept(struct df_spawner *s, const char *step, cJSON *list, struct df_err *err)
{
    cJSON *entry = cJSON_CreateObject();
    DF_JSON cJSON *task = NULL;
    struct df_err why = {0};
    if (df_json_append(list, entry, err) < 0)
        return -1;
    if (df_store_get_by_uid(s->store, DF_KIND_TASK_ACTION, step, &task, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (df_json_add_str(entry, "step", step, err) < 0 ||
        df_json_add_str(entry, "run", df_json_str(task, "spec.runRef.name"), err) < 0)
        return -1;
    return df_json_add_time(entry, "at", df_real_us(), err);
}

/* A df_store_change: it looks after it has read the executor, so that of two writers the later one
 * has seen both changes. */
static int set_kept(cJSON *executor, void *arg, struct df_err *err)
{
    struct df_spawner *s = arg;
    DF_STRS struct df_strs steps = {0};
    DF_JSON cJSON *kept = cJSON_CreateArray(), *before = cJSON_Duplicate(executor, true);
    if (!kept || !before)
        return df_fail_oom(err);
    if (!df_json_at(executor, "status"))
        return 1;
    if (df_state_errored_steps(s->states, df_json_str(executor, "metadata.uid"), &steps, err) < 0)
        return -1;
    for (size_t i = 0; i < steps.len; i++)
        if (describe_kept(s, steps.items[i], kept, err) < 0)
            return -1;
    if (df_errored_set(executor, kept, err) < 0)
        return -1;
    return df_json_equal(before, executor) ? 1 : 0;
}

int df_errored_note(struct df_spawner *s, const char *executor, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_store_modify(s->store, DF_KIND_EXECUTOR, executor, set_kept, s, ret, &why) == 0 ||
        why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

int df_errored_discard(struct df_spawner *s, const cJSON *executor, const char *step,
                       struct df_err *err)
{
    return df_state_drop_errored(s->states, df_json_str(executor, "metadata.uid"), step, err) < 0
               ? -1
               : df_errored_note(s, df_json_str(executor, "metadata.name"), NULL, err);
}

/* ---- the step that leaves it ---- */

int df_step_put_errored_state(struct df_spawner *s, const char *uid, const char *token,
                              const char *path, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_step_open(s, uid, token, &task, err) < 0)
        return -1;
    if (!df_recipe_step_of(task)->writes)
        return df_fail_reason(err, DF_ERR_DENIED, "Forbidden", "this step writes no state");
    if (df_state_keep_errored(s->states, df_json_str(task, "spec.executorRef.uid"), uid, path,
                              err) < 0)
        return -1;
    return df_errored_note(s, df_json_str(task, "spec.executorRef.name"), NULL, err);
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
    DF_SHARED const cJSON *task = NULL;
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
        (df_state_drop_errored(s->states, df_json_str(task, "spec.executorRef.uid"), step, &err) <
             0 ||
         df_errored_note(s, df_json_str(task, "spec.executorRef.name"), NULL, &err) < 0))
        df_warn("the errored state of step %s stays, though it is stored: %s", step, err.message);
}
