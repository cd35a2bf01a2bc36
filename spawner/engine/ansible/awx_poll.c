/*
 * A list of jobs, each with the time when it is due, and a thread that takes the one that is due
 * first. A job that has ended is due when it is to be forgotten. Only the thread removes jobs, so
 * that the one it asks about stays where it is while the lock is free. Read poll_jobs() first.
 */
#include "spawner/engine/ansible/awx_poll.h"

#include "common/base/clock.h"
#include "spawner/engine/ansible/awx_job.h"

struct known {
    struct known *next;
    struct df_awx_watched watched; /* constant */
    struct df_awx_seen seen;
    int64_t since_us, asked_us, due_us; /* monotonic */
    bool is_soon;                       /* df_awx_poll_soon() was called since it was asked about */
};

struct df_awx_poll {
    struct df_awx *awx; /* the thread's */
    df_engine_notify notify;
    void *notify_arg;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct known *first;
    bool stop;
};

/* ---- one look ---- */

bool df_awx_has_ended(const struct df_awx_seen *s)
{
    return s->job.phase == DF_WORKFLOW_COMPLETED || s->job.phase == DF_WORKFLOW_FAILED;
}

/* Without the output, the message says less: that is no failure. */
static void add_output(struct df_awx *awx, int64_t job, const char *status, struct df_awx_seen *s)
{
    DF_BUF struct df_buf output = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (df_awx_stdout(awx, job, &output, NULL) == 0)
        df_awx_job_status(status, df_buf_str(&output), &s->job);
}

/* By our clock, and never in the future; 0: AWX does not tell. */
static int64_t time_of(const cJSON *job, const char *member, int64_t ahead_us)
{
    const char *text = df_json_str(job, member);
    int64_t at_us, now_us = df_real_us();
    if (!text || df_time_parse(text, &at_us, NULL) < 0)
        return 0;
    return at_us - ahead_us < now_us ? at_us - ahead_us : now_us;
}

/* A job ends before AWX has stored all that it printed, whose end tells what failed. */
static bool is_printing(const cJSON *job, int64_t ahead_us)
{
    int64_t end_us = time_of(job, "finished", ahead_us);
    return end_us && !df_json_bool(job, "event_processing_finished", true) &&
           df_real_us() - end_us < DF_AWX_PRINTING_US;
}

