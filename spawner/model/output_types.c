/* The names in a value are sorted once: value and type may both have very many. */
#include "spawner/model/output_types.h"

#include "common/base/util.h"
#include "common/redact/names.h"

struct names {
    const char **at; /* borrowed from the value */
    size_t len;
};

static size_t count_names(const cJSON *value)
{
    size_t n = 0;
    const cJSON *member;
    cJSON_ArrayForEach (member, value)
        n += (member->string != NULL) + count_names(member);
    return n;
}

static void add_names(const cJSON *value, struct names *to)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, value) {
        if (member->string)
            to->at[to->len++] = member->string;
        add_names(member, to);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_shown(const struct names *shown, const char *name)
{
    return shown->len && bsearch(&name, shown->at, shown->len, sizeof *shown->at, compare);
}

static int hide(const struct names *shown, cJSON *type, struct df_err *err)
{
    DF_REDACT_NAMES hidden = {0};
    cJSON *member;
    cJSON_ArrayForEach (member, type) {
        if (hide(shown, member, err) < 0)
            return -1;
        if (!member->string || is_shown(shown, member->string))
            continue;
        char *text = strdup("***");
        if (!text)
            return df_fail_oom(err);
        df_str_wipe(&member->string);
        member->string = text;
        if (df_redact_names_add(&hidden, member, err) < 0)
            return -1;
    }
    return df_redact_names_number(&hidden, type, err);
}

static int hide_in(cJSON *output, struct df_err *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
    cJSON *type = cJSON_GetObjectItemCaseSensitive(output, "type");
    if (!cJSON_IsArray(type))
        return 0;
    DF_FREE const char **at = calloc(count_names(value) + 1, sizeof *at);
    struct names shown = {at, 0};
    if (!at)
        return df_fail_oom(err);
    add_names(value, &shown);
    qsort(shown.at, shown.len, sizeof *shown.at, compare);
    return hide(&shown, type, err);
}

int df_output_types_hide(cJSON *outputs, struct df_err *err)
{
    cJSON *output;
    cJSON_ArrayForEach (output, outputs) {
        if (hide_in(output, err) < 0)
            return -1;
    }
    return 0;
}
