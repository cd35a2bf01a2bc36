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
    cJSON *run = id ? df_json_object_at(id, "run") : NULL;
    const char *project = scope->project ? scope->project : df_json_str(task, "metadata.namespace");
    if (!run)
        return df_fail_oom(err);
    if (df_json_add_str(run, "project", project, err) < 0 ||
        df_json_add_str(run, "domain", scope->domain, err) < 0 ||
        df_json_add_str(run, "name", run_name(task), err) < 0)
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
    if (!info)
        return df_fail_oom(err);
    if (df_json_add_str(info, "message", message ? message : "", err) < 0)
        return -1;
    return df_json_add_str(info, "kind", kind_of(task, entry), err);
}

/* The message of the phase becomes an entry of clusterEvents. */
static int add_cluster_event(cJSON *event, const cJSON *entry, struct df_err *err)
{
    const char *message = df_json_str(entry, "message");
    if (!message)
        return 0;
    cJSON *note = cJSON_CreateObject();
    if (df_json_append(df_json_array_at(event, "clusterEvents"), note, err) < 0 ||
        df_json_add_str(note, "occurredAt", df_json_str(entry, "occurredAt"), err) < 0)
        return -1;
    return df_json_add_str(note, "message", message, err);
}

int df_action_event(const cJSON *task, int index, const struct df_action_scope *scope, cJSON **ret,
                    struct df_err *err)
{
    const cJSON *entry = cJSON_GetArrayItem(history(task), index);
    const struct phase *phase = phase_of(entry);
    const char *at = df_json_str(entry, "occurredAt");
    DF_JSON cJSON *event = cJSON_CreateObject();
    if (!event)
        return df_fail_oom(err);
    if (add_id(event, "id", task, scope, err) < 0 ||
        df_json_add_num(event, "attempt", attempt_of(task, index), err) < 0 ||
        df_json_add_str(event, "phase", phase->theirs, err) < 0 ||
        df_json_add_num(event, "version", index, err) < 0 ||
        df_json_add_str(event, "updatedTime", at, err) < 0 ||
        df_json_add_str(event, "reportedTime", at, err) < 0 ||
        add_cluster_event(event, entry, err) < 0 ||
        (phase->is_failure && add_error(event, task, entry, err) < 0))
        return -1;
    *ret = DF_TAKE(event);
    return 0;
}

/* ---- PutRequest ---- */

static char *state_text(const cJSON *task, const cJSON *entry, struct df_err *err)
{
    DF_JSON cJSON *state = cJSON_CreateObject();
    DF_FREE char *id = df_strf("%s/%s", run_name(task), df_json_str(task, "spec.action"));
    char *text = NULL;
    if (state && id && df_json_add_str(state, "phase", df_json_str(entry, "phase"), err) == 0 &&
        df_json_add_str(state, "actionId", id, err) == 0 &&
        df_json_add_str(state, "timestamp", df_json_str(entry, "occurredAt"), err) == 0)
        text = df_json_print(state);
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
    if (!put)
        return df_fail_oom(err);
    if (add_id(put, "actionId", task, scope, err) < 0 ||
        df_json_add_str(put, "state", state, err) < 0)
        return -1;
    *ret = DF_TAKE(put);
    return 0;
}
