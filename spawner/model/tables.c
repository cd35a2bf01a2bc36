/*
 * docs/objects.md as tables. A field is a row; a test compares both.
 */
#include "spawner/model/tables.h"

#include "common/base/limits.h"
#include "spawner/model/integration.h"
#include "spawner/model/placement.h"
#include "spawner/model/rows.h"
#include "spawner/model/rules.h"
#include "spawner/model/workflow.h"

/* ---- parts ---- */

static const struct df_field name_ref[] = {NAME("name", .flags = DF_REQUIRED), {0}};

static const char *const runtimes[] = {"opentofu", "terraform", NULL};
static const struct df_field runtime[] = {
    WORD("name", runtimes, .fallback = "\"opentofu\""),
    STRING("version", 128, .rule = df_rule_version),
    {0},
};

static const char *const source_kinds[] = {"directory", "git", "archive", NULL};
static const struct df_field source[] = {
    STRING("url", 2048, .flags = DF_REQUIRED),
    WORD("kind", source_kinds),
    STRING("tag", 255),
    STRING("branch", 255),
    STRING("commit", 64),
    {.name = "folder", .type = DF_TYPE_STRING, .flags = DF_FROZEN, .max = 1024},
    BOOL("submodules"),
    STRING("sha256", 64, .rule = df_rule_sha256),
    OBJECT("secretRef", name_ref),
    {0},
};

static const struct df_field argument = STRING(NULL, 4096);

static const struct df_field environment_entry[] = {
    STRING("name", 256, .flags = DF_REQUIRED),
    {.name = "value",
     .type = DF_TYPE_STRING,
     .flags = DF_REQUIRED | DF_LINES,
     .max = DF_LIMIT_ENVIRONMENT_VALUE},
    {0},
};
const struct df_field df_environment_item = OBJECT(NULL, environment_entry);

static const struct df_field secret_key = STRING(NULL, 256, .rule = df_rule_identifier);
static const struct df_field secret_entry[] = {
    NAME("name", .flags = DF_REQUIRED),
    LIST("keys", &secret_key, DF_LIMIT_VARIABLES, .min = 1),
    {0},
};
static const struct df_field secret_item = OBJECT(NULL, secret_entry);

static const struct df_field integration_entry[] = {
    WORD("provider", df_integration_providers, .flags = DF_REQUIRED),
    OBJECT("secretRef", name_ref, .flags = DF_REQUIRED),
    {0},
};
static const struct df_field integration_item = OBJECT(NULL, integration_entry);

static const char *const storage_types[] = {"managed", "s3", "azurerm", "gcs", "local", NULL};
static const struct df_field storage[] = {
    WORD("type", storage_types, .fallback = "\"managed\""),
    STRING("path", 1024),
    MAP("config", NULL, .max = 64),
    {0},
};

static const struct df_field timeouts[] = {
    STRING("plan", 32, .rule = df_rule_duration),
    STRING("apply", 32, .rule = df_rule_duration),
    STRING("grace", 32, .rule = df_rule_duration),
    STRING("pending", 32, .rule = df_rule_duration),
    {0},
};

static const char *const verdicts[] = {"approved", "discarded", NULL};
static const struct df_field decision[] = {
    WORD("verdict", verdicts, .flags = DF_REQUIRED),
    STRING("by", 256),
    STRING("at", 40, .rule = df_rule_time),
    {0},
};
static const struct df_field cancel[] = {
    STRING("by", 256),
    STRING("at", 40, .rule = df_rule_time),
    STRING("reason", 1024, .flags = DF_LINES),
    {0},
};

/* Rows that an Executor has and a TaskAction gets a copy of. */
#define VARIABLES MAP("variables", NULL, .max = DF_LIMIT_VARIABLES, .rule = df_rule_variables)
#define ARGUMENTS LIST("arguments", &argument, DF_LIMIT_ARGUMENTS, .rule = df_rule_arguments)
#define SECRETS LIST("secrets", &secret_item, DF_LIMIT_REFERENCES, .rule = df_rule_secrets)
#define INTEGRATIONS                                                                               \
    LIST("integrations", &integration_item, DF_LIMIT_REFERENCES, .rule = df_rule_integrations)
