#include "spawner/control/lock_queue.h"

#include "common/base/log.h"
#include "spawner/model/labels.h"

int df_lock_queue_first(struct df_store *s, enum df_kind kind, const char *lock, char ret[64],
                        struct df_err *err)
{
    char label[128];
    (void)snprintf(label, sizeof(label), DF_LABEL_QUEUE "=%s", lock);
    const struct df_store_list_options o = {.label = label, .limit = 1};
    DF_JSON cJSON *list = NULL;
    if (df_store_list(s, kind, &o, &list, NULL, err) < 0)
        return -1;
    const char *name = df_json_str(cJSON_GetArrayItem(list, 0), "metadata.name");
    (void)snprintf(ret, 64, "%s", name ? name : "");
    return 0;
}

void df_lock_queue_wake(struct df_store *s, struct df_queue *q, enum df_kind kind, const char *lock)
{
    char label[128];
    (void)snprintf(label, sizeof(label), DF_LABEL_QUEUE "=%s", lock);
    DF_STRS struct df_strs names = {0};
    struct df_err err = {0};
    if (df_store_names(s, kind, label, &names, &err) < 0) {
        df_warn("who waits for %s is not woken now: %s", lock, err.message);
        return;
    }
    for (size_t i = 0; i < names.len; i++)
        df_queue_wake(q, kind, names.items[i]);
}
