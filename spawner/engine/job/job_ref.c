/* The reference to a Job that the document of its step keeps. */
#include "spawner/engine/job/job_engine.h"

int df_job_ref(const cJSON *job, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *ref = cJSON_CreateObject();
    const char *account = df_json_str(job, "spec.template.spec.serviceAccountName");
    if (df_json_put(ref, err, DF_STR("kind", "Job"), DF_STR("name", df_kube_name(job)),
                    DF_STR("namespace", df_json_str(job, "metadata.namespace")),
                    DF_STR("uid", df_kube_uid(job)),
                    DF_STR("serviceAccountName", account ? account : "default")) < 0)
        return -1;
    if (df_kube_label(job, DF_LABEL_STANDBY) &&
        df_json_add_str(ref, "hostUid", df_kube_label(job, DF_LABEL_STEP_UID), err) < 0)
        return -1;
    *ret = DF_TAKE(ref);
    return 0;
}
