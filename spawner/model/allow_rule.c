/*
 * allow_rule.c - the lists of a rule with their defaults, and how a name is looked up in them.
 */
#include "spawner/model/allow_rule.h"

#include "common/base/nearest.h"
#include "spawner/model/placement.h"
#include "spawner/model/rows.h"
#include "spawner/model/workflow.h"

const char *const df_allow_lists[DF_ALLOW_LISTS] = {
    "fields",     "serviceAccounts", "images",          "secrets",
    "configMaps", "volumes",         "priorityClasses", "metadata",
};

const char *const df_volume_kinds[] = {
    "emptyDir", "persistentVolumeClaim", "secret", "configMap", "csi", "nfs", "image", NULL};

/* They decide how a pod is isolated. `*` in `fields` does not stand for them. */
static const char *const isolating[] = {"podTemplate", "podSecurityContext", "securityContext",
                                        "runtimeClassName"};

/* ---- defaults ---- */

#define MAX_DEFAULTS 6 /* names in a default list, and NULL */
#define TO_PLACE "resources", "nodeSelector", "tolerations", "labels"
/* Without csi and nfs: csi may bring a Secret of another store, nfs the files of any server. */
#define PLAIN_VOLUMES "emptyDir", "persistentVolumeClaim", "secret", "configMap", "image"
#define EVERYTHING                                                                                 \
    {                                                                                              \
        [DF_ALLOW_FIELDS] = {"*", "podTemplate", "podSecurityContext", "securityContext",          \
                             "runtimeClassName"},                                                  \
        [DF_ALLOW_ACCOUNTS] = {"*"}, [DF_ALLOW_IMAGES] = {"*"}, [DF_ALLOW_SECRETS] = {"*"},        \
        [DF_ALLOW_CONFIG_MAPS] = {"*"}, [DF_ALLOW_VOLUMES] = {"*"}, [DF_ALLOW_PRIORITIES] = {"*"}, \
        [DF_ALLOW_METADATA] = {"*"},                                                               \
    }

/* Stands for the configured one. */
static const char account_of_workflows[] = DF_WORKFLOW_SERVICE_ACCOUNT;

/* A list that is left out here allows nothing. */
typedef const char *const names_or_null[MAX_DEFAULTS];
static names_or_null fallbacks[DF_ALLOW_ROLES][DF_ALLOW_LEVELS][DF_ALLOW_LISTS] = {
    [DF_ALLOW_WRITE] =
        {
            [DF_ALLOW_EXECUTOR] = {[DF_ALLOW_FIELDS] = {"*"},
                                   [DF_ALLOW_IMAGES] = {"*"},
                                   [DF_ALLOW_CONFIG_MAPS] = {"*"},
                                   [DF_ALLOW_VOLUMES] = {PLAIN_VOLUMES}},
            [DF_ALLOW_RUN] = {[DF_ALLOW_FIELDS] = {TO_PLACE}},
            [DF_ALLOW_WORKFLOW] =
                {[DF_ALLOW_FIELDS] = {TO_PLACE}, [DF_ALLOW_ACCOUNTS] = {account_of_workflows}},
            /* The ConfigMap has the settings that the service gives its steps anyway. */
            [DF_ALLOW_TERRAKUBE] = {[DF_ALLOW_FIELDS] = {"*"},
                                    [DF_ALLOW_CONFIG_MAPS] = {"terrakube-executor-config"},
                                    [DF_ALLOW_VOLUMES] = {"persistentVolumeClaim"}},
        },
    [DF_ALLOW_ADMIN] = {EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING},
};

/* ---- looking a name up ---- */

const char *df_allow_workflow_account(const struct df_allow *a)
{
    return a->workflow_account ? a->workflow_account : DF_WORKFLOW_SERVICE_ACCOUNT;
}

