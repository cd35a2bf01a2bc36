/*
 * Reads and writes the status of a step: conditions and their reasons, claim and cancel, timeline,
 * public phases and their history. task.c decides with these functions.
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/task_parts.h"
#include "spawner/model/waiting.h"

/* ---- conditions ---- */

static cJSON *find_named(const cJSON *list, const char *key, const char *name)
{
    cJSON *item;
    cJSON_ArrayForEach (item, list) {
        if (df_streq(df_json_str(item, key), name))
            return item;
    }
    return NULL;
}

static const cJSON *condition(const cJSON *task, const char *type)
{
    return find_named(df_json_at(task, "status.conditions"), "type", type);
}

static bool is_true(const cJSON *task, const char *type)
{
    return df_streq(df_json_str(condition(task, type), "status"), "True");
}

bool df_task_succeeded(const cJSON *task)
{
    return is_true(task, "Succeeded");
}

bool df_task_is_final(const cJSON *task)
{
    return df_task_succeeded(task) || is_true(task, "Failed");
}

const char *df_task_reason(const cJSON *task)
{
    const char *reason = df_json_str(condition(task, "Progressing"), "reason");
    return reason ? reason : "Queued";
}

const char *df_task_message(const cJSON *task)
{
    return df_json_str(condition(task, "Progressing"), "message");
}

/* ---- claims and cancels ---- */

bool df_task_has_runner(const cJSON *task)
{
    return cJSON_IsObject(df_json_at(task, "status.claimedBy"));
}

bool df_doc_is_deleted(const cJSON *doc)
{
    return df_json_at(doc, "metadata.deletionTimestamp") != NULL;
}

bool df_task_is_canceled(const cJSON *task)
{
    return cJSON_IsObject(df_json_at(task, "spec.cancel")) || df_doc_is_deleted(task);
}

int64_t df_task_canceled_at(const cJSON *task, int64_t fallback)
{
    int64_t deleted = df_task_time(task, "metadata.deletionTimestamp", fallback);
    return df_task_time(task, "spec.cancel.at", deleted);
}

/* ---- changes of the conditions ---- */

/* The members that all three conditions of a task have in common. */
struct condition_text {
    const char *reason;
    const char *message;
    int64_t generation;
    int64_t now_us;
};

static int set_condition(cJSON *list, const char *type, bool is_so,
                         const struct condition_text *text, struct df_err *err)
{
    const char *status = is_so ? "True" : "False";
    cJSON *c = find_named(list, "type", type);
    if (!c) {
        c = cJSON_CreateObject();
        if (df_json_append(list, c, err) < 0 || df_json_add_str(c, "type", type, err) < 0)
            return -1;
    }
    if (!df_streq(df_json_str(c, "status"), status)) {
        char at[DF_TIME_LEN];
        if (df_json_put(c, err, DF_STR("status", status),
                        DF_STR("lastTransitionTime", df_time_format(text->now_us, at))) < 0)
            return -1;
    }
    return df_json_put(c, err, DF_STR("reason", text->reason),
                       DF_STR("message", text->message ? text->message : ""),
                       DF_NUM("observedGeneration", text->generation));
}

int df_set_conditions(cJSON *doc, enum df_outcome outcome, const char *reason, const char *message,
                      int64_t now_us, struct df_err *err)
{
    const struct condition_text text = {reason, message, df_json_int(doc, "metadata.generation", 1),
                                        now_us};
    cJSON *status = df_json_object_at(doc, "status");
    cJSON *list = df_json_array_at(status, "conditions");
    if (df_check_alloc(list, err) < 0 ||
        set_condition(list, "Progressing", outcome == DF_OUTCOME_NONE, &text, err) < 0 ||
        set_condition(list, "Succeeded", outcome == DF_OUTCOME_SUCCEEDED, &text, err) < 0)
        return -1;
    if (outcome != DF_OUTCOME_NONE)
        (void)df_waiting_clear(doc);
    return set_condition(list, "Failed", outcome == DF_OUTCOME_FAILED, &text, err);
}

/* ---- timeline ---- */

int df_task_add_time(cJSON *task, const char *name, int64_t at_us, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    cJSON *timeline = df_json_array_at(status, "timeline");
    if (find_named(timeline, "name", name))
        return 0;
    return df_json_append(timeline, df_json_object(DF_STR("name", name), DF_TIME("at", at_us)),
                          err);
}

int64_t df_task_time(const cJSON *object, const char *path, int64_t fallback)
{
    const char *text = df_json_str(object, path);
    int64_t us;
    return text && df_time_parse(text, &us, NULL) == 0 ? us : fallback;
}

int64_t df_task_timeline(const cJSON *task, const char *name, int64_t fallback)
{
    return df_task_time(find_named(df_json_at(task, "status.timeline"), "name", name), "at",
                        fallback);
}

int64_t df_task_ended_at(const cJSON *task, int64_t fallback)
{
    return df_task_time(condition(task, "Progressing"), "lastTransitionTime", fallback);
}

