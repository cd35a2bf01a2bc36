#include "spawner/engine/diagnosis/pod_parts.h"

const cJSON *df_pod_named(const cJSON *list, const char *key, const char *name)
{
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
        if (df_streq(df_json_str(item, key), name))
            return item;
    return NULL;
}

const cJSON *df_pod_condition(const cJSON *object, const char *type)
{
    return df_pod_named(df_json_at(object, "status.conditions"), "type", type);
}

bool df_pod_is_true(const cJSON *condition)
{
    return df_streq(df_json_str(condition, "status"), "True");
}

const cJSON *df_pod_container(const cJSON *pod, const char *container)
{
    return df_pod_named(df_json_at(pod, "status.containerStatuses"), "name", container);
}

const char *const df_pod_status_lists[] = {"status.initContainerStatuses",
                                           "status.containerStatuses"};

bool df_pod_has_started(const struct df_pod_view *view)
{
    const cJSON *status = df_pod_container(view->pod, view->container);
    const cJSON *terminated = df_json_at(status, "state.terminated");
    const char *why = df_json_str(terminated, "reason");
    bool start_failed = df_streq(why, "StartError") || df_streq(why, "ContainerCannotRun");
    return df_json_at(status, "state.running") || df_json_at(status, "lastState.terminated") ||
           (terminated && !start_failed);
}

void df_pod_code(struct df_pod_diagnosis *v, const char *a, const char *b)
{
    (void)snprintf(v->code, sizeof(v->code), "%.40s%s%.40s", a ? a : "", a && b ? "|" : "",
                   b ? b : "");
}

void df_pod_fail(struct df_pod_diagnosis *v, enum df_pod_class class, enum df_fault fault,
                 const char *code)
{
    v->class = class;
    v->fault = fault;
    df_pod_code(v, code, NULL);
}
