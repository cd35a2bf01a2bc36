/*
 * The fields of docs/objects.md as tables, one row each (field.h). All code that handles fields
 * reads them. In this order: parts that rows share, the specs of Executor, Run and step, the whole
 * documents.
 */
#include "spawner/model/tables.h"

#include "common/base/limits.h"
#include "spawner/model/apply_window.h"
#include "spawner/model/integration.h"
#include "spawner/model/integration_spec.h"
#include "spawner/model/placement.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/model/rows.h"
#include "spawner/model/rules.h"
#include "spawner/model/state_command.h"
#include "spawner/model/task_kinds.h"
#include "spawner/model/workflow.h"

/* ---- parts ---- */

static const struct df_field name_ref[] = {NAME("name", .flags = DF_REQUIRED), {0}};

static const char *const runtimes[] = {"opentofu", "terraform", "platform", NULL};
static const struct df_field runtime[] = {
    WORD("name", runtimes),
    STRING("version", 128, .rule = df_rule_version),
    {0},
};

static const struct df_field source_secret[] = {
    NAME("name", .flags = DF_REQUIRED), BOOL("forModules"), {0}};
static const char *const source_kinds[] = {"directory", "git", "archive", NULL};
static const struct df_field source[] = {
    STRING("url", 2048, .flags = DF_REQUIRED),
    WORD("kind", source_kinds),
    STRING("tag", 255),
    STRING("branch", 255),
    STRING("commit", 64),
    {.name = "folder", .type = DF_TYPE_STRING, .max = 1024},
    BOOL("anyCommit"),
    BOOL("submodules"),
    STRING("sha256", 64, .rule = df_rule_sha256),
    OBJECT("secretRef", source_secret),
    {0},
};

static const struct df_field argument = STRING(NULL, 4096);
static const struct df_field variable_file = STRING(NULL, 1024, .rule = df_rule_variable_file);

static const struct df_field environment_entry[] = {
    STRING("name", 256, .flags = DF_REQUIRED),
    {.name = "value",
     .type = DF_TYPE_STRING,
     .flags = DF_REQUIRED | DF_LINES,
     .max = DF_LIMIT_ENVIRONMENT_VALUE},
    {0},
};
const struct df_field df_environment_item = OBJECT(NULL, environment_entry);

static const struct df_field secret_key = STRING(NULL, 256);
static const char *const secret_forms[] = {"variable", "env", "file", NULL};
static const struct df_field secret_entry[] = {
    NAME("name", .flags = DF_REQUIRED),
    LIST("keys", &secret_key, DF_LIMIT_VARIABLES, .min = 1),
    WORD("as", secret_forms),
    STRING("env", 256, .rule = df_rule_secret_variable),
    {0},
};
static const struct df_field secret_item = OBJECT(NULL, secret_entry);

static const struct df_field integration_entry[] = {
    NAME("name"),
    WORD("provider", df_integration_providers),
    OBJECT("secretRef", name_ref),
    {0},
};
static const struct df_field integration_item = OBJECT(NULL, integration_entry);

static const char *const storage_types[] = {"managed", "module", "s3",   "azurerm",
                                            "gcs",     "local",  "http", NULL};
static const struct df_field storage[] = {
    WORD("type", storage_types, .fallback = "\"managed\""),
    STRING("path", 1024),
    MAP("config", NULL, .max = 64),
    BOOL("overrideBackend"),
    {0},
};

static const struct df_field timeouts[] = {
    STRING("plan", 32, .rule = df_rule_duration),
    STRING("apply", 32, .rule = df_rule_duration),
    STRING("grace", 32, .rule = df_rule_duration),
    STRING("pending", 32, .rule = df_rule_duration),
    {0},
};

/* As the keys retention.* of the configuration, which it replaces for this executor. 0: all
 * stay. */
static const struct df_field retention[] = {
    WHOLE("runs", 0, 1000000),
    WHOLE("stateVersions", 0, 1000000),
    STRING("age", 32, .rule = df_rule_age),
    STRING("logs", 32, .rule = df_rule_age),
    {0},
};

static const char *const verdicts[] = {"approved", "discarded", NULL};
static const struct df_field decision[] = {
    WORD("verdict", verdicts, .flags = DF_REQUIRED),
    STRING("by", 256, .by = DF_BY_SERVICE),
    STRING("at", 40, .by = DF_BY_SERVICE, .rule = df_rule_time),
    STRING("reason", DF_LIMIT_REASON, .flags = DF_LINES),
    {0},
};
static const struct df_field cancel[] = {
    STRING("by", 256, .by = DF_BY_SERVICE),
    STRING("at", 40, .by = DF_BY_SERVICE, .rule = df_rule_time),
    STRING("reason", DF_LIMIT_REASON, .flags = DF_LINES),
    {0},
};

