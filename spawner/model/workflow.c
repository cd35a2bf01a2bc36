#include "spawner/model/workflow.h"

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

/* These parameters could replace values that the system sets, or change which program runs. */
const char *df_workflow_parameter_fault(const char *name)
{
    static const char *const taken[] = {"TARGET_RESOURCE", "HOME", "TMPDIR", "PATH"};
    bool is_taken = df_starts_with(name, "LD_");
    for (size_t i = 0; i < DF_ARRAY_SIZE(taken); i++)
        is_taken = is_taken || df_streq(name, taken[i]);
    if (is_taken)
        return "is refused: it is set by the system";
    return df_is_env_name(name) ? NULL : "is not the name of an environment variable";
}

static void rule_parameters(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *p = value->child; p; p = p->next) {
        const struct df_path here = {path, p->string, 0};
        const char *why = df_workflow_parameter_fault(p->string);
        if (why)
            df_fault(f, &here, "%s", why);
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

static const struct df_field workflow[] = {
    STRING("workflowId", 253),
    STRING("version", 64),
    STRING("executionBundle", 512, .rule = df_rule_image),
    MAP("parameters", &parameter, .max = DF_LIMIT_ENVIRONMENT, .rule = rule_parameters),
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

void df_workflow_check(const cJSON *task, const struct df_path *root, struct df_faults *f)
{
    static const char *const replaced[][2] = {{"image", "executionBundle"},
                                              {"serviceAccountName", "serviceAccountName"},
                                              {"resources", "resources"}};
    const struct df_path spec = {root, "spec", 0}, placement = {&spec, "placement", 0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(replaced); i++) {
        const struct df_path here = {&placement, replaced[i][0], 0};
        if (df_json_at(df_json_at(task, "spec.placement"), replaced[i][0]))
            df_fault(f, &here, "is not allowed for a workflow: use spec.workflow.%s",
                     replaced[i][1]);
    }
}
