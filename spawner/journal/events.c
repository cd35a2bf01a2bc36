/*
 * Kubernetes Events: an Event is built by the caller and posted by one thread, in order, at a
 * limited rate.
 */
#include "spawner/journal/events.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/model/model.h"

#define PAUSE_MIN_MS 500
#define PAUSE_MAX_MS 30000
/* After each Event the thread pauses for PAUSE_TIMES as long as the request took, so that Events do
 * not slow the Jobs down: a busy API server gets few of them. */
#define PAUSE_TIMES 10
/* How long a spawner that stops waits for the last Events. */
#define STOP_MS 2000
/* The longest note that the API accepts. */
#define NOTE_MAX 1023

static const struct df_kube_resource resource = {"events.k8s.io", "v1", "events"};

struct waiting {
    struct waiting *next;
    size_t len;
    char text[]; /* the Event as JSON text: a tree would be five times as large */
};

struct df_events {
    struct df_events_options o;
    char instance[128];
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t news;
    struct waiting *first, **end; /* in order */
    size_t count;
    bool stopping, ended;
    bool drops;        /* the queue was full, and is still more than half full */
    volatile bool cut; /* ends a request that is under way (df_kube_at.stop) */
    /* The thread's own. */
    bool refused;    /* the last one was; logged once */
    int64_t turn_us; /* when the next one may be posted; monotonic */
};

/* ---- the object ---- */

static const cJSON *entry_of(const cJSON *task, int entry)
{
    return cJSON_GetArrayItem(df_json_at(task, "status.phaseHistory"), entry);
}

/* The object that the Event refers to. */
static int add_regarding(cJSON *event, const cJSON *task, bool on_task, struct df_err *err)
{
    const cJSON *from = df_json_at(task, on_task ? "metadata" : "status.engineRef");
    cJSON *to = df_json_object_at(event, "regarding");
    if (!to)
        return df_fail_oom(err);
    if (df_json_add_str(to, "apiVersion", on_task ? DF_API_VERSION : "batch/v1", err) < 0 ||
        df_json_add_str(to, "kind", on_task ? "TaskAction" : df_json_str(from, "kind"), err) < 0 ||
        df_json_add_str(to, "name", df_json_str(from, "name"), err) < 0 ||
        df_json_add_str(to, "namespace", df_json_str(from, "namespace"), err) < 0)
        return -1;
    return df_json_add_str(to, "uid", df_json_str(from, "uid"), err);
}

static int add_metadata(cJSON *event, const cJSON *task, int entry, struct df_err *err)
{
    const cJSON *about = df_json_at(event, "regarding");
    const char *uid = df_json_str(task, "metadata.uid");
    cJSON *metadata = df_json_object_at(event, "metadata");
    DF_FREE char *name = df_strf("%s.%.8s-%d", df_json_str(about, "name"), uid ? uid : "", entry);
    if (!metadata || !name)
        return df_fail_oom(err);
    if (df_json_add_str(metadata, "name", name, err) < 0)
        return -1;
    return df_json_add_str(metadata, "namespace", df_json_str(about, "namespace"), err);
}

/* Cut between characters. */
static int add_note(cJSON *event, const char *text, struct df_err *err)
{
    char note[NOTE_MAX + 1];
    (void)snprintf(note, sizeof(note), "%s", text);
    size_t n = strlen(note);
    if (n == NOTE_MAX)
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    note[n] = '\0';
    return df_json_add_str(event, "note", note, err);
}

static bool is_bad(const char *phase)
{
    return df_streq(phase, "PermanentFailure") || df_streq(phase, "RetryableFailure") ||
           df_streq(phase, "TimedOut");
}

/* The last entry has the reason of the step, the others the word of their phase. */
static const char *reason_of(const cJSON *task, const char *phase)
{
    static const char *const ends[] = {"Completed", "PermanentFailure", "Aborted", "TimedOut"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++)
        if (df_streq(ends[i], phase))
            return df_task_reason(task);
    return phase;
}

