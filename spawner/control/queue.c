/*
 * queue.c - a heap of keys ordered by due time, and a hash table that finds a key's entry. Read
 * struct entry, then add_locked(), df_queue_get() and df_queue_done().
 *
 * An entry is in the table while its key waits or a worker has it, and in the heap while no worker
 * has it. df_queue_get() takes it out of the heap, df_queue_done() puts it back or frees it.
 *
 * Of the idle workers one, the timekeeper, sleeps until the top of the heap is due; the others
 * sleep until they are called. A key that is due is for one of the others, so that the timekeeper
 * sleeps on: one pass wakes one worker. See condition_for_top().
 */
#include "spawner/control/queue.h"

#include <errno.h>
#include <pthread.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"

#define NEVER INT64_MAX
#define BUCKETS 1024 /* keys are unfinished documents: tens, at most thousands */

struct entry {
    struct df_queue_key key;
    struct entry *next; /* in its bucket */
    size_t heap_index;  /* valid while not working */
    int64_t due_us;     /* monotonic */
    uint64_t order;     /* number of its last push: decides between equal due times */
    int64_t again_us;   /* while working: when it is due again; or NEVER */
    int failures;       /* in a row */
    bool working;
    pthread_t worker;  /* while working */
    bool self_changed; /* while working: its worker wrote the document */
};

struct df_queue {
    pthread_mutex_t lock;
    pthread_cond_t top_changed; /* the timekeeper waits for it */
    pthread_cond_t called;      /* the other idle workers wait for it */
    unsigned idle;              /* how many they are; some may have been called and not run yet */
    bool has_timekeeper;
    int64_t sleeps_until_us; /* the timekeeper */
    bool top_is_new;         /* since unlock_and_wake() */
    struct entry *buckets[BUCKETS];
    struct entry **heap; /* entries that no worker has; the earliest due on top */
    size_t heap_len;
    size_t heap_cap; /* at least the number of entries: putting one back cannot fail */
    size_t entries;
    uint64_t orders;
    bool closed;
    bool missed; /* a wake was lost for lack of memory */
};

/* ---- the heap ---- */

