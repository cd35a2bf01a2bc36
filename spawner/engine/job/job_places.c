/* The namespaces in which the engine `job` has Jobs, each with its watches. */
#include "common/base/limits.h"
#include "spawner/engine/job/job_engine.h"

static int start_watch(const struct df_job_engine *j, struct df_job_place *to,
                       const char *name_space, struct df_err *err)
{
    struct df_job_place place = {.name_space = strdup(name_space)};
    if (!place.name_space)
        return df_fail_oom(err);
    const struct df_job_watch_options o = {.kube = j->o.kube,
                                           .name_space = place.name_space,
                                           .notify = j->o.notify,
                                           .notify_arg = j->o.notify_arg};
    if (df_job_watch_start(&o, &place.watch, err) < 0) {
        free(place.name_space);
        return -1;
    }
    *to = place;
    return 0;
}

/* Under the lock. A place never moves and is never removed. */
static int find_or_start(struct df_job_engine *j, const char *name_space,
                         const struct df_job_place **ret, struct df_err *err)
{
    size_t i = 0;
    while (i < j->place_count && !df_streq(j->places[i].name_space, name_space))
        i++;
    if (i == DF_LIMIT_STEP_NAMESPACES)
        return df_fail(
            err, DF_ERR_LIMIT,
            "there are steps in more than %d namespaces; the Jobs of this step are in %s",
            DF_LIMIT_STEP_NAMESPACES, name_space);
    if (i == j->place_count && start_watch(j, &j->places[i], name_space, err) < 0)
        return -1;
    if (i == j->place_count)
        j->place_count++;
    *ret = &j->places[i];
    return 0;
}

int df_job_place_of(struct df_job_engine *j, const char *name_space,
                    const struct df_job_place **ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&j->lock);
    int result = find_or_start(j, name_space, ret, err);
    (void)pthread_mutex_unlock(&j->lock);
    return result;
}

void df_job_places_close(struct df_job_engine *j)
{
    while (j->place_count) {
        struct df_job_place *place = &j->places[--j->place_count];
        df_job_watch_stop(place->watch);
        free(place->name_space);
    }
}
