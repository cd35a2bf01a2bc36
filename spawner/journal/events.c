/*
 * Kubernetes Events: one thread reads the journal, queues an Event for each entry that the history
 * of a changed step has more than before, and posts them at a limited rate. Read post_all(), then
 * queue_step().
 */
#include "spawner/journal/events.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/kube/kube.h"
#include "common/metrics/metrics.h"
#include "spawner/journal/cursors.h"
#include "spawner/journal/journal.h"
#include "spawner/model/action_event.h"
#include "spawner/model/labels.h"
#include "spawner/model/model.h"

#define PAUSE_MIN_MS 500
#define PAUSE_MAX_MS 30000
#define ERRORS_MAX 3 /* of the API server, about one Event, before it is dropped */
/* After each Event the thread pauses for PAUSE_TIMES as long as the request took, so that Events do
 * not slow the Jobs down: a busy API server gets few of them. */
#define PAUSE_TIMES 10
/* The thread pauses after it was woken. Others, who were woken by the same write, are more urgent,
 * and more entries of the same step may come. */
#define GATHER_MS 20
/* Events that may wait to be posted; beyond them the journal waits to be read. */
#define QUEUE_MAX 256
#define IDLE_MS 3600000 /* a write of a document ends it */
/* An entry that is older than the thread by more than this was posted by an earlier leader. A later
 * one may have been lost with it, and is posted. */
#define OVERLAP_US INT64_C(60000000)
/* How long a spawner that stops waits for the last Events. */
#define STOP_MS 2000
/* The longest note that the API accepts. */
#define NOTE_MAX 1023

static const struct df_kube_resource resource = {"events.k8s.io", "v1", "events"};

struct queued {
    struct queued *next;
    cJSON *event;
};

struct df_events {
    struct df_spawner *s;
    char instance[128];
    pthread_t thread;
    struct df_subscription subscription; /* to all documents */
    pthread_mutex_t lock;                /* guards stopping and ended */
    pthread_cond_t raised;
    bool stopping, ended;
    volatile bool cut; /* ends a request that is under way (df_kube_at.stop) */
    /* The thread's own. */
    uint64_t cursor;          /* number of the journal's last entry that was read */
    struct df_cursors posted; /* entries of each unfinished step's history */
    int64_t since_us;         /* real time: earlier entries were posted by an earlier leader */
    bool refused, late;       /* the last Event was; each is logged once */
    bool behind;              /* entries of the journal were lost; logged once */
    struct queued *first, **end;
    size_t count;
    int64_t turn_ms; /* when the next Event may be posted; monotonic */
};

/* ---- the object ---- */

static const cJSON *entry_of(const cJSON *task, int entry)
{
    return cJSON_GetArrayItem(df_json_at(task, "status.phaseHistory"), entry);
}

/* The apiVersion of what the engine made; NULL: that is not in the cluster. */
static const char *version_of(const cJSON *engine_ref)
{
    static const struct {
        const char *kind, *version;
    } rows[] = {{"Job", "batch/v1"}, {"PipelineRun", "tekton.dev/v1"}};
    const char *kind = df_json_str(engine_ref, "kind");
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        if (df_streq(kind, rows[i].kind))
            return rows[i].version;
    return NULL;
}

/* The object that the Event refers to. kind: of the document; NULL: what its engine made. */
static int add_regarding(cJSON *event, const cJSON *doc, const char *kind, struct df_err *err)
{
    const cJSON *from = df_json_at(doc, kind ? "metadata" : "status.engineRef");
    cJSON *to = df_json_object_at(event, "regarding");
    return df_json_put(to, err, DF_STR("apiVersion", kind ? DF_API_VERSION : version_of(from)),
                       DF_STR("kind", kind ? kind : df_json_str(from, "kind")),
                       DF_STR("name", df_json_str(from, "name")),
                       DF_STR("namespace", df_json_str(from, "namespace")),
                       DF_STR("uid", df_json_str(from, "uid")));
}

