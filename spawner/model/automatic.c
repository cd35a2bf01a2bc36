#include "spawner/model/automatic.h"

#include "common/base/limits.h"
#include "spawner/model/recipe.h"

#define KIND_MAX 16

static const cJSON *rule_of(const cJSON *executor)
{
    return df_json_at(executor, "spec.automaticFor");
}

/* Is every text of the list in the other one? Of a list that has anything else, false. */
static bool are_in(const cJSON *list, const cJSON *other)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item) || !df_json_has_string(other, item->valuestring))
            return false;
    }
    return true;
}

/* ---- from the runner ---- */

int df_automatic_note(const cJSON *executor, cJSON *task, struct df_err *err)
{
    return rule_of(executor) && df_recipe_step_of(task)->plans
               ? df_json_set(df_json_object_at(task, "spec"), "listsChanges", cJSON_CreateTrue(),
                             err)
               : 0;
}

static bool is_short_list(const cJSON *list, int most, size_t max)
{
    const cJSON *item;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > most)
        return false;
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item) || strlen(item->valuestring) > max)
            return false;
    }
    return true;
}

int df_automatic_take(cJSON *task, const cJSON *report, struct df_err *err)
{
    const cJSON *changes = df_json_at(report, "planChanges");
    const cJSON *kinds = df_json_at(changes, "kinds"), *types = df_json_at(changes, "types");
    const char *stored = df_json_str(task, "status.plan.sha256");
    if (!stored || !df_streq(df_json_str(report, "plan.sha256"), stored) ||
        !is_short_list(kinds, KIND_MAX, KIND_MAX) ||
        !is_short_list(types, DF_LIMIT_CHANGED_TYPES, DF_LIMIT_CHANGED_TYPE))
        return 0;
    return df_json_set(df_json_object_at(task, "status"), "planChanges",
                       df_json_object(DF_ITEM("kinds", cJSON_Duplicate(kinds, true)),
                                      DF_ITEM("types", cJSON_Duplicate(types, true))),
                       err);
}

/* ---- the decision ---- */

bool df_automatic_covers(const cJSON *executor, const cJSON *plan)
{
    const cJSON *rule = rule_of(executor), *type;
    const cJSON *kinds = df_json_at(plan, "status.planChanges.kinds");
    if (!rule || !kinds || !are_in(kinds, df_json_at(rule, "changes")))
        return false;
    cJSON_ArrayForEach (type, df_json_at(plan, "status.planChanges.types")) {
        if (df_json_has_string(df_json_at(rule, "exceptTypes"), type->valuestring))
            return false;
    }
    return true;
}

bool df_automatic_is_wider(const cJSON *old, const cJSON *executor)
{
    const cJSON *before = rule_of(old), *now = rule_of(executor);
    return now && (!before || !are_in(df_json_at(now, "changes"), df_json_at(before, "changes")) ||
                   !are_in(df_json_at(before, "exceptTypes"), df_json_at(now, "exceptTypes")));
}

char *df_automatic_reason(const cJSON *plan)
{
    struct df_buf text = DF_BUF_INIT(256);
    const cJSON *kind, *kinds = df_json_at(plan, "status.planChanges.kinds");
    const char *between = "automatic: only ";
    if (!cJSON_GetArraySize(kinds))
        (void)df_buf_adds(&text, "automatic: no resource is changed");
    cJSON_ArrayForEach (kind, kinds) {
        (void)df_buf_addf(&text, "%s%s", between, kind->valuestring);
        between = ", ";
    }
    return df_buf_take(&text);
}
