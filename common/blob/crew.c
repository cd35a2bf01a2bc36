#include "common/blob/crew.h"

#include <pthread.h>

enum { MOST = 8 };

struct crew {
    size_t n;
    df_blob_job job;
    void *arg;
    pthread_mutex_t mutex; /* of what follows */
    size_t next;
    bool failed;
    struct df_err why; /* of the first failure */
};

/* False: there is none any more. */
static bool take_job(struct crew *c, size_t *ret)
{
    (void)pthread_mutex_lock(&c->mutex);
    bool more = !c->failed && c->next < c->n;
    *ret = more ? c->next++ : 0;
    (void)pthread_mutex_unlock(&c->mutex);
    return more;
}

static void keep_failure(struct crew *c, const struct df_err *why)
{
    (void)pthread_mutex_lock(&c->mutex);
    if (!c->failed)
        c->why = *why;
    c->failed = true;
    (void)pthread_mutex_unlock(&c->mutex);
}

static void *work(void *arg)
{
    struct crew *c = arg;
    DF_OBJECT_WORK memory = DF_OBJECT_WORK_INIT;
    size_t number;
    while (take_job(c, &number)) {
        struct df_err why = {0};
        if (c->job(c->arg, number, &memory, &why) < 0)
            keep_failure(c, &why);
    }
    return NULL;
}

int df_blob_crew_run(size_t n, size_t threads, df_blob_job job, void *arg, size_t *ret_begun,
                     struct df_err *err)
{
    struct crew c = {.n = n, .job = job, .arg = arg, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t others[MOST];
    size_t made = 0, wanted = threads < n ? threads : n;
    while (made + 1 < wanted && made < MOST && pthread_create(&others[made], NULL, work, &c) == 0)
        made++;
    (void)work(&c);
    for (size_t i = 0; i < made; i++)
        (void)pthread_join(others[i], NULL);
    *ret_begun = c.next;
    return c.failed ? df_err_pass(err, &c.why) : 0;
}
