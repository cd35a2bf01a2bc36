#include "spawner/control/places.h"

#include "spawner/control/transitions.h"

static int take(struct df_control *c, const cJSON *task, df_store_change change, void *arg,
                bool *ret_taken, struct df_err *err)
{
    const char *name = df_json_str(task, "metadata.name");
    int64_t live = 0;
    bool has_one = df_label_has(task, DF_LABEL_LIVE);
    if (!has_one &&
        df_store_count(c->s->store, DF_KIND_TASK_ACTION, DF_LABEL_LIVE "=true", &live, err) < 0)
        return -1;
    *ret_taken = has_one || live < c->s->config->max_steps;
    if (*ret_taken)
        return df_task_modify(c->s, name, change, arg, NULL, err);
    if (!df_strs_has(&c->waiting, name))
        (void)df_strs_add(&c->waiting, name);
    return df_strs_check(&c->waiting, err);
}

int df_places_take(struct df_control *c, const cJSON *task, df_store_change change, void *arg,
                   bool *ret_taken, struct df_err *err)
{
    (void)pthread_mutex_lock(&c->places);
    int result = take(c, task, change, arg, ret_taken, err);
    (void)pthread_mutex_unlock(&c->places);
    return result;
}

void df_places_wake(struct df_control *c)
{
    (void)pthread_mutex_lock(&c->places);
    for (size_t i = 0; i < c->waiting.len; i++)
        df_control_wake(c, DF_KIND_TASK_ACTION, c->waiting.items[i]);
    df_strs_free(&c->waiting);
    (void)pthread_mutex_unlock(&c->places);
}
