/*
 * Builds the Job of a tofu step from a JSON literal. df_job_build() adds credentials and handoff,
 * names and numbers, and the placement.
 */
#include "spawner/engine/job/job_object.h"

#include "common/base/limits.h"
#include "spawner/engine/placement/placement.h"
#include "spawner/model/labels.h"

#define CA_ANNOTATION "dayfly.dev/ca"

enum { IDENTITY_SECONDS = 3600 };

/* Turns literal JSON in the source into a string. */
#define JSON(...) #__VA_ARGS__

/* clang-format off */
/* The part that all Jobs of steps have in common. There is one attempt and never a second pod:
 * - backoffLimit 0 and restartPolicy Never: Kubernetes never starts an apply again;
 * - podReplacementPolicy Failed: no second pod while the first one is still terminating.
 * The token is valid for 10 minutes, the shortest time that Kubernetes allows. It is used for the
 * claim only, and the kubelet renews it while the pod waits. The user is numeric, because
 * runAsNonRoot cannot be checked for a user name. */
static const char job_text[] = JSON({
    "apiVersion": "batch/v1", "kind": "Job",
    "metadata": {},
    "spec": {
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "template": {
            "metadata": {"annotations": {
                "kubectl.kubernetes.io/default-container": "runner",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "karpenter.sh/do-not-disrupt": "true"
            }},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
                    "fsGroup": 65532, "fsGroupChangePolicy": "OnRootMismatch",
                    "seccompProfile": {"type": "RuntimeDefault"}
                },
                "containers": [{
                    "name": "runner",
                    "args": ["step", "--handoff-file", "/run/dayfly/handoff/handoff.json",
                             "--work-dir", "/work"],
                    "workingDir": "/work",
                    "env": [{"name": "HOME", "value": "/work"}, {"name": "TMPDIR", "value": "/tmp"}],
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "securityContext": {
                        "runAsNonRoot": true, "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}
                    },
                    "volumeMounts": [
                        {"name": "dayfly-work", "mountPath": "/work"},
                        {"name": "dayfly-tmp", "mountPath": "/tmp"},
                        {"name": "dayfly-handoff", "mountPath": "/run/dayfly/handoff", "readOnly": true}
                    ]
                }],
                "volumes": [
                    {"name": "dayfly-work", "emptyDir": {}},
                    {"name": "dayfly-tmp", "emptyDir": {}},
                    {"name": "dayfly-handoff", "downwardAPI": {"items": [
                        {"path": "handoff.json",
                         "fieldRef": {"fieldPath": "metadata.annotations['dayfly.dev/handoff']"}}
                    ]}}
                ]
            }
        }
    }
});

static const char ca_item_text[] = JSON(
    {"path": "ca.pem", "fieldRef": {"fieldPath": "metadata.annotations['dayfly.dev/ca']"}});

static const char token_volume_text[] = JSON({"name": "dayfly-token", "projected": {"sources": [
    {"serviceAccountToken": {"expirationSeconds": 600, "path": "token"}}]}});
static const char token_mount_text[] = JSON(
    {"name": "dayfly-token", "mountPath": "/run/dayfly/token", "readOnly": true});

static const char identity_volume_text[] = JSON({"name": "dayfly-identity", "projected": {"sources": []}});
static const char identity_mount_text[] = JSON(
    {"name": "dayfly-identity", "mountPath": "/run/dayfly/identity", "readOnly": true});

/* 288 is 0440: fsGroup lets the runner's user read. */
/* clang-format on */

static int parse_text(const char *text, cJSON **ret, struct df_err *err)
{
    return df_json_parse(text, strlen(text), ret, err);
}

static int append_text(cJSON *list, const char *text, cJSON **ret_item, struct df_err *err)
{
    cJSON *item = NULL;
    if (parse_text(text, &item, err) < 0 || df_json_append(list, item, err) < 0)
        return -1;
    *ret_item = item;
    return 0;
}

static cJSON *pod_spec_of(cJSON *pod_template)
{
    return df_json_object_at(pod_template, "spec");
}

/* ---- credentials and handoff ---- */

/* Adds a volume and its mount in the runner's container. */
static int add_volume(cJSON *pod_template, const char *volume_text, const char *mount_text,
                      cJSON **ret_volume, struct df_err *err)
{
    cJSON *spec = pod_spec_of(pod_template), *mount = NULL;
    cJSON *container = df_json_array_at(spec, "containers")->child;
    if (append_text(df_json_array_at(container, "volumeMounts"), mount_text, &mount, err) < 0)
        return -1;
    return append_text(df_json_array_at(spec, "volumes"), volume_text, ret_volume, err);
}

static int add_token(cJSON *pod_template, const struct df_job_spec *spec, struct df_err *err)
{
    cJSON *volume = NULL;
    DF_FREE char *audience = df_strf("dayfly/%s", spec->uid);
    if (add_volume(pod_template, token_volume_text, token_mount_text, &volume, err) < 0)
        return -1;
    cJSON *sources = df_json_array_at(df_json_object_at(volume, "projected"), "sources");
    cJSON *token = df_json_object_at(sources->child, "serviceAccountToken");
    return df_json_put(token, err, DF_STR_ALLOC("audience", audience));
}

