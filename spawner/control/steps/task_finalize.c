#include "spawner/control/lock_queue.h"
#include "spawner/control/steps/shared_pod.h"
#include "spawner/control/task_pass.h"

int df_task_set_finalized(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    cJSON *auth = cJSON_GetObjectItemCaseSensitive(df_json_at(task, "status"), "auth");
    cJSON_DeleteItemFromObjectCaseSensitive(auth, "state");
    cJSON_DeleteItemFromObjectCaseSensitive(auth, "providers");
    if (df_label_set(task, DF_LABEL_UNFINISHED, NULL, err) < 0 ||
        df_label_set(task, DF_LABEL_QUEUE, NULL, err) < 0)
        return -1;
    return df_slot_clear(task, err);
}

void df_task_pass_yield(struct df_task_pass *p)
{
    const char *lock = df_label_get(p->task, DF_LABEL_QUEUE);
    df_slots_wake(&p->c->slots);
    df_shared_pod_wake_host(p);
    if (lock)
        df_lock_queue_wake(p->c->s->store, p->c->queue, DF_KIND_TASK_ACTION, lock);
}

int df_task_pass_finalize(struct df_task_pass *p, struct df_err *err)
{
    if (!df_label_has(p->task, DF_LABEL_UNFINISHED))
        return 0;
    if (df_task_pass_modify(p, df_task_set_finalized, NULL, err) < 0)
        return -1;
    df_task_pass_yield(p);
    return 0;
}