/* which: of the Events about this document. */
static int add_metadata(cJSON *event, const cJSON *doc, const char *which, struct df_err *err)
{
    const cJSON *about = df_json_at(event, "regarding");
    const char *uid = df_json_str(doc, "metadata.uid");
    cJSON *metadata = df_json_object_at(event, "metadata");
    DF_FREE char *name = df_strf("%s.%.8s-%s", df_json_str(about, "name"), uid ? uid : "", which);
    if (!metadata || !name)
        return df_fail_oom(err);
    return df_json_put(metadata, err, DF_STR("name", name),
                       DF_STR("namespace", df_json_str(about, "namespace")));
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
    char number[16];
    (void)snprintf(number, sizeof(number), "%d", entry);
    if (df_json_put(event, err, DF_STR("apiVersion", "events.k8s.io/v1"), DF_STR("kind", "Event")) <
            0 ||
        add_regarding(event, task, on_task ? "TaskAction" : NULL, err) < 0 ||
        add_metadata(event, task, number, err) < 0 ||
        df_json_put(event, err, DF_STR("eventTime", df_json_str(what, "occurredAt")),
                    DF_STR("type", is_bad(phase) ? "Warning" : "Normal"),
                    DF_STR("reason", reason_of(task, phase)),
                    DF_STR("action", action ? action : "step"),
                    DF_STR("reportingController", DF_EVENTS_REPORTER),
                    DF_STR("reportingInstance", reporter)) < 0 ||
        add_note(event, message ? message : phase, err) < 0)
        return -1;
    *ret = DF_TAKE(event);
    return 0;
}

int df_event_reminder(const cJSON *run, const char *reporter, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *event = cJSON_CreateObject();
    const char *name = df_json_str(run, "metadata.name");
    DF_FREE char *note = df_strf("still waits for approval: dayfly approve %s", name);
    if (df_check_alloc(note, err) < 0 ||
        df_json_put(event, err, DF_STR("apiVersion", "events.k8s.io/v1"), DF_STR("kind", "Event")) <
            0 ||
        add_regarding(event, run, "Run", err) < 0 ||
        add_metadata(event, run, "reminder", err) < 0 ||
        df_json_put(event, err, DF_STR("eventTime", df_json_str(run, "status.remindedAt")),
                    DF_STR("type", "Warning"), DF_STR("reason", "WaitingApproval"),
                    DF_STR("action", "approve"), DF_STR("reportingController", DF_EVENTS_REPORTER),
                    DF_STR("reportingInstance", reporter)) < 0 ||
        add_note(event, note, err) < 0)
        return -1;
    *ret = DF_TAKE(event);
    return 0;
}

/* ---- stopping ---- */

static void raise_flag(struct df_events *e, bool *flag)
{
    (void)pthread_mutex_lock(&e->lock);
    *flag = true;
    (void)pthread_cond_broadcast(&e->raised);
    (void)pthread_mutex_unlock(&e->lock);
}

/* Waits until *flag is true, at most for ms. Returns *flag. */
static bool wait_for(struct df_events *e, const bool *flag, int64_t ms)
{
    const struct timespec until = df_mono_after_us(ms * 1000);
    int result = 0;
    (void)pthread_mutex_lock(&e->lock);
    while (!*flag && result == 0)
        result = pthread_cond_timedwait(&e->raised, &e->lock, &until);
    bool is_set = *flag;
    (void)pthread_mutex_unlock(&e->lock);
    return is_set;
}

/* ---- one step ---- */

static void count_dropped(void)
{
    df_metric_add(df_metric_counter("dayfly_events_dropped_total",
                                    "Kubernetes Events about steps that were not posted.", NULL),
                  NULL, 1);
}

static bool is_on_tasks(const struct df_events *e)
{
    return e->s->config->in_cluster;
}

/* The object that the Events are about. */
static bool object_exists(const struct df_events *e, const cJSON *task)
{
    return is_on_tasks(e) || version_of(df_json_at(task, "status.engineRef"));
}

/* How many entries an earlier leader has posted. */
static int posted_earlier(const struct df_events *e, const cJSON *task)
{
    const cJSON *entry;
    int n = 0;
    cJSON_ArrayForEach (entry, df_json_at(task, "status.phaseHistory")) {
        const char *at = df_json_str(entry, "occurredAt");
        int64_t at_us = 0;
        if (!at || df_time_parse(at, &at_us, NULL) < 0 || at_us >= e->since_us)
            break;
        n++;
    }
    return n;
}

/* Takes the Event, also on failure. */
static int queue_event(struct df_events *e, cJSON *event, struct df_err *err)
{
    struct queued *q = calloc(1, sizeof(*q));
    if (!q) {
        cJSON_Delete(event);
        return df_fail_oom(err);
    }
    q->event = event;
    *e->end = q;
    e->end = &q->next;
    e->count++;
    return 0;
}

static int queue_entry(struct df_events *e, const cJSON *task, int index, struct df_err *err)
{
    cJSON *event = NULL;
    return df_event_build(task, index, is_on_tasks(e), e->instance, &event, err) < 0
               ? -1
               : queue_event(e, event, err);
}

/* Queues the Events from the entry at index on. */
static void queue_from(struct df_events *e, const cJSON *task, int index)
{
    int n = df_action_transitions(task);
    for (; index < n; index++) {
        struct df_err err = {0};
        if (queue_entry(e, task, index, &err) == 0)
            continue;
        df_warn("an Event about step %s is dropped: %s", df_json_str(task, "metadata.name"),
                err.message);
        count_dropped();
    }
}

