/*
 * standby_engine.h - a cluster with standby runners: the engine of pod_tokens.h, which makes and
 * lists their Jobs. A Job has the name of its step, or the id of its standby runner.
 * standby_world.h has the words for it.
 */
#ifndef DF_TEST_STANDBY_ENGINE_H
#define DF_TEST_STANDBY_ENGINE_H

#include "spawner/steps/standby.h"
#include "tests/unit/pod_tokens.h"

enum { STANDBY_JOBS = 64 };

/* The Job of a standby runner. */
struct standby_job {
    char id[64];
    struct df_standby_form form;
    int64_t age_ms; /* as a list says it */
    bool is_removed;
};

/* Guarded by the lock of the engine. */
static struct {
    struct standby_job jobs[STANDBY_JOBS]; /* in the order in which they were made */
    size_t count;
    const char *image;        /* of every pod that is made now */
    const char *refused;      /* the run for whose apply no Job can be made ahead; or NULL */
    int refusals;             /* of such Jobs */
    struct df_err list_error; /* cls != NONE: the list of Jobs fails with it */
    int lists;
    /* The Jobs of standby runners are made one after the other: before the one with this number, or
     * its answer, all is held. 0: none. */
    size_t held_request, held_answer;
    const char *held_form; /* who asks for the form of this step is held; or NULL */
    bool is_held;          /* somebody is */
} cluster;

/* ---- the caller holds the lock of the engine ---- */

static inline struct standby_job *standby_find(const char *id)
{
    for (size_t i = 0; i < cluster.count; i++)
        if (df_streq(cluster.jobs[i].id, id))
            return &cluster.jobs[i];
    return NULL;
}

static inline struct standby_job *standby_note(const char *id, const struct df_standby_form *form)
{
    if (cluster.count == STANDBY_JOBS)
        DF_BUG("too many standby runners");
    struct standby_job *j = &cluster.jobs[cluster.count++];
    *j = (struct standby_job){.form = *form};
    (void)snprintf(j->id, sizeof(j->id), "%s", id);
    return j;
}

static inline const char *owner_of(const struct df_engine_step *step)
{
    const char *host = df_shared_pod_host_of(step->ref);
    return host ? host : step->uid;
}

/* The Job of the step, or of the standby runner that has it; NULL: it does not exist. */
static inline struct fake_step *own_job(struct fake_engine *f, const struct df_engine_step *step)
{
    struct fake_step *s = fake_resources(f, step);
    return df_streq(s->uid, owner_of(step)) ? s : NULL;
}

static inline void remove_job(struct fake_step *s)
{
    struct standby_job *j = standby_find(s->uid);
    if (j)
        j->is_removed = true;
    s->seen.phase = DF_ENGINE_ABSENT;
}

/* The caller waits as long as the test says so, and its lock is given up meanwhile. */
#define stop_while(f, condition)                                                                   \
    while (condition) {                                                                            \
        cluster.is_held = true;                                                                    \
        (void)pthread_cond_broadcast(&(f)->changed);                                               \
        (void)pthread_cond_wait(&(f)->changed, &(f)->lock);                                        \
        cluster.is_held = false;                                                                   \
    }

static inline int check_job(const struct fake_step *s, const struct df_engine_step *step,
                            struct df_err *err)
{
    if (step->runner.standby && df_streq(cluster.refused, step->runner.run)) {
        cluster.refusals++;
        return df_fail(err, DF_ERR_RETRY, "the API server is away");
    }
    if (s->seen.phase != DF_ENGINE_RUNNING || df_streq(s->uid, step->uid))
        return 0;
    return df_fail(err, DF_ERR_CONFLICT, "the Job %s is that of %s", s->name, s->uid);
}

