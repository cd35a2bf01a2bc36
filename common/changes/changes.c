#include "common/changes/changes.h"

static const struct row {
    const char *name;
    const char *counted; /* in the tool's change_summary; NULL: it does not count them */
    const char *sign;    /* before the number in a column */
    const char *planned, *done;
    bool is_always; /* shown even if it is 0 */
} rows[DF_CHANGES_KINDS] = {
    [DF_CHANGES_ADD] = {"add", "add", "+", "to add", "added", true},
    [DF_CHANGES_CHANGE] = {"change", "change", "~", "to change", "changed", true},
    [DF_CHANGES_DESTROY] = {"destroy", "remove", "-", "to destroy", "destroyed", true},
    [DF_CHANGES_IMPORT] = {"import", "import", "import ", "to import", "imported", false},
    [DF_CHANGES_MOVE] = {"move", NULL, "move ", "to move", "moved", false},
    [DF_CHANGES_FORGET] = {"forget", "forget", "forget ", "to forget", "forgotten", false},
    [DF_CHANGES_DRIFT] = {"drift", NULL, "drift ", "changed by others", "changed by others", false},
    [DF_CHANGES_OTHER] = {"other", NULL, "other ", "of another kind", "of another kind", false},
};

const char *df_changes_name(enum df_changes_kind kind)
{
    return rows[kind].name;
}

enum df_changes_kind df_changes_kind_of(const char *counted)
{
    for (int i = 0; i < DF_CHANGES_KINDS; i++)
        if (df_streq(rows[i].counted, counted))
            return (enum df_changes_kind)i;
    return DF_CHANGES_OTHER;
}

int64_t df_changes_total(const struct df_changes *c)
{
    int64_t n = 0;
    for (int i = 0; i < DF_CHANGES_KINDS; i++)
        n += c->of[i];
    return n;
}

/* ---- documents ---- */

int df_changes_write(const struct df_changes *c, cJSON *summary, struct df_err *err)
{
    if (!summary)
        return df_fail_oom(err);
    for (int i = 0; i < DF_CHANGES_KINDS; i++)
        if (df_json_set(summary, rows[i].name, cJSON_CreateNumber((double)c->of[i]), err) < 0)
            return -1;
    return 0;
}

int df_changes_read(const cJSON *summary, struct df_changes *ret, struct df_err *err)
{
    int result = 0;
    for (int i = 0; i < DF_CHANGES_KINDS; i++) {
        double n = df_json_num(summary, rows[i].name, 0);
        bool is_count = n >= 0 && n <= INT32_MAX;
        ret->of[i] = is_count ? (int64_t)n : 0;
        if (!is_count)
            result = df_fail(err, DF_ERR_USER, "%s: must be a count", rows[i].name);
    }
    return result;
}

/* ---- people ---- */

static bool is_shown(const struct df_changes *c, int kind)
{
    return rows[kind].is_always || c->of[kind] > 0;
}

void df_changes_words(const struct df_changes *c, bool is_done, char *to, size_t size)
{
    size_t used = 0;
    *to = '\0';
    for (int i = 0; i < DF_CHANGES_KINDS && used < size; i++) {
        if (!is_shown(c, i))
            continue;
        int n = snprintf(to + used, size - used, "%s%lld %s", used ? ", " : "", (long long)c->of[i],
                         is_done ? rows[i].done : rows[i].planned);
        used += n > 0 ? (size_t)n : 0;
    }
}

void df_changes_column(const struct df_changes *c, struct df_buf *out)
{
    for (int i = 0; i < DF_CHANGES_KINDS; i++)
        if (is_shown(c, i))
            (void)df_buf_addf(out, "%s%s%lld", i ? " " : "", rows[i].sign, (long long)c->of[i]);
}