int df_event_build(const cJSON *task, int entry, bool on_task, const char *reporter, cJSON **ret,
                   struct df_err *err)
{
    DF_JSON cJSON *event = cJSON_CreateObject();
    const cJSON *what = entry_of(task, entry);
    const char *phase = df_json_str(what, "phase"), *message = df_json_str(what, "message");
    const char *action = df_json_str(task, "spec.action");
    if (!event)
        return df_fail_oom(err);
    if (df_json_add_str(event, "apiVersion", "events.k8s.io/v1", err) < 0 ||
        df_json_add_str(event, "kind", "Event", err) < 0 ||
        add_regarding(event, task, on_task, err) < 0 || add_metadata(event, task, entry, err) < 0 ||
        df_json_add_str(event, "eventTime", df_json_str(what, "occurredAt"), err) < 0 ||
        df_json_add_str(event, "type", is_bad(phase) ? "Warning" : "Normal", err) < 0 ||
        df_json_add_str(event, "reason", reason_of(task, phase), err) < 0 ||
        df_json_add_str(event, "action", action ? action : "step", err) < 0 ||
        df_json_add_str(event, "reportingController", DF_EVENTS_REPORTER, err) < 0 ||
        df_json_add_str(event, "reportingInstance", reporter, err) < 0 ||
        add_note(event, message ? message : phase, err) < 0)
        return -1;
    *ret = DF_TAKE(event);
    return 0;
}

/* ---- the thread ---- */

/* Under the lock. NULL: the queue is empty. */
static struct waiting *take_first(struct df_events *e)
{
    struct waiting *w = e->first;
    if (!w)
        return NULL;
    e->first = w->next;
    e->end = e->first ? e->end : &e->first;
    e->count--;
    return w;
}

/* NULL: the thread must end. */
static struct waiting *wait_for_one(struct df_events *e)
{
    (void)pthread_mutex_lock(&e->lock);
    while (!e->stopping && !e->first)
        (void)pthread_cond_wait(&e->news, &e->lock);
    struct waiting *w = take_first(e);
    (void)pthread_mutex_unlock(&e->lock);
    return w;
}

static void count_dropped(void)
{
    df_metric_add(df_metric_counter("dayfly_events_dropped_total",
                                    "Kubernetes Events about steps that were not posted.", NULL),
                  NULL, 1);
}

/* False if the API server did not answer: post it again. */
static bool post(struct df_events *e, const cJSON *event)
{
    const char *name_space = df_json_str(event, "metadata.namespace");
    const struct df_kube_at at = {.resource = &resource, .name_space = name_space, .stop = &e->cut};
    struct df_err err = {0};
    bool done = df_kube_create(e->o.kube, &at, event, NULL, &err) == 0 ||
                df_streq(err.reason, "AlreadyExists");
    if (!done && err.cls == DF_ERR_RETRY)
        return false;
    if (!done && !e->refused)
        df_warn("Events about steps are refused, and are not told until they are taken: %s",
                err.message);
    if (!done)
        count_dropped();
    e->refused = !done;
    return true;
}

/* Waits until *flag is true, at most for ms. Returns *flag. */
static bool wait_for(struct df_events *e, const bool *flag, int64_t ms)
{
    int64_t end_ms = df_mono_ms() + ms;
    const struct timespec until = {.tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000};
    int result = 0;
    (void)pthread_mutex_lock(&e->lock);
    while (!*flag && result == 0)
        result = pthread_cond_timedwait(&e->news, &e->lock, &until);
    bool is_set = *flag;
    (void)pthread_mutex_unlock(&e->lock);
    return is_set;
}

static void raise_flag(struct df_events *e, bool *flag)
{
    (void)pthread_mutex_lock(&e->lock);
    *flag = true;
    (void)pthread_cond_broadcast(&e->news);
    (void)pthread_mutex_unlock(&e->lock);
}

/* Returns at once when the spawner stops. */
static void wait_for_turn(struct df_events *e)
{
    int64_t left_us = e->turn_us - df_mono_us();
    if (left_us > 0)
        (void)wait_for(e, &e->stopping, (left_us + 999) / 1000);
}

/* False if the spawner stopped meanwhile. */
static bool post_until_taken(struct df_events *e, const cJSON *event)
{
    int64_t pause_ms = PAUSE_MIN_MS, began_us = df_mono_us();
    while (!post(e, event)) {
        if (wait_for(e, &e->stopping, pause_ms))
            return false;
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
        began_us = df_mono_us();
    }
    int64_t pause_us = PAUSE_TIMES * (df_mono_us() - began_us),
            most_us = PAUSE_MAX_MS * INT64_C(1000);
    e->turn_us = df_mono_us() + (pause_us < most_us ? pause_us : most_us);
    return true;
}