static inline int form_of(const struct df_engine_step *step, struct df_standby_form *ret,
                          struct df_err *err)
{
    DF_JSON cJSON *placement = NULL;
    char digest[DF_SHA256_HEX];
    if (df_placement_resolve(&step->placement, &placement, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(placement);
    DF_FREE char *all = df_strf("%s of %s", cluster.image, text);
    if (df_sha256_hex(all, strlen(all), digest, err) < 0)
        return -1;
    *ret = (struct df_standby_form){.seconds = step->timeout_seconds};
    df_copy(ret->digest, sizeof(ret->digest), digest);
    df_copy(ret->run, sizeof(ret->run), step->runner.run ? step->runner.run : "");
    return 0;
}

static inline int make_job(struct fake_engine *f, const struct df_engine_step *step,
                           struct df_err *err)
{
    struct df_standby_form form;
    struct fake_step *s = fake_find(f, step->name);
    s->creates++;
    if (check_job(s, step, err) < 0 || form_of(step, &form, err) < 0)
        return -1;
    if (s->seen.phase == DF_ENGINE_RUNNING)
        return 0;
    (void)snprintf(s->uid, sizeof(s->uid), "%s", step->uid);
    s->starts++;
    s->seen = (struct df_engine_observation){
        .phase = DF_ENGINE_RUNNING, .exit_code = -1, .since_us = df_real_us()};
    if (step->runner.standby)
        (void)standby_note(step->uid, &form);
    return 0;
}

/* ---- its operations ---- */

static inline cJSON *ref_of(const char *name, const char *uid)
{
    DF_FREE char *host = df_standby_is(uid) ? df_strf(",'hostUid':'%s'", uid) : strdup("");
    DF_FREE char *text = df_strf("{'kind':'Job','name':'%s','namespace':'infra','uid':'job-%s',"
                                 "'serviceAccountName':'runner'%s}",
                                 name, uid, host);
    return json(text);
}

static int cluster_create(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                          struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    stop_while(f, step->runner.standby && cluster.held_request == cluster.count + 1);
    int result = make_job(f, step, err);
    (void)pthread_cond_broadcast(&f->changed);
    stop_while(f,
               step->runner.standby && cluster.held_answer && cluster.held_answer == cluster.count);
    (void)pthread_mutex_unlock(&f->lock);
    if (result == 0)
        *ret = ref_of(step->name, step->uid);
    return result;
}

static int cluster_status(struct df_engine *e, const struct df_engine_step *step,
                          struct df_engine_observation *ret, struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    const struct fake_step *s = own_job(f, step);
    struct df_err why = f->status_error;
    *ret = (struct df_engine_observation){.phase = DF_ENGINE_ABSENT, .exit_code = -1};
    if (s)
        *ret = s->seen;
    ret->is_gone = ret->phase == DF_ENGINE_ABSENT;
    (void)pthread_mutex_unlock(&f->lock);
    return why.cls == DF_ERR_NONE ? 0 : df_err_pass(err, &why);
}

/* A runner that has claimed a step ends by itself. */
static int cluster_cancel(struct df_engine *e, const struct df_engine_step *step,
                          struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)err;
    (void)pthread_mutex_lock(&f->lock);
    struct fake_step *s = own_job(f, step);
    if (s)
        s->cancels++;
    if (s && !step->was_claimed)
        remove_job(s);
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    return 0;
}

static int cluster_cleanup(struct df_engine *e, const struct df_engine_step *step,
                           struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)err;
    (void)pthread_mutex_lock(&f->lock);
    struct fake_step *s = own_job(f, step);
    if (s)
        remove_job(s);
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    return 0;
}

static int cluster_form(struct df_engine *e, const struct df_engine_step *step,
                        struct df_standby_form *ret, struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    stop_while(f, cluster.held_form && df_streq(cluster.held_form, step->name));
    int result = form_of(step, ret, err);
    (void)pthread_mutex_unlock(&f->lock);
    return result;
}

static int cluster_standbys(struct df_engine *e, df_standby_visit visit, void *arg,
                            struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    struct standby_job jobs[STANDBY_JOBS];
    (void)pthread_mutex_lock(&f->lock);
    size_t count = cluster.count;
    struct df_err why = cluster.list_error;
    memcpy(jobs, cluster.jobs, sizeof(jobs));
    cluster.lists++;
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < count && why.cls == DF_ERR_NONE; i++) {
        DF_JSON cJSON *ref = ref_of(jobs[i].id, jobs[i].id);
        if (!jobs[i].is_removed && visit(arg, ref, &jobs[i].form, jobs[i].age_ms, err) < 0)
            return -1;
    }
    return why.cls == DF_ERR_NONE ? 0 : df_err_pass(err, &why);
}

/* Gives the engine of pods_open() standby runners. */
static inline void cluster_open(void)
{
    memset(&cluster, 0, sizeof(cluster));
    cluster.image = "runner:1";
    job_runner.step.create = cluster_create;
    job_runner.step.status = cluster_status;
    job_runner.step.cancel = cluster_cancel;
    job_runner.step.cleanup = cluster_cleanup;
    job_runner.form = cluster_form;
    job_runner.standbys = cluster_standbys;
}

#endif
