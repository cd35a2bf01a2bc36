#include "spawner/engine/tekton/tekton_watch.h"

#include "common/base/log.h"
#include "spawner/engine/workflow/workflow.h"
#include "spawner/model/labels.h"

#define RUN_LABEL "tekton.dev/pipelineRun" /* of a TaskRun: the name of its PipelineRun */

const struct df_kube_resource df_tekton_task_runs = {"tekton.dev", "v1", "taskruns"};

/* The caches know which objects there are, so that also the end of one is told that went while no
 * watch worked. What the objects say is asked for when it is needed. */
static cJSON *keep_name(void *arg, const cJSON *object)
{
    (void)arg;
    DF_JSON cJSON *kept = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(kept, "metadata");
    if (df_json_put(metadata, NULL, DF_STR("name", df_kube_name(object)),
                    DF_STR("namespace", df_json_str(object, "metadata.namespace")),
                    DF_STR("uid", df_kube_uid(object)),
                    DF_STR("resourceVersion", df_kube_version(object))) < 0 ||
        df_json_put(df_json_object_at(metadata, "labels"), NULL,
                    DF_STR(RUN_LABEL, df_kube_label(object, RUN_LABEL))) < 0)
        return NULL;
    return DF_TAKE(kept);
}

static void on_run(void *arg, const struct df_kube_change *change)
{
    const struct df_tekton_watches *w = arg;
    if (w->notify)
        w->notify(w->notify_arg, change->name);
}

static void on_task_run(void *arg, const struct df_kube_change *change)
{
    const struct df_tekton_watches *w = arg;
    const char *run = df_kube_label(change->object, RUN_LABEL);
    if (w->notify && run)
        w->notify(w->notify_arg, run);
}

/* A cluster without Tekton is no fault of the service: each workflow of this engine says so. */
static void on_failure(void *arg, const struct df_err *err)
{
    struct df_tekton_watches *w = arg;
    __atomic_store_n(&w->are_served, false, __ATOMIC_RELAXED);
    if (df_workflow_is_unserved(err))
        df_debug("the cluster has no Tekton: %s", err->message);
    else
        df_warn("cannot watch Tekton, retrying: %s", err->message);
}

static int start_watches(struct df_tekton_watches *w, struct df_tekton_place *p, struct df_err *err)
{
    struct df_kube_cache_options o = {.resource = df_workflow_pipeline_run.resource,
                                      .name_space = p->name_space,
                                      .select = {.labels = DF_MADE_SELECTOR},
                                      .keep = keep_name,
                                      .changed = on_run,
                                      .failed = on_failure,
                                      .arg = w};
    if (df_kube_cache_start(w->kube, &o, &p->runs, err) < 0)
        return -1;
    o.resource = &df_tekton_task_runs; /* Tekton copies the run's labels to them */
    o.changed = on_task_run;
    return df_kube_cache_start(w->kube, &o, &p->task_runs, err);
}

static void stop_place(struct df_tekton_place *p)
{
    df_kube_cache_stop(p->task_runs);
    df_kube_cache_stop(p->runs);
    free(p->name_space);
    *p = (struct df_tekton_place){0};
}

/* Under the lock. A place never moves and is never removed. */
static int add_place(struct df_tekton_watches *w, const char *name_space, struct df_err *err)
{
    struct df_tekton_place *p = &w->places[w->count];
    if (w->count == DF_LIMIT_STEP_NAMESPACES)
        return df_fail(err, DF_ERR_LIMIT,
                       "there are steps in more than %d namespaces; the PipelineRun of this step "
                       "is in %s",
                       DF_LIMIT_STEP_NAMESPACES, name_space);
    p->name_space = strdup(name_space);
    if (df_check_alloc(p->name_space, err) < 0 || start_watches(w, p, err) < 0) {
        stop_place(p);
        return -1;
    }
    w->count++;
    return 0;
}

int df_tekton_watch(struct df_tekton_watches *w, const char *name_space, struct df_err *err)
{
    size_t i = 0;
    (void)pthread_mutex_lock(&w->lock);
    while (i < w->count && !df_streq(w->places[i].name_space, name_space))
        i++;
    int result = i < w->count ? 0 : add_place(w, name_space, err);
    (void)pthread_mutex_unlock(&w->lock);
    return result;
}

void df_tekton_watches_stop(struct df_tekton_watches *w)
{
    while (w->count)
        stop_place(&w->places[--w->count]);
    (void)pthread_mutex_destroy(&w->lock);
}
