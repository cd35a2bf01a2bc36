#include "spawner/api/log_kept.h"

#include "common/base/clock.h"
#include "spawner/model/labels.h"
#include "spawner/model/run.h"
#include "spawner/model/task_parts.h"
#include "spawner/requests/leftovers.h"
#include "spawner/steps/steps.h"

/* A runner that came so far had something to say; a workflow, if its output was read. */
static bool had_log(const cJSON *task)
{
    return df_task_timeline(task, "sourced", 0) || df_json_at(task, "status.logParts");
}

/* *ret: a reference to the newest of these steps that had a log and has none; or NULL, also if any
 * has one. */
static int find_removed(struct df_spawner *s, const struct df_log_steps *steps, const cJSON **ret,
                        struct df_err *err)
{
    DF_SHARED const cJSON *removed = NULL;
    for (size_t i = steps->first; i < steps->end; i++) {
        DF_SHARED const cJSON *task = NULL;
        int64_t size = 0;
        if (df_store_look_for(s->store, DF_KIND_TASK_ACTION, steps->names[i], &task, err) < 0)
            return -1;
        if (!task || (steps->run && !df_run_has_step(steps->run, task)))
            continue;
        if (df_step_log_size(s, df_json_str(task, "metadata.uid"), &size, err) < 0)
            return -1;
        if (size)
            return 0;
        if (df_task_is_final(task) && had_log(task)) {
            df_shared_drop(removed);
            removed = DF_TAKE(task);
        }
    }
    *ret = DF_TAKE(removed);
    return 0;
}

static int fail_removed(struct df_spawner *s, const char *name, const cJSON *task,
                        struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    const char *uid = df_json_str(task, "spec.executorRef.uid");
    if (uid)
        (void)df_store_look_by_uid(s->store, DF_KIND_EXECUTOR, uid, &executor, NULL);
    int64_t age_us = df_retained_of(s->config, executor).logs_us;
    int64_t now_us = df_real_us(), until_us = df_task_ended_at(task, now_us) + age_us;
    bool has_own = df_json_str(executor, "spec.retention.logs") != NULL;
    char time[DF_TIME_LEN];
    bool is_over = age_us && until_us <= now_us;
    if (!is_over && df_label_has(task, DF_LABEL_UNFINISHED)) /* tofu_clean() tries again */
        return df_fail_reason(
            err, DF_ERR_RETRY, "LogNotStored",
            "the log of %s is not stored yet: it is tried again until the storage "
            "takes it",
            name);
    if (!is_over)
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "LogRemoved",
                              "the log of %s is not stored any more: retention.logs was shorter "
                              "before, or the storage lost it",
                              name);
    (void)df_time_format(until_us, time);
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "LogRemoved",
                          "the log of %s was removed: %s keeps logs until %s", name,
                          has_own ? "spec.retention.logs of its executor"
                                  : "retention.logs of the service's configuration",
                          time);
}

int df_log_check_kept(struct df_spawner *s, const struct df_log_steps *steps, struct df_err *err)
{
    DF_SHARED const cJSON *removed = NULL;
    struct df_err why = {0};
    if (find_removed(s, steps, &removed, &why) < 0) {
        (void)df_err_pass(err, &why);
        return why.cls != DF_ERR_RETRY
                   ? -1
                   : df_err_wrap(err,
                                 "the log of %s cannot be read now: the storage does not answer",
                                 steps->owner);
    }
    return removed ? fail_removed(s, steps->owner, removed, err) : 0;
}
