#include "spawner/model/ephemeral.h"
#include "spawner/model/rows.h"
#include "spawner/model/runner_environment.h"
#include "spawner/model/task_kinds.h"
#include "spawner/terrakube/terrakube.h"

/* ---- a new step ---- */

char *df_terrakube_task_name(const struct df_terrakube_payload *p)
{
    return df_strf("tk-%s-%s", p->job, p->step);
}

static int add_job(cJSON *spec, const struct df_terrakube_payload *p, struct df_err *err)
{
    cJSON *to = df_json_object_at(spec, "terrakube");
    return df_json_put(to, err, DF_STR("organization", p->organization),
                       DF_STR("workspace", p->workspace), DF_STR("job", p->job),
                       DF_STR("step", p->step), DF_STR("type", df_json_str(p->document, "type")),
                       DF_STR("organizationName", df_json_str(p->environment, "organizationName")),
                       DF_STR("workspaceName", df_json_str(p->environment, "workspaceName")));
}

/* Those that Terrakube's API gives its own Jobs and pods; EPHEMERAL_CONFIG_LABELS cannot change
 * them. */
static int add_labels(cJSON *spec, const struct df_terrakube_payload *p, struct df_err *err)
{
    cJSON *labels = df_json_object_at(df_json_object_at(spec, "terrakube"), "labels");
    return df_json_put(labels, err, DF_STR("terrakube.io/organization", p->organization),
                       DF_STR("terrakube.io/workspace", p->workspace));
}

/* Of the workspace's variables only those that place the pod: others may be secret. */
static int add_keys(cJSON *spec, const struct df_terrakube_payload *p, struct df_err *err)
{
    const cJSON *variable;
    cJSON *list = df_json_array_at(spec, "environment");
    if (!list)
        return df_fail_oom(err);
    cJSON_ArrayForEach (variable, p->environment) {
        const char *value = cJSON_GetStringValue(variable);
        if (!value || !df_ephemeral_is_key(variable->string))
            continue;
        cJSON *entry = cJSON_CreateObject();
        if (df_json_append(list, entry, err) < 0 ||
            df_json_put(entry, err, DF_STR("name", variable->string), DF_STR("value", value)) < 0)
            return -1;
    }
    return 0;
}

int df_terrakube_task_spec(const struct df_terrakube_payload *p, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *spec = cJSON_CreateObject();
    DF_FREE char *target = df_strf("terrakube/%s", p->workspace ? p->workspace : p->job);
    if (df_json_put(spec, err, DF_STR("action", DF_ACTION_TERRAKUBE),
                    DF_STR_ALLOC("targetResource", target)) < 0 ||
        add_job(spec, p, err) < 0 || add_labels(spec, p, err) < 0 || add_keys(spec, p, err) < 0)
        return -1;
    *ret = DF_TAKE(spec);
    return 0;
}

/* ---- its placement ---- */

static const char *why_refused(const char *name)
{
    const char *why = df_runner_variable_refused(name, DF_SET_BY_WORKSPACE);
    if (!why && (df_terrakube_is_setting(name) || df_terrakube_is_platform_variable(name)))
        return "it is a setting of Terrakube's executor, which the operator gives";
    return why;
}

static void check_variables(const cJSON *placement, struct df_faults *f)
{
    const struct df_path root = {0}, path = {&root, "EPHEMERAL_JOB_ENV_VARS", 0};
    const cJSON *variable;
    cJSON_ArrayForEach (variable, df_json_at(placement, "env")) {
        const char *name = df_json_str(variable, "name");
        const char *why = why_refused(name);
        if (why)
            df_fault(f, &path, "%.64s is refused: %s", name, why);
    }
}

static bool is_at_or_below(const char *path, const char *directory)
{
    const char *rest = df_starts_with(path, directory) ? path + strlen(directory) : NULL;
    return rest && (!*rest || *rest == '/');
}

/* A claim is written by the workspace's own code: over these it would be the runner's next
 * program. */
static void check_mount(const char *mount, const char *key, struct df_faults *f)
{
    static const char *const taken[] = {"/usr",     "/bin",     "/sbin",    "/lib", "/lib64",
                                        "/etc/ssl", "/etc/ssh", "/etc/pki", "/work"};
    const struct df_path root = {0}, path = {&root, key, 0};
    bool is_taken = mount && (strstr(mount, "//") || strstr(mount, "/./") || /* "/./usr/bin" */
                              df_streq(mount, "/etc"));
    for (size_t i = 0; mount && i < DF_ARRAY_SIZE(taken); i++)
        is_taken = is_taken || is_at_or_below(mount, taken[i]);
    if (is_taken)
        df_fault(f, &path, "\"%.100s\" is refused: programs and files of the runner may be there",
                 mount);
}

int df_terrakube_placement(const cJSON *task, cJSON **ret, struct df_err *err)
{
    struct df_faults f = {0};
    const cJSON *mount;
    DF_JSON cJSON *placement = NULL;
    if (df_ephemeral_placement(df_json_at(task, "spec.environment"), &placement, err) < 0)
        return -1;
    check_variables(placement, &f);
    check_mount(df_json_str(placement, "pluginCache.mountPath"), "TF_PLUGIN_CACHE_DIR", &f);
    cJSON_ArrayForEach (mount, df_json_at(placement, "configMapMounts"))
        check_mount(df_json_str(mount, "mountPath"), "EPHEMERAL_CONFIG_MAP_MOUNT_PATH", &f);
    if (df_faults_fail(&f, "InvalidPlacement", "", err) < 0)
        return -1;
    *ret = DF_TAKE(placement);
    return 0;
}

void df_terrakube_task_payload(const cJSON *task, struct df_terrakube_payload *ret)
{
    const cJSON *job_of = df_json_at(task, "spec.terrakube");
    *ret = (struct df_terrakube_payload){.organization = df_json_str(job_of, "organization"),
                                         .workspace = df_json_str(job_of, "workspace"),
                                         .job = df_json_str(job_of, "job"),
                                         .step = df_json_str(job_of, "step")};
}
