#include "spawner/engine/workflow/workflow.h"

static int add_ref(cJSON *result, const struct df_workflow_object *o, struct df_err *err)
{
    return df_json_put(df_json_object_at(result, "engineRef"), err, DF_STR("kind", o->kind),
                       DF_STR("name", o->name), DF_STR("namespace", o->name_space),
                       DF_STR("uid", o->uid), DF_STR("serviceAccountName", o->service_account));
}

/* Empty texts and counts of zero are left out. */
static int add_summary(cJSON *result, const struct df_workflow_status *s, struct df_err *err)
{
    const char *reason = s->summary.reason, *message = s->summary.message;
    int done = s->summary.completed_tasks, again = s->summary.retry_count;
    cJSON *to = df_json_object_at(result, "executionStatus");
    if (df_json_put(to, err, DF_STR("status", s->summary.status),
                    DF_STR("reason", *reason ? reason : NULL),
                    DF_STR("message", *message ? message : NULL)) < 0 ||
        (done && df_json_add_num(to, "completedTasks", done, err) < 0) ||
        df_json_add_num(to, "totalTasks", s->summary.total_tasks, err) < 0)
        return -1;
    return again ? df_json_add_num(to, "retryCount", again, err) : 0;
}

int df_workflow_result(const struct df_workflow_object *o, const struct df_workflow_status *s,
                       cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *result = cJSON_CreateObject();
    if (df_check_alloc(result, err) < 0 || add_ref(result, o, err) < 0 ||
        add_summary(result, s, err) < 0)
        return -1;
    *ret = DF_TAKE(result);
    return 0;
}