/* A finished step has no more Events: it needs no cursor. Without memory for the cursor Events may
 * be posted twice, which the API server refuses by their name. */
static void keep_cursor(struct df_events *e, const cJSON *task)
{
    const char *name = df_json_str(task, "metadata.name");
    if (df_label_has(task, DF_LABEL_UNFINISHED))
        (void)!df_cursors_set(&e->posted, name, df_json_str(task, "metadata.uid"),
                              df_action_transitions(task), NULL);
    else
        df_cursors_drop(&e->posted, name);
}

static void queue_step(struct df_events *e, const struct df_journal_entry *entry)
{
    DF_SHARED const cJSON *task = NULL;
    struct df_err err = {0};
    if (df_store_look_for(e->s->store, DF_KIND_TASK_ACTION, entry->name, &task, &err) < 0) {
        df_warn("Events about step %s are late: %s", entry->name, err.message);
        return; /* the step's next entry queues them */
    }
    if (!task) {
        df_cursors_drop(&e->posted, entry->name);
        return;
    }
    if (!object_exists(e, task))
        return;
    /* A finished step without a cursor has all its Events, unless it ended before it was read. */
    bool may_be_new = entry->change == DF_CHANGE_ADDED || df_label_has(task, DF_LABEL_UNFINISHED);
    int index = may_be_new ? posted_earlier(e, task) : df_action_transitions(task);
    queue_from(e, task,
               df_cursors_get(&e->posted, entry->name, df_json_str(task, "metadata.uid"), index));
    keep_cursor(e, task);
}

/* A run that says so once in its status. What the API server has already, of an earlier write of
 * the run, it refuses by its name. */
static void queue_reminder(struct df_events *e, const struct df_journal_entry *entry)
{
    DF_SHARED const cJSON *run = NULL;
    cJSON *event = NULL;
    struct df_err err = {0};
    int64_t at_us = 0;
    if (!e->s->config->approval.reminder_s || !is_on_tasks(e) ||
        df_store_look_for(e->s->store, DF_KIND_RUN, entry->name, &run, NULL) < 0)
        return;
    const char *at = df_json_str(run, "status.remindedAt");
    if (!at || !df_streq(df_run_phase(run), "WaitingApproval") ||
        df_time_parse(at, &at_us, NULL) < 0 || at_us < e->since_us)
        return;
    if (df_event_reminder(run, e->instance, &event, &err) < 0 || queue_event(e, event, &err) < 0) {
        df_warn("an Event about run %s is dropped: %s", entry->name, err.message);
        count_dropped();
    }
}

/* ---- the journal ---- */

static void say_behind(struct df_events *e)
{
    if (!e->behind)
        df_warn("Events about steps may be missing: the API server takes them slower than steps "
                "change");
    e->behind = true;
}

/* Queues Events for the entries of the journal, until there are no more entries or the queue is
 * full. A step is read soon after its change, also while an Event waits for its turn: a step that
 * is deleted is gone with its history. */
static void read_journal(struct df_events *e)
{
    struct df_journal_entry entry;
    while (e->count < QUEUE_MAX) {
        int result = df_journal_read(e->s->journal, &e->cursor, &entry);
        if (result == 0) {
            e->behind = false;
            return;
        }
        if (result < 0)
            say_behind(e);
        else if (entry.kind == DF_KIND_TASK_ACTION)
            queue_step(e, &entry);
        else if (entry.kind == DF_KIND_RUN)
            queue_reminder(e, &entry);
    }
}

/* Reads the journal until that time (monotonic), or (for_first) an Event is queued. False when the
 * spawner stops. */
static bool read_until(struct df_events *e, int64_t end_ms, bool for_first)
{
    for (;;) {
        uint64_t mark = df_subscription_mark(e->s->journal, &e->subscription);
        bool is_stopping = wait_for(e, &e->stopping, GATHER_MS);
        read_journal(e);
        int64_t left_ms = end_ms - df_mono_ms();
        if (is_stopping)
            return false;
        if (left_ms <= 0 || (for_first && e->first))
            return true;
        df_subscription_wait(e->s->journal, &e->subscription, mark, left_ms);
    }
}

/* ---- one Event ---- */

static int post(struct df_events *e, const cJSON *event, struct df_err *err)
{
    const char *name_space = df_json_str(event, "metadata.namespace");
    const struct df_kube_at at = {.resource = &resource, .name_space = name_space, .stop = &e->cut};
    struct df_err why = {0};
    if (df_kube_create(e->s->kube, &at, event, NULL, &why) == 0 ||
        df_streq(why.reason, "AlreadyExists"))
        return 0;
    return df_err_pass(err, &why);
}