/* Only the service writes this field (steps/sealed.h); a request with it is refused. */
static void refuse_sealed(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    (void)value;
    df_fault(f, path, "belongs to the service; send the values as secrets with POST …/runs");
}

static const struct df_field sealed_name = STRING(NULL, 256);
static const struct df_field sealed[] = {
    STRING("id", 32),
    LIST("environment", &sealed_name, DF_LIMIT_ENVIRONMENT),
    LIST("variables", &sealed_name, DF_LIMIT_VARIABLES),
    LIST("files", &sealed_name, DF_LIMIT_REFERENCES),
    {0},
};

/* Rows of more than one kind. */
#define RUNTIME(...) OBJECT("runtime", runtime, .fallback = "{}", __VA_ARGS__)
#define SOURCE(...)                                                                                \
    OBJECT("source", source, .flags = DF_REQUIRED, .rule = df_rule_source, __VA_ARGS__)
#define VARIABLES(...)                                                                             \
    MAP("variables", NULL, .max = DF_LIMIT_VARIABLES, .rule = df_rule_variables, __VA_ARGS__)
#define VARIABLE_FILES(...) LIST("variableFiles", &variable_file, DF_LIMIT_ARGUMENTS, __VA_ARGS__)
#define ARGUMENTS(...)                                                                             \
    LIST("arguments", &argument, DF_LIMIT_ARGUMENTS, .rule = df_rule_arguments, __VA_ARGS__)
#define SECRETS(...)                                                                               \
    LIST("secrets", &secret_item, DF_LIMIT_REFERENCES, .rule = df_rule_secrets, __VA_ARGS__)
#define INTEGRATIONS(...)                                                                          \
    LIST("integrations", &integration_item, DF_LIMIT_REFERENCES, .rule = df_rule_integrations,     \
         __VA_ARGS__)
#define STORAGE(...)                                                                               \
    OBJECT("storage", storage, .fallback = "{}", .rule = df_rule_storage, __VA_ARGS__)
#define COMMAND(...)                                                                               \
    LIST("command", &argument, DF_LIMIT_ARGUMENTS, .min = 1, .rule = df_rule_state_command,        \
         __VA_ARGS__)

/* ---- specs ---- */

static const char *const approvals[] = {"required", "automatic", NULL};
static const struct df_field approver = STRING(NULL, DF_LIMIT_CALLER);
static const struct df_field approvers[] = {
    LIST("users", &approver, DF_LIMIT_APPROVERS, .min = 1),
    LIST("groups", &approver, DF_LIMIT_APPROVERS, .min = 1),
    {0},
};
static const char *const automatic_changes[] = {"create", "update", "import", "move", NULL};
static const struct df_field automatic_change = WORD(NULL, automatic_changes);
static const struct df_field resource_type = STRING(NULL, DF_LIMIT_CHANGED_TYPE);
static const struct df_field automatic_for[] = {
    LIST("changes", &automatic_change, DF_ARRAY_SIZE(automatic_changes) - 1, .min = 1,
         .flags = DF_REQUIRED),
    LIST("exceptTypes", &resource_type, DF_LIMIT_CHANGED_TYPES),
    {0},
};
const struct df_field df_executor_spec[] = {
    {.name = "description", .type = DF_TYPE_STRING, .flags = DF_LINES | DF_LIVE, .max = 4096},
    RUNTIME(),
    SOURCE(),
    VARIABLES(),
    VARIABLE_FILES(),
    ARGUMENTS(),
    DF_ROW_ENVIRONMENT(),
    SECRETS(),
    INTEGRATIONS(),
    STORAGE(),
    WORD("approval", approvals, .flags = DF_LIVE, .fallback = "\"required\""),
    OBJECT("automaticFor", automatic_for, .flags = DF_LIVE),
    BOOL("separateApprover", .flags = DF_LIVE),
    WHOLE("requiredApprovals", 1, DF_LIMIT_APPROVALS, .flags = DF_LIVE),
    WHOLE("destroyApprovals", 1, DF_LIMIT_APPROVALS, .flags = DF_LIVE),
    OBJECT("approvers", approvers, .flags = DF_LIVE, .min = 1),
    OBJECT("applyWindow", df_apply_window_rows, .flags = DF_LIVE, .rule = df_rule_apply_window),
    BOOL("replan", .flags = DF_LIVE),
    OBJECT("timeouts", timeouts),
    OBJECT("retention", retention, .flags = DF_LIVE),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS(),
    {0},
};