#define SOURCE OBJECT("source", source, .flags = DF_REQUIRED, .rule = df_rule_source)

/* ---- specs ---- */

static const char *const approvals[] = {"required", "automatic", NULL};
static const struct df_field executor_spec[] = {
    {.name = "description", .type = DF_TYPE_STRING, .flags = DF_LINES, .max = 4096},
    OBJECT("runtime", runtime, .fallback = "{}"),
    SOURCE,
    VARIABLES,
    ARGUMENTS,
    DF_ROW_ENVIRONMENT,
    SECRETS,
    INTEGRATIONS,
    OBJECT("storage", storage, .fallback = "{}", .rule = df_rule_storage),
    WORD("approval", approvals, .fallback = "\"required\""),
    OBJECT("timeouts", timeouts),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS,
    {0},
};

static const char *const run_actions[] = {"provision", "dry-run", "destroy", NULL};
static const struct df_field executor_ref[] = {
    NAME("name", .flags = DF_REQUIRED), STRING("uid", 36), {0}};
static const struct df_field run_spec[] = {
    OBJECT("executorRef", executor_ref, .flags = DF_REQUIRED | DF_FROZEN),
    WORD("action", run_actions, .flags = DF_REQUIRED | DF_FROZEN),
    VARIABLES,
    ARGUMENTS,
    BOOL("autoApprove"),
    STRING("requestedBy", 256, .flags = DF_FROZEN),
    WHOLE("number", 1, INT32_MAX, .flags = DF_FROZEN),
    MAP("snapshot", NULL, .flags = DF_FROZEN),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS,
    DF_ROW_PRIORITY,
    OBJECT("decision", decision),
    OBJECT("cancel", cancel),
    {0},
};

static const char *const step_actions[] = {"plan", "plan-destroy", "apply", NULL};
static const struct df_field task_spec[] = {
    WORD("action", step_actions, .flags = DF_REQUIRED | DF_FROZEN),
    NAME("engine", .flags = DF_REQUIRED | DF_FROZEN),
    OBJECT("runRef", name_ref, .flags = DF_REQUIRED | DF_FROZEN),
    OBJECT("executorRef", executor_ref, .flags = DF_REQUIRED | DF_FROZEN),
    STRING("targetResource", 256, .flags = DF_REQUIRED | DF_FROZEN),
    NAME("planFrom", .flags = DF_FROZEN),
    WHOLE("timeoutSeconds", 1, DF_WEEK_SECONDS),
    WHOLE("graceSeconds", 1, DF_WEEK_SECONDS),
    WHOLE("pendingSeconds", 1, DF_WEEK_SECONDS),
    OBJECT("runtime", runtime, .fallback = "{}"),
    SOURCE,
    VARIABLES,
    ARGUMENTS,
    DF_ROW_ENVIRONMENT,
    SECRETS,
    INTEGRATIONS,
    OBJECT("storage", storage, .fallback = "{}", .rule = df_rule_storage),
    DF_ROW_PLACEMENT,
    DF_ROW_CLASS,
    DF_ROW_PRIORITY,
    OBJECT("cancel", cancel),
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

static const struct df_field executor_rows[] = {
    HEADER("Executor"), OBJECT("spec", executor_spec, .flags = DF_REQUIRED), STATUS, {0}};
static const struct df_field run_rows[] = {
    HEADER("Run"), OBJECT("spec", run_spec, .flags = DF_REQUIRED), STATUS, {0}};
static const struct df_field task_rows[] = {
    HEADER("TaskAction"), OBJECT("spec", task_spec, .flags = DF_REQUIRED), STATUS, {0}};
static const struct df_field workflow_rows[] = {
    HEADER("TaskAction"), OBJECT("spec", df_workflow_rows, .flags = DF_REQUIRED), STATUS, {0}};

const struct df_field *df_table(enum df_kind kind)
{
    static const struct df_field *const tables[DF_KIND_COUNT] = {executor_rows, run_rows,
                                                                 task_rows};
    return tables[kind];
}

const struct df_field *df_workflow_table(void)
{
    return workflow_rows;
}
