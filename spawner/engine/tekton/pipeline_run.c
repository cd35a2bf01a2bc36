/*
 * The PipelineRun of a workflow. In this order: parameters, workspaces, the pod template, the
 * object. The placement is first applied to a pod as Kubernetes knows it, so that its rules are the
 * same as for a Job. Then the parts of that pod go where Tekton has a place for them; a part for
 * which it has none is refused.
 */
#include "spawner/engine/tekton/pipeline_run.h"

#include "common/base/limits.h"
#include "spawner/model/labels.h"
#include "spawner/model/placement.h"

#define TARGET_PARAMETER "TARGET_RESOURCE"

/* Turns literal JSON in the source into a string. */
#define JSON(...) #__VA_ARGS__

/* clang-format off */
static const char run_text[] = JSON({
    "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
    "spec": {"pipelineRef": {"resolver": "bundles"}}
});

/* The container stands for the containers of all tasks. */
static const char pod_text[] = JSON({
    "metadata": {},
    "spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "workflow"}]
    }
});
/* clang-format on */

/* ---- parameters ---- */

static int add_param(cJSON *list, const char *name, const char *value, struct df_err *err)
{
    cJSON *param = df_json_object(DF_STR("name", name), DF_STR("value", value));
    return df_json_append(list, param, err);
}

/* The bundle has a Pipeline of this name. */
static int put_pipeline(cJSON *spec, const struct df_workflow *w, struct df_err *err)
{
    cJSON *params = df_json_array_at(df_json_object_at(spec, "pipelineRef"), "params");
    if (df_str_empty(w->image))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "spec.workflow.executionBundle: a workflow of the engine tekton must "
                              "name the bundle that has its Pipeline");
    if (add_param(params, "bundle", w->image, err) < 0 ||
        add_param(params, "name", "workflow", err) < 0)
        return -1;
    return add_param(params, "kind", "pipeline", err);
}

static int put_params(cJSON *spec, const struct df_workflow *w, struct df_err *err)
{
    DF_JSON cJSON *parameters = NULL;
    cJSON *params = df_json_array_at(spec, "params");
    if (df_workflow_valid_parameters(w, DF_PARAMETERS_PIPELINE, &parameters, err) < 0)
        return -1;
    for (const cJSON *p = df_workflow_next_parameter(parameters, NULL); p;
         p = df_workflow_next_parameter(parameters, p->string))
        if (add_param(params, p->string, p->valuestring, err) < 0)
            return -1;
    return add_param(params, TARGET_PARAMETER, w->target, err);
}

/* ---- workspaces ---- */

struct dependency {
    const char *prefix; /* of the workspace, which the Pipeline declares by this name */
    const char *source, *member;
};

static int add_workspace(cJSON *spec, const struct dependency *d, const char *name,
                         struct df_err *err)
{
    DF_FREE char *workspace = df_strf("%s-%s", d->prefix, name ? name : "");
    cJSON *one = cJSON_CreateObject();
    if (df_json_append(df_json_array_at(spec, "workspaces"), one, err) < 0)
        return -1;
    if (!name || !df_is_dns_subdomain(name))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "\"%.64s\" is not the name of a %s, so no Pipeline has a workspace "
                              "for it",
                              name ? name : "", d->source);
    if (df_json_put(one, err, DF_STR_ALLOC("name", workspace)) < 0)
        return -1;
    return df_json_add_str(df_json_object_at(one, d->source), d->member, name, err);
}

static int put_workspaces(cJSON *spec, const struct df_workflow *w, struct df_err *err)
{
    static const struct dependency secret = {"secret", "secret", "secretName"};
    static const struct dependency config_map = {"configmap", "configMap", "name"};
    struct df_faults f = {0};
    const struct df_path root = {0}, path = {&root, "workspaces", 0};
    for (const cJSON *s = w->secrets ? w->secrets->child : NULL; s; s = s->next)
        if (add_workspace(spec, &secret, df_json_str(s, "name"), err) < 0)
            return -1;
    for (const cJSON *c = w->config_maps ? w->config_maps->child : NULL; c; c = c->next)
        if (add_workspace(spec, &config_map, df_json_str(c, "name"), err) < 0)
            return -1;
    df_never_find(w->never, NULL, df_json_at(spec, "workspaces"), &path, &f);
    return df_faults_fail(&f, DF_REASON_PLACEMENT_DENIED, "the pods of this step: ", err);
}

