/*
 * action_event.c - the parts that both messages share, then ActionEvent, then PutRequest. Each
 * entry of status.phaseHistory is one transition.
 */
#include "spawner/model/action_event.h"

#include "common/base/limits.h"

#define LOST_ATTEMPT "RetryableFailure"

static const cJSON *history(const cJSON *task)
{
    return df_json_at(task, "status.phaseHistory");
}

int df_action_transitions(const cJSON *task)
{
    int n = cJSON_GetArraySize(history(task));
    return n < DF_LIMIT_PHASE_HISTORY ? n : DF_LIMIT_PHASE_HISTORY;
}

/* ---- what both messages have ---- */

static const char *run_name(const cJSON *task)
{
    const char *run = df_json_str(task, "spec.runRef.name");
    return run ? run : df_json_str(task, "metadata.name");
}

static int add_id(cJSON *to, const char *key, const cJSON *task,
                  const struct df_action_scope *scope, struct df_err *err)
{
    cJSON *id = df_json_object_at(to, key);
    cJSON *run = df_json_object_at(id, "run");
    const char *project = scope->project ? scope->project : df_json_str(task, "metadata.namespace");
    if (df_json_put(run, err, DF_STR("project", project), DF_STR("domain", scope->domain),
                    DF_STR("name", run_name(task))) < 0)
        return -1;
    return df_json_add_str(id, "name", df_json_str(task, "spec.action"), err);
}

/* ---- ActionEvent ---- */

static const struct phase {
    const char *ours, *theirs;
    bool is_failure;
} phases[] = {
    {"Queued", "ACTION_PHASE_QUEUED", false},
    {"Initializing", "ACTION_PHASE_INITIALIZING", false},
    {"Executing", "ACTION_PHASE_RUNNING", false},
    {"Completed", "ACTION_PHASE_SUCCEEDED", false},
    {LOST_ATTEMPT, "ACTION_PHASE_FAILED", true},
    {"PermanentFailure", "ACTION_PHASE_FAILED", true},
    {"Aborted", "ACTION_PHASE_ABORTED", true},
    {"TimedOut", "ACTION_PHASE_TIMED_OUT", true},
};

static const struct phase *phase_of(const cJSON *entry)
{
    static const struct phase unknown = {"", "ACTION_PHASE_UNSPECIFIED", false};
    const char *word = df_json_str(entry, "phase");
    for (size_t i = 0; i < DF_ARRAY_SIZE(phases); i++)
        if (df_streq(phases[i].ours, word))
            return &phases[i];
    return &unknown;
}

/* 1 for the first attempt: each RetryableFailure before this entry ended one. */
static int attempt_of(const cJSON *task, int index)
{
    int attempt = 1;
    const cJSON *entry = history(task)->child;
    for (; index > 0 && entry; index--, entry = entry->next)
        attempt += df_streq(df_json_str(entry, "phase"), LOST_ATTEMPT);
    return attempt;
}

static const char *kind_of(const cJSON *task, const cJSON *entry)
{
    const char *kind = df_json_str(task, "status.errorState.kind");
    if (df_streq(df_json_str(entry, "phase"), LOST_ATTEMPT) || df_streq(kind, "SYSTEM"))
        return "KIND_SYSTEM";
    return df_streq(kind, "USER") ? "KIND_USER" : "KIND_UNSPECIFIED";
}

static int add_error(cJSON *event, const cJSON *task, const cJSON *entry, struct df_err *err)
{
    cJSON *info = df_json_object_at(event, "errorInfo");
    const char *message = df_json_str(entry, "message");
    return df_json_put(info, err, DF_STR("message", message ? message : ""),
                       DF_STR("kind", kind_of(task, entry)));
}

/* The message of the phase becomes an entry of clusterEvents. */
static int add_cluster_event(cJSON *event, const cJSON *entry, struct df_err *err)
{
    const char *message = df_json_str(entry, "message");
    if (!message)
        return 0;
    return df_json_append(df_json_array_at(event, "clusterEvents"),
                          df_json_object(DF_STR("occurredAt", df_json_str(entry, "occurredAt")),
                                         DF_STR("message", message)),
                          err);
}

int df_action_event(const cJSON *task, int index, const struct df_action_scope *scope, cJSON **ret,
                    struct df_err *err)
{
    const cJSON *entry = cJSON_GetArrayItem(history(task), index);
    const struct phase *phase = phase_of(entry);
    const char *at = df_json_str(entry, "occurredAt");
    DF_JSON cJSON *event = cJSON_CreateObject();
    if (df_check_alloc(event, err) < 0 || add_id(event, "id", task, scope, err) < 0 ||
        df_json_put(event, err, DF_NUM("attempt", attempt_of(task, index)),
                    DF_STR("phase", phase->theirs), DF_NUM("version", index),
                    DF_STR("updatedTime", at), DF_STR("reportedTime", at)) < 0 ||
        add_cluster_event(event, entry, err) < 0 ||
        (phase->is_failure && add_error(event, task, entry, err) < 0))
        return -1;
    *ret = DF_TAKE(event);
    return 0;
}

/* ---- PutRequest ---- */

static char *state_text(const cJSON *task, const cJSON *entry, struct df_err *err)
{
    DF_FREE char *id = df_strf("%s/%s", run_name(task), df_json_str(task, "spec.action"));
    DF_JSON cJSON *state =
        df_json_object(DF_STR("phase", df_json_str(entry, "phase")), DF_STR("actionId", id),
                       DF_STR("timestamp", df_json_str(entry, "occurredAt")));
    char *text = id ? df_json_print(state) : NULL;
    if (!text)
        (void)df_fail_oom(err);
    return text;
}

int df_action_put(const cJSON *task, int index, const struct df_action_scope *scope, cJSON **ret,
                  struct df_err *err)
{
    DF_JSON cJSON *put = cJSON_CreateObject();
    DF_FREE char *state = state_text(task, cJSON_GetArrayItem(history(task), index), err);
    if (!state)
        return -1;
    if (df_check_alloc(put, err) < 0 || add_id(put, "actionId", task, scope, err) < 0 ||
        df_json_add_str(put, "state", state, err) < 0)
        return -1;
    *ret = DF_TAKE(put);
    return 0;
}
