#include "spawner/model/shared_pod.h"

#include "spawner/model/labels.h"
#include "spawner/model/run.h"
#include "spawner/model/task_parts.h"

const char *df_shared_pod_host_of(const cJSON *ref)
{
    return df_json_str(ref, "hostUid");
}

const char *df_shared_pod_host(const cJSON *task)
{
    return df_shared_pod_host_of(df_json_at(task, "status.engineRef"));
}

const char *df_shared_pod_guest(const cJSON *plan)
{
    return df_json_str(plan, "spec.keepsPodFor.taskAction");
}

/* ---- join, leave ---- */

/* The Job's deadline was made for this timeout, and its pod has the grace period of the plan. */
static bool fits(const cJSON *apply, const cJSON *plan)
{
    return df_json_int(apply, "spec.timeoutSeconds", 0) <=
               df_json_int(plan, "spec.keepsPodFor.timeoutSeconds", 0) &&
           df_json_int(apply, "spec.graceSeconds", 0) == df_json_int(plan, "spec.graceSeconds", 0);
}

bool df_shared_pod_may_join(const cJSON *apply, const cJSON *plan)
{
    const char *name = df_json_str(apply, "metadata.name");
    if (!plan || !name || !df_streq(df_shared_pod_guest(plan), name) ||
        df_json_at(apply, "status.engineRef"))
        return false;
    return df_streq(df_json_str(apply, "spec.engine"), df_json_str(plan, "spec.engine")) &&
           df_task_succeeded(plan) && !df_doc_is_deleted(plan) &&
           df_label_has(plan, DF_LABEL_LIVE) && df_json_str(plan, "status.claimedBy.podUid") &&
           df_json_str(plan, "status.engineRef.uid") && !df_shared_pod_host(plan) &&
           fits(apply, plan);
}

int df_shared_pod_ref(const cJSON *plan, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *ref = cJSON_Duplicate(df_json_at(plan, "status.engineRef"), true);
    if (df_json_put(ref, err, DF_STR("hostUid", df_json_str(plan, "metadata.uid")),
                    DF_STR("podUid", df_json_str(plan, "status.claimedBy.podUid"))) < 0)
        return -1;
    *ret = DF_TAKE(ref);
    return 0;
}

bool df_shared_pod_is_of_plan(const cJSON *ref)
{
    return df_json_str(ref, "podUid") != NULL;
}

static void forget_time(cJSON *status, const char *name)
{
    cJSON *timeline = cJSON_GetObjectItemCaseSensitive(status, "timeline"), *entry, *found = NULL;
    cJSON_ArrayForEach (entry, timeline) {
        if (df_streq(df_json_str(entry, "name"), name))
            found = entry;
    }
    if (found)
        cJSON_Delete(cJSON_DetachItemViaPointer(timeline, found));
}

void df_shared_pod_leave(cJSON *apply)
{
    cJSON *status = cJSON_GetObjectItemCaseSensitive(apply, "status");
    if (!df_shared_pod_host(apply))
        return;
    cJSON_DeleteItemFromObjectCaseSensitive(status, "engineRef");
    forget_time(status, "created");
}

/* ---- what comes next ---- */

static bool is_of(const cJSON *apply, const cJSON *plan)
{
    const char *host = df_shared_pod_host(apply);
    return host && df_streq(host, df_json_str(plan, "metadata.uid"));
}

/* Has the apply begun elsewhere, or ended without a beginning? */
static bool is_out(const cJSON *apply)
{
    return df_task_is_final(apply) || df_task_is_canceled(apply) ||
           df_json_at(apply, "status.engineRef") || df_label_has(apply, DF_LABEL_LIVE);
}

static bool is_coming(const cJSON *run)
{
    return run && !df_run_is_final(run) && !df_json_at(run, "spec.cancel") &&
           !df_streq(df_run_phase(run), "WaitingApproval");
}

enum df_shared_pod_next df_shared_pod_next(const cJSON *plan, const cJSON *run, const cJSON *apply)
{
    bool has_work = df_task_succeeded(plan) && df_json_bool(plan, "status.hasChanges", false);
    if (!df_shared_pod_guest(plan) || !has_work)
        return DF_SHARED_POD_ENDS;
    if (apply && is_of(apply, plan))
        return df_label_has(apply, DF_LABEL_UNFINISHED) ? DF_SHARED_POD_APPLY : DF_SHARED_POD_ENDS;
    bool comes = apply ? !is_out(apply) : is_coming(run);
    return comes ? DF_SHARED_POD_WAITS : DF_SHARED_POD_ENDS;
}
