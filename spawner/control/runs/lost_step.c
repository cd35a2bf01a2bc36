/* The configuration may have changed since the step began, so each call asks all engines. */
#include "spawner/control/runs/lost_step.h"

#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/model/recipe.h"
#include "spawner/steps/recovery.h"
#include "spawner/steps/standby.h"
#include "spawner/steps/unrecorded.h"

static const char *owner_of(const cJSON *run)
{
    return df_json_str(run, "spec.executorRef.uid");
}

/* An engine looks up the step by name and uid. Without the TaskAction nobody knows how far the step
 * came: its runner may have claimed it. */
static struct df_engine_step engine_step(const struct df_spawner *s, const cJSON *run,
                                         const cJSON *step)
{
    return (struct df_engine_step){.name = df_json_str(step, "taskAction"),
                                   .uid = df_json_str(step, "uid"),
                                   .was_created = true,
                                   .was_claimed = true,
                                   .is_deleted = true,
                                   .runner = {.run = df_json_str(run, "metadata.name"),
                                              .executor = df_json_str(run, "spec.executorRef.name"),
                                              .grace_seconds = s->config->timeout_grace_s}};
}

static bool lives_with(const struct df_engine_observation *observed)
{
    return observed->phase == DF_ENGINE_PENDING || observed->phase == DF_ENGINE_RUNNING;
}

/* ---- its processes ---- */

/* The step may have been in the pod of an earlier step of the run (shared_pod.h): nobody knows that
 * without its TaskAction. So each call goes to the earlier steps, too, whose pods ended long ago
 * otherwise. That it was in the pod of a standby runner is in the status of the run. */
typedef int (*call)(struct df_engine *e, const struct df_engine_step *step, void *arg,
                    struct df_err *err);

static int call_all(struct df_spawner *s, const struct df_engine_step *step, call what, void *arg,
                    struct df_err *err)
{
    for (size_t i = 0; step->uid && i < s->engines.count; i++) {
        struct df_engine *e = s->engines.engines[i];
        if (e->ops->runner && what(e, step, arg, err) < 0)
            return -1;
    }
    return 0;
}

/* The Job of a standby runner has the runner's id. */
static int call_own(struct df_spawner *s, const cJSON *run, const cJSON *step, call what, void *arg,
                    struct df_err *err)
{
    struct df_engine_step lost = engine_step(s, run, step);
    const char *noted = df_json_str(step, "standbyRunner");
    char id[DF_LIMIT_NAME + 1] = "";
    if (call_all(s, &lost, what, arg, err) < 0)
        return -1;
    if (noted)
        df_copy(id, sizeof(id), noted);
    else if (s->standby && lost.uid)
        df_standby_of_step(s->standby, lost.uid, id);
    if (!id[0])
        return 0;
    lost.name = lost.uid = id;
    return call_all(s, &lost, what, arg, err);
}

static int call_up_to(struct df_spawner *s, const cJSON *run, const cJSON *step, call what,
                      void *arg, struct df_err *err)
{
    const struct df_engine_step lost = engine_step(s, run, step);
    const cJSON *earlier;
    cJSON_ArrayForEach (earlier, df_json_at(run, "status.steps")) {
        const struct df_engine_step host = engine_step(s, run, earlier);
        if (df_streq(host.name, lost.name))
            break;
        if (call_all(s, &host, what, arg, err) < 0)
            return -1;
    }
    return call_own(s, run, step, what, arg, err);
}

static int look(struct df_engine *e, const struct df_engine_step *step, void *arg,
                struct df_err *err)
{
    bool *lives = arg;
    struct df_engine_observation observed;
    if (e->ops->runner->step.status(e, step, &observed, err) < 0)
        return -1;
    *lives = *lives || lives_with(&observed);
    return 0;
}

int df_lost_step_lives(struct df_spawner *s, const cJSON *run, const cJSON *step, bool *ret,
                       struct df_err *err)
{
    bool lives = false;
    if (call_up_to(s, run, step, look, &lives, err) < 0)
        return -1;
    *ret = lives;
    return 0;
}

static int cancel(struct df_engine *e, const struct df_engine_step *step, void *arg,
                  struct df_err *err)
{
    (void)arg;
    return e->ops->runner->step.cancel(e, step, err);
}

int df_lost_step_end(struct df_spawner *s, const cJSON *run, const cJSON *step, struct df_err *err)
{
    return call_up_to(s, run, step, cancel, NULL, err);
}