/* ---- the public phase ---- */

/* Reasons of the condition Progressing while it is True; for runs and steps. */
static const struct {
    const char *reason;
    enum df_task_phase phase;
} on_the_way[] = {
    {"Queued", DF_TASK_PHASE_QUEUED},
    {"Pending", DF_TASK_PHASE_QUEUED},
    {"Initializing", DF_TASK_PHASE_INITIALIZING},
    {"Executing", DF_TASK_PHASE_RUNNING},
    {"Running", DF_TASK_PHASE_RUNNING},
    {"Paused", DF_TASK_PHASE_PAUSED},
    {"WaitingApproval", DF_TASK_PHASE_PAUSED},
};

/* Reasons of the condition Failed with a phase of their own. The phase of all others is FAILED. */
static const struct {
    const char *reason;
    enum df_task_phase phase;
    const char *in_history;
} other_ends[] = {
    {"TimedOut", DF_TASK_PHASE_TIMED_OUT, "TimedOut"},
    {"Canceled", DF_TASK_PHASE_ABORTED, "Aborted"},
    {"Aborted", DF_TASK_PHASE_ABORTED, "Aborted"},
    {"Discarded", DF_TASK_PHASE_ABORTED, "Aborted"},
};

static enum df_task_phase failed_phase(const char *reason, const char **ret_in_history)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(other_ends); i++) {
        if (!df_streq(other_ends[i].reason, reason))
            continue;
        *ret_in_history = other_ends[i].in_history;
        return other_ends[i].phase;
    }
    *ret_in_history = "PermanentFailure";
    return DF_TASK_PHASE_FAILED;
}

enum df_task_phase df_task_phase(const cJSON *doc)
{
    const char *word = NULL;
    if (df_task_succeeded(doc))
        return DF_TASK_PHASE_SUCCEEDED;
    if (is_true(doc, "Failed"))
        return failed_phase(df_json_str(condition(doc, "Failed"), "reason"), &word);
    if (!is_true(doc, "Progressing"))
        return DF_TASK_PHASE_UNSPECIFIED;
    const char *reason = df_json_str(condition(doc, "Progressing"), "reason");
    for (size_t i = 0; i < DF_ARRAY_SIZE(on_the_way); i++)
        if (df_streq(on_the_way[i].reason, reason))
            return on_the_way[i].phase;
    return DF_TASK_PHASE_UNSPECIFIED;
}

/* ---- history and error ---- */

static const char *phase_word(enum df_outcome outcome, const char *reason)
{
    const char *word = reason;
    if (outcome == DF_OUTCOME_SUCCEEDED)
        return "Completed";
    if (outcome == DF_OUTCOME_FAILED)
        (void)failed_phase(reason, &word);
    return word;
}

/* max: the entry is dropped if the history has so many already. */
static int add_phase(cJSON *task, const char *word, const char *message, int64_t now_us, int max,
                     struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    cJSON *history = df_json_array_at(status, "phaseHistory");
    int n = cJSON_GetArraySize(history);
    const cJSON *last = n ? cJSON_GetArrayItem(history, n - 1) : NULL;
    if (n >= max || df_streq(df_json_str(last, "phase"), word))
        return 0;
    return df_json_append(history,
                          df_json_object(DF_STR("phase", word), DF_TIME("occurredAt", now_us),
                                         DF_STR("message", df_str_empty(message) ? NULL : message)),
                          err);
}

int df_task_note_retry(cJSON *task, const char *message, int64_t now_us, struct df_err *err)
{
    return add_phase(task, "RetryableFailure", message, now_us, DF_LIMIT_PHASE_HISTORY - 1, err);
}

static int set_error_state(cJSON *task, const char *reason, const char *message, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    return df_json_put(df_json_object_at(status, "errorState"), err, DF_STR("code", reason),
                       DF_STR("kind", df_fault_name(df_reason_fault(reason))),
                       DF_STR("message", message ? message : ""));
}

static int note_end(cJSON *task, enum df_outcome outcome, const char *reason, const char *message,
                    int64_t now_us, struct df_err *err)
{
    DF_FREE char *text =
        df_strf("%s%s%s", reason, df_str_empty(message) ? "" : ": ", message ? message : "");
    if (df_check_alloc(text, err) < 0 ||
        (outcome == DF_OUTCOME_FAILED && set_error_state(task, reason, message, err) < 0))
        return -1;
    return add_phase(task, phase_word(outcome, reason), text, now_us, DF_LIMIT_PHASE_HISTORY, err);
}

int df_task_set_conditions(cJSON *task, enum df_outcome outcome, const char *reason,
                           const char *message, int64_t now_us, struct df_err *err)
{
    if (df_set_conditions(task, outcome, reason, message, now_us, err) < 0)
        return -1;
    if (outcome != DF_OUTCOME_NONE)
        return note_end(task, outcome, reason, message, now_us, err);
    return add_phase(task, reason, message, now_us, DF_LIMIT_PHASE_HISTORY - 1, err);
}