/* ---- the pod template ---- */

static bool is_one_of(const char *const *words, const char *word)
{
    while (*words && !df_streq(*words, word))
        words++;
    return *words;
}

static int fail_member(const char *where, const char *name, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement",
                          "%s%.64s: Tekton's pod template has no place for it; leave it out, or "
                          "set it in the tasks of the bundle",
                          where, name);
}

/* Fails for the first member whose name is not among these. where: of the members. */
static int check_members(const cJSON *object, const char *const *names, const char *where,
                         struct df_err *err)
{
    for (const cJSON *m = object ? object->child : NULL; m; m = m->next)
        if (!is_one_of(names, m->string))
            return fail_member(where, m->string, err);
    return 0;
}

const char *const df_pipeline_placement[] = {"nodeSelector",
                                             "tolerations",
                                             "affinity",
                                             "topologySpreadConstraints",
                                             "priorityClassName",
                                             "runtimeClassName",
                                             "imagePullSecrets",
                                             "dnsPolicy",
                                             "dnsConfig",
                                             "env",
                                             "labels",
                                             "annotations",
                                             "podAnnotations",
                                             "podSecurityContext",
                                             NULL};

/* Keys of which nothing is lost. podPerStep is about runners, and podTemplate is looked at when it
 * is applied. */
static int check_placement(const cJSON *placement, struct df_err *err)
{
    for (const cJSON *key = placement ? placement->child : NULL; key; key = key->next)
        if (!df_streq(key->string, "podTemplate") && !df_streq(key->string, "podPerStep") &&
            !is_one_of(df_pipeline_placement, key->string))
            return fail_member("placement.", key->string, err);
    return 0;
}

/* What the patches of podTemplate have made of the pod. */
static int check_pod(const cJSON *pod, struct df_err *err)
{
    static const char *const of_pod[] = {"metadata", "spec", NULL};
    static const char *const of_metadata[] = {"labels", "annotations", NULL};
    static const char *const of_container[] = {"name", "env", NULL};
    static const char *const of_spec[] = {"nodeSelector",
                                          "tolerations",
                                          "affinity",
                                          "securityContext",
                                          "volumes",
                                          "runtimeClassName",
                                          "automountServiceAccountToken",
                                          "dnsPolicy",
                                          "dnsConfig",
                                          "enableServiceLinks",
                                          "priorityClassName",
                                          "schedulerName",
                                          "imagePullSecrets",
                                          "hostAliases",
                                          "hostNetwork",
                                          "topologySpreadConstraints",
                                          "serviceAccountName",
                                          "containers",
                                          NULL};
    const cJSON *containers = df_json_at(pod, "spec.containers");
    if (check_members(pod, of_pod, "podTemplate.", err) < 0 ||
        check_members(df_json_at(pod, "metadata"), of_metadata, "podTemplate.metadata.", err) < 0 ||
        check_members(df_json_at(pod, "spec"), of_spec, "podTemplate.spec.", err) < 0)
        return -1;
    if (cJSON_GetArraySize(containers) != 1 ||
        !df_streq(df_json_str(containers->child, "name"), "workflow"))
        return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement",
                              "podTemplate.spec.containers: only \"workflow\", which stands for "
                              "the containers of all tasks, can be changed");
    return check_members(containers->child, of_container, "podTemplate.spec.containers[].", err);
}

/* Tekton copies labels and annotations of the run to its pods, so those of a placement are the
 * run's. They must not say whose run it is. */
static int check_keys(const cJSON *map, struct df_err *err)
{
    for (const cJSON *m = map ? map->child : NULL; m; m = m->next)
        if (df_starts_with(m->string, "kubernaut.ai/") || df_starts_with(m->string, "dayfly.dev/"))
            return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement",
                                  "placement: the label or annotation %.64s is set by the system",
                                  m->string);
    return 0;
}

static int add_annotations(cJSON *metadata, const cJSON *more, struct df_err *err)
{
    cJSON *annotations = df_json_object_at(metadata, "annotations");
    for (const cJSON *m = more ? more->child : NULL; m; m = m->next)
        if (df_json_set(annotations, m->string, cJSON_Duplicate(m, true), err) < 0)
            return -1;
    return check_keys(annotations, err);
}