static void *post_all(void *arg)
{
    struct df_events *e = arg;
    bool goes_on = true;
    while (goes_on) {
        DF_FREE struct waiting *w = wait_for_one(e);
        DF_JSON cJSON *event = NULL;
        struct df_err err = {0};
        if (w && df_json_parse(w->text, w->len, &event, &err) < 0) {
            df_warn("an Event about a step is dropped: %s", err.message);
            count_dropped();
            continue;
        }
        if (w)
            wait_for_turn(e);
        goes_on = w && post_until_taken(e, event);
    }
    raise_flag(e, &e->ended);
    return NULL;
}

/* ---- from outside ---- */

bool df_events_may_tell(const struct df_events *e, const cJSON *task)
{
    if (!e)
        return false;
    return e->o.on_tasks || df_json_str(task, "status.engineRef.namespace");
}

static struct waiting *pack(const cJSON *event)
{
    DF_FREE char *text = df_json_print(event);
    size_t n = text ? strlen(text) : 0;
    struct waiting *w = text ? malloc(sizeof(*w) + n + 1) : NULL;
    if (!w)
        return NULL;
    *w = (struct waiting){.len = n};
    memcpy(w->text, text, n + 1);
    return w;
}

/* Takes ownership of w. */
static void add(struct df_events *e, struct waiting *w)
{
    (void)pthread_mutex_lock(&e->lock);
    bool fits = e->count < DF_LIMIT_EVENTS_WAITING;
    bool is_first = !fits && !e->drops;
    e->drops = !fits || (e->drops && e->count > DF_LIMIT_EVENTS_WAITING / 2);
    if (fits) {
        *e->end = w;
        e->end = &w->next;
        e->count++;
    }
    (void)pthread_cond_broadcast(&e->news);
    (void)pthread_mutex_unlock(&e->lock);
    if (fits)
        return;
    free(w);
    count_dropped();
    if (is_first)
        df_warn("Events about steps are dropped: %d wait for the API server already",
                DF_LIMIT_EVENTS_WAITING);
}

static int queue(struct df_events *e, const cJSON *event, struct df_err *err)
{
    struct waiting *w = pack(event);
    if (!w)
        return df_fail_oom(err);
    add(e, w);
    return 0;
}

void df_events_tell(struct df_events *e, const cJSON *task, int entry)
{
    DF_JSON cJSON *event = NULL;
    struct df_err err = {0};
    if (!df_events_may_tell(e, task))
        return;
    if (df_event_build(task, entry, e->o.on_tasks, e->instance, &event, &err) < 0 ||
        queue(e, event, &err) < 0)
        df_warn("an Event about step %s is dropped: %s", df_json_str(task, "metadata.name"),
                err.message);
}

static void free_events(struct df_events *e)
{
    (void)pthread_mutex_destroy(&e->lock);
    (void)pthread_cond_destroy(&e->news);
    for (struct waiting *w; (w = take_first(e));)
        free(w);
    free(e);
}

int df_events_start(const struct df_events_options *o, struct df_events **ret, struct df_err *err)
{
    struct df_events *e = calloc(1, sizeof(*e));
    if (!e)
        return df_fail_oom(err);
    e->o = *o;
    e->end = &e->first;
    (void)pthread_mutex_init(&e->lock, NULL);
    df_cond_init(&e->news);
    if (gethostname(e->instance, sizeof(e->instance) - 1) < 0 || !e->instance[0])
        (void)snprintf(e->instance, sizeof(e->instance), "spawner");
    int failed = pthread_create(&e->thread, NULL, post_all, e);
    if (failed) {
        free_events(e);
        return df_fail_errno(err, failed, "start the thread of Events");
    }
    *ret = e;
    return 0;
}

void df_events_stop(struct df_events *e)
{
    if (!e)
        return;
    raise_flag(e, &e->stopping);
    (void)wait_for(e, &e->ended, STOP_MS);
    __atomic_store_n(&e->cut, true, __ATOMIC_RELAXED);
    (void)pthread_join(e->thread, NULL);
    free_events(e);
}
