/* Who wants a standby runner: a class some, and a run one for its apply. */
#include "common/base/limits.h"
#include "spawner/control/standby/standby_parts.h"
#include "spawner/model/recipe.h"
#include "spawner/requests/new_docs.h"
#include "spawner/steps/engine_step.h"
#include "spawner/steps/integrations.h"

void df_demand_free(struct df_demand *d)
{
    if (!d)
        return;
    cJSON_Delete(d->task);
    cJSON_Delete(d->preparation);
    free(d);
}

void df_demand_cleanup(struct df_demand **d)
{
    df_demand_free(*d);
}

/* The caller holds the lock. pool->count: there is none. */
size_t df_demand_find(const struct df_standby_pool *pool, const char *run)
{
    size_t i = 0;
    while (i < pool->count && !df_streq(pool->demands[i]->run, run))
        i++;
    return i;
}

/* The caller holds the lock. */
void df_demand_drop(struct df_standby_pool *pool, const char *run)
{
    size_t i = df_demand_find(pool, run);
    if (i == pool->count)
        return;
    df_demand_free(pool->demands[i]);
    pool->demands[i] = pool->demands[--pool->count];
    (void)pthread_cond_signal(&pool->changed);
}

bool df_demand_has(struct df_standby_pool *pool, const char *run)
{
    (void)pthread_mutex_lock(&pool->lock);
    bool has = df_demand_find(pool, run) < pool->count;
    (void)pthread_mutex_unlock(&pool->lock);
    return has;
}

/* Takes ownership on success. A run has one demand: the thread and a pass may both add it. With a
 * full list the apply gets a Job of its own. */
int df_demand_add(struct df_standby_pool *pool, struct df_demand *d, struct df_err *err)
{
    (void)pthread_mutex_lock(&pool->lock);
    bool is_there = d->run[0] && df_demand_find(pool, d->run) < pool->count;
    bool is_full = !is_there && pool->count == DF_LIMIT_STANDBY;
    if (is_there)
        df_demand_free(d);
    else if (!is_full)
        pool->demands[pool->count++] = d;
    (void)pthread_cond_signal(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
    return is_full ? df_fail(err, DF_ERR_LIMIT, "%d demands for standby runners are there already",
                             DF_LIMIT_STANDBY)
                   : 0;
}

/* What create() and form() are to know. *ret borrows from task and identities. */
int df_demand_describe(struct df_spawner *s, const cJSON *task, struct df_engine_step *ret,
                       cJSON **ret_identities, struct df_err *err)
{
    if (df_integration_tokens(s, task, ret_identities, err) < 0)
        return -1;
    df_engine_step_of(s, task, ret);
    ret->runner.identities = *ret_identities;
    return 0;
}

int df_demand_form(struct df_spawner *s, struct df_engine *e, const cJSON *task,
                   struct df_standby_form *ret, struct df_err *err)
{
    DF_JSON cJSON *identities = NULL;
    struct df_engine_step step;
    return df_demand_describe(s, task, &step, &identities, err) < 0
               ? -1
               : e->ops->runner->form(e, &step, ret, err);
}

int df_demand_apply(struct df_standby_pool *pool, const cJSON *run, struct df_err *err)
{
    DF_CLEANUP(df_demand_cleanup) struct df_demand *d = calloc(1, sizeof(*d));
    const struct df_recipe *recipe = df_recipe_of(run);
    const struct df_recipe_step *step = &recipe->steps[df_recipe_apply(recipe)];
    struct df_spawner *s = pool->c->s;
    if (!d)
        return df_fail_oom(err);
    df_copy(d->run, sizeof(d->run), df_json_str(run, "metadata.name"));
    if (df_new_task(run, step->name, step->action, s->config, 0, &d->task, err) < 0 ||
        df_demand_form(s, pool->engine, d->task, &d->form, err) < 0 ||
        df_demand_add(pool, d, err) < 0)
        return -1;
    d = NULL;
    return 0;
}
