/*
 * journal.c - a ring of the last changes, and a list of subscriptions, under one lock. A reader
 * that is further behind than the ring is told so, and continues at the end. A subscription's mark
 * grows with each wake-up. Its topics are hashes of names: it may be woken for another name, and
 * never misses its own.
 */
#include "spawner/journal/journal.h"

#include <errno.h>

#include "common/base/clock.h"

struct df_journal {
    struct df_store *store;
    pthread_mutex_t lock; /* guards what follows, and the subscriptions */
    uint64_t last;        /* number of the latest entry; the first is 1 */
    struct df_subscription *subscriptions;
    struct df_journal_entry
        ring[DF_JOURNAL_ENTRIES]; /* number n stands at n % DF_JOURNAL_ENTRIES */
};

/* ---- writing ---- */

static uint64_t topic_of(const char *name)
{
    return df_hash_str(DF_HASH_BEGIN, name);
}

static bool covers(const struct df_subscription *sub, uint64_t topic)
{
    for (size_t i = 0; i < sub->topic_count; i++)
        if (sub->topics[i] == topic)
            return true;
    return false;
}

static void wake_locked(struct df_subscription *sub)
{
    sub->mark++;
    (void)pthread_cond_signal(&sub->changed);
}

static void add_locked(struct df_journal *j, const struct df_store_event *event)
{
    struct df_journal_entry *at = &j->ring[++j->last % DF_JOURNAL_ENTRIES];
    at->kind = event->kind;
    at->change = event->change;
    (void)snprintf(at->name, sizeof(at->name), "%s", event->name);
    (void)snprintf(at->version, sizeof(at->version), "%s", event->resource_version);
}

void df_journal_add(struct df_journal *j, const struct df_store_event *event)
{
    uint64_t topic = topic_of(event->name);
    (void)pthread_mutex_lock(&j->lock);
    add_locked(j, event);
    for (struct df_subscription *sub = j->subscriptions; sub; sub = sub->next)
        if (!sub->topic_count || covers(sub, topic))
            wake_locked(sub);
    (void)pthread_mutex_unlock(&j->lock);
}

void df_journal_touch(struct df_journal *j, const char *name)
{
    uint64_t topic = topic_of(name);
    (void)pthread_mutex_lock(&j->lock);
    for (struct df_subscription *sub = j->subscriptions; sub; sub = sub->next)
        if (sub->wants_growth && covers(sub, topic))
            wake_locked(sub);
    (void)pthread_mutex_unlock(&j->lock);
}

/* ---- reading ---- */

uint64_t df_journal_last(struct df_journal *j, char ret_version[32])
{
    (void)pthread_mutex_lock(&j->lock);
    uint64_t last = j->last;
    (void)snprintf(ret_version, 32, "%s", last ? j->ring[last % DF_JOURNAL_ENTRIES].version : "0");
    (void)pthread_mutex_unlock(&j->lock);
    return last;
}

int df_journal_read(struct df_journal *j, uint64_t *cursor, struct df_journal_entry *ret)
{
    (void)pthread_mutex_lock(&j->lock);
    uint64_t behind = j->last - *cursor;
    int result = behind == 0 ? 0 : behind > DF_JOURNAL_ENTRIES ? -1 : 1;
    if (result > 0)
        *ret = j->ring[++*cursor % DF_JOURNAL_ENTRIES];
    else if (result < 0)
        *cursor = j->last;
    (void)pthread_mutex_unlock(&j->lock);
    return result;
}

/* ---- waiting ---- */

void df_subscribe(struct df_journal *j, struct df_subscription *ret, const char *const names[],
                  size_t n, bool wants_growth)
{
    *ret = (struct df_subscription){.topic_count = n, .wants_growth = wants_growth};
    for (size_t i = 0; i < n; i++)
        ret->topics[i] = topic_of(names[i]);
    df_cond_init(&ret->changed);
    (void)pthread_mutex_lock(&j->lock);
    ret->next = j->subscriptions;
    ret->back = &j->subscriptions;
    if (ret->next)
        ret->next->back = &ret->next;
    j->subscriptions = ret;
    (void)pthread_mutex_unlock(&j->lock);
}

void df_unsubscribe(struct df_journal *j, struct df_subscription *sub)
{
    /* A neighbour's end writes back, too: it is looked at under the lock. */
    (void)pthread_mutex_lock(&j->lock);
    bool subscribed = sub->back != NULL;
    if (subscribed)
        *sub->back = sub->next;
    if (sub->next)
        sub->next->back = sub->back;
    sub->next = NULL;
    sub->back = NULL;
    (void)pthread_mutex_unlock(&j->lock);
    if (subscribed)
        (void)pthread_cond_destroy(&sub->changed);
}

uint64_t df_subscription_mark(struct df_journal *j, const struct df_subscription *sub)
{
    (void)pthread_mutex_lock(&j->lock);
    uint64_t mark = sub->mark;
    (void)pthread_mutex_unlock(&j->lock);
    return mark;
}

void df_subscription_wait(struct df_journal *j, struct df_subscription *sub, uint64_t mark,
                          int64_t timeout_ms)
{
    const struct timespec until = df_mono_after_us(timeout_ms * 1000);
    int result = 0;
    (void)pthread_mutex_lock(&j->lock);
    while (sub->mark == mark && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&sub->changed, &j->lock, &until);
    (void)pthread_mutex_unlock(&j->lock);
}

void df_subscription_wake(struct df_journal *j, struct df_subscription *sub)
{
    (void)pthread_mutex_lock(&j->lock);
    wake_locked(sub);
    (void)pthread_mutex_unlock(&j->lock);
}

/* ---- its life ---- */

static void on_change(void *arg, const struct df_store_event *event)
{
    df_journal_add(arg, event);
}

int df_journal_new(struct df_store *store, struct df_journal **ret, struct df_err *err)
{
    struct df_journal *j = calloc(1, sizeof(*j));
    if (!j)
        return df_fail_oom(err);
    j->store = store;
    (void)pthread_mutex_init(&j->lock, NULL);
    if (df_store_watch(store, on_change, j, err) < 0) {
        (void)pthread_mutex_destroy(&j->lock);
        free(j);
        return -1;
    }
    *ret = j;
    return 0;
}

void df_journal_free(struct df_journal *j)
{
    if (!j)
        return;
    df_store_unwatch(j->store, on_change, j);
    (void)pthread_mutex_destroy(&j->lock);
    free(j);
}
