/* Which object holds a target, whichever engine made it: the engines ask the API server. */
#include "common/base/log.h"
#include "spawner/engine/workflow/workflow.h"

static const struct df_kube_resource pipeline_runs = {"tekton.dev", "v1", "pipelineruns"};
const struct df_workflow_kind df_workflow_job = {"Job", &df_kube_jobs};
const struct df_workflow_kind df_workflow_pipeline_run = {"PipelineRun", &pipeline_runs};

/* ---- the object of a target ---- */

int df_workflow_read(struct df_kube *k, const struct df_workflow_kind *kind, const char *name_space,
                     const char *name, cJSON **ret, struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = kind->resource, .name_space = name_space, .name = name};
    struct df_err why = {0};
    *ret = NULL;
    if (df_kube_get(k, &at, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

bool df_workflow_is_unserved(const struct df_err *why)
{
    return df_streq(why->reason, "NotServed");
}

int df_workflow_fail_locked(const struct df_workflow_kind *kind, const char *name_space,
                            const char *name, const cJSON *object, struct df_err *err)
{
    char holder[300];
    df_workflow_describe_holder(kind->name, name_space, name, object, holder, sizeof(holder));
    return df_fail_reason(err, DF_ERR_CONFLICT, "TargetLocked", "%s", holder);
}

int df_workflow_check_free(struct df_kube *k, const struct df_workflow_kind *kind,
                           const char *name_space, const char *name, struct df_err *err)
{
    DF_JSON cJSON *object = NULL;
    struct df_err why = {0};
    if (df_workflow_read(k, kind, name_space, name, &object, &why) == 0)
        return object && !df_workflow_is_over(object)
                   ? df_workflow_fail_locked(kind, name_space, name, object, err)
                   : 0;
    if (why.cls != DF_ERR_DENIED && !df_workflow_is_unserved(&why))
        return df_err_pass(err, &why);
    df_debug("no %s %s/%s is looked for: %s", kind->name, name_space, name, why.message);
    return 0;
}

static int check_target(struct df_kube *k, const struct df_workflow_kind *kind,
                        const struct df_workflow_kind *other, const struct df_workflow *w,
                        const char *name, struct df_err *err)
{
    DF_JSON cJSON *own = NULL;
    if (df_workflow_read(k, kind, w->namespace, name, &own, err) < 0)
        return -1;
    if (df_workflow_clash(w, own, df_workflow_is_over(own)) == DF_WORKFLOW_CLASH_WAIT)
        return df_workflow_fail_locked(kind, w->namespace, name, own, err);
    return other ? df_workflow_check_free(k, other, w->namespace, name, err) : 0;
}

int df_workflow_find_lock(struct df_kube *k, const struct df_workflow_kind *kind,
                          const struct df_workflow_kind *other, const struct df_workflow *w,
                          const char *name, struct df_engine_observation *observed,
                          struct df_err *err)
{
    struct df_err why = {0};
    if (check_target(k, kind, other, w, name, &why) == 0)
        return 0;
    if (!df_streq(why.reason, "TargetLocked"))
        return df_err_pass(err, &why);
    df_copy(observed->reason, sizeof(observed->reason), why.reason);
    df_copy(observed->cause, sizeof(observed->cause), why.message);
    return 0;
}
