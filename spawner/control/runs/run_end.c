#include "spawner/control/runs/run_end.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/model/labels.h"

static const char *outcome_of(const char *phase)
{
    return df_streq(phase, "Succeeded") ? "done"
           : df_streq(phase, "Failed")  ? "failed"
                                        : "canceled";
}

/* {executor, runAction, reason, commit, exitCode, changes} of what is known. */
static int add_facts(cJSON *entry, const cJSON *run, const cJSON *latest, struct df_err *err)
{
    const cJSON *changes = df_json_at(run, "status.applySummary");
    const cJSON *exit_code = df_json_at(latest, "status.exitCode");
    if (df_json_put(entry, err, DF_STR("runUid", df_json_str(run, "metadata.uid")),
                    DF_STR("executor", df_json_str(run, "spec.executorRef.name")),
                    DF_STR("runAction", df_json_str(run, "spec.action")),
                    DF_STR("reason", df_json_str(run, "status.reason")),
                    DF_STR("commit", df_json_str(run, "status.source.commit"))) < 0)
        return -1;
    if (exit_code && df_json_add(entry, "exitCode", cJSON_Duplicate(exit_code, false), err) < 0)
        return -1;
    return changes ? df_json_add(entry, "changes", cJSON_Duplicate(changes, true), err) : 0;
}

static int make_entry(const cJSON *run, const cJSON *latest, cJSON **ret, struct df_err *err)
{
    const char *by = df_json_str(run, "spec.requestedBy");
    DF_JSON cJSON *entry = df_json_object(
        DF_TIME("at", df_real_us()), DF_STR("actor", by ? by : "dayfly"),
        DF_STR("role", df_json_str(run, "spec.requestedRole")), DF_STR("action", "end"),
        DF_STR("kind", "Run"), DF_STR("name", df_json_str(run, "metadata.name")),
        DF_STR("outcome", outcome_of(df_run_phase(run))),
        DF_STR("detail", df_json_text(run, "status.message")));
    if (df_check_alloc(entry, err) < 0 || add_facts(entry, run, latest, err) < 0)
        return -1;
    *ret = DF_TAKE(entry);
    return 0;
}

/* A pass that could not write the run has said its end already. */
static int is_noted(struct df_spawner *s, const cJSON *run, bool *ret, struct df_err *err)
{
    struct df_audit_filter f = {
        .words = {[DF_AUDIT_NAME] = df_json_str(run, "metadata.name"), [DF_AUDIT_ACTION] = "end"}};
    DF_JSON cJSON *found = NULL;
    const cJSON *entry;
    if (df_audit_filter_set(&f, "since", df_json_str(run, "metadata.creationTimestamp"), err) < 0 ||
        df_store_audit_list(s->store, &f, NULL, 10, &found, NULL, err) < 0)
        return -1;
    *ret = false;
    cJSON_ArrayForEach (entry, found)
        *ret = *ret || df_streq(df_json_str(entry, "runUid"), df_json_str(run, "metadata.uid"));
    return 0;
}

static void note_end(struct df_spawner *s, const cJSON *run, const cJSON *latest)
{
    struct df_err err = {0};
    DF_JSON cJSON *entry = NULL;
    bool noted = false;
    if (is_noted(s, run, &noted, &err) < 0 ||
        (!noted &&
         (make_entry(run, latest, &entry, &err) < 0 || df_store_audit(s->store, entry, &err) < 0)))
        df_error("audit trail: the end of run %s: %s", df_json_str(run, "metadata.name"),
                 err.message);
}

int df_run_end(struct df_spawner *s, cJSON *run, const struct df_run_verdict *v,
               const cJSON *latest, int64_t now_us, struct df_err *err)
{
    cJSON *status = df_json_object_at(run, "status");
    bool succeeded = df_streq(v->phase, "Succeeded");
    char at[DF_TIME_LEN];
    if (df_json_put(status, err, DF_STR("reason", v->reason), DF_STR("message", v->message),
                    DF_STR("finishedAt", df_time_format(now_us, at))) < 0 ||
        df_label_set(run, DF_LABEL_UNFINISHED, NULL, err) < 0 ||
        df_label_set(run, DF_LABEL_QUEUE, NULL, err) < 0 ||
        df_set_conditions(run, succeeded ? DF_OUTCOME_SUCCEEDED : DF_OUTCOME_FAILED, v->reason,
                          v->message, now_us, err) < 0)
        return -1;
    note_end(s, run, latest);
    return 0;
}
