/*
 * tekton_watch.h - tells when a PipelineRun, or a TaskRun of it, has changed; for
 * spawner/engine/tekton only. Thread rule: any thread.
 */
#ifndef DF_TEKTON_WATCH_H
#define DF_TEKTON_WATCH_H

#include <pthread.h>

#include "common/base/limits.h"
#include "common/kube/cache.h"
#include "spawner/engine/engine.h"

extern const struct df_kube_resource df_tekton_task_runs;

struct df_tekton_watches {
    struct df_kube *kube; /* these three are the owner's to set; borrowed */
    df_engine_notify notify;
    void *notify_arg;
    /* Atomic: the cluster had PipelineRuns when they were last asked for, and no watch was told
     * otherwise since. */
    bool are_served;
    pthread_mutex_t lock; /* guards what follows */
    /* Where runs of live steps may be: that of new runs, and those that the configuration named
     * before. */
    struct df_tekton_place {
        char *name_space;
        struct df_kube_cache *runs, *task_runs;
    } places[DF_LIMIT_STEP_NAMESPACES];
    size_t count;
};

/* Watches this namespace from now on. LIMIT: more than DF_LIMIT_STEP_NAMESPACES. */
int df_tekton_watch(struct df_tekton_watches *w, const char *name_space,
                    struct df_err *err) DF_MUST_CHECK;
void df_tekton_watches_stop(struct df_tekton_watches *w);

#endif
