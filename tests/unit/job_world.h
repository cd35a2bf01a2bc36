/*
 * job_world.h - the engine `job` with an API server that says what a test wants: lists of objects
 * that do not change. Include behind cmocka.h.
 */
#ifndef DF_TEST_JOB_WORLD_H
#define DF_TEST_JOB_WORLD_H

#include "spawner/engine/job/job.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/kube_words.h"

#define NAME "wfe-c00449355dfb987a" /* of this target: */
#define TARGET "default/deployment/my-app"

/* What there is in the cluster: lists of objects in JSON with ' for ". */
struct objects {
    const char *jobs, *pods, *events;
    const char *job_now;  /* what a GET of the Job says, "" for 404; NULL: as jobs */
    const bool *are_told; /* no list is answered before, under the server's lock; NULL: at once */
    const char *pod_now;  /* what one pod is told to be, "" for none; NULL: nothing is told */
};

static inline const char *list_for(const struct objects *o, const char *target)
{
    return strstr(target, "/jobs") ? o->jobs : strstr(target, "/pods") ? o->pods : o->events;
}

static inline void answer(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    const char *items = list_for(s->arg, r->target);
    const struct objects *o = s->arg;
    bool is_one = strstr(r->target, "/jobs/");
    if (is_one && o->job_now)
        items = o->job_now;
    if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        a->hold = true;
        return;
    }
    if (strstr(r->target, "fieldSelector=metadata.name")) {
        if (!o->pod_now) {
            kube_status(a, 500, "InternalError", "etcd is away");
            return;
        }
        items = o->pod_now;
    }
    if (is_one && !*items) {
        kube_status(a, 404, "NotFound", "jobs is not found");
        return;
    }
    while (!is_one && o->are_told && !*o->are_told)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    DF_FREE char *body = is_one
                             ? strdup(items)
                             : df_strf("{'metadata':{'resourceVersion':'10'},'items':[%s]}", items);
    for (char *p = body; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    kube_say(a, 200, "", body);
}

struct world {
    struct kube_server server;
    struct df_kube *kube;
    struct df_engine *engine;
    cJSON *workflow;
};

/* With its lists told, unless they are held back. */
static inline void open_world(struct world *w, const struct objects *objects)
{
    kube_start(&w->server, answer, (void *)(uintptr_t)objects);
    w->kube = kube_client(&w->server);
    w->workflow = json("{'executionBundle':'image'}");
    const struct df_job_options o = {.kube = w->kube, .name_space = "build", .image = "runner"};
    assert_int_equal(df_engine_job_new(&o, &w->engine, NULL), 0);
    assert_int_equal(w->engine->ops->watch(w->engine, NULL), 0);
    (void)pthread_mutex_lock(&w->server.lock);
    while (w->server.watches < 3 && !objects->are_told)
        (void)pthread_cond_wait(&w->server.changed, &w->server.lock);
    (void)pthread_mutex_unlock(&w->server.lock);
}

static inline void close_world(struct world *w)
{
    w->engine->ops->close(w->engine);
    df_kube_free(w->kube);
    kube_stop(&w->server);
    cJSON_Delete(w->workflow);
}

static inline struct df_engine_step step_of(const struct world *w, const char *task,
                                            bool was_created)
{
    return (struct df_engine_step){
        .name = task,
        .uid = "u1",
        .pending_seconds = 120,
        .timeout_seconds = 1800,
        .workflow = {.spec = w->workflow, .target = TARGET, .name_space = "default"},
        .was_created = was_created};
}

#define LABELS(owner, uid)                                                                         \
    "'labels':{'kubernaut.ai/workflow-execution':'" owner "','kubernaut.ai/source-namespace':"     \
    "'default','dayfly.dev/step-uid':'" uid "'}"
#define JOB(owner, uid, status)                                                                    \
    "{'metadata':{'name':'" NAME "','namespace':'build','uid':'j2','resourceVersion':'5',"         \
    "'creationTimestamp':'2026-11-21T12:00:00Z'," LABELS(owner, uid) "},'status':" status "}"

#endif
