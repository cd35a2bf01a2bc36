/*
 * The spec of a workflow: its rows, and the rules that they cannot express, most of which depend on
 * the engine. Read the rows first, then df_workflow_check() at the end.
 */
#include "spawner/model/workflow.h"

#include <ctype.h>

#include "common/base/parse.h"
#include "spawner/model/model.h"
#include "spawner/model/placement.h"
#include "spawner/model/placement_rules.h"
#include "spawner/model/rows.h"
#include "spawner/model/task_kinds.h"

bool df_task_is_workflow(const cJSON *task)
{
    return df_task_kind(task)->id == DF_TASK_WORKFLOW;
}

int df_task_refuse_step(const cJSON *task, struct df_err *err)
{
    static const char *const asked[][2] = {{"plan", "dry-run"}, {"plan-destroy", "destroy"}};
    const char *action = df_json_str(task, "spec.action"), *run = "provision";
    for (size_t i = 0; i < DF_ARRAY_SIZE(asked); i++)
        run = df_streq(action, asked[i][0]) ? asked[i][1] : run;
    return df_fail_reason(
        err, DF_ERR_USER, "InvalidDocument",
        "spec.action: only " DF_ACTION_WORKFLOW
        " can be asked for; \"%.32s\" is a step of a Run, which the service makes: "
        "ask for a Run with action: %s instead",
        action ? action : "", run);
}

/* ---- rules ---- */

/* <namespace>/<kind>/<name> or <kind>/<name> */
static void rule_target(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int parts = 1, empty = -1;
    const char *begin = value->valuestring;
    for (const char *p = begin;; p++) {
        if (*p && *p != '/')
            continue;
        if (p == begin && empty < 0)
            empty = parts - 1;
        if (!*p)
            break;
        begin = p + 1;
        parts++;
    }
    if (parts != 2 && parts != 3)
        df_fault(f, path, "must be in format <namespace>/<kind>/<name> or <kind>/<name>");
    else if (empty >= 0)
        df_fault(f, path, "has empty part at position %d", empty);
}

/* Could this variable replace a value that the system sets, change which program runs, or lead a
 * client, with the account's token, to another API server? */
static bool is_of_system(const char *name)
{
    static const char *const taken[] = {"HOME", "TMPDIR", "PATH"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(taken); i++)
        if (df_streq(name, taken[i]))
            return true;
    return df_starts_with(name, "LD_") || df_starts_with(name, "KUBERNETES_");
}

static bool is_pipeline_name(const char *name)
{
    return (isalpha((unsigned char)*name) || *name == '_') &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")];
}

const char *df_workflow_parameter_fault(enum df_parameters as, const char *name)
{
    bool is_variable = as == DF_PARAMETERS_ENVIRONMENT;
    if (df_streq(name, "TARGET_RESOURCE") || (is_variable && is_of_system(name)))
        return "is refused: it is set by the system";
    if (as == DF_PARAMETERS_PIPELINE)
        return is_pipeline_name(name) ? NULL : "is not the name of a Pipeline's parameter";
    /* ansible_ssh_common_args and their like are commands of AWX's own machine. */
    if (as == DF_PARAMETERS_PLAYBOOK && df_starts_with(name, "ansible_"))
        return "is refused: variables of Ansible itself are the inventory's and the template's";
    if (df_is_env_name(name))
        return NULL;
    return is_variable ? "is not the name of an environment variable"
                       : "is not the name of a playbook's variable";
}

static void check_parameters(const struct df_engine_kind *kind, const cJSON *workflow,
                             const struct df_path *path, struct df_faults *f)
{
    const struct df_path parameters = {path, "parameters", 0};
    const cJSON *p, *all = df_json_at(workflow, "parameters");
    if (!cJSON_IsObject(all))
        return;
    cJSON_ArrayForEach (p, all) {
        const struct df_path here = {&parameters, p->string, 0};
        const char *why = df_workflow_parameter_fault(kind->parameters, p->string);
        if (why)
            df_fault(f, &here, "%s", why);
    }
}

/* "sha256:" and 64 hex digits */
static void rule_digest(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    static const char prefix[] = "sha256:";
    const char *hex = value->valuestring + strlen(prefix);
    if (!df_starts_with(value->valuestring, prefix) || strspn(hex, "0123456789abcdef") != 64 ||
        strlen(hex) != 64)
        df_fault(f, path, "must be sha256: and 64 lower-case hex digits");
}

/* Who names a digest wants that image and no other one, so the bundle must name it. */
static void check_digest(const cJSON *workflow, const struct df_path *path, struct df_faults *f)
{
    const char *digest = df_json_str(workflow, "executionBundleDigest");
    const char *bundle = df_json_str(workflow, "executionBundle");
    const char *named = bundle ? strchr(bundle, '@') : NULL;
    const struct df_path here = {path, "executionBundle", 0};
    if (digest && !df_streq(named ? named + 1 : NULL, digest))
        df_fault(f, &here, "must end with @%s, as executionBundleDigest says", digest);
}

/* The document is readable. */
static bool has_password(const char *url)
{
    const char *host = strstr(url, "://");
    size_t n = host ? strcspn(host + 3, "/@") : 0;
    return host && host[3 + n] == '@' && memchr(host + 3, ':', n);
}

