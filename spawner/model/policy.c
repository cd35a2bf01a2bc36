/*
 * policy.c - the tables of `policies` and their check; which apply, and what their runner is told;
 * the results and what follows from them.
 */
#include "spawner/model/policy.h"

#include "common/base/clock.h"
#include "spawner/model/labels.h"
#include "spawner/model/platform.h"
#include "spawner/model/recipe.h"
#include "spawner/model/rows.h"

/* ---- the tables ------------------------------------------------------------------------------ */

static void rule_path(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (*value->valuestring != '/')
        df_fault(f, path,
                 "\"%.64s\" must be an absolute path, of the machine or the image where "
                 "steps run",
                 value->valuestring);
}

static void rule_program(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *first = cJSON_GetStringValue(value->child);
    if (first && strchr(first, '/') && *first != '/')
        df_fault(f, path, "\"%.64s\" must be an absolute path, or a name on PATH", first);
}

static void rule_query(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!df_starts_with(value->valuestring, "data."))
        df_fault(f, path, "\"%.64s\" must be that of a package: data.main", value->valuestring);
}

static void rule_timeout(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int64_t us = 0;
    int before = f->count;
    df_rule_duration(value, path, f);
    if (f->count == before && df_duration_parse(value->valuestring, &us, NULL) == 0 &&
        us > INT64_C(1000000) * DF_POLICY_MAX_SECONDS)
        df_fault(f, path, "\"%.64s\" must be from 1s to 1h", value->valuestring);
}

static const char *const levels[] = {"advisory", "soft", "hard", NULL};
static const struct df_field note[] = {
    NAME("name", .flags = DF_REQUIRED), WORD("level", levels, .flags = DF_REQUIRED), {0}};
const struct df_field df_policy_note = OBJECT(NULL, note);

static const struct df_field word = STRING(NULL, 4096, .flags = DF_LINES);
static const struct df_field path_item = STRING(NULL, 1024, .rule = rule_path);
static const struct df_field person = STRING(NULL, DF_LIMIT_CALLER);
static const struct df_field label_value = {.type = DF_TYPE_STRING, .max = 63};
static const struct df_field opa[] = {
    LIST("data", &path_item, DF_LIMIT_POLICY_WORDS, .min = 1, .flags = DF_REQUIRED),
    STRING("query", 256, .rule = rule_query),
    STRING("program", 1024, .rule = rule_path),
    {0}};
static const struct df_field applies_to[] = {MAP("matchLabels", &label_value, .flags = DF_REQUIRED,
                                                 .min = 1, .max = DF_LIMIT_LABELS,
                                                 .rule = df_rule_labels),
                                             {0}};
static const struct df_field policy_rows[] = {
    WORD("level", levels, .flags = DF_REQUIRED),
    LIST("program", &word, DF_LIMIT_POLICY_WORDS, .min = 1, .rule = rule_program),
    OBJECT("opa", opa),
    LIST("files", &path_item, DF_LIMIT_POLICY_WORDS),
    LIST("overrideBy", &person, DF_LIMIT_GRANT_NAMES, .min = 1),
    OBJECT("appliesTo", applies_to),
    STRING("timeout", 32, .rule = rule_timeout),
    WHOLE("memoryMiB", 16, 65536),
    {0}};

/* ---- the check ------------------------------------------------------------------------------- */

static void check_policy(cJSON *policy, const struct df_path *path, struct df_faults *f)
{
    const struct df_path by = {path, "overrideBy", 0};
    if (!cJSON_IsObject(policy)) {
        df_fault(f, path, "must be a mapping");
        return;
    }
    df_schema_check(policy_rows, policy, NULL, path, f);
    if (!df_json_at(policy, "program") == !df_json_at(policy, "opa"))
        df_fault(f, path, "must have either program or opa");
    if (df_json_at(policy, "overrideBy") && !df_streq(df_json_str(policy, "level"), "soft"))
        df_fault(f, &by,
                 "is for the level soft alone: nobody overrides a hard policy, and an "
                 "advisory one asks nobody");
}

