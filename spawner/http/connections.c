/*
 * connections.c - a list of all connections, and one thread, reap(), that shuts overdue connections
 * down. After a burst of connections the same thread returns free memory to the system.
 */
#include "spawner/http/connections.h"

#include <pthread.h>
#include <sys/socket.h>

#include "common/base/clock.h"

#define BURST 64 /* open at the same time: a burst, after which memory is trimmed */

struct df_connection {
    struct df_connection *next, *prev;
    int fd;
    bool busy;
    int64_t since_ms; /* waiting since then */
    void *owner;
};

struct df_connections {
    int64_t head_ms;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t end;
    struct df_connection *first;
    size_t count;
    size_t peak; /* since memory was last trimmed */
    bool stopping;
    pthread_t reaper;
};

/* The caller holds the lock, so that no descriptor is closed and reused meanwhile. */
static void cut_overdue(struct df_connections *c)
{
    int64_t limit = df_mono_ms() - c->head_ms;
    for (struct df_connection *one = c->first; one; one = one->next)
        if (!one->busy && one->since_ms < limit)
            (void)shutdown(one->fd, SHUT_RDWR);
}

/* True once after a burst. The allocator keeps the freed buffers of a burst: 30 MiB after a
 * thousand connections. */
static bool is_burst_over(struct df_connections *c)
{
    bool over = c->peak >= BURST && c->count <= c->peak / 4;
    if (over)
        c->peak = c->count;
    return over;
}

static void *reap(void *arg)
{
    struct df_connections *c = arg;
    int64_t pause_ms = c->head_ms / 4;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->stopping) {
        int64_t at = df_mono_ms() + pause_ms;
        struct timespec until = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
        (void)pthread_cond_timedwait(&c->end, &c->lock, &until);
        cut_overdue(c);
        if (is_burst_over(c))
            df_memory_trim();
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

int df_connections_new(int64_t head_ms, struct df_connections **ret, struct df_err *err)
{
    struct df_connections *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    c->head_ms = head_ms;
    (void)pthread_mutex_init(&c->lock, NULL);
    df_cond_init(&c->end);
    int failed = pthread_create(&c->reaper, NULL, reap, c);
    if (failed) {
        free(c);
        return df_fail_errno(err, failed, "start a thread");
    }
    *ret = c;
    return 0;
}

void df_connections_free(struct df_connections *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->stopping = true;
    (void)pthread_cond_signal(&c->end);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->reaper, NULL);
    (void)pthread_cond_destroy(&c->end);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

struct df_connection *df_connections_add(struct df_connections *c, int fd, void *owner)
{
    struct df_connection *one = calloc(1, sizeof(*one));
    if (!one)
        return NULL;
    one->fd = fd;
    one->owner = owner;
    one->since_ms = df_mono_ms();
    (void)pthread_mutex_lock(&c->lock);
    one->next = c->first;
    if (c->first)
        c->first->prev = one;
    c->first = one;
    c->count++;
    c->peak = c->count > c->peak ? c->count : c->peak;
    (void)pthread_mutex_unlock(&c->lock);
    return one;
}

void *df_connection_owner(const struct df_connection *one)
{
    return one ? one->owner : NULL;
}

void df_connections_remove(struct df_connections *c, struct df_connection *one)
{
    if (!one)
        return;
    (void)pthread_mutex_lock(&c->lock);
    if (one->prev)
        one->prev->next = one->next;
    else
        c->first = one->next;
    if (one->next)
        one->next->prev = one->prev;
    c->count--;
    (void)pthread_mutex_unlock(&c->lock);
    free(one);
}

void df_connections_busy(struct df_connections *c, struct df_connection *one, bool busy)
{
    if (!one)
        return;
    (void)pthread_mutex_lock(&c->lock);
    one->busy = busy;
    one->since_ms = df_mono_ms();
    (void)pthread_mutex_unlock(&c->lock);
}

size_t df_connections_count(struct df_connections *c)
{
    (void)pthread_mutex_lock(&c->lock);
    size_t count = c->count;
    (void)pthread_mutex_unlock(&c->lock);
    return count;
}
