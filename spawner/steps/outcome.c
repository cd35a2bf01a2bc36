/*
 * outcome.c - first the members that progress reports and results share (df_outcome_merge()), then
 * the ends of a step. Read end_step(): every end writes exit code, reason, message and conditions
 * with it.
 */
#include "spawner/steps/outcome.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/changes/changes.h"
#include "spawner/model/automatic.h"
#include "spawner/model/policy.h"
#include "spawner/steps/unrecorded.h"

static int malformed(const char *name, const char *must_be, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "%s: must be %s", name, must_be);
}

/* ---- members of a report ---- */

/* Copies a string member from the report; an absent or null one changes nothing. */
static int merge_text(cJSON *to, const cJSON *report, const char *name, size_t max,
                      struct df_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(report, name);
    if (!item || cJSON_IsNull(item))
        return 0;
    if (!cJSON_IsString(item) || strlen(item->valuestring) > max)
        return malformed(name, "a short string", err);
    return df_json_set_str(to, name, item->valuestring, err);
}

struct text_member {
    const char *object;
    const char *name;
    size_t max;
};

static const struct text_member texts[] = {
    {"source", "commit", 64},
    {"source", "treeDigest", 64},
    {"tool", "name", 32},
    {"tool", "version", 64},
};

static int merge_texts(cJSON *status, const cJSON *report, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        const cJSON *from = df_json_at(report, texts[i].object);
        if (!from)
            continue;
        cJSON *to = df_json_object_at(status, texts[i].object);
        if (!to)
            return df_fail_oom(err);
        if (merge_text(to, from, texts[i].name, texts[i].max, err) < 0)
            return -1;
    }
    return merge_text(status, report, "lockFileSha256", 64, err);
}

static int merge_summary(cJSON *status, const cJSON *report, struct df_err *err)
{
    struct df_changes changes;
    const cJSON *from = df_json_at(report, "planSummary");
    if (!from)
        return 0;
    if (df_changes_read(from, &changes, NULL) < 0)
        return malformed("planSummary", "counts of resources", err);
    return df_changes_write(&changes, df_json_object_at(status, "planSummary"), err);
}

/* True for the entries of the timeline that the runner, not the spawner, reports. */
static bool is_runners(const char *name)
{
    static const char *const names[] = {"started", "sourced", "initialized", "executed", "stored"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (df_streq(name, names[i]))
            return true;
    return false;
}

static int merge_timeline(cJSON *task, const cJSON *report, struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(report, "timeline")) {
        const char *name = df_json_str(entry, "name"), *at = df_json_str(entry, "at");
        int64_t us;
        if (!is_runners(name))
            continue;
        if (!at || df_time_parse(at, &us, NULL) < 0)
            return malformed("timeline", "a list of names with times", err);
        if (df_task_add_time(task, name, us, err) < 0)
            return -1;
    }
    return 0;
}

/* Where dayfly does not store it, or moved it. An Executor's status.state is a word: the
 * definitions of custom resources know one type for the name. */
static int merge_state(cJSON *status, const cJSON *report, struct df_err *err)
{
    const cJSON *from = df_json_at(report, "state");
    double serial = df_json_num(from, "serial", 0);
    if (!from)
        return 0;
    if (!(serial >= 0 && serial <= 9007199254740991.0))
        return malformed("state.serial", "the serial of a state", err);
    cJSON *to = df_json_object_at(status, "tofuState");
    if (!to)
        return df_fail_oom(err);
    if (merge_text(to, from, "lineage", 128, err) < 0)
        return -1;
    return df_json_set(to, "serial", cJSON_CreateNumber((double)(int64_t)serial), err);
}

static bool has_time(const cJSON *report, const char *name)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(report, "timeline")) {
        if (df_streq(df_json_str(entry, "name"), name))
            return true;
    }
    return false;
}

static int merge_flag(cJSON *status, const cJSON *report, const char *name, struct df_err *err)
{
    const cJSON *flag = cJSON_GetObjectItemCaseSensitive(report, name);
    return cJSON_IsBool(flag) ? df_json_set(status, name, cJSON_Duplicate(flag, true), err) : 0;
}

int df_outcome_merge(cJSON *task, const cJSON *report, int64_t now_us, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    if (!status)
        return df_fail_oom(err);
    if (merge_flag(status, report, "hasChanges", err) < 0 ||
        merge_flag(status, report, "destroysAll", err) < 0 ||
        merge_flag(status, report, "leavesState", err) < 0)
        return -1;
    if (merge_texts(status, report, err) < 0 || merge_state(status, report, err) < 0 ||
        merge_summary(status, report, err) < 0 || merge_timeline(task, report, err) < 0)
        return -1;
    if (!has_time(report, "initialized"))
        return 0;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Executing", NULL, now_us, err);
}

/* ---- ends ---- */

int df_outcome_unrecorded(cJSON *task, const cJSON *unrecorded, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    if (!status)
        return df_fail_oom(err);
    return unrecorded ? df_json_set(status, "unrecorded", cJSON_Duplicate(unrecorded, true), err)
                      : 0;
}

