/*
 * The owner's thread appends to the spools and publishes their ends under the lock; the sender's
 * thread posts frames from the acknowledged offset on. Read struct df_sender first (who owns which
 * member), then the owner's side, then sender_run() at the end.
 */
#include "runner/report/sender.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "runner/report/frame.h"
#include "runner/report/spool.h"
#include "runner/report/unsent.h"

enum { POST_TIMEOUT_MS = 60000, PROBE_MS = 5000, STOP_POLL_MS = 100 };

struct stream {
    struct df_spool spool; /* the owner's; the thread uses file and reclaimed */
    const char *path;
    /* Under the sender's lock. */
    uint64_t end; /* published; at most spool.end */
    uint64_t acked;
    bool refused;
};

struct df_sender {
    struct stream streams[DF_STREAMS];
    volatile bool over;    /* atomic */
    volatile bool closing; /* atomic */
    int over_fd;

    pthread_mutex_t lock;
    pthread_cond_t work;  /* something to send, or closing */
    pthread_cond_t moved; /* acknowledged, refused or over */
    /* Under the lock. */
    struct df_unsent progress; /* not sent yet */
    bool draining;
    bool failing; /* the newest attempt failed */

    pthread_t thread;
    bool started;
    /* The thread's own. */
    struct df_link *link;
    char *frame;
    int64_t last_post_ms;
    int64_t gap_ms; /* between posts */
    int64_t last_progress_ms;
};

