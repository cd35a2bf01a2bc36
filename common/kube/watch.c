/*
 * The thread of a watch: it lists in pages, reads the stream, and decides after each end whether to
 * continue, wait or list again. Read watch_main() first, then run_list() and run_stream().
 */
#include "common/kube/watch.h"

#include <pthread.h>
#include <time.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/kube/client.h"

enum {
    TIMEOUT_S = 300,
    IDLE_MS = 150000,
    BACKOFF_MIN_MS = 200,
    BACKOFF_MAX_MS = 10000,
    SHORT_MS = 1000, /* a stream without events that ends earlier counts as a failure */
    STOP_POLL_MS = 100
};

struct df_kube_watch {
    struct df_kube *k;
    struct df_kube_conn *conn;
    struct df_kube_watch_options o; /* strings owned */
    pthread_t thread;
    volatile bool stop;
    volatile bool interrupt; /* aborts the current request or pause of the thread */

    pthread_mutex_t lock; /* guards the next three */
    pthread_cond_t changed;
    uint64_t asked;  /* number of relists requested */
    uint64_t listed; /* number of requests that the latest complete list covers */

    /* Used by the thread only. */
    uint64_t heeded; /* number of requests the thread has seen */
    char *listing;   /* the resourceVersion of the current list; or NULL */
    char *seen;      /* the newest resourceVersion received; NULL: none yet */
    bool expired;   /* the last watch began at an expired version, and no stream has worked since */
    bool must_list; /* a watch cannot begin at `seen` */
    enum { UNKNOWN, LINES, FRAMES } form; /* of the stream: JSON or protobuf */
    struct df_buf event;                  /* the event being received */
    bool moved;                           /* the stream has delivered an event or a bookmark */
    struct df_err why;                    /* why this side ended the stream */
    int failures;                         /* in a row */
};

/* Of an object in an event, and of one in a list. */
static const char *const managed[] = {".object.metadata." DF_KUBE_MANAGED,
                                      ".items.metadata." DF_KUBE_MANAGED, NULL};

bool df_kube_version_is_older(const char *b, const char *a)
{
    static const char digits[] = "0123456789";
    if (df_str_empty(a) || df_str_empty(b) || a[strspn(a, digits)] || b[strspn(b, digits)])
        return false;
    size_t n = strlen(a), m = strlen(b);
    return m != n ? m < n : strcmp(b, a) < 0;
}

/* ---- the list ------------------------------------------------------------------------------- */

static int on_list(void *arg, const char *version, struct df_err *err)
{
    struct df_kube_watch *w = arg;
    if (df_kube_version_is_older(version, w->seen))
        return df_fail_reason(err, DF_ERR_RETRY, "StaleList",
                              "list %s: the API server answers with resourceVersion %s, but %s was "
                              "seen before; if its etcd was restored from a backup, restart this "
                              "service",
                              w->o.resource->plural, version, w->seen);
    if (df_str_set(&w->listing, version, err) < 0)
        return -1;
    return w->o.to.begin(w->o.to.arg, version, err);
}

static int on_item(void *arg, cJSON **object, struct df_err *err)
{
    struct df_kube_watch *w = arg;
    return w->o.to.apply(w->o.to.arg, object, err);
}

