#include "spawner/store/documents/commits.h"

#include "common/base/clock.h"

#define JOIN_US 1000 /* a disk takes about as long */

struct df_commit {
    df_db_body body;
    void *arg;
    bool wants_sequence;

    pthread_cond_t turn; /* signalled when it is done or first in the next batch */
    bool done;
    int result;
    struct df_err why;
    uint64_t sequence;
    struct df_commit *next;
};

void df_commits_init(struct df_commits *c, struct df_db *db, struct df_watchers *watchers)
{
    *c = (struct df_commits){.db = db, .watchers = watchers, .join_us = JOIN_US};
    c->end = &c->first;
    (void)pthread_mutex_init(&c->lock, NULL);
}

void df_commits_free(struct df_commits *c)
{
    (void)pthread_mutex_destroy(&c->lock);
}

/* ---- the transaction ---- */

/* Runs one commit of a batch. -1: the whole transaction is lost, *lost says why. */
static int run_one(struct df_db *db, struct df_commit *one, struct df_err *lost)
{
    if (df_db_run(db, "SAVEPOINT one", NULL, lost) < 0)
        return -1;
    one->result = one->body(db, one->arg, &one->why);
    if (one->result == 0)
        return df_db_run(db, "RELEASE one", NULL, lost);
    /* After some failures, such as a full disk, SQLite has already rolled back the whole
     * transaction. */
    if (df_db_run(db, "ROLLBACK TO one", NULL, lost) < 0)
        return one->result < 0 ? df_err_pass(lost, &one->why) : -1;
    return df_db_run(db, "RELEASE one", NULL, lost);
}

struct batch {
    struct df_commit *first;
};

static int batch_body(struct df_db *db, void *arg, struct df_err *err)
{
    const struct batch *batch = arg;
    for (struct df_commit *one = batch->first; one; one = one->next)
        if (run_one(db, one, err) < 0)
            return -1;
    return 0;
}

/* Also those without a change fail: they may have read what is now lost. */
static void fail_all(struct df_commit *first, const struct df_err *why)
{
    for (struct df_commit *one = first; one; one = one->next)
        if (one->result >= 0)
            one->result = df_err_pass(&one->why, why);
}

static void run_batch(struct df_db *db, struct df_commit *first)
{
    struct batch batch = {first};
    struct df_err why = {0};
    if (!first->next)
        first->result = df_db_transaction(db, first->body, first->arg, &first->why);
    else if (df_db_transaction(db, batch_body, &batch, &why) < 0)
        fail_all(first, &why);
}

/* ---- batches ---- */

/* Completes a batch: signals its threads and the first of the next batch. Under the lock. */
static void complete_batch(struct df_commits *c, struct df_commit *first)
{
    for (struct df_commit *one = first, *next; one; one = next) {
        next = one->next;
        if (one->result == 0 && one->wants_sequence)
            one->sequence = df_watchers_draw(c->watchers);
        one->done = true;
        (void)pthread_cond_signal(&one->turn);
    }
    if (c->first)
        (void)pthread_cond_signal(&c->first->turn);
}

/* Commits everything that waits, including the caller's own. Called under the lock, and releases it
 * during the transaction. */
static void commit_waiting(struct df_commits *c)
{
    struct df_commit *first = c->first;
    c->first = NULL;
    c->end = &c->first;
    c->waiting = 0;
    c->running = true;
    (void)pthread_mutex_unlock(&c->lock);
    run_batch(c->db, first);
    (void)pthread_mutex_lock(&c->lock);
    c->running = false;
    complete_batch(c, first);
}

/* joins: the next thread that comes commits both; who has waited for a batch waits for no other. */
static int run(struct df_commits *c, struct df_commit *mine, bool joins, struct df_err *err)
{
    const struct timespec until = df_mono_after_us(c->join_us);
    df_cond_init(&mine->turn);
    (void)pthread_mutex_lock(&c->lock);
    *c->end = mine;
    c->end = &mine->next;
    c->waiting++;
    for (; !mine->done; joins = false) {
        if (c->running)
            (void)pthread_cond_wait(&mine->turn, &c->lock);
        else if (joins)
            (void)pthread_cond_timedwait(&mine->turn, &c->lock, &until);
        else
            commit_waiting(c);
    }
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_cond_destroy(&mine->turn);
    return mine->result < 0 ? df_err_pass(err, &mine->why) : mine->result;
}

int df_commits_run(struct df_commits *c, df_db_body body, void *arg, uint64_t *ret_sequence,
                   struct df_err *err)
{
    struct df_commit mine = {.body = body, .arg = arg, .wants_sequence = ret_sequence != NULL};
    int result = run(c, &mine, false, err);
    if (result == 0 && ret_sequence)
        *ret_sequence = mine.sequence;
    return result;
}

int df_commits_join(struct df_commits *c, df_db_body body, void *arg, struct df_err *err)
{
    struct df_commit mine = {.body = body, .arg = arg};
    return run(c, &mine, true, err);
}