static const char *const run_roles[] = {"read", "write", "admin", NULL};
static const struct df_field executor_ref[] = {
    NAME("name", .flags = DF_REQUIRED), STRING("uid", 36), {0}};
/* The members of the executor's source that a dry-run may override (overrides.h). */
static const struct df_field run_source[] = {
    WORD("kind", source_kinds),
    STRING("tag", 255),
    STRING("branch", 255),
    STRING("commit", 64),
    STRING("folder", 1024),
    BOOL("submodules"),
    STRING("sha256", 64, .rule = df_rule_sha256),
    {0},
};
static const char *const module_runtimes[] = {"opentofu", "terraform", NULL};
static const struct df_field run_runtime[] = {
    WORD("name", module_runtimes),
    STRING("version", 128, .rule = df_rule_version),
    {0},
};
const struct df_field df_run_spec[] = {
    OBJECT("executorRef", executor_ref, .by = DF_BY_PATH, .flags = DF_REQUIRED | DF_TO_STEP),
    WORD("action", df_actions, .flags = DF_REQUIRED),
    OBJECT("source", run_source, .only = "dry-run"),
    OBJECT("runtime", run_runtime, .only = "dry-run"),
    VARIABLES(.flags = DF_TO_STEP),
    VARIABLE_FILES(.flags = DF_TO_STEP),
    ARGUMENTS(.flags = DF_TO_STEP),
    COMMAND(.flags = DF_TO_STEP, .only = "state"),
    OBJECT("moveTo", storage, .flags = DF_TO_STEP, .only = "state", .rule = df_rule_storage),
    BOOL("autoApprove"),
    STRING("requestedBy", 256, .by = DF_BY_SERVICE),
    WORD("requestedRole", run_roles, .by = DF_BY_SERVICE),
    NAME("replaces", .by = DF_BY_SERVICE),
    WHOLE("number", 1, INT32_MAX, .by = DF_BY_SERVICE),
    WHOLE("executorRevision", 1, INT32_MAX, .by = DF_BY_SERVICE),
    MAP("snapshot", NULL, .by = DF_BY_SERVICE),
    OBJECT("sealed", sealed, .by = DF_BY_SERVICE, .rule = refuse_sealed),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS(.flags = DF_TO_STEP),
    DF_ROW_PRIORITY(.flags = DF_TO_STEP),
    OBJECT("decision", decision, .by = DF_BY_VERB),
    OBJECT("cancel", cancel, .by = DF_BY_VERB),
    {0},
};

/* shared_pod.h */
static const struct df_field keeps_pod_for[] = {
    NAME("taskAction", .flags = DF_REQUIRED),
    WHOLE("timeoutSeconds", 1, DF_WEEK_SECONDS, .flags = DF_REQUIRED),
    {0},
};

/* Only the service creates steps. The purpose of a step is in the spec of its resource, so that
 * people can see it; the copies of the snapshot are not. */