int df_policies_check(cJSON *policies, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0};
    cJSON *policy;
    if (cJSON_GetArraySize(policies) > DF_LIMIT_POLICIES)
        df_fault(&f, &root, "there are at most %d policies", DF_LIMIT_POLICIES);
    cJSON_ArrayForEach (policy, policies) {
        const struct df_path path = {&root, policy->string, 0};
        DF_JSON cJSON *name = cJSON_CreateString(policy->string);
        if (!name)
            return df_fail_oom(err);
        df_rule_name(name, &path, &f);
        check_policy(policy, &path, &f);
    }
    return df_faults_fail(&f, "", "", err);
}

/* ---- which apply ----------------------------------------------------------------------------- */

static bool applies(const cJSON *policy, const cJSON *executor)
{
    return df_labels_match(executor, df_json_at(policy, "appliesTo.matchLabels"));
}

bool df_policies_are_same(const cJSON *policies, const cJSON *old, const cJSON *executor)
{
    const cJSON *policy;
    cJSON_ArrayForEach (policy, policies) {
        if (applies(policy, old) != applies(policy, executor))
            return false;
    }
    return true;
}

int df_policies_note(const cJSON *policies, const cJSON *executor, cJSON *task, struct df_err *err)
{
    const cJSON *policy;
    if (!df_recipe_step_of(task)->plans || df_platform_is(task))
        return 0;
    cJSON_ArrayForEach (policy, policies) {
        if (applies(policy, executor) &&
            df_json_append(df_json_array_at(df_json_object_at(task, "spec"), "policies"),
                           df_json_object(DF_STR("name", policy->string),
                                          DF_STR("level", df_json_str(policy, "level"))),
                           err) < 0)
            return -1;
    }
    return 0;
}