/* The kubelet renews these tokens as long as the pod runs. */
static int add_identity(cJSON *sources, const cJSON *identity, struct df_err *err)
{
    cJSON *source = cJSON_CreateObject();
    if (df_json_append(sources, source, err) < 0)
        return -1;
    cJSON *token = df_json_object_at(source, "serviceAccountToken");
    return df_json_put(token, err, DF_STR("path", df_json_str(identity, "name")),
                       DF_STR("audience", df_json_str(identity, "audience")),
                       DF_NUM("expirationSeconds", IDENTITY_SECONDS));
}

static int add_identities(cJSON *pod_template, const struct df_job_spec *spec, struct df_err *err)
{
    cJSON *volume = NULL;
    const cJSON *identity;
    if (!cJSON_GetArraySize(spec->identities))
        return 0;
    if (add_volume(pod_template, identity_volume_text, identity_mount_text, &volume, err) < 0)
        return -1;
    cJSON *sources = df_json_array_at(df_json_object_at(volume, "projected"), "sources");
    cJSON_ArrayForEach (identity, spec->identities) {
        if (add_identity(sources, identity, err) < 0)
            return -1;
    }
    return 0;
}

static cJSON *volume_named(cJSON *pod_template, const char *name)
{
    cJSON *volume;
    cJSON_ArrayForEach (volume, df_json_array_at(pod_spec_of(pod_template), "volumes"))
        if (df_streq(df_json_str(volume, "name"), name))
            return volume;
    return NULL;
}

/* Adds the file of the CA to the volume of the handoff. */
static int add_ca_file(cJSON *pod_template, struct df_err *err)
{
    cJSON *source = df_json_object_at(volume_named(pod_template, "dayfly-handoff"), "downwardAPI");
    cJSON *item = NULL;
    return append_text(df_json_array_at(source, "items"), ca_item_text, &item, err);
}

static char *handoff_text(const struct df_job_spec *spec)
{
    DF_JSON cJSON *handoff = cJSON_CreateObject();
    if (df_json_put(handoff, NULL, DF_STR(spec->standby ? "standby" : "uid", spec->uid),
                    DF_STR("server", spec->server_url), DF_STR("tokenFile", DF_JOB_TOKEN_FILE),
                    DF_STR("caFile", spec->ca_pem ? DF_JOB_CA_FILE : NULL)) < 0)
        return NULL;
    return df_json_print(handoff);
}

static int add_handoff(cJSON *pod_template, const struct df_job_spec *spec, struct df_err *err)
{
    if (spec->ca_pem && strlen(spec->ca_pem) > DF_LIMIT_CA_ANNOTATION)
        return df_fail(err, DF_ERR_LIMIT, "the CA for the pods is larger than %zu bytes",
                       DF_LIMIT_CA_ANNOTATION);
    if (spec->ca_pem && add_ca_file(pod_template, err) < 0)
        return -1;
    return add_token(pod_template, spec, err);
}

/* ---- names and numbers ---- */

