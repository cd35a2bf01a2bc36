#include "runner/emptied.h"

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/hcl/hcl.h"

/* ---- a folder without configuration ---- */

static bool has_tofu_files(const struct df_context *c)
{
    DF_HCL_MODULE struct df_hcl_module module = {0};
    return df_hcl_scan(c->source.module_dir, DF_HCL_OPENTOFU, &module, NULL) == 0 && module.files;
}

int df_configuration_check(struct df_context *c, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module module = {0};
    const char *folder = df_json_str(c->doc, "source.folder");
    bool tofu = c->tool.kind == DF_TOOL_OPENTOFU;
    if (df_hcl_scan(c->source.module_dir, df_tool_kind_hcl(c->tool.kind), &module, err) < 0)
        return -1;
    if (module.files)
        return 0;
    if (!tofu && has_tofu_files(c))
        return df_fail_reason(
            err, DF_ERR_USER, "NoConfiguration",
            "the module has .tofu files alone, which OpenTofu reads and this step's "
            "tool, Terraform, does not: install tofu, or choose it with --tool "
            "opentofu (spec.runtime.name)");
    char has[DF_TREE_LISTING];
    (void)df_tree_list(c->source.module_dir, has);
    return df_fail_reason(
        err, DF_ERR_USER, "NoConfiguration",
        "%s%s has no configuration (no %s file; what is there: %s): set the folder of the module, "
        "or restore its files; to remove the resources, destroy the executor",
        folder ? "the source's folder " : "the source", folder ? folder : "",
        tofu ? ".tf, .tofu, .tf.json or .tofu.json" : ".tf or .tf.json", *has ? has : "nothing");
}

/* ---- a plan that empties the state ---- */

bool df_plan_may_empty(const struct df_context *c)
{
    const struct df_output_summary *s = df_output_summary(c->output);
    if (c->destroys)
        return false;
    const int64_t *of = s->changes.of;
    bool may_take_away = of[DF_CHANGES_DESTROY] + of[DF_CHANGES_FORGET] + of[DF_CHANGES_OTHER] > 0;
    return !s->seen || (may_take_away && of[DF_CHANGES_CHANGE] <= of[DF_CHANGES_IMPORT]);
}

/* Bits: what happens to one object. */
enum fate { FATE_MADE = 1, FATE_GONE = 2, FATE_KEPT = 4 };

static unsigned fate_from_actions(const cJSON *actions)
{
    static const struct {
        const char *action;
        enum fate fate;
    } known[] = {{"create", FATE_MADE},
                 {"no-op", FATE_KEPT},
                 {"read", FATE_KEPT},
                 {"update", FATE_KEPT}}; /* delete, forget, and what tools may learn */
    unsigned fates = 0;
    const cJSON *action;
    cJSON_ArrayForEach (action, actions) {
        unsigned fate = FATE_GONE;
        for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
            if (df_streq(cJSON_GetStringValue(action), known[i].action))
                fate = known[i].fate;
        fates |= fate;
    }
    /* A replaced object exists before and after. */
    return fates & FATE_MADE && fates != FATE_MADE ? (unsigned)FATE_KEPT : fates;
}

int df_plan_text_empties(const char *text, size_t n, bool *ret, struct df_err *err)
{
    /* Members that can be large or secret. */
    static const char *const skipped[] = {"before",           "after",           "after_unknown",
                                          "before_sensitive", "after_sensitive", "prior_state",
                                          "planned_values",   "configuration",   "variables",
                                          "output_changes",   "resource_drift",  NULL};
    DF_JSON cJSON *plan = NULL;
    unsigned fates = 0;
    const cJSON *change;
    if (df_json_parse_without(text, n, skipped, &plan, err) < 0)
        return -1;
    cJSON_ArrayForEach (change, df_json_at(plan, "resource_changes")) {
        if (!df_streq(df_json_str(change, "mode"), "data"))
            fates |= df_json_at(change, "change.importing")
                         ? (unsigned)FATE_MADE
                         : fate_from_actions(df_json_at(change, "change.actions"));
    }
    *ret = fates & FATE_GONE && !(fates & FATE_KEPT);
    return 0;
}

bool df_plan_empties(int json)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_PLAN_READ);
    bool empties = true;
    return lseek(json, 0, SEEK_SET) < 0 || df_fs_read_fd(json, &text, NULL) < 0 ||
           df_plan_text_empties(df_buf_str(&text), text.len, &empties, NULL) < 0 || empties;
}
