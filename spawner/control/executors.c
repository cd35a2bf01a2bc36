/*
 * executors.c - one pass over one executor: accepts changes that were made with kubectl, and
 * removes an executor that is being deleted, together with everything that belongs to it.
 */
#include "spawner/control/documents/applied.h"
#include "spawner/control/documents/deleted.h"
#include "spawner/control/runs/vanished_run.h"

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
    if (done || !df_json_at(executor, "status.deleting"))
        return 0;
    return df_deleted_remove_executor(c, executor, err);
}
