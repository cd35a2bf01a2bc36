/*
 * Every write of a TaskAction that moves it on goes through here: it takes along the reference that
 * is held for the step, and new entries of its phase history are counted and logged after the write
 * is durable.
 */
#include "spawner/journal/transitions.h"

#include "common/base/clock.h"
#include "common/base/exit.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/model/model.h"

/* ---- metrics ---- */

static const char *known(const char *reason)
{
    return df_reason_is_known(reason) ? reason : "other"; /* a runner may say any word */
}

/* An end has the reason of its step, a lost try that in front of its message, all else none but its
 * phase. */
static const char *cause_of(const cJSON *task, const cJSON *entry, bool is_end, char buf[48])
{
    const char *phase = df_json_str(entry, "phase"), *message = df_json_str(entry, "message");
    if (is_end)
        return known(df_task_reason(task));
    if (!df_streq(phase, "RetryableFailure"))
        return phase;
    (void)snprintf(buf, 48, "%.*s", message ? (int)strcspn(message, ":") : 0, message);
    return known(buf);
}

static void count_transition(const cJSON *task, const cJSON *entry, bool is_end)
{
    char labels[128], buf[48];
    (void)snprintf(labels, sizeof(labels), "%s,%s", df_json_str(entry, "phase"),
                   cause_of(task, entry, is_end, buf));
    df_metric_add(df_metric_counter("dayfly_step_transitions_total",
                                    "Phases that steps came into, with the cause.", "phase,reason"),
                  labels, 1);
}

/* From its start, or from its making when it never had one. */
static double seconds_of(const cJSON *task, const char *end)
{
    int64_t begin_us = 0, end_us = 0;
    const cJSON *first = NULL, *entry;
    cJSON_ArrayForEach (entry, df_json_at(task, "status.timeline")) {
        if (!first || df_streq(df_json_str(entry, "name"), "created"))
            first = entry;
    }
    const char *begin = df_json_str(first, "at");
    if (!begin || !end || df_time_parse(begin, &begin_us, NULL) < 0 ||
        df_time_parse(end, &end_us, NULL) < 0 || end_us < begin_us)
        return 0;
    return (double)(end_us - begin_us) / 1e6;
}

static const char *result_of(const cJSON *task)
{
    /* Somebody wanted this end: it is no error, and no alert may ring for it. */
    if (df_task_phase(task) == DF_TASK_PHASE_ABORTED)
        return "canceled";
    if (df_task_succeeded(task))
        return "success";
    return df_json_int(task, "status.exitCode", 1) == DF_EXIT_PARTIAL ? "partial" : "failure";
}

static void measure_end(const cJSON *task, const char *action, const char *at)
{
    static const double bounds[] = {1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600};
    char labels[160];
    (void)snprintf(labels, sizeof(labels), "%.32s,%s", action, result_of(task));
    df_metric_observe(df_metric_histogram("dayfly_step_duration_seconds",
                                          "Time from a step's start to its end.", "action,result",
                                          bounds, DF_ARRAY_SIZE(bounds)),
                      labels, seconds_of(task, at));
    (void)snprintf(labels, sizeof(labels), "%.32s,%s,%.64s", action, result_of(task),
                   known(df_task_reason(task)));
    df_metric_add(
        df_metric_counter("dayfly_steps_ended_total", "Steps that ended.", "action,result,reason"),
        labels, 1);
}

static void measure(const cJSON *task, const cJSON *entry, bool is_last)
{
    const char *action = df_json_str(task, "spec.action");
    bool is_end = is_last && df_task_is_final(task);
    count_transition(task, entry, is_end);
    if (is_end && action)
        measure_end(task, action, df_json_str(entry, "occurredAt"));
}

/* ---- log ---- */

static void write_log(const cJSON *task, const cJSON *entry, bool is_last)
{
    const char *name = df_json_str(task, "metadata.name");
    const char *phase = df_json_str(entry, "phase"), *message = df_json_str(entry, "message");
    const char *colon = message ? ": " : "";
    bool is_end = is_last && df_task_is_final(task);
    if (is_end && !df_task_succeeded(task))
        df_warn("step %s failed: %s", name, message ? message : phase);
    else if (df_streq(phase, "RetryableFailure"))
        df_warn("step %s: a try was lost%s%s", name, colon, message ? message : "");
    else
        df_info("step %s: %s%s%s", name, phase, colon, message ? message : "");
}

