/*
 * Reads several event streams: one thread for each puts its events into one queue, which the main
 * thread takes them from. The side of the threads first, then the side of the reader.
 */
#include "spawner/cli/follow/feed.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>

#define FEED_STREAMS 4
#define FEED_QUEUE 64

struct reader {
    struct df_feed *feed;
    pthread_t thread;
    struct df_client *client;
    char *path;
    char last_id[DF_SSE_ID];
    int stream;
};

struct df_feed {
    pthread_mutex_t lock; /* guards the queue */
    pthread_cond_t room;
    struct df_feed_event queue[FEED_QUEUE];
    size_t first, count;
    int wake; /* eventfd, a semaphore: one for each event */
    volatile bool stop;
    struct reader readers[FEED_STREAMS];
    size_t reader_count;
};

void df_feed_event_free(struct df_feed_event *e)
{
    cJSON_Delete(e->data);
    *e = (struct df_feed_event){0};
}

/* ---- the side of the threads ---- */

/* Puts the event into the queue; waits while that is full. Owns *e. -1: the feed is being
 * closed. */
static int push(struct df_feed *f, struct df_feed_event *e)
{
    (void)pthread_mutex_lock(&f->lock);
    while (f->count == FEED_QUEUE && !f->stop)
        (void)pthread_cond_wait(&f->room, &f->lock);
    bool stopped = f->stop;
    if (!stopped)
        f->queue[(f->first + f->count++) % FEED_QUEUE] = *e;
    (void)pthread_mutex_unlock(&f->lock);
    if (stopped) {
        df_feed_event_free(e);
        return -1;
    }
    (void)eventfd_write(f->wake, 1);
    return 0;
}

static int on_event(void *arg, const struct df_sse_event *event)
{
    struct reader *r = arg;
    struct df_feed_event e = {.stream = r->stream};
    (void)snprintf(e.name, sizeof(e.name), "%s", event->name);
    (void)snprintf(e.id, sizeof(e.id), "%s", event->id);
    struct df_err err = {0};
    if (event->len && df_json_parse_nul(event->data, event->len, &e.data, &err) < 0)
        e.failure = err;
    return push(r->feed, &e);
}

static void *read_stream(void *arg)
{
    struct reader *r = arg;
    struct df_feed_event closed = {.stream = r->stream, .name = "closed"};
    struct df_err failure = {0};
    const struct df_client_stream stream = {
        .path = r->path, .last_id = r->last_id, .fn = on_event, .arg = r, .stop = &r->feed->stop};
    if (df_client_stream(r->client, &stream, &failure) < 0)
        closed.failure = failure;
    (void)push(r->feed, &closed);
    return NULL;
}

/* ---- the side of the reader ---- */

int df_feed_open(struct df_feed **ret, struct df_err *err)
{
    struct df_feed *f = calloc(1, sizeof(*f));
    if (!f)
        return df_fail_oom(err);
    f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (f->wake < 0) {
        free(f);
        return df_fail_errno(err, errno, "eventfd");
    }
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->room, NULL);
    *ret = f;
    return 0;
}

void df_feed_close(struct df_feed *f)
{
    if (!f)
        return;
    (void)pthread_mutex_lock(&f->lock);
    __atomic_store_n(&f->stop, true, __ATOMIC_RELAXED); /* df_stopped() */
    (void)pthread_cond_broadcast(&f->room);
    (void)pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < f->reader_count; i++) {
        (void)pthread_join(f->readers[i].thread, NULL);
        df_client_free(f->readers[i].client);
        free(f->readers[i].path);
    }
    for (size_t i = 0; i < f->count; i++)
        df_feed_event_free(&f->queue[(f->first + i) % FEED_QUEUE]);
    (void)pthread_cond_destroy(&f->room);
    (void)pthread_mutex_destroy(&f->lock);
    (void)close(f->wake);
    free(f);
}

static int start_reader(struct reader *r, const struct df_feed_source *source, struct df_err *err)
{
    r->stream = source->stream;
    (void)snprintf(r->last_id, sizeof(r->last_id), "%s", source->last_id ? source->last_id : "");
    r->path = strdup(source->path);
    if (df_check_alloc(r->path, err) < 0 || df_client_new(source->address, &r->client, err) < 0)
        return -1;
    int e = pthread_create(&r->thread, NULL, read_stream, r);
    return e ? df_fail_errno(err, e, "start a thread") : 0;
}

int df_feed_add(struct df_feed *f, const struct df_feed_source *source, struct df_err *err)
{
    if (f->reader_count == FEED_STREAMS)
        DF_BUG("more than %d streams", FEED_STREAMS);
    struct reader *r = &f->readers[f->reader_count];
    *r = (struct reader){.feed = f};
    if (start_reader(r, source, err) < 0) {
        df_client_free(r->client);
        free(r->path);
        return -1;
    }
    f->reader_count++;
    return 0;
}

int df_feed_fd(const struct df_feed *f)
{
    return f->wake;
}

bool df_feed_next(struct df_feed *f, struct df_feed_event *ret)
{
    eventfd_t one = 0;
    if (eventfd_read(f->wake, &one) < 0)
        return false;
    (void)pthread_mutex_lock(&f->lock);
    *ret = f->queue[f->first];
    f->queue[f->first] = (struct df_feed_event){0};
    f->first = (f->first + 1) % FEED_QUEUE;
    f->count--;
    (void)pthread_cond_signal(&f->room);
    (void)pthread_mutex_unlock(&f->lock);
    return true;
}
