/* What comes next in the pod of a plan, for its runner (df_step_next() of steps.h). */
#include "spawner/model/shared_pod.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"

/* What the decision depends on. Owned; run and apply are NULL if they do not exist. */
struct view {
    cJSON *plan, *run, *apply;
};

static void free_view(struct view *v)
{
    cJSON_Delete(v->plan);
    cJSON_Delete(v->run);
    cJSON_Delete(v->apply);
}

static int find(struct df_spawner *s, enum df_kind kind, const char *name, cJSON **ret,
                struct df_err *err)
{
    return name ? df_store_find(s->store, kind, name, ret, err) : 0;
}

int df_step_next(struct df_spawner *s, const char *uid, const char *token, char **ret,
                 struct df_err *err)
{
    DF_CLEANUP(free_view) struct view v = {0};
    *ret = NULL;
    if (df_store_get_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &v.plan, err) < 0 ||
        df_step_check_token(v.plan, "step", token, err) < 0 ||
        find(s, DF_KIND_RUN, df_json_str(v.plan, "spec.runRef.name"), &v.run, err) < 0 ||
        find(s, DF_KIND_TASK_ACTION, df_shared_pod_guest(v.plan), &v.apply, err) < 0)
        return -1;
    switch (df_shared_pod_next(v.plan, v.run, v.apply)) {
    case DF_SHARED_POD_WAITS:
        return df_fail_reason(err, DF_ERR_RETRY, "NotDecidedYet",
                              "what follows this step is not decided yet");
    case DF_SHARED_POD_APPLY:
        *ret = strdup(df_json_str(v.apply, "metadata.uid"));
        return *ret ? 0 : df_fail_oom(err);
    case DF_SHARED_POD_ENDS:
    default:
        return 0;
    }
}
