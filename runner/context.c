#include "runner/context.h"

#include <stdarg.h>

void df_context_free(struct df_context *c)
{
    cJSON_Delete(c->result);
    df_source_result_free(&c->source);
    df_plugin_uses_end(&c->plugin_uses);
    df_kept_source_free(&c->kept);
    df_tool_free(&c->tool);
    df_workspace_free(&c->workspace);
    df_varfiles_free(&c->varfiles);
    df_step_wall_free(&c->wall);
    free(c->pid_path);
    free(c->fifo_path);
}

struct df_step_wall_request df_context_wall(const struct df_context *c)
{
    return (struct df_step_wall_request){
        .isolation = c->isolation, .step = c->doc, .dirs = c->dirs, .tool = c->tool.path};
}

int df_context_renew(struct df_context *c, struct df_err *err)
{
    struct df_context next = {
        .source = c->source, .plugin_uses = c->plugin_uses, .kept = c->kept, .is_kept = true};
    c->source = (struct df_source_result){0};
    c->plugin_uses = (struct df_plugin_uses){0};
    c->kept = (struct df_kept_source){0};
    df_context_free(c);
    *c = next;
    return df_check_alloc(c->result = cJSON_CreateObject(), err);
}

static int add_copy(cJSON *to, const cJSON *from, const char *name, struct df_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    return item ? df_json_add(to, name, cJSON_Duplicate(item, true), err) : 0;
}

int df_context_mark(struct df_context *c, const char *name, int64_t at_us, struct df_err *err)
{
    cJSON *timeline = df_json_array_at(c->result, "timeline");
    DF_JSON cJSON *progress = cJSON_CreateObject();
    cJSON *latest = df_json_array_at(progress, "timeline");
    cJSON *entry = cJSON_CreateObject();
    if (!timeline || !latest) {
        cJSON_Delete(entry);
        return df_fail_oom(err);
    }
    if (df_json_append(timeline, entry, err) < 0 ||
        df_json_put(entry, err, DF_STR("name", name), DF_TIME("at", at_us)) < 0 ||
        df_json_append(latest, cJSON_Duplicate(entry, true), err) < 0 ||
        add_copy(progress, c->result, "source", err) < 0 ||
        add_copy(progress, c->result, "tool", err) < 0)
        return -1;
    df_report_progress(c->report, progress, df_streq(name, "initialized"));
    return 0;
}

int df_context_add_summary(struct df_context *c, struct df_err *err)
{
    const struct df_output_summary *s = df_output_summary(c->output);
    if (!s->seen)
        return 0;
    cJSON *summary = df_json_object_at(c->result, "planSummary");
    return df_changes_write(&s->changes, summary, err);
}

void df_context_set_outcome(struct df_context *c, const char *reason, const char *fmt, ...)
{
    va_list ap;
    (void)snprintf(c->outcome.reason, sizeof c->outcome.reason, "%s", reason);
    va_start(ap, fmt);
    (void)vsnprintf(c->outcome.message, sizeof c->outcome.message, fmt, ap);
    va_end(ap);
}
