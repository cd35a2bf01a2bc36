/*
 * The caller's thread fills the queue, the sender's empties it. Read struct df_terrakube_stream
 * first (who owns which member), then sending, the thread, and the caller's side.
 */
#include "common/terrakube/log_stream.h"

#include <pthread.h>
#include <signal.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/terrakube/api.h"
#include "common/terrakube/heartbeat.h"
#include "common/terrakube/log_queue.h"
#include "common/terrakube/wire.h"

enum {
    RETRY_MIN_MS = 250,
    RETRY_MAX_MS = 5000,
    REFUSED_MS = 3600 * 1000, /* a password that Redis refuses is not tried more often */
    HURRY_MS = 500,           /* at most, when somebody waits for the end */
    GATHER_MS = 1000,         /* between two requests of a log that goes through the API */
    RETRY_MS = 5000,          /* of the API's client for one request */
};

struct df_terrakube_stream {
    const struct df_terrakube_payload *payload; /* borrowed */
    struct df_terrakube_heartbeat *heartbeat;   /* NULL: no Redis */
    volatile bool stop;                         /* atomic: ends a call of the API */

    pthread_mutex_t lock;
    pthread_cond_t work;  /* something to send, or a flag has changed */
    pthread_cond_t moved; /* the thread has sent something, or failed */
    /* Under the lock. */
    struct df_log_queue queue;
    bool is_open, ending;
    bool hurry;        /* somebody waits for the end */
    struct df_err why; /* of the last attempt; class NONE: it was good */

    pthread_t thread;
    bool started;
    /* The thread's own. */
    struct df_redis *redis;       /* NULL: there is none */
    struct df_terrakube_api *api; /* NULL: lines go to Redis */
    bool prepared;
    int failures; /* in a row */
};

/* ---- sending ---- */

/* Else it is refused for what it is. */
static bool may_change(const struct df_err *why)
{
    return why->cls == DF_ERR_RETRY || why->cls == DF_ERR_DENIED;
}

/* What is refused for good is not needed: the groups, because the API reads the whole stream. */
static int prepare(struct df_terrakube_stream *s, struct df_err *err)
{
    struct df_err why = {0};
    if (s->prepared)
        return 0;
    int result = s->api     ? df_terrakube_api_log_setup(s->api, &why)
                 : s->redis ? df_terrakube_wire_groups(s->redis, s->payload->job, &why)
                            : 0;
    if (result < 0 && may_change(&why))
        return df_err_pass(err, &why);
    s->prepared = true;
    return 0;
}

/* cJSON's strings end at a NUL: it becomes what Redis' readers are shown for bytes that are no
 * text. */
static int add_output(cJSON *line, const struct df_log_entry *e, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(3 * DF_LIMIT_TERRAKUBE_LINE);
    for (size_t i = 0; i < e->n;) {
        size_t n = strnlen(e->text + i, e->n - i);
        (void)df_buf_add(&text, e->text + i, n);
        i += n;
        if (i < e->n) {
            (void)df_buf_adds(&text, "\xef\xbf\xbd");
            i++;
        }
    }
    return df_buf_check(&text, err) < 0 ? -1
                                        : df_json_add_str(line, "output", df_buf_str(&text), err);
}

static int add_json_line(cJSON *list, const struct df_terrakube_payload *p,
                         const struct df_log_entry *e, struct df_err *err)
{
    DF_JSON cJSON *line = cJSON_CreateObject();
    if (df_json_put(line, err, DF_ITEM("jobId", df_json_number(p->job)), DF_STR("stepId", p->step),
                    DF_NUM("lineNumber", e->number)) < 0 ||
        add_output(line, e, err) < 0)
        return -1;
    return df_json_append(list, DF_TAKE(line), err);
}

