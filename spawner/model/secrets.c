/* The member `secrets` of a request for a run. It is not part of a document. */
#include "common/base/limits.h"
#include "spawner/model/model.h"
#include "spawner/model/rows.h"

static void check_file_names(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (const cJSON *m = value->child; m; m = m->next) {
        const char *name = m->string;
        bool ends = df_ends_with(name, ".tfvars") || df_ends_with(name, ".tfvars.json");
        if (*name == '.' || strlen(name) > 200 || name[strspn(name, good)] || !ends)
            df_fault(
                f, path,
                "\"%.64s\" is not the name of a file of variables (A-Z a-z 0-9 . _ -, ending in "
                ".tfvars or .tfvars.json)",
                name);
    }
}

static const struct df_field text = {
    .type = DF_TYPE_STRING, .flags = DF_LINES, .max = DF_LIMIT_ENVIRONMENT_VALUE};
static const struct df_field file = {
    .type = DF_TYPE_STRING, .flags = DF_LINES, .max = (int64_t)DF_LIMIT_RUN_SECRETS};
static const struct df_field plain_name = STRING(NULL, 256);
static const struct df_field rows[] = {
    MAP("environment", &text, .max = DF_LIMIT_ENVIRONMENT, .rule = df_rule_environment_names),
    MAP("variables", NULL, .max = DF_LIMIT_VARIABLES, .rule = df_rule_variables),
    MAP("files", &file, .max = DF_LIMIT_REFERENCES, .rule = check_file_names),
    {.name = DF_SEALED_CLI_CONFIG,
     .type = DF_TYPE_STRING,
     .flags = DF_LINES,
     .max = 4 * (int64_t)DF_LIMIT_CLI_FILE},
    LIST("plain", &plain_name, DF_LIMIT_ENVIRONMENT + DF_LIMIT_VARIABLES),
    {0},
};

int df_model_check_secrets(cJSON *secrets, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0}, path = {&root, "secrets", 0};
    if (!cJSON_IsObject(secrets))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "secrets: must be an object");
    df_schema_check(rows, secrets, NULL, &path, &f);
    return df_faults_fail(&f, "InvalidDocument", "invalid request: ", err);
}
