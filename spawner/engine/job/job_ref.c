/* The reference to a Job that the document of its step keeps. */
#include "spawner/engine/job/job_engine.h"

int df_job_ref(const cJSON *job, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *ref = cJSON_CreateObject();
    const char *account = df_json_str(job, "spec.template.spec.serviceAccountName");
    if (df_json_add_str(ref, "kind", "Job", err) < 0 ||
        df_json_add_str(ref, "name", df_kube_name(job), err) < 0 ||
        df_json_add_str(ref, "namespace", df_json_str(job, "metadata.namespace"), err) < 0 ||
        df_json_add_str(ref, "uid", df_kube_uid(job), err) < 0 ||
        df_json_add_str(ref, "serviceAccountName", account ? account : "default", err) < 0)
        return -1;
    if (df_kube_label(job, DF_LABEL_STANDBY) &&
        df_json_add_str(ref, "hostUid", df_kube_label(job, DF_LABEL_STEP_UID), err) < 0)
        return -1;
    *ret = DF_TAKE(ref);
    return 0;
}