static int look(struct df_awx *awx, const struct df_awx_watched *w, struct df_awx_seen *ret,
                struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    struct df_err why = {0};
    int64_t ahead_us = 0;
    if (df_awx_job(awx, w->job, &job, &ahead_us, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    const char *status = df_json_str(job, "status");
    if (job && !status)
        return df_fail(err, DF_ERR_SYSTEM, "the answer of AWX status has no status");
    df_awx_job_status(status, NULL, &ret->job);
    ret->is_printing = df_awx_has_ended(ret) && is_printing(job, ahead_us);
    if (ret->is_printing)
        df_awx_job_status("running", NULL, &ret->job);
    ret->is_queued =
        ret->job.phase == DF_WORKFLOW_RUNNING && !ret->is_printing && !df_streq(status, "running");
    ret->created_us = time_of(job, "created", ahead_us);
    if (status && ret->job.phase == DF_WORKFLOW_FAILED && w->shows_output)
        add_output(awx, w->job, status, ret);
    return 0;
}

void df_awx_look(struct df_awx *awx, const struct df_awx_watched *w, struct df_awx_seen *ret)
{
    *ret = (struct df_awx_seen){0};
    if (look(awx, w, ret, &ret->why) == 0)
        return;
    (void)df_err_wrap(&ret->why, "get AWX job %lld status", (long long)w->job);
    ret->why.cls = DF_ERR_RETRY; /* whatever it is: the job may run meanwhile */
}

/* ---- the list ---- */

static struct known *find(const struct df_awx_poll *p, const char *uid)
{
    struct known *k = p->first;
    while (k && !df_streq(k->watched.uid, uid))
        k = k->next;
    return k;
}

static struct known *find_due(const struct df_awx_poll *p)
{
    struct known *due = p->first;
    for (struct known *k = p->first; k; k = k->next)
        due = k->due_us < due->due_us ? k : due;
    return due;
}

static void drop(struct df_awx_poll *p, struct known *k)
{
    struct known **at = &p->first;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    free(k);
}

static void set_due(struct known *k)
{
    bool is_soon = k->is_soon || k->seen.is_printing;
    int64_t pause_us = df_workflow_pace_us(is_soon ? 0 : k->asked_us - k->since_us);
    int64_t wished_us = (int64_t)k->seen.why.retry_after_s * 1000000;
    pause_us = pause_us < wished_us ? wished_us : pause_us;
    k->due_us = k->asked_us + (df_awx_has_ended(&k->seen) ? DF_AWX_KEEP_US : pause_us);
}

/* A job has one beginning, whatever AWX's clock does meanwhile: time limits count from it. */
static void set_seen(struct known *k, const struct df_awx_seen *seen)
{
    int64_t created_us = k->seen.created_us;
    k->seen = *seen;
    k->seen.created_us = created_us ? created_us : seen->created_us;
    set_due(k);
}

bool df_awx_poll_find(struct df_awx_poll *p, const char *uid, struct df_awx_seen *ret)
{
    (void)pthread_mutex_lock(&p->lock);
    const struct known *k = find(p, uid);
    if (k)
        *ret = k->seen;
    (void)pthread_mutex_unlock(&p->lock);
    return k;
}

int df_awx_poll_add(struct df_awx_poll *p, const struct df_awx_watched *w,
                    const struct df_awx_seen *seen, struct df_err *err)
{
    struct known *k = calloc(1, sizeof(*k));
    if (!k)
        return df_fail_oom(err);
    k->watched = *w;
    k->since_us = k->asked_us = df_mono_us();
    set_seen(k, seen);
    (void)pthread_mutex_lock(&p->lock);
    k->next = p->first;
    p->first = k;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    return 0;
}

void df_awx_poll_soon(struct df_awx_poll *p, const char *uid)
{
    (void)pthread_mutex_lock(&p->lock);
    struct known *k = find(p, uid);
    if (k && !df_awx_has_ended(&k->seen)) {
        k->is_soon = true;
        set_due(k);
    }
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- the thread ---- */

static bool is_news(const struct df_awx_seen *old, const struct df_awx_seen *new)
{
    return old->why.cls != new->why.cls || !df_streq(old->job.reason, new->job.reason);
}

/* Under the lock, which is free while AWX is asked and the caller is notified. */
static void ask(struct df_awx_poll *p, struct known *k)
{
    struct df_awx_seen seen;
    k->asked_us = df_mono_us();
    k->is_soon = false;
    (void)pthread_mutex_unlock(&p->lock);
    df_awx_look(p->awx, &k->watched, &seen);
    (void)pthread_mutex_lock(&p->lock);
    bool tells = is_news(&k->seen, &seen) && !p->stop && p->notify;
    set_seen(k, &seen);
    if (!tells)
        return;
    (void)pthread_mutex_unlock(&p->lock);
    p->notify(p->notify_arg, k->watched.step);
    (void)pthread_mutex_lock(&p->lock);
}

static void *poll_jobs(void *arg)
{
    struct df_awx_poll *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct known *due = find_due(p);
        int64_t wait_us = due ? due->due_us - df_mono_us() : 0;
        struct timespec until = df_mono_after_us(wait_us);
        if (!due)
            (void)pthread_cond_wait(&p->changed, &p->lock);
        else if (wait_us > 0)
            (void)pthread_cond_timedwait(&p->changed, &p->lock, &until);
        else if (df_awx_has_ended(&due->seen))
            drop(p, due);
        else
            ask(p, due);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void free_poll(struct df_awx_poll *p)
{
    while (p->first)
        drop(p, p->first);
    df_awx_free(p->awx);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

int df_awx_poll_new(const struct df_awx_options *awx, df_engine_notify notify, void *notify_arg,
                    struct df_awx_poll **ret, struct df_err *err)
{
    struct df_awx_poll *p = calloc(1, sizeof(*p));
    if (!p)
        return df_fail_oom(err);
    p->notify = notify;
    p->notify_arg = notify_arg;
    (void)pthread_mutex_init(&p->lock, NULL);
    df_cond_init(&p->changed);
    int result = df_awx_new(awx, &p->awx, err);
    int failed = result < 0 ? 0 : pthread_create(&p->thread, NULL, poll_jobs, p);
    if (failed)
        result = df_fail_errno(err, failed, "start a thread");
    if (result < 0)
        free_poll(p);
    else
        *ret = p;
    return result;
}

void df_awx_poll_free(struct df_awx_poll *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    free_poll(p);
}
