/*
 * grant.c - the tables of auth.grants and their check, then whom a grant names.
 */
#include "spawner/model/grant.h"

#include "common/base/limits.h"
#include "spawner/model/rows.h"

/* ---- the tables ------------------------------------------------------------------------------ */

/* Written out, so that no list that came out empty means everything. */
static void rule_all(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!cJSON_IsTrue(value))
        df_fault(f, path, "must be true: a grant is on all executors");
}

static void rule_to(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const cJSON *names;
    cJSON_ArrayForEach (names, value) {
        if (cJSON_GetArraySize(names))
            return;
    }
    df_fault(f, path, "must name somebody: users or groups");
}

static const char *const presets[] = {"read", "write", "admin", NULL};
static const struct df_field person = STRING(NULL, DF_LIMIT_CALLER);
static const struct df_field to[] = {LIST("users", &person, DF_LIMIT_GRANT_NAMES),
                                     LIST("groups", &person, DF_LIMIT_GRANT_NAMES),
                                     {0}};
static const struct df_field on[] = {BOOL("all", .flags = DF_REQUIRED, .rule = rule_all), {0}};
static const struct df_field grant_rows[] = {
    OBJECT("to", to, .flags = DF_REQUIRED, .rule = rule_to),
    OBJECT("on", on, .flags = DF_REQUIRED),
    WORD("preset", presets, .flags = DF_REQUIRED),
    {0}};

/* ---- the check ------------------------------------------------------------------------------- */

int df_grants_check(cJSON *grants, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0};
    cJSON *grant;
    if (cJSON_GetArraySize(grants) > DF_LIMIT_GRANTS)
        df_fault(&f, &root, "there are at most %d grants", DF_LIMIT_GRANTS);
    cJSON_ArrayForEach (grant, grants) {
        const struct df_path path = {&root, grant->string, 0};
        if (cJSON_IsObject(grant))
            df_schema_check(grant_rows, grant, NULL, &path, &f);
        else
            df_fault(&f, &path, "must be a mapping");
    }
    return df_faults_fail(&f, "", "", err);
}

/* ---- whom it names --------------------------------------------------------------------------- */

static bool names(const cJSON *grant, const char *user, const cJSON *groups)
{
    const cJSON *group, *named = df_json_at(grant, "to.groups");
    if (df_json_has_string(df_json_at(grant, "to.users"), user))
        return true;
    cJSON_ArrayForEach (group, groups) {
        if (df_json_has_string(named, group->valuestring))
            return true;
    }
    return false;
}

enum df_role df_grants_role(const cJSON *grants, const char *user, const cJSON *groups)
{
    enum df_role highest = DF_ROLE_NONE, role;
    const cJSON *grant;
    cJSON_ArrayForEach (grant, grants) {
        if (names(grant, user, groups) &&
            df_role_parse(df_json_str(grant, "preset"), &role, NULL) == 0 && role > highest)
            highest = role;
    }
    return highest;
}