const struct df_field df_task_spec[] = {
    WORD("action", df_step_actions, .flags = DF_REQUIRED | DF_TO_RUNNER),
    NAME("engine", .flags = DF_REQUIRED),
    OBJECT("runRef", name_ref, .flags = DF_REQUIRED),
    OBJECT("executorRef", executor_ref, .flags = DF_REQUIRED),
    STRING("targetResource", 256, .flags = DF_REQUIRED),
    NAME("planFrom"),
    BOOL("dryRun", .by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    BOOL("listsChanges", .by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    WHOLE("timeoutSeconds", 1, DF_WEEK_SECONDS, .flags = DF_TO_RUNNER),
    WHOLE("graceSeconds", 1, DF_WEEK_SECONDS, .by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    WHOLE("pendingSeconds", 1, DF_WEEK_SECONDS),
    LIST("policies", &df_policy_note, DF_LIMIT_POLICIES, .by = DF_BY_SERVICE),
    OBJECT("keepsPodFor", keeps_pod_for, .by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    RUNTIME(.by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    SOURCE(.by = DF_BY_SERVICE),
    VARIABLES(.by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    VARIABLE_FILES(.by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    ARGUMENTS(.by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    COMMAND(.flags = DF_TO_RUNNER),
    OBJECT("moveTo", storage, .rule = df_rule_storage),
    DF_ROW_ENVIRONMENT(.by = DF_BY_SERVICE),
    SECRETS(.by = DF_BY_SERVICE),
    INTEGRATIONS(.by = DF_BY_SERVICE),
    STORAGE(.by = DF_BY_SERVICE),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS(),
    DF_ROW_PRIORITY(),
    OBJECT("cancel", cancel, .by = DF_BY_VERB),
    {0},
};

/* Of a step of Terrakube (terrakube.h). */
static const struct df_field pod_label = {.type = DF_TYPE_STRING, .max = 63};
static const struct df_field terrakube_job[] = {
    STRING("organization", 64, .flags = DF_REQUIRED),
    STRING("workspace", 64),
    STRING("job", 20, .flags = DF_REQUIRED),
    STRING("step", 64, .flags = DF_REQUIRED),
    STRING("type", 64),
    MAP("labels", &pod_label, .max = 4),
    {.name = "organizationName", .type = DF_TYPE_STRING, .max = 256},
    {.name = "workspaceName", .type = DF_TYPE_STRING, .max = 256},
    {0},
};

static const char *const terrakube_actions[] = {DF_ACTION_TERRAKUBE, NULL};
const struct df_field df_terrakube_rows[] = {
    WORD("action", terrakube_actions, .flags = DF_REQUIRED | DF_TO_RUNNER),
    NAME("engine", .flags = DF_REQUIRED),
    STRING("targetResource", 256, .flags = DF_REQUIRED),
    OBJECT("terrakube", terrakube_job, .by = DF_BY_SERVICE),
    WHOLE("timeoutSeconds", 1, DF_WEEK_SECONDS, .flags = DF_TO_RUNNER),
    WHOLE("graceSeconds", 1, DF_WEEK_SECONDS, .by = DF_BY_SERVICE, .flags = DF_TO_RUNNER),
    WHOLE("pendingSeconds", 1, DF_WEEK_SECONDS),
    DF_ROW_ENVIRONMENT(.by = DF_BY_SERVICE),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS(),
    DF_ROW_PRIORITY(),
    {0},
};

/* Only the service writes revisions (revision.h). */
const struct df_field df_revision_spec[] = {
    OBJECT("executorRef", executor_ref, .flags = DF_REQUIRED),
    WHOLE("number", 1, INT32_MAX, .flags = DF_REQUIRED),
    MAP("executor", NULL, .by = DF_BY_SERVICE),
    {0},
};

/* ---- documents ---- */

static const struct df_field label_value = {.type = DF_TYPE_STRING, .max = 63};
static const struct df_field annotation_value = {
    .type = DF_TYPE_STRING, .flags = DF_LINES, .max = DF_LIMIT_ANNOTATION};
static const struct df_field metadata[] = {
    NAME("name", .flags = DF_REQUIRED | DF_FROZEN),
    NAME("namespace", .flags = DF_FROZEN, .fallback = "\"default\""),
    MAP("labels", &label_value, .max = DF_LIMIT_LABELS, .rule = df_rule_labels),
    MAP("annotations", &annotation_value, .max = DF_LIMIT_LABELS, .rule = df_rule_annotation_keys),
    STRING("resourceVersion", 64),
    {0},
};

static void refuse_status(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    (void)value;
    df_fault(f, path, "belongs to the service; leave it out");
}

static const char *const api_versions[] = {DF_API_VERSION, NULL};
#define HEADER(kind_name)                                                                          \
    WORD("apiVersion", api_versions, .fallback = "\"" DF_API_VERSION "\""),                        \
        WORD("kind", ((const char *const[]){kind_name, NULL}), .fallback = "\"" kind_name "\""),   \
        OBJECT("metadata", metadata, .flags = DF_REQUIRED)
#define STATUS                                                                                     \
    {                                                                                              \
        .name = "status", .rule = refuse_status                                                    \
    }

const struct df_field df_executor_rows[] = {
    HEADER("Executor"),
    OBJECT("spec", df_executor_spec, .flags = DF_REQUIRED, .rule = df_rule_executor_spec),
    STATUS,
    {0}};
const struct df_field df_run_rows[] = {
    HEADER("Run"), OBJECT("spec", df_run_spec, .flags = DF_REQUIRED), STATUS, {0}};
const struct df_field df_revision_rows[] = {
    HEADER("Revision"), OBJECT("spec", df_revision_spec, .flags = DF_REQUIRED), STATUS, {0}};
const struct df_field df_task_rows[] = {
    HEADER("TaskAction"), OBJECT("spec", df_task_spec, .flags = DF_REQUIRED), STATUS, {0}};
const struct df_field df_workflow_document[] = {
    HEADER("TaskAction"), OBJECT("spec", df_workflow_rows, .flags = DF_REQUIRED), STATUS, {0}};
const struct df_field df_terrakube_document[] = {
    HEADER("TaskAction"), OBJECT("spec", df_terrakube_rows, .flags = DF_REQUIRED), STATUS, {0}};
const struct df_field df_integration_document[] = {
    HEADER("Integration"),
    OBJECT("spec", df_integration_rows, .flags = DF_REQUIRED, .rule = df_rule_integration),
    STATUS,
    {0}};
