#include "runner/touched.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/managed.h"
#include "runner/planned.h"
#include "runner/pull.h"
#include "runner/pulled.h"
#include "runner/tofu/workspace.h"

#define STATE_IN_PLAN                                                                              \
    "tfstate" /* a member of the plan file, which is a zip unless it is encrypted */

/* ---- the state before and after ---- */

struct states {
    struct df_buf before, after;
};

static void states_wipe(struct states *s)
{
    df_buf_wipe(&s->before);
    df_buf_wipe(&s->after);
}

/* An apply of a managed state needs no `init`, without which `state pull` does not work. */
static int read_after(struct df_context *c, struct df_buf *ret, struct df_err *err)
{
    DF_FREE char *file = df_fs_join(c->dirs->secret, "after.tfstate");
    if (df_workspace_is_managed(c->doc))
        return df_managed_get(c, df_json_at(c->doc, "state"), ret, err);
    if (df_check_alloc(file, err) < 0 || df_pull(c, file, err) < 0 ||
        df_fs_read_plain(file, ret, err) < 0)
        return -1;
    return df_fs_remove_tree(file, err);
}

/* What the refresh of the plan found is stored by an apply, too: that is no change of its own. */
static bool has_same_resources(const struct states *s)
{
    DF_SECRET_JSON cJSON *before = NULL, *after = NULL;
    if (df_json_parse_nul(df_buf_str(&s->before), s->before.len, &before, NULL) < 0 ||
        df_json_parse_nul(df_buf_str(&s->after), s->after.len, &after, NULL) < 0)
        return false;
    return df_json_equal(df_json_at(before, "resources"), df_json_at(after, "resources"));
}

static bool is_same(const struct states *s)
{
    struct df_pulled before, after;
    struct df_err why = {0};
    if (df_pulled_read_head(df_buf_str(&s->before), &before, &why) < 0 ||
        df_pulled_read_head(df_buf_str(&s->after), &after, &why) < 0)
        return false;
    return before.serial == after.serial || has_same_resources(s);
}

static bool has_same_state(struct df_context *c, const char *plan)
{
    DF_CLEANUP(states_wipe)
    struct states s = {DF_BUF_INIT(DF_LIMIT_STATE_COMPARED), DF_BUF_INIT(DF_LIMIT_STATE_COMPARED)};
    struct df_err why = {0};
    return plan && df_planned_state(c, plan, &s.before, &why) == 0 &&
           read_after(c, &s.after, &why) == 0 && is_same(&s);
}

/* ---- the rule ---- */

bool df_apply_touched(struct df_context *c, const char *plan)
{
    const struct df_output_summary *s = df_output_summary(c->output);
    if (s->applied || s->begun_changes > s->ended_changes)
        return true;
    if (!s->begun_changes)
        return false;
    return df_stop_cause(c->stop) != DF_STOP_NONE || !has_same_state(c, plan);
}
