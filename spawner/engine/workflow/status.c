#include "spawner/engine/workflow/workflow.h"

/* ---- conditions ---- */

const cJSON *df_workflow_condition(const cJSON *object, const char *type)
{
    const cJSON *condition;
    cJSON_ArrayForEach (condition, df_json_at(object, "status.conditions"))
        if (df_streq(df_json_str(condition, "type"), type))
            return condition;
    return NULL;
}

static bool has_condition(const cJSON *object, const char *type, const char *status)
{
    return df_streq(df_json_str(df_workflow_condition(object, type), "status"), status);
}

bool df_workflow_is_over(const cJSON *object)
{
    return has_condition(object, "Complete", "True") || has_condition(object, "Failed", "True") ||
           has_condition(object, "Succeeded", "True") ||
           has_condition(object, "Succeeded", "False");
}

/* ---- the result ---- */

int df_workflow_ref(const struct df_workflow_object *o, cJSON **ret, struct df_err *err)
{
    *ret = df_json_object(DF_STR("kind", o->kind), DF_STR("name", o->name),
                          DF_STR("namespace", o->name_space), DF_STR("uid", o->uid),
                          DF_STR("serviceAccountName", o->service_account));
    return df_check_alloc(*ret, err);
}

static int add_ref(cJSON *result, const struct df_workflow_object *o, struct df_err *err)
{
    cJSON *ref = NULL;
    return df_workflow_ref(o, &ref, err) < 0 ? -1 : df_json_add(result, "engineRef", ref, err);
}

/* Empty texts and counts of zero are left out. */
static int add_summary(cJSON *result, const struct df_workflow_status *s, struct df_err *err)
{
    const char *reason = s->summary.reason, *message = s->summary.message;
    int done = s->summary.completed_tasks, total = s->summary.total_tasks;
    int again = s->summary.retry_count;
    cJSON *to = df_json_object_at(result, "executionStatus");
    if (df_json_put(to, err, DF_STR("status", s->summary.status),
                    DF_STR("reason", *reason ? reason : NULL),
                    DF_STR("message", *message ? message : NULL)) < 0 ||
        (done && df_json_add_num(to, "completedTasks", done, err) < 0) ||
        (total && df_json_add_num(to, "totalTasks", total, err) < 0))
        return -1;
    return again ? df_json_add_num(to, "retryCount", again, err) : 0;
}

static int add_failure(cJSON *result, const struct df_workflow_status *s, struct df_err *err)
{
    const struct df_workflow_failure *f = &s->failure;
    if (!f->reason)
        return 0;
    cJSON *to = df_json_object_at(result, "failureDetails");
    if (df_json_put(to, err, DF_STR("failedTaskName", f->task),
                    DF_NUM("failedTaskIndex", f->task_index), DF_STR("reason", f->reason),
                    DF_STR("message", s->message),
                    DF_BOOL("wasExecutionFailure", f->was_execution)) < 0)
        return -1;
    return f->exit_code ? df_json_add_num(to, "exitCode", f->exit_code, err) : 0;
}

int df_workflow_result(const struct df_workflow_object *o, const struct df_workflow_status *s,
                       cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *result = cJSON_CreateObject();
    if (df_check_alloc(result, err) < 0 || add_ref(result, o, err) < 0 ||
        add_summary(result, s, err) < 0 || add_failure(result, s, err) < 0)
        return -1;
    *ret = DF_TAKE(result);
    return 0;
}
