#include "common/redact/tree.h"

#include "common/redact/names.h"

int df_redact_text(const struct df_redact_set *set, char **text, bool *ret_changed,
                   struct df_err *err)
{
    size_t n = strlen(*text);
    if (!df_redact_may_find(set, *text, n))
        return 0;
    DF_BUF struct df_buf clean = DF_BUF_INIT(2 * n + 1);
    if (df_redact_string(set, *text, &clean, err) < 0)
        return -1;
    char *masked = df_buf_take(&clean);
    if (!masked)
        return df_fail_oom(err);
    *ret_changed = *ret_changed || !df_streq(masked, *text);
    df_str_wipe(text);
    *text = masked;
    return 0;
}

static int mask_names(const struct df_redact_set *set, cJSON *object, bool *ret_changed,
                      struct df_err *err)
{
    DF_REDACT_NAMES names = {0};
    cJSON *member;
    cJSON_ArrayForEach (member, object) {
        bool changed = false;
        if (df_redact_text(set, &member->string, &changed, err) < 0 ||
            (changed && df_redact_names_add(&names, member, err) < 0))
            return -1;
    }
    *ret_changed = *ret_changed || names.len > 0;
    return df_redact_names_number(&names, object, err);
}

static int mask_number(const struct df_redact_set *set, cJSON *item, bool *ret_changed,
                       struct df_err *err)
{
    DF_FREE char *text = df_json_print(item);
    bool changed = false;
    if (df_check_alloc(text, err) < 0 || df_redact_text(set, &text, &changed, err) < 0)
        return -1;
    if (!changed)
        return 0;
    df_str_wipe(&item->valuestring); /* the digits, if they were kept as text */
    item->type = cJSON_String;
    item->valuestring = DF_TAKE(text);
    *ret_changed = true;
    return 0;
}

static int mask_leaf(const struct df_redact_set *set, cJSON *item, bool *ret_changed,
                     struct df_err *err)
{
    if (cJSON_IsString(item))
        return df_redact_text(set, &item->valuestring, ret_changed, err);
    if (df_json_is_number(item))
        return mask_number(set, item, ret_changed, err);
    return 0;
}

int df_redact_tree(const struct df_redact_set *set, cJSON *value, bool *ret_changed,
                   struct df_err *err)
{
    cJSON *member;
    if (mask_leaf(set, value, ret_changed, err) < 0 ||
        (cJSON_IsObject(value) && mask_names(set, value, ret_changed, err) < 0))
        return -1;
    cJSON_ArrayForEach (member, value) {
        if (df_redact_tree(set, member, ret_changed, err) < 0)
            return -1;
    }
    return 0;
}