static int put_labels(cJSON *metadata, const struct df_job_spec *spec, struct df_err *err)
{
    const struct {
        const char *key, *value;
    } labels[] = {
        {DF_LABEL_NAME, DF_MADE_NAME}, /* the NetworkPolicies select by these two */
        {DF_LABEL_MANAGED_BY, DF_MADE_MANAGED_BY},
        {DF_LABEL_STEP_UID, spec->uid},
        {DF_LABEL_RUN, spec->run},
        {DF_LABEL_EXECUTOR, spec->executor},
        {DF_LABEL_ACTION, spec->action},
        {DF_LABEL_STANDBY, spec->standby},
    };
    cJSON *map = df_json_object_at(metadata, "labels");
    const cJSON *more;
    if (!map)
        return df_fail_oom(err);
    cJSON_ArrayForEach (more, spec->labels) {
        if (df_json_set_str(map, more->string, more->valuestring, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(labels); i++)
        if (labels[i].value && df_json_set_str(map, labels[i].key, labels[i].value, err) < 0)
            return -1;
    return 0;
}

static int copy_map(cJSON *metadata, const char *name, const cJSON *from, struct df_err *err)
{
    cJSON *copy = from ? cJSON_Duplicate(from, true) : cJSON_CreateObject();
    return df_json_set(metadata, name, copy, err);
}

static int put_metadata(cJSON *job, const struct df_job_spec *spec, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(job, "metadata");
    const cJSON *annotations = df_json_at(spec->placement, "annotations");
    if (df_json_put(metadata, err, DF_STR("name", spec->name),
                    DF_STR("namespace", spec->namespace)) < 0 ||
        copy_map(metadata, "labels", df_json_at(spec->placement, "labels"), err) < 0 ||
        (annotations && copy_map(metadata, "annotations", annotations, err) < 0))
        return -1;
    return put_labels(metadata, spec, err);
}

/* Written after the placement, because no placement may change it. */
static int put_pod_metadata(cJSON *pod_template, const struct df_job_spec *spec, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(pod_template, "metadata");
    cJSON *annotations = df_json_object_at(metadata, "annotations");
    DF_FREE char *handoff = handoff_text(spec);
    if (df_json_put(annotations, err, DF_STR_ALLOC(DF_JOB_HANDOFF, handoff),
                    DF_STR(CA_ANNOTATION, spec->ca_pem)) < 0)
        return -1;
    return put_labels(metadata, spec, err);
}

/* How long a claimed step may take: its timeout; the grace period in which tofu stores the state;
 * twice the time in which the runner retries an upload to an unreachable spawner (an errored state,
 * then the result). */
static int64_t longest_seconds(const struct df_job_spec *spec, int64_t timeout_seconds)
{
    return timeout_seconds + spec->grace_seconds + 2 * DF_TIMEOUT_RESULT_SECONDS;
}

/* The Job's deadline ends a runner that does not end by itself: the Job controller then deletes the
 * pod and everything in it. The deadline counts from the start of the Job, so it is the sum of: the
 * wait for a node and the image; the step; a second step in this pod and the wait for it; the wait
 * of a standby runner; a margin. */
static int put_deadlines(cJSON *job, cJSON *pod_template, const struct df_job_spec *spec,
                         struct df_err *err)
{
    cJSON *job_spec = df_json_object_at(job, "spec");
    int64_t deadline = spec->pending_seconds + longest_seconds(spec, spec->timeout_seconds) +
                       DF_TIMEOUT_MARGIN_SECONDS;
    if (spec->apply_seconds)
        deadline += DF_TIMEOUT_PENDING_SECONDS + longest_seconds(spec, spec->apply_seconds);
    if (spec->standby)
        deadline += DF_STANDBY_LIFE_SECONDS;
    if (df_json_put(job_spec, err, DF_NUM("activeDeadlineSeconds", deadline),
                    DF_NUM("ttlSecondsAfterFinished", spec->ttl_seconds)) < 0)
        return -1;
    return df_json_add_num(pod_spec_of(pod_template), "terminationGracePeriodSeconds",
                           (double)spec->grace_seconds, err);
}

/* ---- the Job ---- */

static int refuse_placement(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement", "%s", why);
}

static const cJSON *find_container(const cJSON *pod_template)
{
    const cJSON *list = df_json_at(pod_template, "spec.containers");
    for (const cJSON *c = list ? list->child : NULL; c; c = c->next)
        if (df_streq(df_json_str(c, "name"), DF_JOB_CONTAINER))
            return c;
    return NULL;
}

/* A podTemplate may change nearly everything, but it must not make a step run twice or never. */
static int check_pod(const cJSON *pod_template, struct df_err *err)
{
    const cJSON *runner = find_container(pod_template);
    if (!runner)
        return refuse_placement(err,
                                "podTemplate: the container \"" DF_JOB_CONTAINER "\" must stay");
    if (!df_streq(df_json_str(pod_template, "spec.restartPolicy"), "Never"))
        return refuse_placement(
            err, "podTemplate.spec.restartPolicy: must be Never: a step is started once");
    if (df_str_empty(df_json_str(runner, "image")))
        return refuse_placement(err, "placement.image: no image is configured for the runner");
    return 0;
}

static int build_pod(cJSON *job, const struct df_job_spec *spec, cJSON **ret, struct df_err *err)
{
    const struct df_placement_target target = {DF_JOB_CONTAINER, spec->has_plugin_claim};
    DF_JSON cJSON *pod_template =
        cJSON_DetachItemFromObjectCaseSensitive(df_json_object_at(job, "spec"), "template");
    cJSON *container = df_json_array_at(pod_spec_of(pod_template), "containers")->child;
    if (df_json_add_str(container, "image", spec->image, err) < 0 ||
        add_handoff(pod_template, spec, err) < 0 || add_identities(pod_template, spec, err) < 0 ||
        put_deadlines(job, pod_template, spec, err) < 0 ||
        df_placement_apply(spec->placement, &target, &pod_template, err) < 0 ||
        put_pod_metadata(pod_template, spec, err) < 0 || check_pod(pod_template, err) < 0 ||
        df_never_check_pod(spec->never, spec->uid, pod_template, err) < 0)
        return -1;
    *ret = DF_TAKE(pod_template);
    return 0;
}

int df_job_build(const struct df_job_spec *spec, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    cJSON *pod_template = NULL;
    if (parse_text(job_text, &job, err) < 0 || put_metadata(job, spec, err) < 0 ||
        build_pod(job, spec, &pod_template, err) < 0 ||
        df_json_add(df_json_object_at(job, "spec"), "template", pod_template, err) < 0)
        return -1;
    *ret = DF_TAKE(job);
    return 0;
}
