/*
 * grant.c - the tables of auth.grants and their check, whom a grant names, and what it gives on an
 * executor.
 */
#include "spawner/model/grant.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/labels.h"
#include "spawner/model/rows.h"
#include "spawner/model/stamp.h"

/* ---- the tables ------------------------------------------------------------------------------ */

static void rule_to(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const cJSON *names;
    cJSON_ArrayForEach (names, value) {
        if (cJSON_GetArraySize(names))
            return;
    }
    df_fault(f, path, "must name somebody: users, groups or serviceAccounts");
}

static void rule_account(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *slash = strchr(value->valuestring, '/');
    if (!slash || slash == value->valuestring || !slash[1])
        df_fault(f, path, "\"%.64s\" is not namespace/name", value->valuestring);
}

/* Written out, so that no list that came out empty means everything. */
static void rule_all(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!cJSON_IsTrue(value))
        df_fault(f, path, "must be true, or left out");
}

static void rule_on(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const cJSON *one = value->child;
    if (!one || one->next || (!cJSON_IsTrue(one) && !one->child))
        df_fault(f, path,
                 "must say which executors, in one way: all: true, names: [...] or matchLabels: "
                 "{...}");
}

static const struct df_field person = STRING(NULL, DF_LIMIT_CALLER);
static const struct df_field account = STRING(NULL, DF_LIMIT_CALLER, .rule = rule_account);
static const struct df_field to[] = {LIST("users", &person, DF_LIMIT_GRANT_NAMES),
                                     LIST("groups", &person, DF_LIMIT_GRANT_NAMES),
                                     LIST("serviceAccounts", &account, DF_LIMIT_GRANT_NAMES),
                                     {0}};
static const struct df_field name = NAME(NULL);
static const struct df_field label = {.type = DF_TYPE_STRING, .max = 63};
static const struct df_field on[] = {
    BOOL("all", .rule = rule_all),
    LIST("names", &name, DF_LIMIT_GRANT_NAMES),
    MAP("matchLabels", &label, .max = DF_LIMIT_LABELS, .rule = df_rule_labels),
    {0}};
static const struct df_field verb = WORD(NULL, df_verb_names);
#define WHAT                                                                                       \
    OBJECT("on", on, .flags = DF_REQUIRED, .rule = rule_on), LIST("verbs", &verb, 32, .min = 1),   \
        WORD("preset", df_preset_names)
static const struct df_field grant_rows[] = {
    OBJECT("to", to, .flags = DF_REQUIRED, .rule = rule_to), WHAT, {0}};

#define DAY_US ((int64_t)24 * 3600 * 1000000)

static int read_lifetime(const char *text, int64_t *ret_us, struct df_err *err)
{
    size_t n = strspn(text, "0123456789");
    if (!n || n > 4 || !df_streq(text + n, "d"))
        return df_duration_parse(text, ret_us, err);
    *ret_us = strtol(text, NULL, 10) * DAY_US;
    return 0;
}

static void rule_lifetime(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int64_t us = 0;
    struct df_err err = {0};
    if (read_lifetime(value->valuestring, &us, &err) < 0)
        df_fault(f, path, "%s", err.message);
    else if (us <= 0 || us > DF_LIMIT_TOKEN_DAYS * DAY_US)
        df_fault(f, path, "\"%.32s\": a token lasts more than nothing and at most %dd",
                 value->valuestring, DF_LIMIT_TOKEN_DAYS);
}

static const struct df_field token_rows[] = {
    NAME("name", .flags = DF_REQUIRED), STRING("expires", 32, .rule = rule_lifetime), WHAT, {0}};

/* ---- the check ------------------------------------------------------------------------------- */

static void check_grant(const struct df_field *rows, cJSON *grant, const struct df_path *path,
                        struct df_faults *f)
{
    df_schema_check(rows, grant, NULL, path, f);
    if (cJSON_HasObjectItem(grant, "verbs") == cJSON_HasObjectItem(grant, "preset"))
        df_fault(f, path, "must have either verbs or preset");
}

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
            check_grant(grant_rows, grant, &path, &f);
        else
            df_fault(&f, &path, "must be a mapping");
    }
    return df_faults_fail(&f, "", "", err);
}

int df_token_check(cJSON *token, int64_t *ret_us, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0}, path = {&root, "token", 0};
    if (!cJSON_HasObjectItem(token, "on") &&
        df_json_add_bool(df_json_object_at(token, "on"), "all", true, err) < 0)
        return -1;
    check_grant(token_rows, token, &path, &f);
    if (!f.count && !df_verbs_have(df_grant_verbs(token), DF_VERB_VIEW))
        df_fault(&f, &path, "its verbs must have view: without it there are no executors for it");
    if (df_faults_fail(&f, "", "", err) < 0)
        return -1;
    const char *expires = df_json_str(token, "expires");
    *ret_us = 30 * DAY_US;
    return expires ? read_lifetime(expires, ret_us, err) : 0;
}