/* The API server did not answer, or is busy. Any other error may be about this Event alone (of a
 * webhook, for example): it must not hold back the others for ever. */
static bool is_unavailable(const struct df_err *why)
{
    static const char *const reasons[] = {"", "ServiceUnavailable", "TooManyRequests", "Timeout",
                                          "ServerTimeout"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(reasons); i++)
        if (df_streq(why->reason, reasons[i]))
            return true;
    return false;
}

static bool may_succeed_later(const struct df_err *why, int tries)
{
    return why->cls == DF_ERR_RETRY && (tries < ERRORS_MAX || is_unavailable(why));
}

static void drop_refused(struct df_events *e, const struct df_err *why)
{
    if (!e->refused)
        df_warn("the API server refuses Events about steps; they are dropped: %s", why->message);
    e->refused = true;
    count_dropped();
}

static void say_late(struct df_events *e, const struct df_err *why)
{
    if (!e->late)
        df_warn("Events about steps are late: %s", why->message);
    e->late = true;
}

/* Ends when the API server has taken or refused the Event. False if the spawner stopped before. */
static bool post_until_answered(struct df_events *e, const cJSON *event)
{
    struct df_err why = {0};
    int64_t began_ms, pause_ms = PAUSE_MIN_MS;
    (void)read_until(e, e->turn_ms, false);
    for (int tries = 1; began_ms = df_mono_ms(), post(e, event, &why) < 0; tries++) {
        if (!may_succeed_later(&why, tries)) {
            drop_refused(e, &why);
            break;
        }
        say_late(e, &why);
        int64_t asked_ms = (int64_t)why.retry_after_s * 1000;
        if (!read_until(e, df_mono_ms() + (pause_ms > asked_ms ? pause_ms : asked_ms), false)) {
            count_dropped();
            return false;
        }
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
        why = (struct df_err){0};
    }
    if (why.cls == DF_ERR_NONE)
        e->refused = e->late = false;
    int64_t rest_ms = PAUSE_TIMES * (df_mono_ms() - began_ms);
    e->turn_ms = df_mono_ms() + (rest_ms < PAUSE_MAX_MS ? rest_ms : PAUSE_MAX_MS);
    return true;
}

static struct queued *take_queued(struct df_events *e)
{
    struct queued *q = e->first;
    if (!q)
        return NULL;
    e->first = q->next;
    e->end = e->first ? e->end : &e->first;
    e->count--;
    return q;
}

static void free_queued(struct queued **q)
{
    if (*q)
        cJSON_Delete((*q)->event);
    free(*q);
}

static void *post_all(void *arg)
{
    struct df_events *e = arg;
    bool goes_on = true;
    while (goes_on) {
        bool stops = !read_until(e, df_mono_ms() + (e->first ? 0 : IDLE_MS), true);
        DF_CLEANUP(free_queued) struct queued *q = take_queued(e);
        goes_on = q ? post_until_answered(e, q->event) : !stops;
    }
    raise_flag(e, &e->ended);
    return NULL;
}

/* ---- its life ---- */

static void free_events(struct df_events *e)
{
    df_unsubscribe(e->s->journal, &e->subscription);
    df_cursors_free(&e->posted);
    for (struct queued *q; (q = take_queued(e));)
        free_queued(&q);
    (void)pthread_mutex_destroy(&e->lock);
    (void)pthread_cond_destroy(&e->raised);
    free(e);
}

static void init(struct df_events *e, struct df_spawner *s)
{
    char version[32];
    e->s = s;
    df_subscribe(s->journal, &e->subscription, NULL, 0, false);
    e->cursor = df_journal_last(s->journal, version);
    e->end = &e->first;
    e->since_us = df_real_us() - OVERLAP_US;
    (void)pthread_mutex_init(&e->lock, NULL);
    df_cond_init(&e->raised);
    if (gethostname(e->instance, sizeof(e->instance) - 1) < 0 || !e->instance[0])
        (void)snprintf(e->instance, sizeof(e->instance), "spawner");
}

int df_events_start(struct df_spawner *s, struct df_events **ret, struct df_err *err)
{
    *ret = NULL;
    if (!s->config->runs_pods)
        return 0;
    struct df_events *e = calloc(1, sizeof(*e));
    if (!e)
        return df_fail_oom(err);
    init(e, s);
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
    df_subscription_wake(e->s->journal, &e->subscription);
    (void)wait_for(e, &e->ended, STOP_MS);
    __atomic_store_n(&e->cut, true, __ATOMIC_RELAXED);
    (void)pthread_join(e->thread, NULL);
    free_events(e);
}
