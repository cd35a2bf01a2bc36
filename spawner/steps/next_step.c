/* What comes next in the pod of a plan, for the control loop and for the runner. */
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"

static int find(struct df_spawner *s, enum df_kind kind, const char *name, cJSON **ret,
                struct df_err *err)
{
    return name ? df_store_find(s->store, kind, name, ret, err) : 0;
}

int df_step_next_in_pod(struct df_spawner *s, const cJSON *plan, enum df_shared_pod_next *ret,
                        cJSON **ret_apply, struct df_err *err)
{
    DF_JSON cJSON *run = NULL, *apply = NULL;
    if (find(s, DF_KIND_RUN, df_json_str(plan, "spec.runRef.name"), &run, err) < 0 ||
        find(s, DF_KIND_TASK_ACTION, df_shared_pod_guest(plan), &apply, err) < 0)
        return -1;
    *ret = df_shared_pod_next(plan, run, apply);
    if (ret_apply)
        *ret_apply = DF_TAKE(apply);
    return 0;
}

int df_step_next(struct df_spawner *s, const char *uid, const char *token, char **ret,
                 struct df_err *err)
{
    DF_SHARED const cJSON *plan = NULL;
    DF_JSON cJSON *apply = NULL;
    enum df_shared_pod_next next;
    *ret = NULL;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &plan, err) < 0 ||
        df_step_check_token(plan, "step", token, err) < 0 ||
        df_step_next_in_pod(s, plan, &next, &apply, err) < 0)
        return -1;
    switch (next) {
    case DF_SHARED_POD_WAITS:
        return df_fail_reason(err, DF_ERR_RETRY, "NotDecidedYet",
                              "what follows this step is not decided yet");
    case DF_SHARED_POD_APPLY:
        *ret = strdup(df_json_str(apply, "metadata.uid"));
        return *ret ? 0 : df_fail_oom(err);
    case DF_SHARED_POD_ENDS:
    default:
        return 0;
    }
}