/* ---- whom it names --------------------------------------------------------------------------- */

static bool has_any(const cJSON *grants, const char *path)
{
    const cJSON *grant;
    cJSON_ArrayForEach (grant, grants) {
        if (cJSON_GetArraySize(df_json_at(grant, path)))
            return true;
    }
    return false;
}

bool df_grants_name_people(const cJSON *grants)
{
    return has_any(grants, "to.users") || has_any(grants, "to.groups");
}

bool df_grants_name_accounts(const cJSON *grants)
{
    return has_any(grants, "to.serviceAccounts");
}

static bool has_group(const cJSON *named, const cJSON *groups)
{
    const cJSON *group;
    cJSON_ArrayForEach (group, groups) {
        if (df_json_has_string(named, group->valuestring))
            return true;
    }
    return false;
}

/* Each request asks it of each grant, so the lists are told apart by their first letters alone. */
bool df_grantee_is_of(const cJSON *whom, const struct df_grantee *who)
{
    const cJSON *list;
    cJSON_ArrayForEach (list, whom) {
        bool named =
            *list->string == 'g'
                ? has_group(list, who->groups)
                : df_json_has_string(list, *list->string == 'u' ? who->user : who->account);
        if (named)
            return true;
    }
    return false;
}

static bool names(const cJSON *grant, const struct df_grantee *who)
{
    return df_grantee_is_of(cJSON_GetObjectItemCaseSensitive(grant, "to"), who);
}

/* ---- what it gives --------------------------------------------------------------------------- */

df_verbs df_grant_verbs(const cJSON *grant)
{
    df_verbs verbs = df_preset_verbs(df_json_str(grant, "preset"));
    const cJSON *word;
    cJSON_ArrayForEach (word, cJSON_GetObjectItemCaseSensitive(grant, "verbs")) {
        verbs |= df_verb_parse(word->valuestring);
    }
    return verbs;
}

int df_grants_of(const cJSON *grants, const struct df_grantee *who, struct df_granted *ret,
                 struct df_err *err)
{
    struct df_granted g = {0};
    size_t size = (size_t)cJSON_GetArraySize(grants);
    const cJSON *grant;
    if (grants && df_check_alloc(g.some = calloc(size + 1, sizeof(*g.some)), err) < 0)
        return -1;
    cJSON_ArrayForEach (grant, grants) {
        if (!names(grant, who))
            continue;
        if (df_json_at(grant, "on.all"))
            g.all |= df_grant_verbs(grant);
        else
            g.some[g.some_count++] = grant;
    }
    *ret = g;
    return 0;
}

void df_granted_free(struct df_granted *g)
{
    free((void *)g->some);
    *g = (struct df_granted){0};
}

void df_granted_limit(struct df_granted *g, const cJSON *ceiling)
{
    g->ceiling = ceiling;
    g->beneath = g->all;
    g->all &= df_json_at(ceiling, "on.all") ? df_grant_verbs(ceiling) : 0;
}

bool df_grant_is_on(const cJSON *grant, const char *executor, const cJSON *doc)
{
    const cJSON *where = cJSON_GetObjectItemCaseSensitive(grant, "on");
    const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(where, "matchLabels");
    if (wanted)
        return df_labels_match(doc, wanted);
    return cJSON_HasObjectItem(where, "all") ||
           df_json_has_string(cJSON_GetObjectItemCaseSensitive(where, "names"), executor);
}

df_verbs df_granted_on(const struct df_granted *g, const char *caller, const char *executor,
                       const cJSON *doc)
{
    const char *creator = df_json_str(doc, "status.creator");
    df_verbs verbs = g->ceiling ? g->beneath : g->all;
    for (size_t i = 0; i < g->some_count; i++)
        if (df_grant_is_on(g->some[i], executor, doc))
            verbs |= df_grant_verbs(g->some[i]);
    if (df_stamp_is_name(creator) && df_streq(creator, caller) &&
        df_verbs_have(verbs, DF_VERBS_WRITE))
        verbs |= g->creator;
    if (!g->ceiling)
        return verbs;
    return df_grant_is_on(g->ceiling, executor, doc) ? verbs & df_grant_verbs(g->ceiling) : 0;
}

int df_grants_naming(const cJSON *grants, const struct df_grantee *who, cJSON *ret,
                     struct df_err *err)
{
    const cJSON *grant;
    cJSON_ArrayForEach (grant, grants) {
        if (names(grant, who) && df_json_append_str(ret, grant->string, err) < 0)
            return -1;
    }
    return 0;
}