void df_allow_names(const struct df_allow *a, const struct df_allow_cell *cell,
                    enum df_allow_list list, struct df_allow_names *ret)
{
    const cJSON *rule = a->rules[cell->role][cell->level];
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(rule, df_allow_lists[list]), *item;
    const char *const *fallback = fallbacks[cell->role][cell->level][list];
    ret->count = 0;
    cJSON_ArrayForEach (item, said) {
        if (ret->count < DF_LIMIT_ALLOWED)
            ret->at[ret->count++] = item->valuestring;
    }
    for (; !said && *fallback; fallback++)
        ret->at[ret->count++] =
            *fallback == account_of_workflows ? df_allow_workflow_account(a) : *fallback;
}

static bool is_isolating(const char *field)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(isolating); i++)
        if (strcmp(isolating[i], field) == 0)
            return true;
    return false;
}

bool df_allow_is_foreign_key(const char *key)
{
    static const char *const bare[] = {"aadpodidbinding"}; /* a managed identity of Azure */
    for (size_t i = 0; i < DF_ARRAY_SIZE(bare); i++)
        if (strcmp(bare[i], key) == 0)
            return true;
    return strpbrk(key, "/.") != NULL;
}

/* A pattern is a name, or its beginning and `*`. */
static bool matches(enum df_allow_list list, const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    if (n == 0 || pattern[n - 1] != '*')
        return strcmp(pattern, name) == 0;
    return strncmp(pattern, name, n - 1) == 0 && !(list == DF_ALLOW_FIELDS && is_isolating(name));
}

bool df_allow_has(const struct df_allow *a, const struct df_allow_cell *cell,
                  enum df_allow_list list, const char *name)
{
    struct df_allow_names names;
    df_allow_names(a, cell, list, &names);
    for (size_t i = 0; i < names.count; i++)
        if (matches(list, names.at[i], name))
            return true;
    return false;
}

/* ---- the configuration ---- */

static void rule_field_name(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *name = value->valuestring, *meant = NULL;
    size_t distance = SIZE_MAX;
    if (strcmp(name, "*") == 0 || df_field_find(df_placement_rows, name))
        return;
    for (const struct df_field *row = df_placement_rows; row->name; row++)
        df_nearest(name, row->name, &meant, &distance);
    df_fault(f, path, "\"%.64s\" is not a field of a placement%s%s%s", name,
             meant ? "; did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "");
}

static void rule_pattern(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *star = strchr(value->valuestring, '*');
    if (star && star[1])
        df_fault(f, path, "\"%.64s\": a * is possible at the end only", value->valuestring);
}

static void rule_volume_kind(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    for (const char *const *kind = df_volume_kinds; *kind; kind++)
        if (strcmp(*kind, value->valuestring) == 0)
            return;
    if (strcmp(value->valuestring, "*") != 0)
        df_fault(f, path, "\"%.64s\" is not a kind of volume (docs/placement.md)",
                 value->valuestring);
}

static const struct df_field field_item = STRING(NULL, 64, .rule = rule_field_name);
static const struct df_field pattern_item = STRING(NULL, 512, .rule = rule_pattern);
static const struct df_field volume_item = STRING(NULL, 64, .rule = rule_volume_kind);
static const struct df_field rule_rows[] = {
    LIST("fields", &field_item, DF_LIMIT_ALLOWED),
    LIST("serviceAccounts", &pattern_item, DF_LIMIT_ALLOWED),
    LIST("images", &pattern_item, DF_LIMIT_ALLOWED),
    LIST("secrets", &pattern_item, DF_LIMIT_ALLOWED),
    LIST("configMaps", &pattern_item, DF_LIMIT_ALLOWED),
    LIST("volumes", &volume_item, DF_LIMIT_ALLOWED),
    LIST("priorityClasses", &pattern_item, DF_LIMIT_ALLOWED),
    LIST("metadata", &pattern_item, DF_LIMIT_ALLOWED),
    {0},
};

int df_allow_rule_check(cJSON *rule, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0};
    df_schema_check(rule_rows, rule, NULL, &root, &f);
    return df_faults_fail(&f, "", "", err);
}