/* ---- writing ---- */

static int history_size(const cJSON *task)
{
    return cJSON_GetArraySize(df_json_at(task, "status.phaseHistory"));
}

/* from: the first entry that is new. */
static void report_entries(const cJSON *task, int from)
{
    const cJSON *history = df_json_at(task, "status.phaseHistory");
    int n = cJSON_GetArraySize(history);
    for (int i = from; i < n; i++) {
        const cJSON *entry = cJSON_GetArrayItem(history, i);
        measure(task, entry, i == n - 1);
        write_log(task, entry, i == n - 1);
    }
}

struct observed {
    struct df_spawner *s;
    df_store_change change; /* NULL: writes the reference, if there is one */
    void *arg;
    int size;       /* of the history, before the change */
    bool takes_ref; /* the write has the reference that was in memory */
};

/* Sets status.engineRef to the reference of this attempt that nobody has written yet. *ret_due_us:
 * real time at which it is to be written; 0: there is none. */
static int add_ref(struct df_spawner *s, cJSON *task, int64_t *ret_due_us, struct df_err *err)
{
    cJSON *ref;
    if (df_memory_get_ref(&s->memory, task, &ref, ret_due_us, err) < 0)
        return -1;
    return ref ? df_json_set(df_json_object_at(task, "status"), "engineRef", ref, err) : 0;
}

static int observe_change(cJSON *task, void *arg, struct df_err *err)
{
    struct observed *o = arg;
    int64_t due_us;
    o->size = history_size(task);
    if (add_ref(o->s, task, &due_us, err) < 0)
        return -1;
    int result = o->change ? o->change(task, o->arg, err) : !due_us;
    o->takes_ref = due_us && result == 0;
    return result;
}

int df_task_modify(struct df_spawner *s, const char *name, df_store_change change, void *arg,
                   cJSON **ret, struct df_err *err)
{
    struct observed o = {.s = s, .change = change, .arg = arg};
    DF_JSON cJSON *task = NULL;
    if (df_store_modify(s->store, DF_KIND_TASK_ACTION, name, observe_change, &o, &task, err) < 0)
        return -1;
    if (o.takes_ref)
        df_memory_drop_ref(&s->memory, task);
    report_entries(task, o.size);
    if (ret)
        *ret = DF_TAKE(task);
    return 0;
}

int df_task_write_ref(struct df_spawner *s, const char *name, struct df_err *err)
{
    return df_task_modify(s, name, NULL, NULL, NULL, err);
}

/* Nobody has the reference in memory, but maybe it was written since the caller has read the
 * document. */
static int look_again(struct df_spawner *s, const cJSON **task, struct df_err *err)
{
    DF_SHARED const cJSON *now = NULL;
    if (df_json_at(*task, "status.engineRef") || !df_json_str(*task, "status.auth.claim"))
        return 0;
    if (df_store_look_for(s->store, DF_KIND_TASK_ACTION, df_json_str(*task, "metadata.name"), &now,
                          err) < 0)
        return -1;
    if (!df_streq(df_json_str(now, "metadata.uid"), df_json_str(*task, "metadata.uid")))
        return 0;
    df_shared_drop(*task);
    *task = DF_TAKE(now);
    return 0;
}

int df_task_show_ref(struct df_spawner *s, const cJSON **task, int64_t *ret_due_us,
                     struct df_err *err)
{
    DF_JSON cJSON *ref = NULL, *with = NULL;
    if (df_memory_get_ref(&s->memory, *task, &ref, ret_due_us, err) < 0)
        return -1;
    if (!ref)
        return look_again(s, task, err);
    with = df_shared_own(DF_TAKE(*task));
    if (df_check_alloc(with, err) < 0 ||
        df_json_set(df_json_object_at(with, "status"), "engineRef", DF_TAKE(ref), err) < 0)
        return -1;
    return df_check_alloc(*task = df_shared_new(DF_TAKE(with)), err);
}

int df_task_create(struct df_spawner *s, const cJSON *task, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *made = NULL;
    if (df_store_create(s->store, DF_KIND_TASK_ACTION, task, &made, err) < 0)
        return -1;
    report_entries(made, 0);
    if (ret)
        *ret = DF_TAKE(made);
    return 0;
}
