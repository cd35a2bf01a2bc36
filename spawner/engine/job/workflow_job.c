/* The Job of a workflow: labels, environment and volumes, then the object. */
#include "spawner/engine/job/workflow_job.h"

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "spawner/engine/job/job_object.h"
#include "spawner/engine/placement/placement.h"
#include "spawner/model/engine_kinds.h"
#include "spawner/model/placement.h"

#define LABEL_ENGINE "kubernaut.ai/execution-engine"

/* Turns literal JSON in the source into a string. */
#define JSON(...) #__VA_ARGS__

/* clang-format off */
/* The failure policy ignores a pod that was evicted or killed, and Kubernetes replaces it.
 * df_workflow_status.out_of_pods limits how often. */
static const char job_text[] = JSON({
    "apiVersion": "batch/v1", "kind": "Job",
    "metadata": {},
    "spec": {
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "Ignore",
             "onExitCodes": {"containerName": "workflow", "operator": "In", "values": [137]}}
        ]},
        "template": {
            "metadata": {},
            "spec": {
                "restartPolicy": "Never",
                "enableServiceLinks": false,
                "securityContext": {"runAsNonRoot": true,
                                    "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "workflow",
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                        "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}
                    }
                }]
            }
        }
    }
});
/* clang-format on */

/* ---- labels ---- */

/* On the Job and on its pod. */
static int put_shared_labels(cJSON *metadata, const struct df_workflow *w, struct df_err *err)
{
    if (df_workflow_put_label(metadata, LABEL_ENGINE, df_engine_kinds[DF_ENGINE_JOB].name, err) <
            0 ||
        df_workflow_put_label(metadata, DF_LABEL_STEP_UID, w->uid, err) < 0 ||
        df_workflow_put_label(metadata, DF_LABEL_NAME, DF_MADE_NAME, err) < 0)
        return -1;
    return df_workflow_put_label(metadata, DF_LABEL_MANAGED_BY, DF_MADE_MANAGED_BY, err);
}

static int put_labels(cJSON *job, const struct df_workflow *w, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(job, "metadata");
    if (df_workflow_put_labels(metadata, w, err) < 0)
        return -1;
    return put_shared_labels(metadata, w, err);
}

static int put_pod_labels(cJSON *pod_template, const struct df_workflow *w, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(pod_template, "metadata");
    if (df_workflow_put_label(metadata, DF_LABEL_WORKFLOW_EXECUTION, w->name, err) < 0)
        return -1;
    return put_shared_labels(metadata, w, err);
}

/* ---- environment ---- */

static int add_env(cJSON *env, const char *name, const char *value, struct df_err *err)
{
    cJSON *entry = cJSON_CreateObject();
    if (df_json_append(env, entry, err) < 0)
        return -1;
    return df_json_put(entry, err, DF_STR("name", name), DF_STR("value", value));
}

static int put_env(cJSON *container, const struct df_workflow *w, struct df_err *err)
{
    DF_JSON cJSON *parameters = NULL;
    cJSON *env = df_json_array_at(container, "env");
    if (df_workflow_valid_parameters(w, DF_PARAMETERS_ENVIRONMENT, &parameters, err) < 0 ||
        add_env(env, "TARGET_RESOURCE", w->target, err) < 0)
        return -1;
    for (const cJSON *p = df_workflow_next_parameter(parameters, NULL); p;
         p = df_workflow_next_parameter(parameters, p->string))
        if (add_env(env, p->string, p->valuestring, err) < 0)
            return -1;
    if (add_env(env, "HOME", "/tmp", err) < 0)
        return -1;
    return add_env(env, "TMPDIR", "/tmp", err);
}

/* ---- volumes ---- */

struct dependency {
    const char *prefix; /* of the volume's name */
    const char *source, *member;
    const char *base; /* of the mount path */
};

static int add_mount(cJSON *container, const char *volume, const char *path, bool read_only,
                     struct df_err *err)
{
    cJSON *mount = cJSON_CreateObject();
    if (df_json_append(df_json_array_at(container, "volumeMounts"), mount, err) < 0 ||
        df_json_put(mount, err, DF_STR("name", volume), DF_STR("mountPath", path)) < 0)
        return -1;
    return read_only ? df_json_add_bool(mount, "readOnly", true, err) : 0;
}

/* The name of a volume must be a DNS label; that of a Secret may be longer and have dots. */
static int volume_name(const struct dependency *d, const char *name, char ret[64],
                       struct df_err *err)
{
    char hash[DF_SHA256_HEX];
    int n = snprintf(ret, 64, "%s-%s", d->prefix, name);
    if (n < 64 && df_is_dns_label(ret))
        return 0;
    if (df_sha256_hex(name, strlen(name), hash, err) < 0)
        return -1;
    (void)snprintf(ret, 64, "%s-%.16s", d->prefix, hash);
    return 0;
}

