/* The reference to a Job that the document of its step keeps. */
#include "spawner/engine/job/job_engine.h"
#include "spawner/engine/workflow/workflow.h"

int df_job_ref(const cJSON *job, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    const char *account = df_json_str(job, "spec.template.spec.serviceAccountName");
    const struct df_workflow_object object = {
        .kind = df_workflow_job.name,
        .name = df_kube_name(job),
        .name_space = df_json_str(job, "metadata.namespace"),
        .uid = df_kube_uid(job),
        .service_account = account ? account : "default",
    };
    if (df_workflow_ref(&object, &ref, err) < 0)
        return -1;
    if (df_kube_label(job, DF_LABEL_STANDBY) &&
        df_json_add_str(ref, "hostUid", df_kube_label(job, DF_LABEL_STEP_UID), err) < 0)
        return -1;
    *ret = DF_TAKE(ref);
    return 0;
}