static void check_bundle(const struct df_engine_kind *kind, const cJSON *workflow,
                         const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, "executionBundle", 0};
    const cJSON *bundle = cJSON_GetObjectItemCaseSensitive(workflow, "executionBundle");
    bool is_text = cJSON_IsString(bundle);
    if (is_text && kind->needs_config && has_password(bundle->valuestring))
        df_fault(f, &here, "must not contain a password: the document is readable");
    else if (is_text && !kind->needs_config)
        df_rule_image(bundle, &here, f);
    check_digest(workflow, path, f);
}

/* Without them the engine would refuse the workflow when it is its turn. */
static void check_config(const struct df_engine_kind *kind, const cJSON *workflow,
                         const struct df_path *path, struct df_faults *f)
{
    static const char *const needed[] = {"playbookPath", "jobTemplateName"};
    const struct df_path config = {path, "engineConfig", 0};
    for (size_t i = 0; kind->needs_config && i < DF_ARRAY_SIZE(needed); i++) {
        const struct df_path here = {&config, needed[i], 0};
        if (!df_json_str(df_json_at(workflow, "engineConfig"), needed[i]))
            df_fault(f, &here, "is required for the engine %s", kind->name);
    }
}

/* Each Secret and ConfigMap is mounted at a path with its name, so a name may occur only once. */
static void rule_names_once(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *a = value->child; a; a = a->next)
        for (const cJSON *b = value->child; b != a; b = b->next)
            if (df_streq(df_json_str(a, "name"), df_json_str(b, "name"))) {
                df_fault(f, path, "names %.64s twice", df_json_str(a, "name"));
                return;
            }
}

/* ---- rows ---- */

static const struct df_field parameter = {
    .type = DF_TYPE_STRING, .flags = DF_LINES, .max = DF_LIMIT_ENVIRONMENT_VALUE};
static const struct df_field declared = BOOL(NULL);
static const struct df_field object_ref[] = {
    STRING("name", 253, .flags = DF_REQUIRED, .rule = df_rule_subdomain), {0}};
static const struct df_field object_item = OBJECT(NULL, object_ref);
static const struct df_field dependencies[] = {
    LIST("secrets", &object_item, DF_LIMIT_REFERENCES, .rule = rule_names_once),
    LIST("configMaps", &object_item, DF_LIMIT_REFERENCES, .rule = rule_names_once),
    {0},
};

static const struct df_field engine_config[] = {
    STRING("playbookPath", 1024),
    STRING("jobTemplateName", 512),
    STRING("inventoryName", 512),
    {0},
};
static const struct df_field request_ref[] = {
    STRING("apiVersion", 253),
    STRING("kind", 63),
    STRING("name", 253, .rule = df_rule_subdomain),
    STRING("namespace", 63, .rule = df_rule_subdomain),
    {0},
};

static const struct df_field workflow[] = {
    STRING("workflowId", 253),
    STRING("version", 64),
    STRING("executionBundle", 512),
    STRING("executionBundleDigest", 71, .rule = rule_digest),
    OBJECT("engineConfig", engine_config),
    OBJECT("remediationRequestRef", request_ref),
    MAP("parameters", &parameter, .max = DF_LIMIT_ENVIRONMENT),
    MAP("declaredParameterNames", &declared, .max = DF_LIMIT_ENVIRONMENT),
    OBJECT("dependencies", dependencies),
    OBJECT("resources", df_resources_rows, .rule = df_rule_resources),
    STRING("serviceAccountName", 253, .rule = df_rule_subdomain),
    STRING("timesOutAt", 40, .rule = df_rule_time),
    {0},
};

static const char *const actions[] = {DF_ACTION_WORKFLOW, NULL};
const struct df_field df_workflow_rows[] = {
    WORD("action", actions, .flags = DF_REQUIRED),
    NAME("engine", .fallback = "\"job\""),
    STRING("targetResource", 512, .flags = DF_REQUIRED, .rule = rule_target),
    OBJECT("workflow", workflow, .flags = DF_REQUIRED),
    WHOLE("timeoutSeconds", 1, DF_WEEK_SECONDS, .fallback = "1800"),
    WHOLE("pendingSeconds", 1, DF_WEEK_SECONDS),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS(),
    DF_ROW_PRIORITY(),
    {0},
};

static void check_placement(const cJSON *task, const struct df_path *spec, struct df_faults *f)
{
    static const char *const replaced[][2] = {{"image", "executionBundle"},
                                              {"serviceAccountName", "serviceAccountName"},
                                              {"resources", "resources"}};
    const struct df_path placement = {spec, "placement", 0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(replaced); i++) {
        const struct df_path here = {&placement, replaced[i][0], 0};
        if (df_json_at(df_json_at(task, "spec.placement"), replaced[i][0]))
            df_fault(f, &here, "is not allowed for a workflow: use spec.workflow.%s",
                     replaced[i][1]);
    }
}

void df_workflow_check(const cJSON *task, const struct df_path *root, struct df_faults *f)
{
    const struct df_path spec = {root, "spec", 0}, body = {&spec, "workflow", 0};
    const struct df_engine_kind *kind = df_engine_kind_of(df_json_str(task, "spec.engine"));
    const cJSON *w = df_json_at(task, "spec.workflow");
    kind = kind ? kind : &df_engine_kinds[DF_ENGINE_JOB]; /* an unknown one is refused later */
    check_placement(task, &spec, f);
    check_parameters(kind, w, &body, f);
    check_bundle(kind, w, &body, f);
    check_config(kind, w, &body, f);
}
