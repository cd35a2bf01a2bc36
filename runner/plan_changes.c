/*
 * plan_changes.c - first one resource's change, then the plan as a whole: is_understood() refuses
 * what look() does not read.
 */
#include "runner/plan_changes.h"

#include "common/base/fs.h"
#include "common/base/limits.h"

struct found {
    cJSON *kinds, *types; /* borrowed: arrays of strings, each once */
    struct df_err *err;
    int failed;
};

static void note(struct found *f, cJSON *list, const char *text)
{
    if (!f->failed && !df_json_has_string(list, text))
        f->failed = df_json_append_str(list, text, f->err);
}

static void note_type(struct found *f, const char *type)
{
    bool is_known = df_json_has_string(f->types, type);
    if (!type || strlen(type) > DF_LIMIT_CHANGED_TYPE ||
        (!is_known && cJSON_GetArraySize(f->types) >= DF_LIMIT_CHANGED_TYPES))
        note(f, f->kinds, "other");
    else
        note(f, f->types, type);
}

/* The kind of a resource's change; NULL: nothing happens to the resource. */
static const char *kind_of(const cJSON *actions)
{
    static const struct {
        const char *first, *second, *kind;
    } known[] = {{"no-op", NULL, NULL},          {"create", NULL, "create"},
                 {"update", NULL, "update"},     {"delete", NULL, "delete"},
                 {"forget", NULL, "forget"},     {"delete", "create", "replace"},
                 {"create", "delete", "replace"}};
    const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(actions, 0));
    const char *second = cJSON_GetStringValue(cJSON_GetArrayItem(actions, 1));
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (cJSON_GetArraySize(actions) == (known[i].second ? 2 : 1) &&
            df_streq(first, known[i].first) &&
            (!known[i].second || df_streq(second, known[i].second)))
            return known[i].kind;
    return "other";
}

/* Data that is read changes nothing. */
static bool is_read(const cJSON *change)
{
    const cJSON *actions = df_json_at(change, "change.actions");
    const char *action = cJSON_GetStringValue(cJSON_GetArrayItem(actions, 0));
    return df_streq(df_json_str(change, "mode"), "data") && cJSON_GetArraySize(actions) == 1 &&
           (df_streq(action, "read") || df_streq(action, "no-op"));
}

static void look(struct found *f, const cJSON *change)
{
    bool is_managed = df_streq(df_json_str(change, "mode"), "managed");
    const char *kind = is_managed ? kind_of(df_json_at(change, "change.actions")) : "other";
    const char *more = df_json_at(change, "change.importing") ? "import" : NULL;
    if (is_read(change))
        return;
    if (kind)
        note(f, f->kinds, kind);
    if (more)
        note(f, f->kinds, more);
    if (df_json_at(change, "previous_address"))
        note(f, f->kinds, more = "move");
    if (kind || more)
        note_type(f, df_json_str(change, "type"));
}

/* Members that can be large or secret, none of which says what is changed. */
static const char *const skipped[] = {"before",
                                      "after",
                                      "after_unknown",
                                      "before_sensitive",
                                      "after_sensitive",
                                      ".prior_state",
                                      ".planned_values",
                                      ".configuration",
                                      ".variables",
                                      ".output_changes",
                                      ".relevant_attributes",
                                      ".checks",
                                      NULL};

/* False for a plan that says something which this version does not know: deferred changes, actions
 * of providers. */
static bool is_understood(const cJSON *plan)
{
    static const char *const known[] = {
        "format_version", "terraform_version", "resource_changes", "resource_drift",
        "timestamp",      "applyable",         "complete",         "errored"};
    const char *version = df_json_str(plan, "format_version");
    const cJSON *member;
    cJSON_ArrayForEach (member, plan) {
        size_t i = 0;
        while (i < DF_ARRAY_SIZE(known) && !df_streq(member->string, known[i]))
            i++;
        if (i == DF_ARRAY_SIZE(known))
            return false;
    }
    return version && df_starts_with(version, "1.") && df_json_bool(plan, "complete", true) &&
           !df_json_bool(plan, "errored", false);
}

int df_plan_changes_read(const char *text, size_t n, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *plan = NULL, *changes = cJSON_CreateObject();
    struct found f = {df_json_array_at(changes, "kinds"), df_json_array_at(changes, "types"), err,
                      0};
    const cJSON *change;
    if (!f.kinds || !f.types)
        return df_fail_oom(err);
    if (df_json_parse_without(text, n, skipped, &plan, err) < 0)
        return -1;
    if (!is_understood(plan))
        note(&f, f.kinds, "other");
    cJSON_ArrayForEach (change, df_json_at(plan, "resource_changes")) {
        look(&f, change);
    }
    if (!f.kinds->child && cJSON_GetArraySize(df_json_at(plan, "resource_drift")))
        note(&f, f.kinds, "drift");
    if (f.failed)
        return -1;
    *ret = DF_TAKE(changes);
    return 0;
}

int df_plan_changes_add(struct df_context *c, int json, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_PLAN_READ);
    struct df_err why = {0};
    cJSON *changes = NULL;
    if (lseek(json, 0, SEEK_SET) < 0 || df_fs_read_fd(json, &text, &why) < 0 ||
        df_plan_changes_read(df_buf_str(&text), text.len, &changes, &why) < 0) {
        (void)df_output_note(c->output,
                             "dayfly: what the plan changes could not be listed, so it needs an "
                             "approval: %s",
                             why.message[0] ? why.message : "it cannot be read");
        return 0;
    }
    return df_json_add(c->result, "planChanges", changes, err);
}