static int build_pod(const struct df_workflow *w, cJSON **ret, struct df_err *err)
{
    const struct df_placement_target target = {"workflow", false};
    DF_JSON cJSON *pod = NULL;
    if (df_json_parse(pod_text, strlen(pod_text), &pod, err) < 0 ||
        df_json_add_str(df_json_object_at(pod, "spec"), "serviceAccountName", w->service_account,
                        err) < 0 ||
        check_placement(w->placement, err) < 0 ||
        (w->placement && df_placement_apply(w->placement, &target, &pod, err) < 0) ||
        check_pod(pod, err) < 0 || df_never_check_pod(w->never, NULL, pod, err) < 0)
        return -1;
    *ret = DF_TAKE(pod);
    return 0;
}

static int move_member(cJSON *from, const char *name, cJSON *to, struct df_err *err)
{
    cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(from, name);
    return member ? df_json_add(to, name, member, err) : 0;
}

/* Spreads the pod over the run: its account and the rest of its spec go into taskRunTemplate, its
 * labels and annotations become those of the run. */
static int put_pod(cJSON *run, cJSON *pod, struct df_err *err)
{
    cJSON *task_template = df_json_object_at(df_json_object_at(run, "spec"), "taskRunTemplate");
    cJSON *pod_spec = df_json_object_at(pod, "spec");
    DF_JSON cJSON *containers = cJSON_DetachItemFromObjectCaseSensitive(pod_spec, "containers");
    if (move_member(pod_spec, "serviceAccountName", task_template, err) < 0 ||
        move_member(containers->child, "env", pod_spec, err) < 0 ||
        df_json_add(task_template, "podTemplate",
                    cJSON_DetachItemFromObjectCaseSensitive(pod, "spec"), err) < 0)
        return -1;
    return move_member(pod, "metadata", run, err);
}

/* ---- the object ---- */

/* Written last, so that no placement changes whose run it is. */
static int put_metadata(cJSON *run, const struct df_workflow *w, struct df_err *err)
{
    char name[21];
    cJSON *metadata = df_json_object_at(run, "metadata");
    if (check_keys(df_json_at(metadata, "labels"), err) < 0 ||
        add_annotations(metadata, df_json_at(w->placement, "annotations"), err) < 0 ||
        df_workflow_name(w->target, name, err) < 0 ||
        df_json_put(metadata, err, DF_STR("name", name), DF_STR("namespace", w->namespace)) < 0 ||
        df_workflow_put_labels(metadata, w, err) < 0 ||
        df_workflow_put_label(metadata, DF_LABEL_STEP_UID, w->uid, err) < 0 ||
        df_workflow_put_label(metadata, DF_LABEL_NAME, DF_MADE_NAME, err) < 0)
        return -1;
    return df_workflow_put_label(metadata, DF_LABEL_MANAGED_BY, DF_MADE_MANAGED_BY, err);
}

/* A duration as Go reads it. Without it Tekton's default of an hour would cut a longer workflow. */
static int put_timeout(cJSON *spec, const struct df_workflow *w, struct df_err *err)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%llds", (long long)w->deadline_seconds);
    return df_json_add_str(df_json_object_at(spec, "timeouts"), "pipeline", text, err);
}

int df_pipeline_run_build(const struct df_workflow *w, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *run = NULL, *pod = NULL;
    if (w->resources && w->resources->child)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "spec.workflow.resources: Tekton takes resources of single tasks "
                              "only: leave it out, and set computeResources in the tasks of the "
                              "bundle");
    if (df_json_parse(run_text, strlen(run_text), &run, err) < 0)
        return -1;
    cJSON *spec = df_json_object_at(run, "spec");
    if (put_pipeline(spec, w, err) < 0 || put_params(spec, w, err) < 0 ||
        put_workspaces(spec, w, err) < 0 || put_timeout(spec, w, err) < 0 ||
        build_pod(w, &pod, err) < 0 || put_pod(run, pod, err) < 0 || put_metadata(run, w, err) < 0)
        return -1;
    *ret = DF_TAKE(run);
    return 0;
}