static int send_to_api(struct df_terrakube_stream *s, const struct df_log_entry *const *entries,
                       size_t n, size_t *ret_done, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (!list)
        return df_fail_oom(err);
    for (size_t i = 0; i < n; i++)
        if (add_json_line(list, s->payload, entries[i], err) < 0)
            return -1;
    if (df_terrakube_api_log(s->api, list, err) < 0)
        return -1;
    *ret_done = n;
    return 0;
}

static int send_lines(struct df_terrakube_stream *s, const struct df_log_entry *const *entries,
                      size_t n, size_t *ret_done, struct df_err *err)
{
    struct df_terrakube_line lines[DF_LIMIT_TERRAKUBE_LOG_BATCH];
    if (s->api)
        return send_to_api(s, entries, n, ret_done, err);
    for (size_t i = 0; i < n; i++)
        lines[i] = (struct df_terrakube_line){entries[i]->text, entries[i]->n, entries[i]->number};
    return df_terrakube_wire_lines(s->redis, s->payload, lines, n, ret_done, err);
}

static int send_entries(struct df_terrakube_stream *s, const struct df_log_entry *const *entries,
                        size_t n, size_t *ret_done, struct df_err *err)
{
    if (prepare(s, err) < 0)
        return -1;
    if (!entries[0]->is_context)
        return send_lines(s, entries, n, ret_done, err);
    const struct df_log_entry *e = entries[0];
    if (s->redis && df_terrakube_wire_context(s->redis, s->payload, e->text, e->n, err) < 0) {
        if (!s->api)
            return -1;
        /* Lines must not wait for a Redis that executors elsewhere cannot reach. */
        df_redis_free(DF_TAKE(s->redis));
    }
    *ret_done = 1;
    return 0;
}

/* ---- the thread ---- */

/* Waits for that long, less if somebody is in a hurry meanwhile, not at all at the end. */
static void rest(struct df_terrakube_stream *s, int64_t ms, int64_t hurried_ms)
{
    const int64_t begin = df_mono_ms();
    for (;;) {
        int64_t left = begin + (s->hurry && ms > hurried_ms ? hurried_ms : ms) - df_mono_ms();
        if (s->ending || left <= 0)
            return;
        const struct timespec until = df_mono_after_us(left * 1000);
        (void)pthread_cond_timedwait(&s->work, &s->lock, &until);
    }
}

/* What is refused for what it is would hold up all behind it: of a batch that was cut short it is
 * the next one, of a request all. */
static void settle(struct df_terrakube_stream *s, size_t n, size_t done, int result,
                   const struct df_err *why)
{
    bool refused = result < 0 && !may_change(why);
    df_log_queue_remove(&s->queue, done);
    for (size_t i = done; refused && i < (s->api ? n : done + 1); i++)
        df_log_queue_give_up(&s->queue);
    s->failures = result < 0 && !refused ? s->failures + 1 : 0;
    s->why = *why;
    (void)pthread_cond_broadcast(&s->moved);
}

static void send_some(struct df_terrakube_stream *s, const struct df_log_entry *const *entries,
                      size_t n)
{
    struct df_err why = {0};
    size_t done = 0;
    (void)pthread_mutex_unlock(&s->lock);
    int result = send_entries(s, entries, n, &done, &why);
    (void)pthread_mutex_lock(&s->lock);
    settle(s, n, done, result, &why);
    if (s->failures && !s->api && why.cls == DF_ERR_DENIED)
        rest(s, REFUSED_MS, REFUSED_MS);
    else if (s->failures)
        rest(s, df_backoff_pause(RETRY_MIN_MS, RETRY_MAX_MS, s->failures), HURRY_MS);
    else if (s->api)
        rest(s, GATHER_MS, 0);
}

