#include "spawner/control/steps/shared_pod.h"

#include "spawner/engine/placement/placement.h"
#include "spawner/model/recipe.h"
#include "spawner/model/shared_pod.h"
#include "spawner/requests/new_docs.h"
#include "spawner/steps/standby.h"
#include "spawner/steps/step_document.h"

/* ---- a plan is made ---- */

static bool claims_as_pod(const struct df_spawner *s, const cJSON *step)
{
    const struct df_engine *e = df_engine_find(&s->engines, df_json_str(step, "spec.engine"));
    return e && e->kind->runs_pods;
}

static int wants_own_pods(const struct df_spawner *s, const cJSON *step, bool *ret,
                          struct df_err *err)
{
    const struct df_placement_levels levels = df_step_placement(s->config, step);
    DF_JSON cJSON *placement = NULL;
    if (df_placement_resolve(&levels, &placement, err) < 0)
        return -1;
    *ret = df_json_bool(placement, "podPerStep", true);
    return 0;
}

static int set_keeps(cJSON *step, const cJSON *next, struct df_err *err)
{
    cJSON *keeps = df_json_object_at(df_json_object_at(step, "spec"), "keepsPodFor");
    if (!keeps)
        return df_fail_oom(err);
    return df_json_add_str(keeps, "taskAction", df_json_str(next, "metadata.name"), err) < 0
               ? -1
               : df_json_add_num(keeps, "timeoutSeconds",
                                 df_json_num(next, "spec.timeoutSeconds", 1), err);
}

int df_shared_pod_keep(struct df_spawner *s, const struct df_run_view *view, size_t at, cJSON *step,
                       struct df_err *err)
{
    const struct df_recipe *recipe = df_recipe_of(view->run);
    const struct df_recipe_step *next = &recipe->steps[at + 1];
    struct df_err invalid = {0};
    DF_JSON cJSON *apply = NULL;
    bool own = true;
    if (at + 1 == recipe->count || !df_streq(next->plan_of, recipe->steps[at].name) ||
        !claims_as_pod(s, step) ||
        df_json_at(view->executor, "spec.applyWindow") || /* the pod might wait for days */
        !df_approval_is_automatic(&view->approval, view->run, view->executor))
        return 0;
    /* A placement that is not valid fails the step when it starts. */
    if (wants_own_pods(s, step, &own, &invalid) < 0 || own)
        return 0;
    if (df_new_task(view->run, next->name, next->action, s->config, 0, &apply, err) < 0)
        return -1;
    return set_keeps(step, apply, err);
}

/* ---- the apply begins ---- */

int df_shared_pod_find(struct df_task_pass *p, struct df_err *err)
{
    const char *from = df_json_str(p->task, "spec.planFrom");
    DF_SHARED const cJSON *plan = NULL;
    if (!from)
        return 0;
    if (df_store_look_for(p->c->s->store, DF_KIND_TASK_ACTION, from, &plan, err) < 0)
        return -1;
    return df_shared_pod_may_join(p->task, plan) ? df_shared_pod_ref(plan, &p->runner, err) : 0;
}

/* The apply has a slot now, and the plan, which is over, writes no state. */
static int set_lent(cJSON *plan, void *arg, struct df_err *err)
{
    cJSON *auth = cJSON_GetObjectItemCaseSensitive(df_json_at(plan, "status"), "auth");
    (void)arg;
    if (!df_label_has(plan, DF_LABEL_LIVE))
        return 1;
    cJSON_DeleteItemFromObjectCaseSensitive(auth, "state");
    cJSON_DeleteItemFromObjectCaseSensitive(auth, "providers");
    return df_slot_clear(plan, err);
}

int df_shared_pod_lend(struct df_control *c, const char *plan, struct df_err *err)
{
    if (df_task_modify(c->s, plan, set_lent, NULL, NULL, err) < 0)
        return -1;
    df_slots_wake(&c->slots);
    return 0;
}

void df_shared_pod_wake_host(struct df_task_pass *p)
{
    if (df_shared_pod_is_of_plan(df_json_at(p->task, "status.engineRef")))
        df_queue_wake(p->c->queue, DF_KIND_TASK_ACTION,
                      df_json_str(p->task, "status.engineRef.name"));
}

/* ---- the plan has ended ---- */

int df_shared_pod_observe(struct df_task_pass *p, struct df_err *err)
{
    const char *guest = df_shared_pod_guest(p->task);
    enum df_shared_pod_next next;
    if (!guest || !df_task_is_final(p->task))
        return 0;
    df_queue_wake(p->c->queue, DF_KIND_TASK_ACTION, guest);
    if (df_runner_next(p->c->s, p->task, &next, NULL, err) < 0)
        return -1;
    /* An apply that began may have left its only result in the pod, whether or not that lives. */
    p->observed.serves_other_step =
        next == DF_SHARED_POD_APPLY || (next == DF_SHARED_POD_WAITS && df_task_pass_is_alive(p));
    return next == DF_SHARED_POD_APPLY && df_label_has(p->task, DF_LABEL_LIVE)
               ? df_shared_pod_lend(p->c, p->step.name, err)
               : 0;
}
