/*
 * executors.c - one pass over one executor: accepts changes that were made with kubectl, sees that
 * its present revision is stored, and removes an executor that is being deleted, together with
 * everything that belongs to it. And one pass over a revision.
 */
#include "spawner/control/documents/applied.h"
#include "spawner/control/documents/deleted.h"
#include "spawner/control/runs/vanished_run.h"
#include "spawner/model/accepted.h"
#include "spawner/requests/revisions.h"

int df_reconcile_executor(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    char run[64];
    bool done = false;
    if (df_store_look_for(c->s->store, DF_KIND_EXECUTOR, name, &executor, err) < 0)
        return -1;
    if (!executor)
        return 0;
    if (df_vanished_settle(c, executor, err) < 0 ||
        df_applied_executor(c, executor, &done, ret_wake_us, err) < 0)
        return -1;
    /* A run that is woken may look, and wait, again meanwhile. */
    for (size_t i = 0; i < DF_LIMIT_AWAITING && df_memory_take_awaiting(&c->s->memory, name, run);
         i++)
        df_queue_wake(c->queue, DF_KIND_RUN, run);
    if (done)
        return 0;
    return df_json_at(executor, "status.deleting") ? df_deleted_remove_executor(c, executor, err)
                                                   : df_revision_keep(c->s, executor, err);
}

/* Looks at a revision, of which nothing follows, unless somebody deleted it, or wrote one himself.
 * The pass over its executor writes the present one again. */
int df_reconcile_revision(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err)
{
    DF_SHARED const cJSON *revision = NULL;
    (void)ret_wake_us;
    if (df_store_look_for(c->s->store, DF_KIND_REVISION, name, &revision, err) < 0)
        return -1;
    if (!revision || (df_json_at(revision, "status") && !df_doc_is_deleted(revision)))
        return 0;
    if (df_deleted_revision(c, revision, err) < 0)
        return -1;
    df_queue_wake(c->queue, DF_KIND_EXECUTOR, df_json_str(revision, "spec.executorRef.name"));
    return 0;
}