static int run_list(struct df_kube_watch *w, const struct df_kube_at *at, struct df_err *err)
{
    struct df_kube_sink sink = {
        .begin = on_list, .take = on_item, .arg = w, .without = w->o.without};
    if (df_kube_list_on(w->k, w->conn, at, &w->o.select, w->o.page, &sink, err) < 0)
        return -1;
    free(w->seen);
    w->seen = DF_TAKE(w->listing);
    w->must_list = false;
    w->o.to.listed(w->o.to.arg);
    (void)pthread_mutex_lock(&w->lock);
    w->listed = w->heeded;
    (void)pthread_cond_broadcast(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    df_memory_trim(); /* return the memory of the pages to the system */
    return 0;
}

/* ---- the stream ----------------------------------------------------------------------------- */

/* Handles an event, whose object is newer than all before and may be taken over. */
static int take_event(struct df_kube_watch *w, const char *type, cJSON **object, struct df_err *err)
{
    DF_FREE char *version = strdup(df_kube_version(*object));
    if (!version)
        return df_fail_oom(err);
    if (df_streq(type, "ADDED") || df_streq(type, "MODIFIED")) {
        if (w->o.to.apply(w->o.to.arg, object, err) < 0) {
            w->must_list = true;
            return -1;
        }
    } else if (df_streq(type, "DELETED")) {
        w->o.to.remove(w->o.to.arg, object);
    } else if (!df_streq(type, "BOOKMARK")) {
        return 0; /* an event type of a later Kubernetes */
    }
    free(w->seen);
    w->seen = DF_TAKE(version);
    return 0;
}

static int read_event(const struct df_kube_watch *w, cJSON **ret, struct df_err *err)
{
    const char *text = df_buf_str(&w->event);
    size_t n = w->event.len;
    return w->form == FRAMES ? df_proto_read_event(w->o.fields, text + DF_PROTO_FRAME,
                                                   n - DF_PROTO_FRAME, ret, err)
                             : df_json_parse_without(text, n, w->o.without, ret, err);
}

static int take_whole(struct df_kube_watch *w, struct df_err *err)
{
    DF_JSON cJSON *event = NULL;
    const char *plural = w->o.resource->plural;
    if (read_event(w, &event, err) < 0)
        return df_err_wrap(err, "watch %s: an event", plural);
    const char *type = df_json_str(event, "type");
    DF_JSON cJSON *object = cJSON_DetachItemFromObjectCaseSensitive(event, "object");
    if (df_streq(type, "ERROR")) {
        DF_FREE char *what = df_strf("watch %s", plural);
        return df_kube_fail_status(what, object, false, err);
    }
    const char *version = df_kube_version(object);
    if (!type || !version)
        return df_fail(err, DF_ERR_RETRY, "watch %s: an event has no type or version", plural);
    w->moved = true;
    if (df_kube_version_is_older(version, w->seen))
        return 0;
    return take_event(w, type, &object, err);
}

/* Returns the size of the frame being received, as far as it is known. */
static size_t frame_size(const struct df_kube_watch *w)
{
    const uint8_t *head = (const uint8_t *)df_buf_str(&w->event);
    if (w->event.len < DF_PROTO_FRAME)
        return DF_PROTO_FRAME;
    return DF_PROTO_FRAME +
           ((size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | (size_t)head[3]);
}

/* Returns how many of these bytes belong to the event or to the header of its frame. */
static size_t piece_of(const struct df_kube_watch *w, const char *bytes, size_t n)
{
    const char *end = w->form == LINES ? memchr(bytes, '\n', n) : NULL;
    size_t left = w->form == FRAMES ? frame_size(w) - w->event.len : n;
    return end ? (size_t)(end - bytes) + 1 : left < n ? left : n;
}

static bool is_whole(const struct df_kube_watch *w)
{
    return w->form == LINES ? w->event.data[w->event.len - 1] == '\n'
                            : w->event.len >= DF_PROTO_FRAME && w->event.len == frame_size(w);
}

/* True if nothing or only a line end or frame header was received. */
static bool is_empty(const struct df_kube_watch *w)
{
    return w->event.len == (w->form == LINES ? 1 : DF_PROTO_FRAME);
}

/* Receives pieces of the stream, which may be split at any byte. */
static int on_data(void *arg, const char *bytes, size_t n)
{
    struct df_kube_watch *w = arg;
    /* Frames are smaller than 16 MiB, so they begin with a zero byte, which JSON never does. */
    if (w->form == UNKNOWN)
        w->form = w->o.fields && n && !*bytes ? FRAMES : LINES;
    while (n && !df_stopped(&w->interrupt)) {
        size_t piece = piece_of(w, bytes, n);
        (void)df_buf_add(&w->event, bytes, piece);
        if (df_buf_check(&w->event, &w->why) < 0)
            return -1;
        bytes += piece;
        n -= piece;
        if (!is_whole(w))
            continue;
        if (!is_empty(w) && take_whole(w, &w->why) < 0)
            return -1;
        df_buf_clear(&w->event);
    }
    return 0;
}

static int run_stream(struct df_kube_watch *w, const struct df_kube_at *at, struct df_err *err)
{
    char seconds[16];
    (void)snprintf(seconds, sizeof(seconds), "%d", w->o.timeout_s);
    DF_BUF struct df_buf query = DF_BUF_INIT(DF_LIMIT_URL);
    df_kube_query(&query, "watch", "true");
    df_kube_query(&query, "allowWatchBookmarks", "true");
    df_kube_query(&query, "resourceVersion", w->seen);
    df_kube_query(&query, "timeoutSeconds", seconds);
    df_kube_query(&query, "labelSelector", w->o.select.labels);
    df_kube_query(&query, "fieldSelector", w->o.select.fields);
    if (df_buf_check(&query, err) < 0)
        return -1;
    struct df_kube_request r = {.verb = "watch",
                                .method = "GET",
                                .at = at,
                                .query = df_buf_str(&query),
                                .accept = w->o.fields ? DF_PROTO_WATCH_TYPE : NULL,
                                .timeout_ms = -1,
                                .idle_timeout_ms = w->o.idle_ms,
                                .on_data = on_data,
                                .arg = w,
                                .conn = w->conn,
                                .stop_wakes = true};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    df_buf_free(&w->event); /* may contain an incomplete event of the previous stream */
    w->form = UNKNOWN;
    w->moved = false;
    w->why = (struct df_err){0};
    if (df_kube_request(w->k, &r, &res, err) < 0)
        return -1;
    if (!res.stopped)
        return 0;
    return df_err_pass(err, &w->why);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static int64_t backoff_ms(const struct df_kube_watch *w, const struct df_err *why)
{
    int64_t ms = df_backoff_pause(w->o.backoff_min_ms, w->o.backoff_max_ms, w->failures);
    int64_t asked_ms = (int64_t)why->retry_after_s * 1000;
    return ms > asked_ms ? ms : asked_ms;
}

static void pause_thread(struct df_kube_watch *w, int64_t ms)
{
    const struct timespec until = df_mono_after_us(ms * 1000);
    (void)pthread_mutex_lock(&w->lock);
    int rc = 0;
    while (!df_stopped(&w->interrupt) && rc == 0)
        rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
    (void)pthread_mutex_unlock(&w->lock);
}

static void report_failure(struct df_kube_watch *w, const struct df_err *why)
{
    if (w->o.to.failed && !df_stopped(&w->interrupt))
        w->o.to.failed(w->o.to.arg, why);
}

/* Executes one list or one stream. Sets *why on an error that is to be reported (class NONE: none)
 * and returns true if the thread must pause before the next. */
static bool run_request(struct df_kube_watch *w, struct df_err *why)
{
    struct df_kube_at at = {w->o.resource, w->o.name_space, NULL, NULL, &w->interrupt};
    if (w->must_list)
        return run_list(w, &at, why) < 0;
    int64_t began = df_mono_ms();
    int result = run_stream(w, &at, why);
    bool alive = w->moved || df_mono_ms() - began >= SHORT_MS;
    if (alive) {
        w->failures = 0;
        w->expired = false;
    }
    if (result == 0)
        return !alive;
    if (df_kube_is_expired(why)) {
        /* Versions expire after a long time without events, even if the server was unreachable in
         * between: list again at once. Pause only if a stream expires right after its list. */
        bool again = w->expired;
        w->must_list = w->expired = true;
        w->failures = again ? w->failures : 0;
        *why = (struct df_err){0};
        return again;
    }
    /* If the request itself was refused, a list reports the cause better. */
    w->must_list = w->must_list || why->cls != DF_ERR_RETRY;
    /* A stream that worked before it broke, or broke without an error of the server, is not
     * reported. */
    if (why->cls == DF_ERR_RETRY && alive && !why->retry_after_s) {
        *why = (struct df_err){0};
        return false;
    }
    return true;
}

/* Takes notice of all requests so far; only later ones interrupt what follows. */
static void note_requests(struct df_kube_watch *w)
{
    (void)pthread_mutex_lock(&w->lock);
    __atomic_store_n(&w->interrupt, w->stop, __ATOMIC_RELAXED);
    uint64_t asked = w->asked;
    (void)pthread_mutex_unlock(&w->lock);
    if (asked != w->heeded) {
        w->must_list = true;
        w->failures = 0;
    }
    w->heeded = asked;
}

static void *watch_main(void *arg)
{
    struct df_kube_watch *w = arg;
    for (note_requests(w); !df_stopped(&w->stop); note_requests(w)) {
        struct df_err why = {0};
        bool listing = w->must_list;
        bool must_rest = run_request(w, &why);
        if (why.cls != DF_ERR_NONE)
            report_failure(w, &why);
        /* A list that succeeds does not prove that the watch will. */
        w->failures += !listing && !must_rest && w->must_list ? 1 : must_rest;
        if (must_rest)
            pause_thread(w, backoff_ms(w, &why));
    }
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------- */

static void watch_free(struct df_kube_watch *w)
{
    df_kube_conn_free(w->conn);
    free((void *)(uintptr_t)w->o.name_space);
    free((void *)(uintptr_t)w->o.select.labels);
    free((void *)(uintptr_t)w->o.select.fields);
    free(w->listing);
    free(w->seen);
    df_buf_free(&w->event);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

static int copy_string(const char **s, struct df_err *err)
{
    const char *from = *s;
    *s = from ? strdup(from) : NULL;
    return from && !*s ? df_fail_oom(err) : 0;
}

static int set_up(struct df_kube_watch *w, struct df_err *err)
{
    (void)pthread_mutex_init(&w->lock, NULL);
    df_cond_init(&w->changed);
    w->event = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    w->must_list = true;
    w->o.without = w->o.without ? w->o.without : managed;
    w->o.timeout_s = w->o.timeout_s ? w->o.timeout_s : TIMEOUT_S;
    w->o.idle_ms = w->o.idle_ms ? w->o.idle_ms : IDLE_MS;
    w->o.backoff_min_ms = w->o.backoff_min_ms ? w->o.backoff_min_ms : BACKOFF_MIN_MS;
    w->o.backoff_max_ms = w->o.backoff_max_ms ? w->o.backoff_max_ms : BACKOFF_MAX_MS;
    /* Copy all three first, so that watch_free() never frees a borrowed string. */
    int ns = copy_string(&w->o.name_space, err), labels = copy_string(&w->o.select.labels, err);
    if (copy_string(&w->o.select.fields, err) < 0 || ns < 0 || labels < 0)
        return -1;
    return df_kube_conn_new(w->k, &w->conn, err);
}

int df_kube_watch_start(struct df_kube *k, const struct df_kube_watch_options *o,
                        struct df_kube_watch **ret, struct df_err *err)
{
    struct df_kube_watch *w = calloc(1, sizeof(*w));
    if (!w)
        return df_fail_oom(err);
    w->k = k;
    w->o = *o;
    if (set_up(w, err) < 0) {
        watch_free(w);
        return -1;
    }
    int rc = pthread_create(&w->thread, NULL, watch_main, w);
    if (rc != 0) {
        watch_free(w);
        return df_fail_errno(err, rc, "start a watch");
    }
    *ret = w;
    return 0;
}

/* Called under the lock. */
static void interrupt_thread(struct df_kube_watch *w)
{
    __atomic_store_n(&w->interrupt, true, __ATOMIC_RELAXED);
    (void)pthread_cond_broadcast(&w->changed);
    df_http_wake(w->conn->http);
}

uint64_t df_kube_watch_list_anew(struct df_kube_watch *w)
{
    (void)pthread_mutex_lock(&w->lock);
    uint64_t ticket = ++w->asked;
    interrupt_thread(w);
    (void)pthread_mutex_unlock(&w->lock);
    return ticket;
}

int df_kube_watch_await(struct df_kube_watch *w, uint64_t ticket, const volatile bool *stop,
                        struct df_err *err)
{
    (void)pthread_mutex_lock(&w->lock);
    while (w->listed < ticket && !df_stopped(stop)) {
        const struct timespec until = df_mono_after_us((int64_t)STOP_POLL_MS * 1000);
        (void)pthread_cond_timedwait(&w->changed, &w->lock, &until);
    }
    bool listed = w->listed >= ticket;
    (void)pthread_mutex_unlock(&w->lock);
    return listed ? 0
                  : df_fail(err, DF_ERR_RETRY, "stopped waiting for the list of %s",
                            w->o.resource->plural);
}

void df_kube_watch_stop(struct df_kube_watch *w)
{
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    __atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
    interrupt_thread(w);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    watch_free(w);
}