static int put_dependency(cJSON *spec, const struct dependency *d, const char *name,
                          struct df_err *err)
{
    char volume[64], path[320];
    if (!name || !df_is_dns_subdomain(name))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "\"%.64s\" is not the name of a %s",
                              name ? name : "", d->source);
    if (volume_name(d, name, volume, err) < 0)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/%s", d->base, name);
    cJSON *v = cJSON_CreateObject();
    if (df_json_append(df_json_array_at(spec, "volumes"), v, err) < 0 ||
        df_json_add_str(v, "name", volume, err) < 0 ||
        df_json_add_str(df_json_object_at(v, d->source), d->member, name, err) < 0)
        return -1;
    return add_mount(df_json_array_at(spec, "containers")->child, volume, path, true, err);
}

static int put_volumes(cJSON *spec, const struct df_workflow *w, struct df_err *err)
{
    static const struct dependency secret = {"secret", "secret", "secretName",
                                             "/run/kubernaut/secrets"};
    static const struct dependency config_map = {"configmap", "configMap", "name",
                                                 "/run/kubernaut/configmaps"};
    cJSON *container = df_json_array_at(spec, "containers")->child, *tmp = cJSON_CreateObject();
    for (const cJSON *s = w->secrets ? w->secrets->child : NULL; s; s = s->next)
        if (put_dependency(spec, &secret, df_json_str(s, "name"), err) < 0)
            return cJSON_Delete(tmp), -1;
    for (const cJSON *c = w->config_maps ? w->config_maps->child : NULL; c; c = c->next)
        if (put_dependency(spec, &config_map, df_json_str(c, "name"), err) < 0)
            return cJSON_Delete(tmp), -1;
    if (df_json_append(df_json_array_at(spec, "volumes"), tmp, err) < 0 ||
        df_json_add_str(tmp, "name", "tmp", err) < 0)
        return -1;
    return df_check_alloc(df_json_object_at(tmp, "emptyDir"), err) < 0
               ? -1
               : add_mount(container, "tmp", "/tmp", false, err);
}

/* ---- the object ---- */

static int put_spec(cJSON *pod_template, const struct df_workflow *w, struct df_err *err)
{
    cJSON *spec = df_json_object_at(pod_template, "spec");
    cJSON *container = df_json_array_at(spec, "containers")->child;
    if (df_str_empty(w->image))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "spec.workflow.executionBundle: no image is configured for the "
                              "runners, so a workflow must name one");
    if (w->resources &&
        df_json_add(container, "resources", cJSON_Duplicate(w->resources, true), err) < 0)
        return -1;
    if (df_json_add_str(spec, "serviceAccountName", w->service_account, err) < 0 ||
        df_json_add_str(container, "image", w->image, err) < 0 || put_env(container, w, err) < 0)
        return -1;
    return put_volumes(spec, w, err);
}

static int put_numbers(cJSON *job_spec, const struct df_workflow *w, struct df_err *err)
{
    return df_json_put(job_spec, err, DF_NUM("ttlSecondsAfterFinished", DF_WORKFLOW_TTL_SECONDS),
                       DF_NUM("activeDeadlineSeconds", w->deadline_seconds));
}

static int put_name(cJSON *job, const struct df_workflow *w, struct df_err *err)
{
    char name[21];
    cJSON *metadata = df_json_object_at(job, "metadata");
    if (df_workflow_name(w->target, name, err) < 0)
        return -1;
    return df_json_put(metadata, err, DF_STR("name", name), DF_STR("namespace", w->namespace));
}

/* Our labels are written last, so that no placement can change the owner of the pod. */
static int build_pod(cJSON *job_spec, const struct df_workflow *w, cJSON **ret, struct df_err *err)
{
    const struct df_placement_target target = {DF_WORKFLOW_CONTAINER, false};
    DF_JSON cJSON *pod_template = cJSON_DetachItemFromObjectCaseSensitive(job_spec, "template");
    if (put_spec(pod_template, w, err) < 0 ||
        (w->placement && df_placement_apply(w->placement, &target, &pod_template, err) < 0) ||
        put_pod_labels(pod_template, w, err) < 0)
        return -1;
    if (!df_streq(df_json_str(pod_template, "spec.restartPolicy"), "Never"))
        return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement",
                              "podTemplate.spec.restartPolicy: must be Never");
    if (df_never_check_pod(w->never, NULL, pod_template, err) < 0)
        return -1;
    *ret = DF_TAKE(pod_template);
    return 0;
}

int df_workflow_job_build(const struct df_workflow *w, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    cJSON *pod_template = NULL;
    if (df_json_parse(job_text, strlen(job_text), &job, err) < 0)
        return -1;
    cJSON *job_spec = df_json_object_at(job, "spec");
    if (put_name(job, w, err) < 0 || put_labels(job, w, err) < 0 ||
        put_numbers(job_spec, w, err) < 0 || build_pod(job_spec, w, &pod_template, err) < 0 ||
        df_json_add(job_spec, "template", pod_template, err) < 0)
        return -1;
    *ret = DF_TAKE(job);
    return 0;
}