static void set_flag(volatile bool *flag)
{
    __atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

static void wait_ms(struct df_sender *s, pthread_cond_t *cond, int64_t ms)
{
    const struct timespec until = df_mono_after_us(ms * 1000);
    (void)pthread_cond_timedwait(cond, &s->lock, &until);
}

int df_sender_new(const char *spool_dir, struct df_sender **ret, struct df_err *err)
{
    struct df_sender *s = calloc(1, sizeof *s);
    if (!s)
        return df_fail_oom(err);
    (void)pthread_mutex_init(&s->lock, NULL);
    df_cond_init(&s->work);
    df_cond_init(&s->moved);
    s->streams[DF_STREAM_LOG] = (struct stream){.spool = DF_SPOOL_CLOSED, .path = "/streams/log"};
    s->streams[DF_STREAM_EVENTS] =
        (struct stream){.spool = DF_SPOOL_CLOSED, .path = "/streams/events"};
    s->frame = malloc(DF_LIMIT_STREAM_FRAME);
    s->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed = 0;
    if (!s->frame)
        failed = df_fail_oom(err);
    else if (s->over_fd < 0)
        failed = df_fail_errno(err, errno, "eventfd");
    else if (df_spool_open(&s->streams[DF_STREAM_LOG].spool, spool_dir, "log", false,
                           DF_LIMIT_STREAM, err) < 0 ||
             df_spool_open(&s->streams[DF_STREAM_EVENTS].spool, spool_dir, "events", true,
                           DF_LIMIT_STREAM, err) < 0)
        failed = -1;
    if (failed) {
        df_sender_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void df_sender_free(struct df_sender *s)
{
    if (!s)
        return;
    set_flag(&s->closing);
    if (s->started) {
        (void)pthread_mutex_lock(&s->lock);
        (void)pthread_cond_broadcast(&s->work);
        (void)pthread_mutex_unlock(&s->lock);
        (void)pthread_join(s->thread, NULL);
    }
    for (int i = 0; i < DF_STREAMS; i++)
        df_spool_close(&s->streams[i].spool);
    if (s->over_fd >= 0)
        (void)close(s->over_fd);
    df_link_free(s->link);
    df_unsent_free(&s->progress);
    (void)pthread_cond_destroy(&s->moved);
    (void)pthread_cond_destroy(&s->work);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->frame);
    free(s);
}

void df_sender_set_over(struct df_sender *s)
{
    set_flag(&s->over);
    const uint64_t one = 1;
    (void)!write(s->over_fd, &one, sizeof one);
    (void)pthread_mutex_lock(&s->lock);
    (void)pthread_cond_broadcast(&s->moved);
    (void)pthread_mutex_unlock(&s->lock);
}

const volatile bool *df_sender_over(const struct df_sender *s)
{
    return &s->over;
}

int df_sender_over_fd(const struct df_sender *s)
{
    return s->over_fd;
}

/* --- the owner's side ------------------------------------------------------------------------ */

/* Makes the end of the spool known to the thread. */
static void publish(struct df_sender *s, struct stream *st)
{
    (void)pthread_mutex_lock(&s->lock);
    st->end = st->spool.end;
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
}

int df_sender_append(struct df_sender *s, enum df_stream stream, const char *bytes, size_t n,
                     struct df_err *err)
{
    struct stream *st = &s->streams[stream];
    if (df_spool_append(&st->spool, bytes, n, err) < 0)
        return -1;
    publish(s, st);
    return 0;
}

void df_sender_progress(struct df_sender *s, const cJSON *body, bool hurries)
{
    (void)pthread_mutex_lock(&s->lock);
    df_unsent_add(&s->progress, body, hurries, df_mono_ms());
    (void)pthread_cond_signal(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
}

static bool all_delivered(const struct df_sender *s)
{
    for (int i = 0; i < DF_STREAMS; i++) {
        const struct stream *st = &s->streams[i];
        if (st->acked < st->end && !st->refused)
            return false;
    }
    return true;
}

void df_sender_drain(struct df_sender *s, int64_t deadline_ms, const volatile bool *stop)
{
    for (int i = 0; i < DF_STREAMS; i++) {
        df_spool_finish(&s->streams[i].spool);
        publish(s, &s->streams[i]);
    }
    (void)pthread_mutex_lock(&s->lock);
    s->draining = true;
    (void)pthread_cond_signal(&s->work);
    int64_t left;
    while (!all_delivered(s) && !df_stopped(&s->over) && !(s->failing && df_stopped(stop)) &&
           (left = deadline_ms - df_mono_ms()) > 0)
        wait_ms(s, &s->moved, left < STOP_POLL_MS ? left : STOP_POLL_MS);
    (void)pthread_mutex_unlock(&s->lock);
}

uint64_t df_sender_size(struct df_sender *s, enum df_stream stream)
{
    (void)pthread_mutex_lock(&s->lock);
    uint64_t end = s->streams[stream].end;
    (void)pthread_mutex_unlock(&s->lock);
    return end;
}

/* --- the thread ------------------------------------------------------------------------------ */

enum outcome { NOTHING_TO_DO, DONE, FAILED };

static int send_request(struct df_sender *s, struct df_http_request req, const char *path,
                        struct df_http_response *answer)
{
    req.timeout_ms = POST_TIMEOUT_MS;
    req.max_response = 64 * DF_KIB;
    req.stop = &s->closing;
    struct df_err why = {0};
    int sent = df_link_send(s->link, &req, path, answer, &why);
    if (!df_link_has_left_leader(s->link))
        return sent;
    df_http_response_free(answer);
    return df_link_send(s->link, &req, path, answer, &why);
}

/* Moves the stream to the offset that the spawner answered. */
static enum outcome apply_answer(struct df_sender *s, struct stream *st, enum df_frame_next next,
                                 uint64_t offset)
{
    if (next == DF_FRAME_AGAIN)
        return FAILED;
    if (next == DF_FRAME_OVER) {
        df_sender_set_over(s);
        return DONE;
    }
    if (next == DF_FRAME_GO_ON)
        df_spool_reclaim(&st->spool, offset);
    (void)pthread_mutex_lock(&s->lock);
    if (next == DF_FRAME_GO_ON)
        st->acked = offset;
    else
        st->refused = true;
    (void)pthread_cond_broadcast(&s->moved);
    (void)pthread_mutex_unlock(&s->lock);
    return DONE;
}

static enum outcome post_frame(struct df_sender *s, struct stream *st)
{
    (void)pthread_mutex_lock(&s->lock);
    uint64_t from = st->acked, end = st->end;
    bool refused = st->refused, draining = s->draining;
    (void)pthread_mutex_unlock(&s->lock);
    if (refused || from >= end)
        return NOTHING_TO_DO;

    size_t n = end - from < DF_LIMIT_STREAM_FRAME ? (size_t)(end - from) : DF_LIMIT_STREAM_FRAME;
    if (df_spool_read(&st->spool, from, s->frame, n, NULL) < 0)
        return apply_answer(s, st, DF_FRAME_REFUSED, 0);
    DF_FREE char *path = df_strf("%s?offset=%" PRIu64, st->path, from);
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    struct df_http_request req = DF_HTTP_REQUEST("POST", NULL);
    req.body = s->frame;
    req.body_len = n;
    req.content_type = "application/octet-stream";
    if (!path || send_request(s, req, path, &answer) < 0)
        return FAILED;
    /* The step's document was deleted: nobody will ever take the rest. */
    if (answer.status == 404 && draining && df_link_is_fixed(s->link)) {
        df_sender_set_over(s);
        return DONE;
    }
    uint64_t offset = from;
    enum df_frame_next next =
        df_frame_answer(answer.status, df_buf_str(&answer.body), answer.body.len, from,
                        st->spool.reclaimed, end, &offset);
    return apply_answer(s, st, next, offset);
}

/* Under the lock. Never while draining, because the result repeats it. */
static int64_t progress_at_ms(const struct df_sender *s)
{
    return s->draining ? INT64_MAX : df_unsent_due_ms(&s->progress, s->last_progress_ms);
}

/* Empty: none is due. */
static struct df_unsent take_progress(struct df_sender *s, int64_t now_ms)
{
    struct df_unsent due = {0};
    (void)pthread_mutex_lock(&s->lock);
    if (now_ms >= progress_at_ms(s)) {
        due = s->progress;
        s->progress = (struct df_unsent){0};
    }
    (void)pthread_mutex_unlock(&s->lock);
    return due;
}

static void put_back(struct df_sender *s, struct df_unsent *failed)
{
    (void)pthread_mutex_lock(&s->lock);
    df_unsent_put_back(&s->progress, failed);
    (void)pthread_mutex_unlock(&s->lock);
}

static enum outcome post_progress(struct df_sender *s)
{
    int64_t now_ms = df_mono_ms();
    struct df_unsent due = take_progress(s, now_ms);
    if (!due.body)
        return NOTHING_TO_DO;
    s->last_progress_ms = now_ms;
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    DF_FREE char *text = df_json_print(due.body);
    struct df_http_request req = DF_HTTP_REQUEST("POST", NULL);
    req.body = text;
    req.body_len = text ? strlen(text) : 0;
    if (!text || send_request(s, req, "/progress", &answer) < 0 ||
        df_link_is_passing(0, &answer, NULL)) {
        put_back(s, &due);
        return FAILED;
    }
    df_unsent_free(&due);
    if (answer.status == 410)
        df_sender_set_over(s);
    return DONE;
}

static enum outcome probe_step(struct df_sender *s)
{
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    if (send_request(s, DF_HTTP_REQUEST("GET", NULL), "/streams/log", &answer) < 0)
        return FAILED;
    if (answer.status == 410)
        df_sender_set_over(s);
    return DONE;
}

static bool has_full_frame(const struct df_sender *s)
{
    for (int i = 0; i < DF_STREAMS; i++) {
        const struct stream *st = &s->streams[i];
        if (!st->refused && st->end - st->acked >= DF_LIMIT_STREAM_FRAME)
            return true;
    }
    return false;
}

/* Waits until there is something to send, or until the step is to be probed. */
static void wait_for_work(struct df_sender *s, int64_t probe_at_ms)
{
    (void)pthread_mutex_lock(&s->lock);
    while (!df_stopped(&s->closing)) {
        int64_t now = df_mono_ms(), until = progress_at_ms(s);
        bool frames = !all_delivered(s);
        until = until < probe_at_ms ? until : probe_at_ms;
        if (frames && s->last_post_ms + s->gap_ms < until)
            until = s->last_post_ms + s->gap_ms;
        if (now >= until || (frames && (s->draining || has_full_frame(s))))
            break;
        wait_ms(s, &s->work, until - now);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* Waits out the pause after a failure, even if more arrives. */
static void wait_out(struct df_sender *s, int64_t pause_ms)
{
    int64_t until = df_mono_ms() + pause_ms, left;
    (void)pthread_mutex_lock(&s->lock);
    while (!df_stopped(&s->closing) && (left = until - df_mono_ms()) > 0)
        wait_ms(s, &s->work, left);
    (void)pthread_mutex_unlock(&s->lock);
}

static bool is_ending(const struct df_sender *s)
{
    return df_stopped(&s->closing) || df_stopped(&s->over);
}

static enum outcome send_round(struct df_sender *s)
{
    enum outcome worst = NOTHING_TO_DO;
    for (int i = 0; i < DF_STREAMS && worst != FAILED && !is_ending(s); i++) {
        enum outcome o = post_frame(s, &s->streams[i]);
        worst = o > worst ? o : worst;
    }
    if (!is_ending(s)) { /* also if the storage takes no frame: progress is in a document */
        enum outcome o = post_progress(s);
        worst = o > worst ? o : worst;
    }
    return worst == NOTHING_TO_DO && !is_ending(s) ? probe_step(s) : worst;
}

/* A frame is a durable write of the spawner. Where that takes long, as in a cluster, it gets fewer
 * frames, and larger ones. */
static void choose_gap(struct df_sender *s, int64_t took_ms)
{
    int64_t gap_ms = DF_SENDER_GAP_FACTOR * took_ms;
    gap_ms = gap_ms < DF_SENDER_GAP_MS ? DF_SENDER_GAP_MS : gap_ms;
    s->gap_ms = gap_ms > DF_SENDER_GAP_MAX_MS ? DF_SENDER_GAP_MAX_MS : gap_ms;
}

static void note_round(struct df_sender *s, enum outcome o)
{
    (void)pthread_mutex_lock(&s->lock);
    s->failing = o == FAILED;
    (void)pthread_mutex_unlock(&s->lock);
}

static void *sender_run(void *arg)
{
    struct df_sender *s = arg;
    while (!is_ending(s)) {
        wait_for_work(s, s->last_post_ms + PROBE_MS);
        if (is_ending(s))
            break;
        s->last_post_ms = df_mono_ms();
        enum outcome o = send_round(s);
        note_round(s, o);
        choose_gap(s, df_mono_ms() - s->last_post_ms);
        if (o == FAILED)
            wait_out(s, df_link_next_pause_ms(s->link));
    }
    return NULL;
}

int df_sender_start(struct df_sender *s, struct df_link *link, struct df_err *err)
{
    s->link = link;
    s->gap_ms = DF_SENDER_GAP_MS;
    s->last_post_ms = df_mono_ms() - s->gap_ms;
    s->last_progress_ms = df_mono_ms() - DF_PROGRESS_GAP_MS;
    /* Signals are for the main thread. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&s->thread, NULL, sender_run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return df_fail_errno(err, failed, "start the sender thread");
    s->started = true;
    return 0;
}
