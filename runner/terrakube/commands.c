#include "runner/terrakube/commands.h"

#include "common/base/fs.h"
#include "common/redact/tree.h"
#include "runner/terrakube/advice.h"
#include "runner/terrakube/flow.h"
#include "runner/tool_run.h"

int df_terrakube_command_run(struct df_context *c, const struct df_strs *args,
                             enum df_command_events events, int *ret_code, struct df_err *err)
{
    if (df_strs_check(args, err) < 0 ||
        df_terrakube_temp_env(df_terrakube_of(c)->scripts.directory, &c->workspace.env, err) < 0)
        return -1;
    /* The last line of a command is an entry of the log, also without a newline. */
    df_terrakube_watch_command(df_terrakube_of(c)->watch, true);
    int failed = df_tool_run(c, args, events, !c->has_plugins, NULL, ret_code, err);
    df_terrakube_watch_command(df_terrakube_of(c)->watch, false);
    if (failed)
        return -1;
    return df_output_end_line(c->output, err);
}

static int explain(struct df_context *c, const char *command, const char *errors,
                   struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    struct df_failure f = {.summary = ""};
    char name[DF_TOOL_COMMAND_TEXT];
    if (df_fs_read_plain(errors, &text, NULL) == 0)
        df_failure_from_text(df_buf_str(&text), &f);
    if (!*f.summary) /* nobody sees the log of this command */
        df_failure_from_last_line(text.len ? df_buf_str(&text) : "it said nothing", &f);
    return df_failure_explain(&f, df_tool_command_name(&c->tool, command, name), "RunnerFailed",
                              &df_terrakube_failure_advice, err);
}

int df_terrakube_command_save(struct df_context *c, const char *const *args, const char *path,
                              struct df_err *err)
{
    DF_STRS struct df_strs all = {0};
    DF_FREE char *errors = df_strf("%s.err", path);
    struct df_process process = DF_PROCESS_INIT;
    struct df_command_end end = {.code = -1};
    struct df_commander quiet = c->commander;
    quiet.is_brief = true;
    quiet.stop = NULL;
    for (const char *const *a = args; *a; a++)
        (void)df_strs_add(&all, *a);
    if (df_check_alloc(errors, err) < 0 || df_strs_check(&all, err) < 0 ||
        df_terrakube_temp_env(df_terrakube_of(c)->scripts.directory, &c->workspace.env, err) < 0 ||
        df_command_start(&quiet, &all, path, errors, &process, err) < 0 ||
        df_command_wait(&quiet, &process, &end, err) < 0)
        return -1;
    return end.code == 0 ? 0 : explain(c, args[0], errors, err);
}

cJSON *df_terrakube_shown(const struct df_context *c, const char *path)
{
    DF_JSON cJSON *document = NULL;
    bool changed = false; /* df_redact_tree() only ever sets it */
    if (df_json_load(path, DF_LIMIT_TERRAKUBE_PLAN, &document, NULL) < 0 ||
        df_redact_tree(df_masks_set(c->masks), document, &changed, NULL) < 0)
        return NULL;
    return DF_TAKE(document);
}

int df_terrakube_command_fail(struct df_context *c, const char *command, const char *reason,
                              struct df_err *err)
{
    struct df_failure f;
    df_failure_from_events(df_output_summary(c->output), &f);
    return df_tool_failed(c, &f, command, reason, err);
}

int df_terrakube_on_failure(struct df_context *c)
{
    struct df_terrakube *t = df_terrakube_of(c);
    struct df_err why = {0};
    if (df_stop_cause(c->stop) == DF_STOP_NONE && t->payload->on_failure &&
        df_terrakube_scripts_run(c, &t->scripts, t->payload->on_failure, DF_TERRAKUBE_ALL, &why) <
            0)
        (void)df_output_note(c->output, "dayfly: onFailure: %s", why.message);
    return -1;
}
