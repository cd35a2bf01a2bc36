/*
 * The tool marks what is sensitive beside the values: `before` has `before_sensitive` with the same
 * shape, where true stands for a sensitive part; so do `after` and `values`. An output has the
 * member `sensitive`, a variable has it in the configuration. Providers copy such values to
 * attributes without a mark, so what was found once is looked for in all values; not in addresses,
 * types, actions and names of attributes, which nobody hides from a policy by a value of the same
 * text. A value that has a part of it is hidden as a whole: a rule sees one word for all of them.
 */
#include "runner/plan_masked.h"

#include "common/base/limits.h"
#include "common/redact/tree.h"

#define HIDDEN "(sensitive)"

enum { VALUE_MIN = 8 /* shorter texts are words and numbers too often */ };

/* ---- by marks ---- */

/* Notes the texts of a value that is hidden. */
static void note_texts(const cJSON *value, struct df_strs *found)
{
    const cJSON *child;
    if (cJSON_IsString(value) && strlen(value->valuestring) >= VALUE_MIN &&
        found->len < DF_LIMIT_SECRETS_MASKED)
        (void)df_strs_add(found, value->valuestring);
    cJSON_ArrayForEach (child, value)
        note_texts(child, found);
}

static int hide(cJSON *value, struct df_err *err)
{
    char *text = strdup(HIDDEN);
    if (!text)
        return df_fail_oom(err);
    df_json_wipe(DF_TAKE(value->child));
    df_str_wipe(&value->valuestring); /* also the digits of a number that is kept as text */
    value->type = cJSON_String;
    value->valuestring = text;
    return 0;
}

/* value: NULL if there is none for these marks. */
static int apply_marks(cJSON *value, const cJSON *marks, struct df_strs *found, struct df_err *err)
{
    const cJSON *at;
    if (!value || cJSON_IsNull(value))
        return 0;
    if (cJSON_IsTrue(marks)) {
        note_texts(value, found);
        return hide(value, err);
    }
    cJSON *item = cJSON_IsArray(value) ? value->child : NULL;
    cJSON_ArrayForEach (at, marks) {
        cJSON *of = at->string ? cJSON_GetObjectItemCaseSensitive(value, at->string) : item;
        item = item ? item->next : NULL;
        if (apply_marks(of, at, found, err) < 0)
            return -1;
    }
    return 0;
}

static const struct {
    const char *value, *marks;
} marked[] = {{"before", "before_sensitive"},
              {"after", "after_sensitive"},
              {"values", "sensitive_values"},
              {"value", "sensitive"}};

static bool is_marked(const cJSON *member)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(marked); i++)
        if (df_streq(member->string, marked[i].value))
            return true;
    return false;
}

/* Of these the module names the members: an output may be called `value`. */
static bool has_free_names(const cJSON *node)
{
    static const char *const all[] = {"variables", "outputs", "output_changes", "module_calls"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(all); i++)
        if (df_streq(node->string, all[i]))
            return true;
    return false;
}

/* prior_state has a member `values` with modules instead of values, and so without marks. */
static int mask_marked(cJSON *node, struct df_strs *found, struct df_err *err)
{
    cJSON *child;
    bool is_free = has_free_names(node);
    for (size_t i = 0; !is_free && cJSON_IsObject(node) && i < DF_ARRAY_SIZE(marked); i++)
        if (apply_marks(cJSON_GetObjectItemCaseSensitive(node, marked[i].value),
                        cJSON_GetObjectItemCaseSensitive(node, marked[i].marks), found, err) < 0)
            return -1;
    bool has_marks = cJSON_GetObjectItemCaseSensitive(node, "sensitive_values") != NULL;
    cJSON_ArrayForEach (child, node) {
        bool is_value =
            !is_free && is_marked(child) && (has_marks || !df_streq(child->string, "values"));
        if (!is_value && mask_marked(child, found, err) < 0)
            return -1;
    }
    return 0;
}

static int mask_variables(cJSON *plan, struct df_strs *found, struct df_err *err)
{
    const cJSON *declared = df_json_at(plan, "configuration.root_module.variables");
    cJSON *variable, *all = cJSON_GetObjectItemCaseSensitive(plan, "variables");
    cJSON_ArrayForEach (variable, all) {
        const cJSON *is = cJSON_GetObjectItemCaseSensitive(declared, variable->string);
        cJSON *value = cJSON_GetObjectItemCaseSensitive(variable, "value");
        if (df_json_bool(is, "sensitive", false) &&
            apply_marks(value, cJSON_GetObjectItemCaseSensitive(is, "sensitive"), found, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- by value ---- */

static bool has_values(const cJSON *member)
{
    return is_marked(member) || df_streq(member->string, "default") ||
           df_streq(member->string, "constant_value");
}

/* Texts and numbers. */
static int hide_copy(cJSON *leaf, const struct df_redact_set *set, struct df_err *err)
{
    bool found = false;
    DF_CLEANUP(df_str_wipe)
    char *text = cJSON_IsString(leaf) ? strdup(leaf->valuestring) : df_json_print(leaf);
    if (df_check_alloc(text, err) < 0 || df_redact_text(set, &text, &found, err) < 0)
        return -1;
    return found ? hide(leaf, err) : 0;
}

static int hide_copies(cJSON *value, const struct df_redact_set *set, struct df_err *err)
{
    cJSON *child;
    if (cJSON_IsString(value) || df_json_is_number(value))
        return hide_copy(value, set, err);
    cJSON_ArrayForEach (child, value) {
        if (hide_copies(child, set, err) < 0)
            return -1;
    }
    return 0;
}

static int mask_values(cJSON *node, bool is_value, const struct df_redact_set *set,
                       struct df_err *err)
{
    cJSON *child;
    if (is_value && !cJSON_GetObjectItemCaseSensitive(node, "root_module")) /* of prior_state */
        return hide_copies(node, set, err);
    bool is_free = has_free_names(node);
    cJSON_ArrayForEach (child, node) {
        if (mask_values(child, !is_free && has_values(child), set, err) < 0)
            return -1;
    }
    return 0;
}

int df_plan_mask(cJSON *plan, const struct df_redact_set *set, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs found = {0};
    struct df_redact_set *more = NULL;
    if (mask_variables(plan, &found, err) < 0 || mask_marked(plan, &found, err) < 0 ||
        df_strs_check(&found, err) < 0 || mask_values(plan, false, set, err) < 0 ||
        df_redact_set_new(&found, &more, err) < 0)
        return -1;
    int result = mask_values(plan, false, more, err);
    df_redact_set_free(more);
    return result;
}
