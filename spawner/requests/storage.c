/*
 * storage.c - compares the state locations of executors.
 */
#include "spawner/requests/storage.h"

#include <pthread.h>

#include "spawner/model/accepted.h"

/* A lock of this process suffices, because only the leader writes executors. */
static pthread_mutex_t checked = PTHREAD_MUTEX_INITIALIZER;

void df_storage_lock(void)
{
    (void)pthread_mutex_lock(&checked);
}

void df_storage_unlock(void)
{
    (void)pthread_mutex_unlock(&checked);
}

/* False for an executor that is not accepted yet or was refused: it has no state. */
static bool has_location(const cJSON *executor)
{
    return df_json_at(executor, "status") && !df_doc_is_refused(executor);
}

int df_storage_check(struct df_spawner *s, const cJSON *doc, struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    DF_FREE char *cursor = NULL, *location = NULL;
    if (df_storage_location(doc, &location, err) < 0)
        return -1;
    if (!location)
        return 0;
    do {
        const struct df_store_list_options o = {.cursor = cursor, .limit = 1000};
        DF_JSON cJSON *list = NULL;
        char *next = NULL;
        if (df_store_list(s->store, DF_KIND_EXECUTOR, &o, &list, &next, err) < 0)
            return -1;
        free(cursor);
        cursor = next;
        const cJSON *other;
        cJSON_ArrayForEach (other, list) {
            const char *other_name = df_json_str(other, "metadata.name");
            DF_FREE char *taken = NULL;
            if (df_storage_location(other, &taken, err) < 0)
                return -1;
            if (!df_streq(name, other_name) && has_location(other) && df_streq(location, taken))
                return df_fail_reason(err, DF_ERR_CONFLICT, "StorageInUse",
                                      "spec.storage: executor %s has its state in %s already",
                                      other_name, df_json_str(doc, "spec.storage.path"));
        }
    } while (cursor);
    return 0;
}
