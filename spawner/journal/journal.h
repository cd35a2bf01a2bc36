/*
 * journal.h - what was written, in order: the last DF_JOURNAL_ENTRIES writes of documents, numbered
 * from 1, and the subscriptions of those who wait for one.
 *
 * An entry says that a document changed; the document itself says to what. A reader keeps the
 * number of the last entry it has read: its cursor. A reader that is too slow loses entries, learns
 * that from df_journal_read(), and reads the documents instead. docs/internals/journal.md has the
 * reasons.
 *
 * A write wakes only the subscriptions to that document, and those to all documents.
 * Thread rule: any thread; a subscription belongs to one thread.
 */
#ifndef DF_JOURNAL_H
#define DF_JOURNAL_H

#include <pthread.h>

#include "spawner/store/store.h"

#define DF_JOURNAL_ENTRIES 4096 /* more than a second of the highest rate that is promised */
#define DF_JOURNAL_NAMES 5      /* of one subscription: a run and its steps */

struct df_journal; /* opaque */

struct df_journal_entry {
    enum df_kind kind;
    enum df_change change;
    char name[64];
    char version[32]; /* the store's, of that write */
};

/* Watches the store (borrowed, outlives the journal). */
int df_journal_new(struct df_store *store, struct df_journal **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* No subscription is left. NULL is fine. */
void df_journal_free(struct df_journal *j);

/* Adds an entry for this write and wakes its subscriptions. The journal does so itself for each
 * write of its store. */
void df_journal_add(struct df_journal *j, const struct df_store_event *event);

/* The number of the latest entry, and the version of its write ("0" before the first). */
uint64_t df_journal_last(struct df_journal *j, char ret_version[32]);

/* The entry behind the cursor: 1 with *ret, and the cursor moves on; 0 when there is none yet; -1
 * when entries were lost: the cursor then stands behind the latest. */
int df_journal_read(struct df_journal *j, uint64_t *cursor, struct df_journal_entry *ret);

/* ---- waiting ---- */

struct df_subscription {
    pthread_cond_t changed;
    uint64_t topics[DF_JOURNAL_NAMES]; /* hashes of the names */
    size_t topic_count;                /* 0: every document */
    bool wants_growth;                 /* df_journal_touch() wakes it, too */
    uint64_t mark;                     /* grows with each change; guarded by the journal's lock */
    struct df_subscription *next, **back;
};

/* Until df_unsubscribe(). names: of documents, at most DF_JOURNAL_NAMES; 0 of them: all documents.
 * wants_growth: df_journal_touch() of one of these names wakes it, too. */
void df_subscribe(struct df_journal *j, struct df_subscription *ret, const char *const names[],
                  size_t n, bool wants_growth);
/* One that was never subscribed (all zero) is fine. */
void df_unsubscribe(struct df_journal *j, struct df_subscription *sub);

/* Take the mark, read, and wait for a change since that mark: then no change is missed in between.
 * df_subscription_wait() returns after timeout_ms at the latest, and may return early. */
uint64_t df_subscription_mark(struct df_journal *j, const struct df_subscription *sub);
void df_subscription_wait(struct df_journal *j, struct df_subscription *sub, uint64_t mark,
                          int64_t timeout_ms);
/* Ends a wait. For another thread than its owner's. */
void df_subscription_wake(struct df_journal *j, struct df_subscription *sub);

/* Something that belongs to this document grew, its log for example: wakes the subscriptions to its
 * name that want growth. It is no entry. */
void df_journal_touch(struct df_journal *j, const char *name);

#endif
