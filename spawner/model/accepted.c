#include "spawner/model/accepted.h"

#include "spawner/model/model.h"
#include "spawner/model/never.h"

/* True if the service accepted the step: it waited for a slot then. */
static bool was_queued(const cJSON *doc)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(doc, "status.timeline")) {
        if (df_streq(df_json_str(entry, "name"), "queued"))
            return true;
    }
    return false;
}

bool df_doc_is_refused(const cJSON *doc)
{
    const char *reason = df_task_reason(doc);
    return df_streq(reason, DF_REASON_REFUSED) || ((df_streq(reason, DF_REASON_PLACEMENT_DENIED) ||
                                                    df_streq(reason, "ErroredStatePending")) &&
                                                   !was_queued(doc));
}

bool df_executor_is_accepted(const cJSON *executor)
{
    return df_json_int(executor, "status.revision", 0) >=
           df_json_int(executor, "metadata.generation", 1);
}

int df_executor_set_refused(cJSON *executor, bool is_refused, struct df_err *err)
{
    const char *from = is_refused ? "ready" : "refused", *to = is_refused ? "refused" : "ready";
    cJSON *status = df_json_object_at(executor, "status");
    return df_streq(df_json_str(status, "status"), from)
               ? df_json_set_str(status, "status", to, err)
               : 0;
}

int df_executor_check_accepted(const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    const char *why = df_task_message(executor);
    if (!df_executor_is_accepted(executor))
        return df_fail_reason(err, DF_ERR_RETRY, "NotAccepted",
                              "executor %s was just applied and is not accepted yet", name);
    if (!df_doc_is_refused(executor))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState", "executor %s was refused: %s", name,
                          why ? why : "");
}