/* Writes the message and a clause about objects that may be missing from the state. If both are too
 * long, the message is truncated, not the clause. */
static void add_clause(const cJSON *task, const char *message, char *to, size_t size)
{
    int64_t n = df_unrecorded_count(df_json_at(task, "status.unrecorded"));
    const char *run = df_json_str(task, "spec.runRef.name");
    const char *name = df_json_str(task, "metadata.name");
    char clause[192] = "";
    if (n)
        (void)snprintf(clause, sizeof(clause), "; %lld object%s %s: dayfly why %s%.63s",
                       (long long)n, n == 1 ? "" : "s",
                       df_storage_is_managed(task) ? "may exist that no state records"
                                                   : "begun, which the state may have or lack",
                       run ? "" : "taskaction/",
                       run    ? run
                       : name ? name
                              : "NAME");
    (void)snprintf(to, size, "%.*s%s", (int)(size - 1 - strlen(clause)), message, clause);
}

static int end_step(cJSON *task, int exit_code, const char *reason, const char *message,
                    int64_t now_us, struct df_err *err)
{
    char text[sizeof(((struct df_err *)NULL)->message)];
    cJSON *status = df_json_object_at(task, "status");
    enum df_outcome outcome = exit_code == 0 ? DF_OUTCOME_SUCCEEDED : DF_OUTCOME_FAILED;
    if (!status)
        return df_fail_oom(err);
    if (df_doc_is_deleted(task) && df_streq(reason, "Canceled"))
        reason = "Aborted";
    if (outcome == DF_OUTCOME_SUCCEEDED)
        cJSON_DeleteItemFromObjectCaseSensitive(status, "unrecorded");
    add_clause(task, message, text, sizeof(text));
    message = text;
    if (df_json_set(status, "exitCode", cJSON_CreateNumber(exit_code), err) < 0 ||
        df_json_set_str(status, "reason", reason, err) < 0 ||
        df_json_set_str(status, "message", message, err) < 0)
        return -1;
    return df_task_set_conditions(task, outcome, reason, message, now_us, err);
}

static bool is_reason(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n < sizeof(((struct df_err *)NULL)->reason) && *s >= 'A' && *s <= 'Z' &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == n;
}

/* Copies the members that an ordinary and an interrupted result share. */
static int take_result(cJSON *task, const cJSON *result, int64_t now_us, struct df_err *err)
{
    const cJSON *code = df_json_at(result, "exitCode");
    const char *reason = df_json_str(result, "reason");
    if (!cJSON_IsNumber(code) || !(code->valuedouble >= 0 && code->valuedouble <= 255))
        return malformed("exitCode", "a number from 0 to 255", err);
    if (!reason || !is_reason(reason))
        return malformed("reason", "a CamelCase word", err);
    bool is_stored = code->valuedouble == 0 && df_json_bool(result, "hasChanges", true);
    if (df_outcome_merge(task, result, now_us, err) < 0 ||
        df_policies_take(task, result, is_stored, err) < 0 ||
        df_automatic_take(task, result, err) < 0)
        return -1;
    return df_task_add_time(task, "reported", now_us, err);
}

int df_outcome_result(cJSON *task, const cJSON *result, int64_t now_us, struct df_err *err)
{
    const char *message = df_json_str(result, "message");
    if (take_result(task, result, now_us, err) < 0)
        return -1;
    return end_step(task, (int)df_json_int(result, "exitCode", 1), df_json_str(result, "reason"),
                    message ? message : "", now_us, err);
}

int df_outcome_interrupted(cJSON *task, const cJSON *result, int64_t now_us, struct df_err *err)
{
    char text[sizeof(((struct df_err *)NULL)->message)];
    const char *message = df_json_str(result, "message");
    cJSON *status = df_json_object_at(task, "status");
    if (!status)
        return df_fail_oom(err);
    if (df_json_at(status, "interrupted"))
        return 0;
    (void)snprintf(text, sizeof(text), "%s", message ? message : "");
    if (take_result(task, result, now_us, err) < 0)
        return -1;
    cJSON *said = df_json_object_at(status, "interrupted");
    if (!said)
        return df_fail_oom(err);
    if (df_json_add_num(said, "exitCode", df_json_num(result, "exitCode", 1), err) < 0 ||
        df_json_add_str(said, "message", text, err) < 0)
        return -1;
    return df_json_add_time(said, "at", now_us, err);
}

int df_outcome_fail(cJSON *task, const struct df_outcome_failure *f, int64_t now_us,
                    struct df_err *err)
{
    if (end_step(task, f->exit_code == 0 ? -1 : f->exit_code, f->reason, f->message, now_us, err) <
        0)
        return -1;
    if (f->fault == DF_FAULT_NONE)
        return 0;
    cJSON *error = df_json_object_at(df_json_object_at(task, "status"), "errorState");
    return df_json_set_str(error, "kind", df_fault_name(f->fault), err);
}

int df_outcome_succeed(cJSON *task, const char *reason, const char *message, int64_t now_us,
                       struct df_err *err)
{
    return end_step(task, 0, reason, message, now_us, err);
}