/* ---- what it leaves ---- */

/* The TaskAction, as far as df_unrecorded_find() reads it. */
static int describe_task(const cJSON *run, const struct df_engine_step *lost, cJSON **ret,
                         struct df_err *err)
{
    DF_JSON cJSON *task = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(task, "metadata"), *spec = df_json_object_at(task, "spec");
    cJSON *owner = df_json_object_at(spec, "executorRef");
    const cJSON *storage = df_json_at(run, "spec.snapshot.storage");
    if (!metadata || !owner)
        return df_fail_oom(err);
    if (df_json_add_str(metadata, "name", lost->name, err) < 0 ||
        df_json_add_str(metadata, "uid", lost->uid, err) < 0 ||
        df_json_add_str(owner, "uid", owner_of(run), err) < 0 ||
        (storage && df_json_set(spec, "storage", cJSON_Duplicate(storage, true), err) < 0))
        return -1;
    *ret = DF_TAKE(task);
    return 0;
}

static int find_unrecorded(struct df_spawner *s, const cJSON *run, const cJSON *step,
                           const struct df_engine_step *lost, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    if (describe_task(run, lost, &task, err) < 0)
        return -1;
    for (size_t at = 0; at < df_recipe_of(run)->count; at++) {
        const struct df_recipe_step *of_recipe = &df_recipe_of(run)->steps[at];
        if (df_streq(of_recipe->name, df_json_str(step, "name")) &&
            df_json_set_str(df_json_object_at(task, "spec"), "action", of_recipe->action, err) < 0)
            return -1;
    }
    if (df_unrecorded_find(s, task, ret, err) < 0)
        return -1;
    if (*ret)
        df_unrecorded_warn(lost->name, *ret);
    return 0;
}

static int clean(struct df_engine *e, const struct df_engine_step *step, void *arg,
                 struct df_err *err)
{
    (void)arg;
    return e->ops->runner->step.cleanup(e, step, err);
}

static int clean_up(struct df_spawner *s, const cJSON *run, const cJSON *step, struct df_err *err)
{
    return call_own(s, run, step, clean, NULL, err);
}

/* In this order, as in the pass over a TaskAction: the list is made while the lock is held. */
int df_lost_step_settle(struct df_spawner *s, const cJSON *run, const cJSON *step,
                        cJSON **ret_unrecorded, struct df_err *err)
{
    const struct df_engine_step lost = engine_step(s, run, step);
    DF_JSON cJSON *unrecorded = NULL;
    bool released = false;
    if (!lost.uid)
        return 0;
    for (size_t i = 0; i < s->engines.count; i++) {
        struct df_engine *e = s->engines.engines[i];
        if (!e->ops->runner)
            continue;
        df_recover_streams(s, e, &lost);
        if (df_recover_state(s, e, &lost, owner_of(run), err) < 0)
            return -1;
    }
    if (find_unrecorded(s, run, step, &lost, &unrecorded, err) < 0 ||
        df_state_release_dead(s->states, owner_of(run), lost.uid, &released, err) < 0)
        return -1;
    if (clean_up(s, run, step, err) < 0)
        return -1;
    *ret_unrecorded = DF_TAKE(unrecorded);
    return 0;
}

/* ---- after the run ---- */

static int is_lost(struct df_spawner *s, const cJSON *step, bool *ret, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_for(s->store, DF_KIND_TASK_ACTION, df_json_str(step, "taskAction"), &task,
                          err) < 0)
        return -1;
    *ret = !task && df_json_str(step, "uid");
    return 0;
}

static int remove_lost(struct df_spawner *s, const cJSON *run, const cJSON *step, bool *ret_lives,
                       struct df_err *err)
{
    if (df_lost_step_lives(s, run, step, ret_lives, err) < 0)
        return -1;
    return *ret_lives ? df_lost_step_end(s, run, step, err) : clean_up(s, run, step, err);
}

int df_lost_steps_remove(struct df_spawner *s, const cJSON *run, bool *ret_waits,
                         struct df_err *err)
{
    const cJSON *step;
    *ret_waits = false;
    cJSON_ArrayForEach (step, df_json_at(run, "status.steps")) {
        bool lost = false, lives = false;
        if (is_lost(s, step, &lost, err) < 0 ||
            (lost && remove_lost(s, run, step, &lives, err) < 0))
            return -1;
        *ret_waits = *ret_waits || lives;
    }
    return 0;
}