static int add_order(const cJSON *policy, cJSON *order, struct df_err *err)
{
    static const char *const copied[] = {"program", "opa", "files", "memoryMiB"};
    const char *timeout = df_json_str(policy, "timeout");
    int64_t us = INT64_C(1000000) * DF_POLICY_SECONDS;
    for (size_t i = 0; i < DF_ARRAY_SIZE(copied); i++) {
        const cJSON *item = df_json_at(policy, copied[i]);
        if (item && df_json_add(order, copied[i], cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    if (timeout && df_duration_parse(timeout, &us, err) < 0)
        return -1;
    const int64_t seconds = (us + 999999) / 1000000;
    return df_json_add_num(order, "timeoutSeconds", (double)seconds, err);
}

int df_policies_order(const cJSON *policies, const cJSON *task, cJSON *doc, struct df_err *err)
{
    const cJSON *noted;
    cJSON_ArrayForEach (noted, df_json_at(task, "spec.policies")) {
        cJSON *order = cJSON_Duplicate(noted, true);
        const cJSON *policy =
            cJSON_GetObjectItemCaseSensitive(policies, df_json_str(noted, "name"));
        if (df_json_append(df_json_array_at(doc, "policies"), order, err) < 0 ||
            (policy && add_order(policy, order, err) < 0))
            return -1;
    }
    return 0;
}

/* ---- the results ----------------------------------------------------------------------------- */

/* Other messages than the runner's may be as long as they like. */
static int copy_messages(cJSON *to, const cJSON *messages, struct df_err *err)
{
    const cJSON *message;
    cJSON_ArrayForEach (message, messages) {
        if (cJSON_GetArraySize(to) > DF_LIMIT_POLICY_MESSAGES)
            return 0;
        if (cJSON_IsString(message) && strlen(message->valuestring) <= DF_LIMIT_POLICY_MESSAGE &&
            df_json_append_str(to, message->valuestring, err) < 0)
            return -1;
    }
    return 0;
}

static int add_result(cJSON *results, const cJSON *noted, const cJSON *said, struct df_err *err)
{
    DF_JSON cJSON *messages = cJSON_CreateArray();
    if (!messages)
        return df_fail_oom(err);
    if ((said ? copy_messages(messages, df_json_at(said, "messages"), err)
              : df_json_append_str(messages,
                                   "could not be evaluated: its runner gave no result about this "
                                   "plan",
                                   err)) < 0)
        return -1;
    return df_json_append(results,
                          df_json_object(DF_STR("name", df_json_str(noted, "name")),
                                         DF_STR("level", df_json_str(noted, "level")),
                                         DF_BOOL("passed", df_json_bool(said, "passed", false)),
                                         DF_ITEM("messages", DF_TAKE(messages))),
                          err);
}

/* The report names the plan that it is about: another one has other results. */
int df_policies_take(cJSON *task, const cJSON *report, bool is_stored, struct df_err *err)
{
    const cJSON *noted, *list = df_json_at(task, "spec.policies");
    const char *stored = df_json_str(task, "status.plan.sha256");
    bool is_same = !is_stored || (stored && df_streq(df_json_str(report, "plan.sha256"), stored));
    DF_JSON cJSON *results = cJSON_CreateArray();
    if (!results)
        return df_fail_oom(err);
    cJSON_ArrayForEach (noted, list) {
        const cJSON *said =
            is_same ? df_json_named(df_json_at(report, "policies"), df_json_str(noted, "name"))
                    : NULL;
        if (!cJSON_IsBool(df_json_at(said, "passed")))
            said = NULL;
        if ((said || is_stored) && add_result(results, noted, said, err) < 0)
            return -1;
    }
    return results->child
               ? df_json_set(df_json_object_at(task, "status"), "policies", DF_TAKE(results), err)
               : 0;
}

const cJSON *df_policies_failed(const cJSON *doc, const char *level)
{
    const cJSON *result;
    cJSON_ArrayForEach (result, df_json_at(doc, "status.policies")) {
        if (df_streq(df_json_str(result, "level"), level) && !df_json_bool(result, "passed", false))
            return result;
    }
    return NULL;
}

int df_policies_hold(const cJSON *plan, struct df_err *err)
{
    const cJSON *noted, *failed = df_policies_failed(plan, "hard");
    const cJSON *messages = df_json_at(failed, "messages");
    const char *why = cJSON_GetStringValue(messages ? messages->child : NULL);
    cJSON_ArrayForEach (noted, df_json_at(plan, "spec.policies")) {
        const char *name = df_json_str(noted, "name");
        if (!df_json_named(df_json_at(plan, "status.policies"), name))
            return df_fail_reason(err, DF_ERR_DENIED, "PolicyFailed",
                                  "policy %s: there is no result of it about this plan", name);
    }
    return failed ? df_fail_reason(err, DF_ERR_DENIED, "PolicyFailed", "policy %s: %s",
                                   df_json_str(failed, "name"), why ? why : "not passed")
                  : 0;
}

/* ---- overrides ------------------------------------------------------------------------------- */

static int check_person(const cJSON *policies, const char *name, enum df_role role,
                        const char *caller, struct df_err *err)
{
    const cJSON *policy = cJSON_GetObjectItemCaseSensitive(policies, name);
    const cJSON *named = df_json_at(policy, "overrideBy");
    if (named ? df_json_has_string(named, caller) : role >= DF_ROLE_ADMIN)
        return 0;
    if (named)
        return df_fail(
            err, DF_ERR_DENIED,
            "the soft policy %s has failed: only who is named in policies.%s.overrideBy "
            "of the service's configuration may approve this run, and %s is not; anybody "
            "with the role write can discard it",
            name, name, caller ? caller : "who asks");
    return df_fail(err, DF_ERR_DENIED,
                   "the soft policy %s has failed: approving this run needs the role admin; yours "
                   "is %s. The operator can name others in policies.%s.overrideBy of the service's "
                   "configuration",
                   name, df_role_name(role), name);
}

int df_policies_check_override(const cJSON *policies, const cJSON *run, enum df_role role,
                               const char *caller, const char *reason, struct df_err *err)
{
    const cJSON *result;
    if (!df_policies_failed(run, "soft"))
        return 0;
    cJSON_ArrayForEach (result, df_json_at(run, "status.policies")) {
        if (df_streq(df_json_str(result, "level"), "soft") &&
            !df_json_bool(result, "passed", false) &&
            check_person(policies, df_json_str(result, "name"), role, caller, err) < 0)
            return -1;
    }
    return !df_str_empty(reason)
               ? 0
               : df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                                "reason: a soft policy of run %s has failed, so an approval says "
                                "why: dayfly approve %s --reason TEXT",
                                df_json_str(run, "metadata.name"),
                                df_json_str(run, "metadata.name"));
}