static bool earlier(const struct entry *a, const struct entry *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

static void put_at(struct df_queue *q, size_t i, struct entry *e)
{
    q->heap[i] = e;
    e->heap_index = i;
}

static void sift_up(struct df_queue *q, struct entry *e)
{
    size_t i = e->heap_index;
    for (; i > 0 && earlier(e, q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        put_at(q, i, q->heap[(i - 1) / 2]);
    put_at(q, i, e);
}

static void sift_down(struct df_queue *q, struct entry *e)
{
    size_t i = e->heap_index;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < q->heap_len && earlier(q->heap[child + 1], q->heap[child]))
            child++;
        if (child >= q->heap_len || !earlier(q->heap[child], e))
            break;
        put_at(q, i, q->heap[child]);
        i = child;
    }
    put_at(q, i, e);
}

static void push(struct df_queue *q, struct entry *e, int64_t due_us)
{
    e->due_us = due_us;
    e->order = q->orders++;
    e->heap_index = q->heap_len++;
    sift_up(q, e);
    q->top_is_new |= q->heap[0] == e;
}

static void push_earlier(struct df_queue *q, struct entry *e, int64_t due_us)
{
    e->due_us = due_us;
    sift_up(q, e);
    q->top_is_new |= q->heap[0] == e;
}

static struct entry *pop(struct df_queue *q)
{
    struct entry *top = q->heap[0];
    struct entry *last = q->heap[--q->heap_len];
    if (last != top) {
        last->heap_index = 0;
        sift_down(q, last);
    }
    q->top_is_new = true;
    return top;
}

/* ---- idle workers ---- */

/* The condition to signal for a new top of the heap; NULL: none. Only the top needs a worker: who
 * takes it signals for the next one. A signal that no worker waits for is not lost: a worker looks
 * at the top before it waits. */
static pthread_cond_t *condition_for_top(struct df_queue *q)
{
    if (!q->heap_len)
        return NULL;
    int64_t due_us = q->heap[0]->due_us;
    if (q->idle && (!q->has_timekeeper || due_us <= df_mono_us()))
        return &q->called;
    return q->has_timekeeper && due_us < q->sleeps_until_us ? &q->top_changed : NULL;
}

/* Signals after the unlock: a worker that wakes under the lock would wait for it at once. */
static void unlock_and_wake(struct df_queue *q)
{
    pthread_cond_t *condition = q->top_is_new ? condition_for_top(q) : NULL;
    q->top_is_new = false;
    (void)pthread_mutex_unlock(&q->lock);
    if (condition)
        (void)pthread_cond_signal(condition);
}

/* As the timekeeper, if there is something to wait for and no other one. */
static void wait_for_work(struct df_queue *q)
{
    if (!q->heap_len || q->has_timekeeper) {
        q->idle++;
        (void)pthread_cond_wait(&q->called, &q->lock);
        q->idle--;
        return;
    }
    q->sleeps_until_us = q->heap[0]->due_us;
    const struct timespec until = df_mono_after_us(q->sleeps_until_us - df_mono_us());
    q->has_timekeeper = true;
    (void)pthread_cond_timedwait(&q->top_changed, &q->lock, &until);
    q->has_timekeeper = false;
}

/* ---- the entries ---- */

static struct entry **bucket(struct df_queue *q, enum df_kind kind, const char *name)
{
    return &q->buckets[df_hash_str(DF_HASH_BEGIN ^ (uint64_t)kind, name) % BUCKETS];
}

/* The address of the pointer to the entry, or of the end of its bucket. */
static struct entry **find(struct df_queue *q, enum df_kind kind, const char *name)
{
    struct entry **e = bucket(q, kind, name);
    while (*e && ((*e)->key.kind != kind || strcmp((*e)->key.name, name) != 0))
        e = &(*e)->next;
    return e;
}

static int grow_heap(struct df_queue *q)
{
    if (q->entries < q->heap_cap)
        return 0;
    size_t cap = q->heap_cap ? q->heap_cap * 2 : 64;
    struct entry **heap = reallocarray(q->heap, cap, sizeof(struct entry *));
    if (!heap)
        return -1;
    q->heap = heap;
    q->heap_cap = cap;
    return 0;
}

static int add_entry(struct df_queue *q, struct entry **at, enum df_kind kind, const char *name,
                     int64_t due_us)
{
    struct entry *e = grow_heap(q) < 0 ? NULL : calloc(1, sizeof(*e));
    if (!e)
        return -1;
    e->key.kind = kind;
    (void)snprintf(e->key.name, sizeof(e->key.name), "%s", name);
    e->again_us = NEVER;
    *at = e;
    q->entries++;
    push(q, e, due_us);
    return 0;
}

static int add_locked(struct df_queue *q, enum df_kind kind, const char *name, int64_t due_us)
{
    struct entry **at = find(q, kind, name);
    struct entry *e = *at;
    if (!e)
        return add_entry(q, at, kind, name, due_us);
    if (e->working) {
        if (due_us < e->again_us)
            e->again_us = due_us;
    } else if (due_us < e->due_us) {
        push_earlier(q, e, due_us);
    }
    return 0;
}

int df_queue_add(struct df_queue *q, enum df_kind kind, const char *name, int64_t delay_us,
                 struct df_err *err)
{
    if (strlen(name) >= sizeof(((struct df_queue_key *)NULL)->name))
        DF_BUG("the name %s is too long for a key", name);
    (void)pthread_mutex_lock(&q->lock);
    int result = q->closed ? 0 : add_locked(q, kind, name, df_mono_us() + delay_us);
    unlock_and_wake(q);
    return result < 0 ? df_fail_oom(err) : 0;
}

void df_queue_miss(struct df_queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->missed = true;
    (void)pthread_mutex_unlock(&q->lock);
}

void df_queue_wake(struct df_queue *q, enum df_kind kind, const char *name)
{
    if (df_queue_add(q, kind, name, 0, NULL) < 0)
        df_queue_miss(q);
}

void df_queue_changed(struct df_queue *q, enum df_kind kind, const char *name)
{
    (void)pthread_mutex_lock(&q->lock);
    struct entry *e = *find(q, kind, name);
    bool is_own = e && e->working && pthread_equal(e->worker, pthread_self());
    if (is_own)
        e->self_changed = true;
    (void)pthread_mutex_unlock(&q->lock);
    if (!is_own)
        df_queue_wake(q, kind, name);
}

bool df_queue_missed(struct df_queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    bool missed = q->missed;
    q->missed = false;
    (void)pthread_mutex_unlock(&q->lock);
    return missed;
}

/* ---- the workers' side ---- */

static void take_top(struct df_queue *q, struct df_queue_key *ret)
{
    struct entry *e = pop(q);
    e->working = true;
    e->worker = pthread_self();
    e->self_changed = false;
    e->again_us = NEVER;
    *ret = e->key;
}

bool df_queue_get(struct df_queue *q, struct df_queue_key *ret)
{
    (void)pthread_mutex_lock(&q->lock);
    while (!q->closed && (!q->heap_len || q->heap[0]->due_us > df_mono_us()))
        wait_for_work(q);
    bool got = !q->closed;
    if (got)
        take_top(q, ret);
    unlock_and_wake(q);
    return got;
}

void df_queue_done(struct df_queue *q, const struct df_queue_key *key, int result)
{
    bool failed = result < 0;
    (void)pthread_mutex_lock(&q->lock);
    struct entry **at = find(q, key->kind, key->name);
    struct entry *e = *at;
    if (!e || !e->working)
        DF_BUG("%s is not being worked on", key->name);
    e->working = false;
    e->failures = failed ? e->failures + 1 : 0;
    int64_t due_us = e->again_us;
    if (result == 0 && e->self_changed)
        due_us = df_mono_us();
    if (failed) {
        int64_t later = df_mono_us() + df_backoff_pause(DF_QUEUE_BACKOFF_MIN_US,
                                                        DF_QUEUE_BACKOFF_MAX_US, e->failures);
        due_us = later < due_us ? later : due_us;
    }
    if (due_us == NEVER) {
        *at = e->next;
        free(e);
        q->entries--;
    } else {
        push(q, e, due_us);
    }
    unlock_and_wake(q);
}

bool df_queue_is_idle(struct df_queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    bool has_work = q->entries > q->heap_len; /* workers have the entries outside the heap */
    bool is_due = q->heap_len && q->heap[0]->due_us <= df_mono_us();
    (void)pthread_mutex_unlock(&q->lock);
    return !has_work && !is_due;
}

/* ---- create, close, free ---- */

int df_queue_new(struct df_queue **ret, struct df_err *err)
{
    struct df_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return df_fail_oom(err);
    df_cond_init(&q->top_changed);
    df_cond_init(&q->called);
    (void)pthread_mutex_init(&q->lock, NULL);
    *ret = q;
    return 0;
}

void df_queue_close(struct df_queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->closed = true;
    (void)pthread_cond_broadcast(&q->top_changed);
    (void)pthread_cond_broadcast(&q->called);
    (void)pthread_mutex_unlock(&q->lock);
}

void df_queue_free(struct df_queue *q)
{
    if (!q)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct entry *e = q->buckets[i], *next; e; e = next) {
            next = e->next;
            free(e);
        }
    }
    free(q->heap);
    (void)pthread_cond_destroy(&q->top_changed);
    (void)pthread_cond_destroy(&q->called);
    (void)pthread_mutex_destroy(&q->lock);
    free(q);
}
