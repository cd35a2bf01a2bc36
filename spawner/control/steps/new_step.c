#include "spawner/control/steps/new_step.h"

#include "spawner/control/task_pass.h"
#include "spawner/model/instance.h"
#include "spawner/model/shared_pod.h"
#include "spawner/steps/standby.h"

/* A pod that is there may serve it: that of its plan, or a standby runner, which nobody knows
 * before the engine has told of the first list. Its own pass looks. */
static bool may_find_pod(const struct df_control *c, const cJSON *task, const cJSON *before)
{
    struct df_standby *runners = c->s->standby;
    return df_streq(df_shared_pod_guest(before), df_json_str(task, "metadata.name")) ||
           (c->standby_pool && !(df_standby_is_open(runners) && df_standby_is_empty(runners)));
}

/* Will its first pass make a pod for it, if there is a slot? */
static bool gets_own_pod(struct df_control *c, const cJSON *task, const cJSON *before)
{
    const struct df_engine *e = df_engine_find(&c->s->engines, df_json_str(task, "spec.engine"));
    return e && e->kind->runs_pods && !atomic_load(&c->draining) &&
           !may_find_pod(c, task, before) &&
           df_class_check(c->s->config->classes, df_json_str(task, "spec.class"), NULL) == 0;
}

int df_new_step_create(struct df_control *c, cJSON *task, const cJSON *before, cJSON **ret,
                       struct df_err *err)
{
    struct df_task_pass p = {.c = c, .hooks = &df_tofu_hooks, .task = task};
    struct df_slot slot = {0};
    if (gets_own_pod(c, task, before) && df_task_begin_new(&p, task, &slot, err) < 0)
        return -1;
    int result = df_task_create(c->s, task, ret, err);
    df_slots_unreserve(&c->slots, &slot);
    return result;
}
