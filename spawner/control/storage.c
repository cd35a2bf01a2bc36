/*
 * storage.c - two executors that wrote to one place would destroy each other's state.
 */
#include "spawner/control/applied.h"

static bool same_place(const cJSON *a, const cJSON *b)
{
    return df_streq(df_json_str(a, "spec.storage.path"), df_json_str(b, "spec.storage.path")) &&
           df_streq(df_json_str(a, "spec.storage.type"), df_json_str(b, "spec.storage.type"));
}

/* One that was applied and is not taken in yet, or was refused, has no state. */
static bool has_place(const cJSON *executor)
{
    return df_json_at(executor, "status") && !df_applied_is_refused(executor);
}

int df_control_check_storage(struct df_spawner *s, const cJSON *doc, struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    DF_FREE char *cursor = NULL;
    if (df_str_empty(df_json_str(doc, "spec.storage.path")))
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
            if (!df_streq(name, other_name) && has_place(other) && same_place(doc, other))
                return df_fail_reason(err, DF_ERR_CONFLICT, "StorageInUse",
                                      "spec.storage: executor %s has its state in %s already",
                                      other_name, df_json_str(doc, "spec.storage.path"));
        }
    } while (cursor);
    return 0;
}
