#include "runner/outputs.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/redact/tree.h"
#include "runner/pull.h"
#include "runner/tofu/workspace.h"

/* ---- masking ---- */

/* Adds the masked value where it differs. Values of sensitive outputs are for admins alone. */
static int add_shown(const struct df_redact_set *set, cJSON *output, struct df_err *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
    DF_SECRET_JSON cJSON *copy = value ? cJSON_Duplicate(value, true) : NULL;
    bool changed = false;
    if (!value || df_json_bool(output, "sensitive", false))
        return 0;
    if (df_check_alloc(copy, err) < 0 || df_redact_tree(set, copy, &changed, err) < 0)
        return -1;
    return changed ? df_json_add(output, "shown", DF_TAKE(copy), err) : 0;
}

static int mask_value(const struct df_redact_set *set, cJSON *output, struct df_err *err)
{
    cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
    bool changed = false;
    return value ? df_redact_tree(set, value, &changed, err) : 0;
}

/* Masks all outputs in the file. *ret_count: how many there are. */
static int mask_file(struct df_context *c, const char *path,
                     int (*mask)(const struct df_redact_set *set, cJSON *output,
                                 struct df_err *err),
                     int *ret_count, struct df_err *err)
{
    DF_SECRET_JSON cJSON *outputs = NULL;
    cJSON *output;
    int next_ms;
    if (df_output_renew(c->output, &next_ms, err) < 0 ||
        df_json_load(path, 2 * DF_LIMIT_OUTPUTS, &outputs, err) < 0)
        return -1;
    cJSON_ArrayForEach (output, outputs) {
        if (mask(df_masks_set(c->masks), output, err) < 0)
            return -1;
    }
    *ret_count = cJSON_GetArraySize(outputs);
    return df_json_save(path, outputs, err);
}

/* ---- of other states ---- */

int df_outputs_put(struct df_context *c, const char *path, struct df_err *err)
{
    int count;
    return mask_file(c, path, add_shown, &count, err) < 0
               ? -1
               : df_report_put_artifact(c->report, "outputs", path, c->deadline_ms, err);
}

static int upload_outputs(struct df_context *c, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "outputs.json");
    return df_check_alloc(path, err) < 0 || df_pull_outputs(c, path, err) < 0
               ? -1
               : df_outputs_put(c, path, err);
}

/* ---- of the managed state ---- */

/* A step that may write the state stores also what an earlier one has masked: it is shown with its
 * run. A plan masks what others wrote: nothing, if there was no state. */
static int mask_missing(struct df_context *c, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "shown.json");
    bool is_plan = df_starts_with(df_json_str(c->doc, "action"), "plan");
    struct df_err why = {0};
    int count;
    if (is_plan && !df_json_bool(c->doc, "state.exists", true))
        return 0;
    if (!path)
        return df_fail_oom(err);
    if (df_report_get_artifact(c->report, "shown", path, c->deadline_ms, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (mask_file(c, path, mask_value, &count, err) < 0)
        return -1;
    return is_plan && !count
               ? 0
               : df_report_put_artifact(c->report, "shown", path, c->deadline_ms, err);
}

void df_outputs_keep(struct df_context *c)
{
    struct df_err err = {0};
    if (!df_workspace_is_managed(c->doc) && upload_outputs(c, &err) < 0)
        (void)df_output_note(c->output, "dayfly: the outputs are not kept with the run: %s",
                             err.message);
}

void df_outputs_deliver(struct df_context *c)
{
    struct df_err err = {0};
    bool has_run = c->commander.program;
    if (df_report_is_over(c->report))
        return;
    if (c->has_outputs)
        df_outputs_keep(c);
    if (df_workspace_is_managed(c->doc) && has_run && mask_missing(c, &err) < 0)
        (void)df_output_note(c->output,
                             "dayfly: only admins see the new outputs, because they are not "
                             "masked until the next step: %s",
                             err.message);
}