static void *stream_run(void *arg)
{
    struct df_terrakube_stream *s = arg;
    const struct df_log_entry *entries[DF_LIMIT_TERRAKUBE_LOG_BATCH];
    (void)pthread_mutex_lock(&s->lock);
    while (!s->ending) {
        size_t n = s->is_open ? df_log_queue_peek(&s->queue, entries, DF_ARRAY_SIZE(entries)) : 0;
        if (n)
            send_some(s, entries, n);
        else
            (void)pthread_cond_wait(&s->work, &s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int start_thread(struct df_terrakube_stream *s, struct df_err *err)
{
    /* Signals are for the main thread. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&s->thread, NULL, stream_run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return df_fail_errno(err, failed, "start the thread of the log");
    s->started = true;
    return 0;
}

/* ---- the caller's side ---- */

static int start(struct df_terrakube_stream *s, const struct df_terrakube_settings *settings,
                 const char *pod, const struct df_wait_listener *listener, struct df_err *err)
{
    if (df_terrakube_has_redis(settings) &&
        (df_terrakube_heartbeat_new(settings, s->payload, pod, listener, &s->heartbeat, err) < 0 ||
         df_terrakube_wire_new(settings, &s->redis, err) < 0))
        return -1;
    if (settings->log_via_api &&
        df_terrakube_api_new(settings, s->payload, RETRY_MS, &s->stop, &s->api, err) < 0)
        return -1;
    return start_thread(s, err);
}

int df_terrakube_stream_new(const struct df_terrakube_settings *settings,
                            const struct df_terrakube_payload *p, const char *pod,
                            const struct df_wait_listener *listener,
                            struct df_terrakube_stream **ret, struct df_err *err)
{
    struct df_terrakube_stream *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    s->payload = p;
    df_log_queue_init(&s->queue);
    (void)pthread_mutex_init(&s->lock, NULL);
    df_cond_init(&s->work);
    df_cond_init(&s->moved);
    if (start(s, settings, pod, listener, err) < 0) {
        df_terrakube_stream_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void df_terrakube_stream_open(struct df_terrakube_stream *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->is_open = true;
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
}

void df_terrakube_stream_add(struct df_terrakube_stream *s, const char *bytes, size_t n)
{
    (void)pthread_mutex_lock(&s->lock);
    df_log_queue_bytes(&s->queue, bytes, n);
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
}

void df_terrakube_stream_entry(struct df_terrakube_stream *s, const char *text, size_t n)
{
    (void)pthread_mutex_lock(&s->lock);
    df_log_queue_end_line(&s->queue);
    df_log_queue_line(&s->queue, text, n);
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
}

void df_terrakube_stream_context(struct df_terrakube_stream *s, const char *json)
{
    (void)pthread_mutex_lock(&s->lock);
    df_log_queue_context(&s->queue, json);
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
}

bool df_terrakube_stream_flush(struct df_terrakube_stream *s, int64_t timeout_ms,
                               struct df_err *why)
{
    const struct timespec until = df_mono_after_us(timeout_ms * 1000);
    int result = 0;
    (void)pthread_mutex_lock(&s->lock);
    df_log_queue_end_line(&s->queue);
    s->hurry = true;
    (void)pthread_cond_signal(&s->work);
    while (s->queue.first && s->is_open && s->why.cls != DF_ERR_DENIED && result == 0)
        result = pthread_cond_timedwait(&s->moved, &s->lock, &until);
    s->hurry = false;
    bool all = !s->queue.first && !s->queue.missing;
    if (!all && why) {
        *why = s->why;
        if (why->cls == DF_ERR_NONE)
            (void)df_fail(why, DF_ERR_RETRY, "there was no time for all lines");
    }
    (void)pthread_mutex_unlock(&s->lock);
    return all;
}

void df_terrakube_stream_free(struct df_terrakube_stream *s)
{
    if (!s)
        return;
    __atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
    (void)pthread_mutex_lock(&s->lock);
    s->ending = true;
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
    if (s->started)
        (void)pthread_join(s->thread, NULL);
    df_terrakube_heartbeat_free(s->heartbeat);
    df_terrakube_api_free(s->api);
    df_redis_free(s->redis);
    df_log_queue_free(&s->queue);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->work);
    (void)pthread_cond_destroy(&s->moved);
    free(s);
}
